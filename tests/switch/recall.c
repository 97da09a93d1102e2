/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals and cancellations for threads that wait by switching: for each place in which one may be met, a scene, each
 * run many times. Exit status 0 if all arrived, where they belong. A hang is ended by the test's time limit. Built a
 * second time with CANCEL_ONLY: where no signals are sent to threads, semaphores' waits are switches too.
 */
#include "scene.h"

#include <poll.h>
#include <semaphore.h>
#include <signal.h>

#define TIMES 60
#define OTHERS 6

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static int channel[2];
static atomic_int cleaned, n_moved;
static atomic_bool there, go_on, over;
static pthread_t target;

static void *keep_busy(void *unused) {
    keep_carriers_busy(&mutex, &over);
    return unused;
}

static void clean(void *mutex_to_unlock) {
    if (mutex_to_unlock != NULL)
        OK(pthread_mutex_unlock(mutex_to_unlock));
    atomic_fetch_add(&cleaned, 1);
}

static void leave_home(void) {
    long first = proc_kernel_thread();
    for (int i = 0; i < 20; i++)
        meet();
    atomic_fetch_add(&n_moved, proc_kernel_thread() != first);
    there = true;
}

/* ---- where they are met ---- */
static void in_read(void) {
    char byte;
    ssize_t n = read(channel[0], &byte, 1);
    CHECK(n == -1 && errno == EINTR);
}

static void in_cond(void) {
    OK(pthread_mutex_lock(&held));
    pthread_cleanup_push(clean, &held);
    for (;;)
        OK(pthread_cond_wait(&cond, &held));
    pthread_cleanup_pop(0);
}

static void in_timed_cond(void) {
    struct timespec at = time_in_ms(CLOCK_REALTIME, 1000000);
    OK(pthread_mutex_lock(&held));
    pthread_cleanup_push(clean, &held);
    for (;;)
        OK(pthread_cond_timedwait(&cond, &held, &at));
    pthread_cleanup_pop(0);
}

#ifndef CANCEL_ONLY
/* A mask that blocks all signals but one, those of the library among them. */
static void in_ppoll(void) {
    sigset_t all_but;
    sigfillset(&all_but);
    sigdelset(&all_but, SIGUSR1);
    CHECK(ppoll(NULL, 0, NULL, &all_but) == -1 && errno == EINTR);
}
#endif

static void in_sem(void) {
    CHECK(sem_wait(&sem) == -1 && errno == EINTR);
}

static _Atomic bool has_taken;

static void in_sem_until_posted(void) {
    while (sem_wait(&sem) != 0)
        CHECK(errno == EINTR);
    has_taken = true;
}

static void in_sleep(void) {
    CHECK(nanosleep(&(struct timespec){1000, 0}, NULL) == -1 && errno == EINTR);
}

static void in_computation(void) {
    while (!go_on)
        ;
    pthread_testcancel();
}

static void in_lock(void) {
    OK(pthread_mutex_lock(&held));
    OK(pthread_mutex_unlock(&held));
    pthread_testcancel();
}

static void asynchronously(void) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    for (;;)
        ;
}

static void *be_there(void *place) {
    leave_home();
    pthread_cleanup_push(clean, NULL);
    (*(void (**)(void))place)();
    pthread_cleanup_pop(0);
    return NULL;
}

static pthread_t others[OTHERS];

static void begin(void (*place)(void)) {
    static void (*there_then)(void);
    there_then = place;
    there = go_on = over = false;
    OK(pthread_barrier_init(&barrier, NULL, OTHERS + 1));
    OK(pthread_create(&target, NULL, be_there, &there_then));
    for (int i = 0; i < OTHERS; i++)
        OK(pthread_create(&others[i], NULL, keep_busy, NULL));
    while (!there)
        sleep_us(100);
}

static void *end(void) {
    void *result = thread_join(target);
    over = true;
    for (int i = 0; i < OTHERS; i++)
        thread_join(others[i]);
    OK(pthread_barrier_destroy(&barrier));
    return result;
}

static void one_moved(void) {
    printf("%d of %d targets had left home\n", n_moved, TIMES);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

/* ---- cancellations ---- */
static void cancel_at(void (*place)(void), int n_cleanups) {
    for (int i = 0; i < TIMES; i++) {
        bool locks = place == in_lock;
        cleaned = 0;
        if (locks)
            OK(pthread_mutex_lock(&held));
        begin(place);
        sleep_us(i * 37 % 2000);
        OK(pthread_cancel(target));
        go_on = true;
        if (locks)
            OK(pthread_mutex_unlock(&held));
        CHECK(end() == PTHREAD_CANCELED);
        CHECK(cleaned == n_cleanups);
    }
    one_moved();
}

/* A post that a cancelled waiter was woken by is another's to take. Under the C library alone the other may sleep on.
 */
static void *take_one(void *unused) {
    while (sem_wait(&sem) != 0)
        CHECK(errno == EINTR);
    return unused;
}

static void cancel_passes(void) {
    for (int i = 0; getenv("SWITCHED") != NULL && i < TIMES; i++) {
        int left;
        has_taken = false;
        begin(in_sem_until_posted);
        pthread_t other = thread_start(take_one, NULL);
        sleep_us(i * 37 % 2000);
        OK_ERRNO(sem_post(&sem));
        OK(pthread_cancel(target));
        /* The result does not tell: the C library's handler also writes it when the thread has already returned. */
        CHECK(end() == PTHREAD_CANCELED || has_taken);
        if (has_taken)
            OK_ERRNO(sem_post(&sem));
        thread_join(other);
        OK_ERRNO(sem_getvalue(&sem, &left));
        CHECK(left == 0);
    }
    one_moved();
}

static void cancel_read(void) {
    cancel_at(in_read, 1);
}
static void cancel_cond(void) {
    cancel_at(in_cond, 2);
}
static void cancel_timed_cond(void) {
    cancel_at(in_timed_cond, 2);
}
static void cancel_sem(void) {
    cancel_at(in_sem, 1);
}
static void cancel_sleep(void) {
    cancel_at(in_sleep, 1);
}
static void cancel_computation(void) {
    cancel_at(in_computation, 1);
}
static void cancel_lock(void) {
    cancel_at(in_lock, 1);
}
static void cancel_async(void) {
    cancel_at(asynchronously, 1);
}

#ifndef CANCEL_ONLY
/* ---- signals ---- */
static atomic_int n_handled, n_wrong;

static void note(int signal) {
    (void)signal;
    if (!pthread_equal(pthread_self(), target))
        atomic_fetch_add(&n_wrong, 1);
    atomic_fetch_add(&n_handled, 1);
    go_on = true;
}

/* `fails`: the place is left by EINTR, and not always: the signal may come before it is reached. */
static void kill_at(void (*place)(void), bool fails) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = note}, NULL));
    for (int i = 0; i < TIMES; i++) {
        int before = n_handled;
        if (place == in_lock)
            OK(pthread_mutex_lock(&held));
        begin(place);
        sleep_us(2000 + i * 37 % 2000);
        OK(pthread_kill(target, SIGUSR1));
        while (n_handled == before)
            sleep_us(100);
        if (place == in_lock)
            OK(pthread_mutex_unlock(&held));
        for (int k = 0; fails && k < 1000 && pthread_tryjoin_np(target, NULL) == EBUSY; k++)
            pthread_kill(target, SIGUSR1), sleep_us(5000);
        over = true;
        if (!fails)
            thread_join(target);
        for (int k = 0; k < OTHERS; k++)
            thread_join(others[k]);
    }
    CHECK(n_wrong == 0);
    one_moved();
}

static void kill_read(void) {
    kill_at(in_read, true);
}
static void kill_ppoll(void) {
    kill_at(in_ppoll, true);
}
static void kill_sleep(void) {
    kill_at(in_sleep, true);
}
static void kill_sem(void) {
    kill_at(in_sem, true);
}
static void kill_computation(void) {
    kill_at(in_computation, false);
}
static void kill_lock(void) {
    kill_at(in_lock, false);
}

/* ---- a call that is to be made again is, and what it waited for comes ---- */
static void in_read_again(void) {
    char byte = 0;
    CHECK(read(channel[0], &byte, 1) == 1);
    CHECK(byte == 'x');
}

static void kill_restart(void) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = note, .sa_flags = SA_RESTART}, NULL));
    for (int i = 0; i < TIMES; i++) {
        begin(in_read_again);
        for (int k = 0; k < 5; k++) {
            int before = n_handled;
            sleep_us(i * 37 % 2000);
            OK(pthread_kill(target, SIGUSR1));
            while (n_handled == before)
                sleep_us(100);
        }
        CHECK(write(channel[1], "x", 1) == 1);
        CHECK(end() == NULL);
    }
    CHECK(n_wrong == 0);
    one_moved();
}

/* ---- all threads are sent signals all the time ---- */
static void count_it(int signal) {
    (void)signal;
    atomic_fetch_add(&n_handled, 1);
}

static void *meet_often(void *unused) {
    bool enough;
    do {
        meet();
        enough = over;
        meet();
        if (enough)
            atomic_store(&go_on, true); /* the thread that has seen it tells all, before the next meeting */
        meet();
    } while (!go_on);
    return unused;
}

static void storm(void) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_it, .sa_flags = SA_RESTART}, NULL));
    OK(pthread_barrier_init(&barrier, NULL, OTHERS));
    for (int i = 0; i < OTHERS; i++)
        OK(pthread_create(&others[i], NULL, meet_often, NULL));
    for (int i = 0; i < 50 * TIMES; i++)
        OK(pthread_kill(others[i % OTHERS], SIGUSR1));
    over = true;
    for (int i = 0; i < OTHERS; i++)
        thread_join(others[i]);
    CHECK(n_handled > 0);
}

/* ---- to itself, at once ---- */
static void *signal_oneself(void *unused) {
    for (int i = 0; i < 500; i++) {
        meet();
        int before = n_handled;
        OK(pthread_kill(pthread_self(), SIGUSR1));
        CHECK(n_handled > before);
    }
    return unused;
}

static void self(void) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_it, .sa_flags = SA_RESTART}, NULL));
    OK(pthread_barrier_init(&barrier, NULL, OTHERS));
    for (int i = 0; i < OTHERS; i++)
        OK(pthread_create(&others[i], NULL, signal_oneself, NULL));
    for (int i = 0; i < OTHERS; i++)
        thread_join(others[i]);
    CHECK(n_handled == OTHERS * 500);
}

/* ---- that end the process: by a thread that waits for ever, away from home ---- */
static void *wait_for_ever(void *unused) {
    leave_home();
    in_cond();
    return unused;
}

static void fatal(void) {
    for (int i = 0; i < 10; i++) {
        int status;
        pid_t pid = fork();
        SYS(pid);
        if (pid == 0) {
            OK(pthread_barrier_init(&barrier, NULL, OTHERS + 1));
            for (int k = 0; k < OTHERS; k++)
                OK(pthread_create(&others[k], NULL, keep_busy, NULL));
            OK(pthread_create(&target, NULL, wait_for_ever, NULL));
            while (!there)
                sleep_us(100);
            sleep_us(2000);
            OK(pthread_kill(target, SIGTERM));
            sleep_us(20000000);
            _exit(1);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
}

/* ---- blocked, to itself: handled when it is unblocked, wherever the thread has been in between ---- */
static void *block_and_signal(void *unused) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    for (int i = 0; i < 50; i++) {
        int before = n_handled;
        OK(pthread_sigmask(SIG_BLOCK, &one, NULL));
        OK(pthread_kill(pthread_self(), SIGUSR1));
        meet();
        CHECK(n_handled == before);
        meet();
        OK(pthread_sigmask(SIG_UNBLOCK, &one, NULL));
        CHECK(n_handled > before);
        meet();
    }
    return unused;
}

static void blocked(void) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = count_it, .sa_flags = SA_RESTART}, NULL));
    OK(pthread_barrier_init(&barrier, NULL, OTHERS));
    for (int i = 0; i < OTHERS; i++)
        OK(pthread_create(&others[i], NULL, block_and_signal, NULL));
    for (int i = 0; i < OTHERS; i++)
        thread_join(others[i]);
    CHECK(n_handled == OTHERS * 50);
}

#endif

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"cancel-read", cancel_read},
        {"cancel-cond", cancel_cond},
        {"cancel-timed-cond", cancel_timed_cond},
        {"cancel-sem", cancel_sem},
        {"cancel-passes", cancel_passes},
        {"cancel-sleep", cancel_sleep},
        {"cancel-computation", cancel_computation},
        {"cancel-lock", cancel_lock},
        {"cancel-async", cancel_async},
#ifndef CANCEL_ONLY
        {"kill-read", kill_read},
        {"kill-sleep", kill_sleep},
        {"kill-sem", kill_sem},
        {"kill-computation", kill_computation},
        {"kill-lock", kill_lock},
        {"kill-restart", kill_restart},
        {"kill-storm", storm},
        {"kill-self", self},
        {"kill-fatal", fatal},
        {"kill-blocked", blocked},
        {"kill-ppoll", kill_ppoll},
#endif
        {NULL, NULL},
    };
    OK_ERRNO(pipe(channel));
    OK_ERRNO(sem_init(&sem, 0, 0));
    return play(argc, argv, scenes);
}

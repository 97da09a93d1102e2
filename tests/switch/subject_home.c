/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scenes of programs whose main thread stays at home: those that call pthread_exit or install signal handlers. As
 * subject.c otherwise.
 */
#include "scene.h"

#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#define ROUNDS 300

/* ---- threads that have moved end, are joined by others that have, and the last one ends the process ---- */
static void *end_by_exit(void *number) {
    for (int i = 0; i < 20; i++)
        meet();
    if ((long)number % 2 == 0)
        pthread_exit(number);
    return number;
}

static void ends(void) {
    for (int i = 0; i < 20; i++)
        run(N, end_by_exit);
}

static void *end_last(void *main_thread) {
    MUST(pthread_join(*(pthread_t *)main_thread, NULL) == 0);
    for (int i = 0; i < 20; i++)
        meet();
    return NULL;
}

static void main_ends_first(void) {
    static pthread_t self;
    pthread_t thread;
    self = pthread_self();
    MUST(pthread_barrier_init(&barrier, NULL, 1) == 0);
    MUST(pthread_create(&thread, NULL, end_last, &self) == 0);
    MUST(pthread_detach(thread) == 0);
    pthread_exit(NULL);
}

/* ---- a handler wakes, and forks, wherever it strikes: the main thread has ended, so on carriers mostly ---- */
#define POSTS 2000

static sem_t posted;
static atomic_int n_posted, n_taken;
static pthread_t main_self;

static void post(int signo) {
    (void)signo;
    int saved = errno;
    if (atomic_fetch_add(&n_posted, 1) < POSTS)
        MUST(sem_post(&posted) == 0);
    errno = saved;
}

static void *take(void *number) {
    bool odd = (long)number % 2 != 0;
    while (atomic_fetch_add(&n_taken, 1) < POSTS) {
        MUST(sem_wait(&posted) == 0);
        for (int i = 0; odd && i < 50; i++)
            sched_yield();
    }
    return number;
}

static void *post_and_take(void *unused) {
    struct itimerval every = {{0, 150}, {0, 150}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = post, .sa_flags = SA_RESTART};
    MUST(pthread_join(main_self, NULL) == 0);
    MUST(sem_init(&posted, 0, 0) == 0);
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &every, NULL) == 0);
    run(N, take); /* ends only if no wake-up is lost: nobody but the handler posts */
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
    exit(0);
    return unused;
}

static void handlers_post(void) {
    pthread_t thread;
    main_self = pthread_self();
    MUST(pthread_create(&thread, NULL, post_and_take, NULL) == 0);
    MUST(pthread_detach(thread) == 0);
    pthread_exit(NULL);
}

static void fork_now(int signo) {
    (void)signo;
    int saved = errno, status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    MUST(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    errno = saved;
}

static void *meet_often(void *number) {
    for (int i = 0; i < 20 * ROUNDS; i++)
        meet();
    return number;
}

static void *fork_and_meet(void *unused) {
    struct itimerval every = {{0, 5000}, {0, 5000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = fork_now, .sa_flags = SA_RESTART};
    MUST(pthread_join(main_self, NULL) == 0);
    MUST(sigaction(SIGALRM, &action, NULL) == 0);
    MUST(setitimer(ITIMER_REAL, &every, NULL) == 0);
    run(N, meet_often);
    MUST(setitimer(ITIMER_REAL, &never, NULL) == 0);
    exit(0);
    return unused;
}

static void handlers_fork(void) {
    pthread_t thread;
    main_self = pthread_self();
    MUST(pthread_create(&thread, NULL, fork_and_meet, NULL) == 0);
    MUST(pthread_detach(thread) == 0);
    pthread_exit(NULL);
}

/* ---- a handler forks while its thread waits in a barrier: in the child that goes on waiting, for a thread of the
 * child's ---- */
static pthread_barrier_t pair;
static _Atomic pid_t child_of_handler;
static atomic_bool is_child;

static void *meet_in_child(void *unused) {
    usleep(1000);
    pthread_barrier_wait(&pair);
    return unused;
}

static void fork_and_return(int signo) {
    (void)signo;
    pthread_t thread;
    pid_t pid = fork();
    if (pid == 0) {
        is_child = true;
        MUST(pthread_create(&thread, NULL, meet_in_child, NULL) == 0);
    } else {
        child_of_handler = pid;
    }
}

static void *be_forked_in_barrier(void *number) {
    int status;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 1) {
        usleep(20000);
        MUST(pthread_kill(threads[0], SIGUSR1) == 0);
        while (child_of_handler == 0)
            usleep(100);
        MUST(waitpid(child_of_handler, &status, 0) == child_of_handler);
        MUST(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    if ((long)number < 2)
        pthread_barrier_wait(&pair);
    if (is_child)
        _exit(7);
    return number;
}

static void fork_in_barrier(void) {
    struct sigaction action = {.sa_handler = fork_and_return, .sa_flags = SA_RESTART};
    MUST(sigaction(SIGUSR1, &action, NULL) == 0);
    MUST(pthread_barrier_init(&pair, NULL, 2) == 0);
    run(N, be_forked_in_barrier);
}

/* ---- credentials, where all threads block all signals, and one sleeps in the kernel ---- */
static int channel[2];

static void *block_and_read(void *number) {
    char byte;
    sigset_t all;
    sigfillset(&all);
    MUST(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0) {
        MUST(setegid(getegid()) == 0);
        MUST(write(channel[1], "", 1) == 1);
    } else if ((long)number == 1) {
        MUST(read(channel[0], &byte, 1) == 1);
    }
    meet();
    return number;
}

static void ends_with_signals_blocked(void) {
    MUST(pipe(channel) == 0);
    run(N, block_and_read);
}

/* ---- a signal by number ends what can be interrupted, in a program that is not known to send any ---- */
static sem_t nothing;
static pthread_t receiver;
static atomic_long receiver_tid;
static atomic_int n_received;
static atomic_bool interrupted;

static void receive(int signal) {
    (void)signal;
    MUST(pthread_equal(pthread_self(), receiver));
    atomic_fetch_add(&n_received, 1);
}

static void *be_interrupted(void *number) {
    if ((long)number == 1) {
        receiver = pthread_self();
        receiver_tid = kernel_thread();
    }
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 1) {
        MUST(sem_wait(&nothing) == -1 && errno == EINTR && n_received == 1);
        interrupted = true;
    }
    if ((long)number == 0) {
        struct timespec while_it_waits = {0, 50000000};
        nanosleep(&while_it_waits, NULL);
        MUST(syscall(SYS_tgkill, getpid(), (int)receiver_tid, SIGUSR1) == 0);
        while (!interrupted)
            sched_yield();
    }
    return number;
}

static void interrupts_by_number(void) {
    MUST(sem_init(&nothing, 0, 0) == 0);
    MUST(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = receive}, NULL) == 0);
    run(N, be_interrupted);
}

/*
 * ---- main has the kernel's turn to wait for, while two contexts switch to each other and one of them yields ----
 * Under a real-time policy, on one core (scenes.sh), nobody else gives it that. One of them begins with one more yield:
 * each then leaves and comes in the other order of the carrier's turns.
 */
static pthread_mutex_t turn_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_cond = PTHREAD_COND_INITIALIZER;
static int turns; /* given, protected by turn_mutex */
static atomic_bool turns_over;

static void *take_turns(void *unused) {
    MUST(pthread_mutex_lock(&turn_mutex) == 0);
    for (int taken = 0; !turns_over; taken = turns)
        while (turns == taken && !turns_over)
            MUST(pthread_cond_wait(&turn_cond, &turn_mutex) == 0);
    MUST(pthread_mutex_unlock(&turn_mutex) == 0);
    return unused;
}

static void *give_turns(void *yields_first) {
    if (yields_first != NULL)
        sched_yield();
    do {
        MUST(pthread_mutex_lock(&turn_mutex) == 0);
        turns++;
        MUST(pthread_cond_signal(&turn_cond) == 0);
        MUST(pthread_mutex_unlock(&turn_mutex) == 0);
        sched_yield();
    } while (!turns_over);
    return NULL;
}

static void main_gets_a_turn(bool yields_first) {
    pthread_t taker, giver;
    MUST(pthread_create(&taker, NULL, take_turns, NULL) == 0);
    MUST(pthread_create(&giver, NULL, give_turns, yields_first ? &turns : NULL) == 0);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    turns_over = true;
    MUST(pthread_join(giver, NULL) == 0);
    MUST(pthread_mutex_lock(&turn_mutex) == 0);
    MUST(pthread_cond_broadcast(&turn_cond) == 0);
    MUST(pthread_mutex_unlock(&turn_mutex) == 0);
    MUST(pthread_join(taker, NULL) == 0);
    printf("%d turns\n", turns);
}

static void main_gets_even_turns(void) {
    main_gets_a_turn(false);
}

static void main_gets_odd_turns(void) {
    main_gets_a_turn(true);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"ends", ends},
        {"main-ends-first", main_ends_first},
        {"fork-in-barrier", fork_in_barrier},
        {"handlers-post", handlers_post},
        {"handlers-fork", handlers_fork},
        {"ends-with-signals-blocked", ends_with_signals_blocked},
        {"interrupts-by-number", interrupts_by_number},
        {"main-gets-even-turns", main_gets_even_turns},
        {"main-gets-odd-turns", main_gets_odd_turns},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

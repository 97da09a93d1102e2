/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to record, in known numbers of events; `how` it ends, or what else it does, is the first argument. Knows
 * nothing of Subutai.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "lib/proc.h"
#include "lib/processes.h"
#include "lib/threads.h"
#include "subject.h"

enum { N_THREADS = 4, N_ROUNDS = 2000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t sem;
static int turn, shared;

/* Turns: 1 wait loop, 1 lock, 1 broadcast, 1 unlock each; all primitives, a known number of each but waits. */
static void *everything(void *argument) {
    int self = (int)(intptr_t)argument;
    for (int i = 0; i < N_ROUNDS; i++) {
        OK(pthread_mutex_lock(&mutex));
        while (turn % N_THREADS != self)
            OK(pthread_cond_wait(&cond, &mutex));
        turn++;
        OK(pthread_cond_broadcast(&cond));
        OK(pthread_mutex_unlock(&mutex));

        OK(pthread_mutex_lock(&recursive));
        OK(pthread_mutex_lock(&recursive));
        shared++;
        OK(pthread_mutex_unlock(&recursive));
        OK(pthread_mutex_unlock(&recursive));

        OK(i % 4 == 0 ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        OK(pthread_spin_lock(&spin));
        OK(pthread_spin_unlock(&spin));
        OK_ERRNO(sem_post(&sem));
        OK_ERRNO(sem_wait(&sem));
        if (i % 20 == 0) {
            int r = pthread_barrier_wait(&barrier);
            CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        }
    }
    return NULL;
}

/* Turns by futexes: each thread wakes all others, and waits while it is not its turn. */
static uint32_t word;

static long futex(int op, uint32_t val, const struct timespec *timeout) {
    return syscall(SYS_futex, &word, op, val, timeout, NULL, 0);
}

static void *take_turns(void *argument) {
    uint32_t self = (uint32_t)(uintptr_t)argument;
    for (int i = 0; i < N_ROUNDS; i++) {
        uint32_t now;
        while ((now = __atomic_load_n(&word, __ATOMIC_ACQUIRE)) % N_THREADS != self)
            CHECK(futex(FUTEX_WAIT_PRIVATE, now, NULL) == 0 || errno == EAGAIN);
        __atomic_store_n(&word, now + 1, __ATOMIC_RELEASE);
        SYS(futex(FUTEX_WAKE_PRIVATE, INT_MAX, NULL));
    }
    return NULL;
}

static void run_threads(void *(*routine)(void *)) {
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        threads[i] = thread_start(routine, (void *)(intptr_t)i);
    for (int i = 0; i < N_THREADS; i++)
        thread_join(threads[i]);
}

static sem_t passes;
static pthread_barrier_t gate;
static void *pass_for_ever(void *unused) {
    (void)unused;
    for (;;) {
        sem_wait(&passes);
        shared++;
        sem_post(&passes);
    }
    return NULL;
}

static void *meet_for_ever(void *unused) {
    (void)unused;
    for (;;) {
        for (int i = 0; i < 1000; i++) {
            pthread_mutex_lock(&mutex);
            shared++;
            pthread_mutex_unlock(&mutex);
        }
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

/* For 300 ms, and on a busy machine until so much is done that blocks have been written. */
static void let_them_work(void) {
    sleep_ms(300);
    while (__atomic_load_n(&shared, __ATOMIC_RELAXED) < 50000)
        sleep_ms(1);
}

static void *lock_for_ever(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&mutex);
        shared++;
        pthread_mutex_unlock(&mutex);
        pthread_testcancel();
    }
    return NULL;
}

static void *exit_inside(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    pthread_exit(NULL);
}

static pthread_key_t key;

static void late(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

static void *with_destructor(void *unused) {
    (void)unused;
    pthread_setspecific(key, &key);
    return NULL;
}

static void unlock(void *unused) {
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

static pid_t waits; /* its kernel thread, as the last thing before it does */

static void *wait_for_ever(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, NULL);
    __atomic_store_n(&waits, (pid_t)proc_kernel_thread(), __ATOMIC_RELEASE);
    for (;;)
        pthread_cond_wait(&cond, &mutex);
    pthread_cleanup_pop(1);
    return NULL;
}

static volatile int n_posted;

static void post(int signal) {
    (void)signal;
    int saved = errno;
    n_posted++;
    sem_post(&sem);
    errno = saved;
}

/* Posts from a handler, in the middle of everything else, as many as there are waits. */
static void handlers(void) {
    struct sigaction action = {.sa_handler = post, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 300; i++) {
        while (sem_trywait(&sem) != 0) {
            pthread_mutex_lock(&mutex);
            pthread_mutex_unlock(&mutex);
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%d posts\n", n_posted);
}

/*
 * Semaphores that a child has from its parent, each used first by a handler, by what it interrupts, or by both at the
 * same place.
 */
enum { N_INHERITED = 100000 };
static sem_t *inherited;
static volatile int current;

static void __attribute__((noinline)) post_current(void) {
    int saved = errno;
    sem_post(&inherited[current]);
    errno = saved;
}

static void post_too(int signal) {
    (void)signal;
    post_current();
}

static void use_inherited(void) {
    struct sigaction action = {.sa_handler = post_too, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (current = 0; current < N_INHERITED - 1; current++)
        post_current();
    setitimer(ITIMER_REAL, &never, NULL);
}

static void inherit(void) {
    inherited = malloc(N_INHERITED * sizeof *inherited);
    for (int i = 0; inherited != NULL && i < N_INHERITED; i++)
        sem_init(&inherited[i], 0, 0);
    pid_t child = inherited != NULL ? fork() : -1;
    if (child == 0) {
        use_inherited();
        exit(0);
    }
    child_join(child);
}

static void some_locks(int n) {
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

/* Another user, before anything else; it may close all descriptors that are not its own, or be a child, or that one's
 * child of vfork. */
static void drops(const char *how) {
    int status = 0;
    if (strncmp(how, "drops-in-", 9) == 0 && fork() != 0) {
        wait(&status);
        OK(status);
        return;
    }
    if (strcmp(how, "drops-in-vfork") == 0 && vfork() != 0) {
        wait(NULL);
        some_locks(20000);
        return;
    }
    OK_ERRNO(setuid(65534));
    if (strcmp(how, "drops-in-vfork") == 0)
        _exit(0);
    for (int fd = 3; strcmp(how, "drops-and-closes") == 0 && fd < 1024; fd++)
        close(fd);
    some_locks(20000);
}

static void children(void) {
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            some_locks(10);
            if (i == 0)
                _exit(0);
            exit(0);
        }
        waitpid(child, NULL, 0);
    }
    pid_t child = fork();
    if (child == 0) {
        char *argv[] = {(char *)"subject", (char *)"locks", NULL};
        execv("/proc/self/exe", argv);
        _exit(1);
    }
    waitpid(child, NULL, 0);
    child = vfork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    some_locks(10);
}

/*
 * 20 times 5 ms of work and 5 ms of sleep, the whole of each between two calls. The first tells how long each was: the
 * work alone, and all of the thread's CPU time from call to call, in which the sleep and what interrupts it are.
 */
static void *work_and_sleep(void *number) {
    long spent[20], all[20];
    for (int i = 0; i < 20; i++) {
        int64_t start = now_ns(CLOCK_THREAD_CPUTIME_ID);
        spent[i] = subject_compute(5000000);
        sleep_ms(5);
        all[i] = (long)(now_ns(CLOCK_THREAD_CPUTIME_ID) - start);
        some_locks(1);
    }
    if (number == NULL) {
        subject_tell_list("pieces", 20, spent);
        subject_tell_list("all_of_each", 20, all);
    }
    return NULL;
}

static void *ten_locks(void *unused) {
    (void)unused;
    some_locks(10);
    return NULL;
}

static void *join_for_ever(void *unused) {
    (void)unused;
    for (;;)
        run_threads(ten_locks);
    return NULL;
}

/* A detached job. Its memory, with the pthread_t, is gone before its starter goes on. */
struct job {
    pthread_t thread;
};

static void *run_job(void *job) {
    munmap(job, sizeof(struct job));
    sem_post(&sem);
    return NULL;
}

static void start_jobs(void) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 200; i++) {
        struct job *job = mmap(NULL, sizeof *job, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(job != MAP_FAILED);
        OK(pthread_create(&job->thread, &detached, run_job, job));
    }
    for (int i = 0; i < 202; i++) /* 2 are there from the beginning */
        sem_wait(&sem);
}

static void expired(union sigval unused) {
    (void)unused;
    sem_post(&sem);
}

/* Threads of the C library's own, which are not seen to be created. */
static void timers(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = expired};
    struct itimerspec once = {.it_value = {0, 1}};
    timer_t timer;
    OK_ERRNO(timer_create(CLOCK_MONOTONIC, &event, &timer));
    sem_wait(&sem); /* 2 are there from the beginning */
    sem_wait(&sem);
    for (int i = 0; i < 100; i++) { /* one after another: a timer set again before its signal is taken expires once */
        timer_settime(timer, 0, &once, NULL);
        sem_wait(&sem);
        sleep_ms(1);
    }
    for (char n[16] = "all"; strcmp(n, "2") != 0; sleep_ms(1)) /* this one, and the C library's that makes the others */
        CHECK(proc_status("self", "Threads:", n, sizeof n));
}

static void *outlive(void *unused) {
    (void)unused;
    while (proc_thread_state(getpid()) != 'Z') /* the first thread has ended */
        sleep_ms(1);
    some_locks(1);
    printf("done\n");
    exit(0);
}

/* ---- what a program should not do, and what a trace cannot have ---- */

static void *lock_once(void *unused) {
    (void)unused;
    some_locks(1);
    return NULL;
}

static void *misuse_thread(void *unused) { /* unlocks what main holds */
    (void)unused;
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}

/* From gcc 14 on AddressSanitizer ends a program for a join that must fail. */
static bool may_join_wrongly(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded == NULL || strstr(preloaded, "libasan") == NULL;
}

/*
 * Counted by the record suite: 1 join with EDEADLK, 1 with EINVAL; 1 creation with EAGAIN or EINVAL; unlocks without
 * the lock, and by another thread; objects destroyed in use, and initialised twice.
 */
static void misuse(void) {
    pthread_mutexattr_t checking;
    pthread_mutex_t checked;
    pthread_attr_t attr;
    pthread_t thread;
    struct timespec now;
    CHECK(!may_join_wrongly() || pthread_join(pthread_self(), NULL) == EDEADLK);
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    sem_t done;
    OK_ERRNO(sem_init(&done, 0, 0));
    thread = thread_start(pass_for_ever, NULL); /* waits for `passes`, which is 0, until the process ends */
    OK(pthread_detach(thread));
    CHECK(!may_join_wrongly() || pthread_join(thread, NULL) == EINVAL);
    thread = thread_start(lock_once, NULL);
    OK_ERRNO(clock_gettime(CLOCK_REALTIME, &now));
    now.tv_sec += 60;
    OK(pthread_timedjoin_np(thread, NULL, &now));
    OK(pthread_mutexattr_init(&checking));
    OK(pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK));
    OK(pthread_mutex_init(&checked, &checking));
    CHECK(pthread_mutex_unlock(&checked) == EPERM);
    OK(pthread_mutex_lock(&checked));
    CHECK(pthread_mutex_lock(&checked) == EDEADLK);
    OK(pthread_mutex_init(&checked, &checking)); /* while it is held */
    OK(pthread_mutex_lock(&mutex));
    thread = thread_start(misuse_thread, NULL);
    thread_join(thread);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_init(&mutex, NULL));
    OK(pthread_mutex_unlock(&mutex)); /* of what is not held any more */
    CHECK(sem_trywait(&done) == -1);
    pid_t child = fork();
    if (child == 0) { /* its trace begins after the initialisations */
        some_locks(3);
        exit(0);
    }
    child_join(child);
    OK(pthread_mutex_lock(&mutex)); /* until the process ends */
}

static void leave(int signal) {
    (void)signal;
    _exit(9);
}

/* All threads end the process at the same time. */
static void *leave_together(void *unused) {
    static atomic_int n_here;
    (void)unused;
    some_locks(2000);
    atomic_fetch_add(&n_here, 1);
    while (atomic_load(&n_here) < N_THREADS)
        sched_yield();
    _exit(7);
}

/* 2000 times 20 us of work between two calls, all threads on one core: they push each other off it. */
static void *contend(void *unused) {
    (void)unused;
    for (int i = 0; i < 2000; i++) {
        subject_compute(20000);
        some_locks(1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "everything";
    if (strcmp(how, "idle") == 0) { /* no call that is recorded */
        signal(SIGXFSZ, leave);
        return 0;
    }
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_barrier_init(&barrier, NULL, N_THREADS);
    sem_init(&sem, 0, strcmp(how, "handlers") == 0 ? 0 : 2);
    if (strcmp(how, "everything") == 0) {
        run_threads(everything);
        pthread_barrier_destroy(&barrier);
    } else if (strcmp(how, "handlers") == 0) {
        handlers();
    } else if (strcmp(how, "inherit") == 0) {
        inherit();
    } else if (strcmp(how, "jobs") == 0) {
        start_jobs();
    } else if (strcmp(how, "timers") == 0) {
        timers();
    } else if (strcmp(how, "main-ends") == 0) {
        thread_start(outlive, NULL);
        pthread_exit(NULL);
    } else if (strcmp(how, "misuse") == 0) {
        misuse();
    } else if (strcmp(how, "held") == 0) {
        subject_held();
    } else if (strcmp(how, "cut") == 0) {
        subject_cut();
    } else if (strcmp(how, "joins") == 0) { /* ends while records are closed */
        for (int i = 0; i < N_THREADS; i++)
            thread_start(join_for_ever, NULL);
        sleep_ms(10);
        exit(7);
    } else if (strcmp(how, "leave-together") == 0) {
        run_threads(leave_together);
    } else if (strcmp(how, "children") == 0) {
        children();
    } else if (strcmp(how, "locks") == 0) {
        some_locks(10);
        return 0;
    } else if (strcmp(how, "futexes") == 0) {
        run_threads(take_turns);
        CHECK_ERRNO(futex(FUTEX_WAIT_PRIVATE, word, &(struct timespec){0, 20000000}), ETIMEDOUT);
        CHECK_ERRNO(futex(FUTEX_WAIT_PRIVATE, word + 1, NULL), EAGAIN);
        CHECK_INT(futex(FUTEX_WAKE_PRIVATE, 1, NULL), 0);
        CHECK_ERRNO(futex(FUTEX_WAKE_PRIVATE | FUTEX_CLOCK_REALTIME, 1, NULL), ENOSYS);
    } else if (strcmp(how, "work") == 0) {
        run_threads(work_and_sleep);
        subject_tell_spent();
    } else if (strcmp(how, "contended") == 0) {
        stay_on_one_cpu();
        run_threads(contend);
        subject_tell_spent();
    } else if (strcmp(how, "ends") == 0) {
        pthread_key_create(&key, late);
        run_threads(exit_inside);
        run_threads(with_destructor);
        pthread_t thread = thread_start(wait_for_ever, NULL);
        await_asleep(&waits);
        pthread_cancel(thread);
        thread_join(thread);
    } else if (strcmp(how, "close") == 0) { /* descriptors that are not its own, and files of its own in their place */
        some_locks(20000);
        for (int fd = 3; fd < 1024; fd++)
            close(fd);
        int own[600];
        for (int i = 0; i < 600; i++)
            own[i] = open("/dev/null", O_RDWR);
        some_locks(20000);
        close(own[0]);
    } else if (strncmp(how, "drops", 5) == 0) { /* root */
        drops(how);
    } else if (strcmp(how, "killed-at-a-barrier") == 0) {
        OK(pthread_barrier_init(&gate, NULL, N_THREADS));
        for (int i = 0; i < N_THREADS; i++)
            thread_start(meet_for_ever, NULL);
        let_them_work();
        kill(getpid(), SIGKILL);
    } else if (strcmp(how, "killed-at-a-semaphore") == 0) {
        OK_ERRNO(sem_init(&passes, 0, 1));
        for (int i = 0; i < N_THREADS; i++)
            thread_start(pass_for_ever, NULL);
        let_them_work();
        kill(getpid(), SIGKILL);
    } else { /* until it is killed, or ends in the middle of it */
        for (int i = 0; i < N_THREADS; i++)
            thread_start(lock_for_ever, NULL);
        let_them_work();
        if (strcmp(how, "killed") == 0)
            kill(getpid(), SIGKILL);
        if (strcmp(how, "abort") == 0)
            abort();
        if (strcmp(how, "quick_exit") == 0)
            quick_exit(7);
        if (strcmp(how, "_exit") == 0)
            _exit(7);
        exit(strcmp(how, "exit") == 0 ? 7 : 1);
    }
    printf("done\n");
    return 0;
}

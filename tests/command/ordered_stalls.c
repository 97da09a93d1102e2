/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads wait for a plain variable that another one writes, which waits for the turn; wake-ups are lost or late. */
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ordered.h"

static atomic_int setter_tid;

static void *setter(void *argument) {
    (void)argument;
    atomic_store(&setter_tid, gettid());
    locked_add(1);
    atomic_store(&flag, 1);
    return NULL;
}

static int loop(bool reads_clock) {
    struct timespec now;
    pthread_t thread;
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0)
        if (reads_clock)
            clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

int stalled(void) {
    return loop(false);
}

int stalled_at_clock(void) {
    return loop(true);
}

static int64_t cpu_now_ns(void) {
    struct timespec cpu;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
}

/* On the only CPU from here on. */
static pid_t begin_busy_process(void) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof set, &set);
    pid_t busy = fork();
    while (busy == 0)
        ;
    return busy;
}

static void end_busy_process(pid_t busy) {
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
}

/*
 * A thread computes for 8 ms, with the turn and with next to no processor: another process computes on the only CPU,
 * with a weight of 68 times its own. Threads have each a nice value.
 */
int starved(void) {
    pthread_t thread;
    pid_t busy = begin_busy_process();
    pthread_create(&thread, NULL, setter, NULL);
    setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
    for (int64_t begin = cpu_now_ns(); cpu_now_ns() - begin < 8000000;)
        ;
    end_busy_process(busy);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static void *spinner(void *argument) {
    for (int i = 0; i < YIELDS / 2; i++)
        sched_yield();
    while (atomic_load(&flag) == 0)
        ;
    return argument;
}

/*
 * The setter waits for a mutex. It is woken, and the turn goes to a thread that loops already: no thread waits for the
 * turn but the one that slept. That is so for one number of yields.
 */
static void wake_while_others_loop(int n_yields_before) {
    pthread_t looping, kept_waiting;
    atomic_store(&flag, 0);
    pthread_mutex_lock(&mutex);
    pthread_create(&looping, NULL, spinner, NULL);
    pthread_create(&kept_waiting, NULL, setter, NULL);
    for (int i = 0; i < n_yields_before; i++)
        sched_yield();
    pthread_mutex_unlock(&mutex);
    while (atomic_load(&flag) == 0)
        ;
    pthread_join(looping, NULL);
    pthread_join(kept_waiting, NULL);
}

int stalled_after_wait(void) {
    for (int i = 0; i < YIELDS; i++)
        wake_while_others_loop(i);
    puts("done");
    return 0;
}

static void on_signal(int number) {
    (void)number;
}

/* The waiting thread's sleeps are interrupted sooner than it would look for a stall. */
int stalled_by_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t thread;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0) {
        syscall(SYS_tgkill, getpid(), atomic_load(&setter_tid), SIGUSR1);
        for (volatile int i = 0; i < 20000; i++)
            ;
    }
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

/* The C library's own: the library does not see that there is a filter, and may make its fences. */
static long (*raw_syscall)(long number, ...);

static void get_raw_syscall(void) {
    *(void **)&raw_syscall = dlsym(dlopen("libc.so.6", RTLD_LAZY), "syscall");
}

/* By a call that the library does not see. */
static void nap_unseen(long ns) {
    raw_syscall(SYS_nanosleep, &(struct timespec){0, ns}, NULL);
}

/*
 * A thread has the turn for 3 s of CPU time, and sleeps for a quarter of the time: many looks of those that wait find
 * it asleep.
 */
int stalled_and_naps(void) {
    pthread_t threads[8];
    get_raw_syscall();
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, setter, NULL);
    for (int i = 0; i < 50; i++) {
        for (int64_t begin = cpu_now_ns(); cpu_now_ns() - begin < 60000000;)
            ;
        nap_unseen(20000000);
    }
    locked_add(2);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}

/* A thread sleeps for a moment again and again, until another one has written a variable. */
int stalled_by_naps(void) {
    pthread_t thread;
    get_raw_syscall();
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0)
        nap_unseen(1000000);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

/* The same, and each time it wakes up it waits for the only CPU for longer than it has slept. */
int late_naps(void) {
    pthread_t thread;
    pid_t busy[2] = {begin_busy_process(), begin_busy_process()};
    get_raw_syscall();
    pthread_create(&thread, NULL, setter, NULL);
    setpriority(PRIO_PROCESS, (id_t)gettid(), 19);
    while (atomic_load(&flag) == 0)
        nap_unseen(1000000);
    end_busy_process(busy[0]);
    end_busy_process(busy[1]);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

/* Set as programs do. */
static bool forbid_files(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/*
 * A thread has the turn for half a second of CPU time, while another one waits for it; and then sleeps by calls that
 * are not seen, until that one has written a variable.
 */
int filtered_sleep(void) {
    pthread_t thread;
    get_raw_syscall();
    const bool has_filter = forbid_files();
    pthread_create(&thread, NULL, setter, NULL);
    for (int64_t begin = cpu_now_ns(); cpu_now_ns() - begin < 500000000;)
        ;
    while (has_filter && atomic_load(&flag) == 0)
        nap_unseen(1000000);
    pthread_join(thread, NULL);
    puts(has_filter ? "done" : "no filters here");
    return 0;
}

static bool lose_wakes(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_WAKE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return raw_syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           raw_syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* None of its wake-ups comes: main has the turn when this ends, and does not know it. */
static void *sleepy_waker(void *has_filter) {
    *(bool *)has_filter = lose_wakes();
    return NULL;
}

static void *yielder(void *unused) {
    while (atomic_load(&flag) == 0)
        sched_yield();
    return unused;
}

int stalled_by_lost_wake(void) {
    pthread_t waits, loses;
    bool has_filter;
    get_raw_syscall();
    pthread_create(&waits, NULL, yielder, NULL);
    pthread_create(&loses, NULL, sleepy_waker, &has_filter);
    pthread_join(loses, NULL);
    atomic_store(&flag, 1);
    pthread_join(waits, NULL);
    puts(has_filter ? "done" : "no filters here");
    return 0;
}

static atomic_int n_sleeps;

static void *watchdog(void *unused) {
    while (atomic_load(&flag) == 0) {
        sleep(1);
        atomic_fetch_add(&n_sleeps, 1);
        locked_add(1);
    }
    return unused;
}

/* How often does a thread that sleeps a second hold up one that makes 4 million operations? */
int watched(void) {
    pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
    pthread_t thread;
    pthread_create(&thread, NULL, watchdog, NULL);
    for (int i = 0; i < 2000000; i++) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
    }
    printf("%d\n", atomic_load(&n_sleeps));
    atomic_store(&flag, 1);
    pthread_join(thread, NULL);
    return 0;
}

static void *slow_locker(void *unused) {
    while (atomic_load(&flag) == 0) {
        locked_add(1);
        for (volatile int i = 0; i < 100000; i++)
            ;
    }
    return unused;
}

/* 300 000 turns of the other thread are 15 s and more. */
int late(void) {
    pthread_t locker;
    pthread_create(&locker, NULL, slow_locker, NULL);
    usleep(300000);
    atomic_store(&flag, 1);
    pthread_join(locker, NULL);
    puts("done");
    return 0;
}

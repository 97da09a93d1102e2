/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What belongs to one kernel thread, in a program that waits by switching: one scene per run, exit status 0 if what the
 * kernel says of the thread that runs is what the program has asked for. A hang is ended by the test's time limit.
 */
#include "scene.h"

#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define ROUNDS 200

static atomic_int n_moved, n_handled, wrong_thread;
static atomic_bool over;
static pthread_t receiver;
static sem_t sem;
static _Thread_local int own;

/* A line of /proc/thread-self/status: what the kernel thread is that runs this. */
static void status_of(const char *key, char value[256]) {
    CHECK(proc_status("thread-self", key, value, 256));
}

static uint64_t blocked(void) {
    char value[256];
    status_of("SigBlk:", value);
    return strtoull(value, NULL, 16);
}

static uint64_t bit(int signal) {
    return (uint64_t)1 << (signal - 1);
}

static void one_moved(void) {
    printf("%d threads ran on another's kernel thread\n", n_moved);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

static void change_mask(int how, int signal) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal);
    CHECK((signal % 2 == 0 ? pthread_sigmask : sigprocmask)(how, &set, NULL) == 0);
}

/* ---- masks go with the thread ---- */
static void *mask_and_meet(void *number) {
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGWINCH};
    long id = (long)number, first = proc_kernel_thread();
    uint64_t expected = blocked();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        int signal = signals[(id + i) % 3];
        bool block = (id * 31 + i) % 5 < 3;
        if (id % 4 != 3) { /* some have none but the process's all the time */
            change_mask(block ? SIG_BLOCK : SIG_UNBLOCK, signal);
            expected = block ? expected | bit(signal) : expected & ~bit(signal);
        }
        CHECK(blocked() == expected);
        meet();
        CHECK(blocked() == expected);
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    atomic_fetch_add(&n_moved, moved);
    return NULL;
}

static void masks(void) {
    run(N, mask_and_meet);
    one_moved();
}

/* ---- a handler never runs on a thread that blocks its signal ---- */
static void note_thread(int signal) {
    (void)signal;
    if (own == 2)
        atomic_fetch_add(&wrong_thread, 1);
    atomic_fetch_add(&n_handled, 1);
}

static void *block_or_not(void *number) {
    if ((long)number % 2 == 0) {
        change_mask(SIG_BLOCK, SIGUSR1);
        own = 2;
    }
    for (int i = 0; i < 20 * ROUNDS; i++)
        meet();
    atomic_store(&over, true);
    return NULL;
}

static void *send_to_process(void *unused) {
    while (!over) {
        OK_ERRNO(kill(getpid(), SIGUSR1));
        sleep_us(50);
    }
    return unused;
}

static void blockers(void) {
    OK_ERRNO(sigaction(SIGUSR1, &(struct sigaction){.sa_handler = note_thread, .sa_flags = SA_RESTART}, NULL));
    pthread_t sender = thread_start(send_to_process, NULL);
    while (n_handled == 0) /* the sender may have no core for as long as the others meet */
        sleep_us(50);
    run(N, block_or_not);
    thread_join(sender);
    CHECK(wrong_thread == 0);
}

/* ---- the only thread that accepts a signal gets it, also while it waits for something else ---- */
static void note_receiver(int signal) {
    (void)signal;
    if (!pthread_equal(pthread_self(), receiver))
        atomic_fetch_add(&wrong_thread, 1);
    atomic_fetch_add(&n_handled, 1);
    sem_post(&sem);
}

static void *receive(void *number) {
    if ((long)number == 0)
        receiver = pthread_self();
    for (int i = 0; i < 20; i++)
        meet();
    if ((long)number == 0)
        change_mask(SIG_UNBLOCK, SIGUSR2);
    meet();
    if ((long)number == 1)
        for (int i = 0; i < 50; i++) {
            sleep_ms(1);
            OK_ERRNO(kill(getpid(), SIGUSR2));
            while (sem_wait(&sem) != 0)
                CHECK(errno == EINTR);
        }
    meet(); /* the receiver is here meanwhile */
    return NULL;
}

static void receivers(void) {
    OK_ERRNO(sem_init(&sem, 0, 0));
    OK_ERRNO(sigaction(SIGUSR2, &(struct sigaction){.sa_handler = note_receiver, .sa_flags = SA_RESTART}, NULL));
    change_mask(SIG_BLOCK, SIGUSR2);
    run(4, receive);
    CHECK(n_handled == 50);
    CHECK(wrong_thread == 0);
}

/* ---- a thread waits for signals that all block ---- */
static void *wait_for_signals(void *number) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    for (int i = 0; i < 20; i++)
        meet();
    for (int i = 0; i < 50; i++) {
        int signal = 0;
        if ((long)number == 0) {
            CHECK(i % 2 == 0 ? sigwait(&set, &signal) == 0 : (signal = sigwaitinfo(&set, NULL)) == SIGTERM);
            CHECK(signal == SIGTERM);
            OK_ERRNO(sem_post(&sem));
        } else if ((long)number == 1) {
            OK_ERRNO(kill(getpid(), SIGTERM));
            OK_ERRNO(sem_wait(&sem));
        }
    }
    meet();
    return NULL;
}

static void signal_thread(void) {
    OK_ERRNO(sem_init(&sem, 0, 0));
    change_mask(SIG_BLOCK, SIGTERM);
    run(6, wait_for_signals);
}

/* ---- a thread that has asked for what belongs to its kernel thread stays on it ---- */
static void *ask(void *number) {
    sigset_t pending;
    long id = (long)number, first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < 20; i++) {
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    atomic_fetch_add(&n_moved, moved);
    if (id % 2 == 0) {
        OK_ERRNO(sigpending(&pending));
        CHECK(proc_kernel_thread() == first);
    }
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK(id % 2 != 0 || proc_kernel_thread() == first);
    }
    return NULL;
}

static void stays(void) {
    run(N, ask);
    one_moved();
}

/* ---- it is told where it runs, not where its home has run ---- */
static int core_now(void) {
    unsigned core = 0;
    OK_ERRNO(getcpu(&core, NULL));
    return (int)core;
}

/* Between the calls it may be moved: not every time. */
static bool told_right(void) {
    for (int i = 0; i < 10; i++) {
        int before = core_now(), told = sched_getcpu();
        if (told == before || core_now() != before)
            return true;
    }
    return false;
}

static void *know_the_core(void *number) {
    long first = proc_kernel_thread();
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        moved = moved || proc_kernel_thread() != first;
        CHECK(told_right());
    }
    atomic_fetch_add(&n_moved, moved);
    return number;
}

static void core(void) {
    run(N, know_the_core);
    one_moved();
}

/* ---- names are threads', wherever they run ---- */
static void *bear_a_name(void *number) {
    char name[16], told[16], other[32];
    snprintf(name, sizeof name, "thread %d", (int)(long)number);
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        if (i % 10 == 0)
            OK(pthread_setname_np(pthread_self(), name));
        meet();
        OK(pthread_getname_np(pthread_self(), told, sizeof told));
        CHECK(strcmp(name, told) == 0);
        int next = (int)((long)number + 1) % N;
        OK(pthread_getname_np(threads[next], told, sizeof told));
        snprintf(other, sizeof other, "thread %d", next);
        CHECK(strcmp(other, told) == 0);
    }
    meet(); /* before any of them ends */
    return NULL;
}

static void name_threads(void) {
    run(N, bear_a_name);
}

/* ---- CPUs: set by itself, by another, by its creator's example, by attributes ---- */
static char all_cpus[256], one_cpu[256];
static cpu_set_t one;

static void *stay_on_one(void *argument) {
    char cpus[256];
    (void)argument;
    for (int i = 0; i < 20; i++) {
        sleep_us(10);
        OK_ERRNO(sem_post(&sem));
        while (sem_wait(&sem) != 0)
            ;
        status_of("Cpus_allowed_list:", cpus);
        CHECK(strcmp(cpus, one_cpu) == 0);
    }
    return NULL;
}

static void *restrict_oneself(void *number) {
    char cpus[256];
    long id = (long)number;
    pthread_attr_t attr;
    for (int i = 0; i < 20; i++)
        meet();
    if (id == 0) {
        OK(pthread_setaffinity_np(threads[1], sizeof one, &one));
        OK(pthread_setaffinity_np(pthread_self(), sizeof one, &one));
    }
    if (id == 2)
        OK_ERRNO(sched_setaffinity(0, sizeof one, &one));
    meet();
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        status_of("Cpus_allowed_list:", cpus);
        CHECK(strcmp(cpus, id <= 2 ? one_cpu : all_cpus) == 0);
    }
    if (id <= 2) {
        thread_join(thread_start(stay_on_one, NULL));
    }
    if (id == 3) {
        OK(pthread_attr_init(&attr));
        OK(pthread_attr_setaffinity_np(&attr, sizeof one, &one));
        thread_join(thread_start_with(&attr, stay_on_one, NULL));
    }
    return NULL;
}

static void cpus(void) {
    cpu_set_t all;
    OK_ERRNO(sem_init(&sem, 0, 1));
    OK_ERRNO(sched_getaffinity(0, sizeof all, &all));
    status_of("Cpus_allowed_list:", all_cpus);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    snprintf(one_cpu, sizeof one_cpu, "%d", cpu);
    run(8, restrict_oneself);
}

/* ---- one that has just been created, and may not have begun ---- */
static atomic_bool told;

static void *begin_restricted(void *unused) {
    while (!told)
        sched_yield();
    return stay_on_one(unused);
}

static void newborn(void) {
    cpu_set_t all;
    cpus();
    OK_ERRNO(sched_getaffinity(0, sizeof all, &all));
    for (int i = 0; i < 50; i++) {
        told = false;
        pthread_t thread = thread_start(begin_restricted, NULL);
        OK(pthread_setaffinity_np(thread, sizeof one, &one));
        told = true;
        thread_join(thread);
    }
}

/* ---- niceness, which on Linux is a thread's ---- */
static void *be_nice(void *number) {
    long id = (long)number;
    for (int i = 0; i < 20; i++)
        meet();
    int before = getpriority(PRIO_PROCESS, 0);
    if (id == 0)
        OK_ERRNO(setpriority(PRIO_PROCESS, 0, 19));
    if (id == 1)
        CHECK(nice(20) == 19);
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK(getpriority(PRIO_PROCESS, 0) == (id < 2 ? 19 : before));
    }
    return NULL;
}

static void niceness(void) {
    run(8, be_nice);
}

/*
 * ---- a thread's own CPU time: the readings are its home thread's, and it stays there ----
 *
 * The clock of any kernel thread, by its id: in the kernel's negative clock ids the id is inverted, 2 is the clock of
 * scheduled time and 4 a thread's.
 */
static uint64_t ns_of(clockid_t clock) {
    struct timespec t;
    CHECK(clock_gettime(clock, &t) == 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t ns_used(const struct rusage *u) {
    return ((uint64_t)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1000000 +
            (uint64_t)(u->ru_utime.tv_usec + u->ru_stime.tv_usec)) *
           1000;
}

static uint64_t usage_ns(int scope) {
    struct rusage u;
    CHECK(getrusage(scope, &u) == 0);
    return ns_used(&u);
}

enum how { BY_CLOCK, BY_CLOCK_CALL, BY_USAGE, BY_USAGE_CALL, N_HOW, OF_PROCESS = N_HOW };

static uint64_t read_own(enum how how) {
    struct timespec t;
    struct rusage u;
    switch (how) {
    case BY_CLOCK:
        return ns_of(CLOCK_THREAD_CPUTIME_ID);
    case BY_CLOCK_CALL:
        CHECK(syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t) == 0);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    case BY_USAGE:
        return usage_ns(RUSAGE_THREAD);
    default:
        CHECK(syscall(SYS_getrusage, RUSAGE_THREAD, &u) == 0);
        return ns_used(&u);
    }
}

static void read_others(void) {
    struct timespec t;
    struct rusage u;
    ns_of(CLOCK_MONOTONIC);
    ns_of(CLOCK_REALTIME);
    CHECK(ns_of(CLOCK_PROCESS_CPUTIME_ID) > 0 && usage_ns(RUSAGE_SELF) > 0);
    CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0 && syscall(SYS_getrusage, RUSAGE_SELF, &u) == 0);
    CHECK(clock_gettime(99, &t) == -1 && errno == EINVAL);
    CHECK(getrusage((__rusage_who_t)99, &u) == -1 && errno == EINVAL);
}

static void *read_cpu_time(void *number) {
    const uint64_t rounding = 20000; /* of user and system time, a microsecond and a tick's share each */
    long first = proc_kernel_thread();
    clockid_t own_clock = (clockid_t)(~(unsigned)first << 3 | 6);
    enum how how = (long)number < N_HOW ? (enum how)(long)number : OF_PROCESS;
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++)
        meet();
    for (int i = 0; i < ROUNDS; i++) {
        if (how != OF_PROCESS && i % 10 == 0) {
            uint64_t before = ns_of(own_clock), read = read_own(how), after = ns_of(own_clock);
            CHECK(before <= read + rounding && read <= after + rounding);
            for (volatile int k = 0; k < 100000; k++)
                ;
        } else if (i % 10 == 0) {
            read_others();
        }
        meet();
        moved = moved || proc_kernel_thread() != first;
    }
    CHECK(how == OF_PROCESS || !moved);
    atomic_fetch_add(&n_moved, moved);
    return number;
}

static void cpu_time(void) {
    run(N, read_cpu_time);
    CHECK(getenv("SWITCHED") == NULL || n_moved > N / 2);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"home-masks", masks},         {"home-blockers", blockers},
        {"home-receivers", receivers}, {"home-sigwait", signal_thread},
        {"home-stays", stays},         {"home-names", name_threads},
        {"home-core", core},           {"home-cpus", cpus},
        {"home-newborn", newborn},     {"home-niceness", niceness},
        {"home-cpu-time", cpu_time},   {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Switching that begins by itself (`--wait auto`), in scenes. Where $SWITCHED is set the library is expected to begin.
 * With INELIGIBLE the program imports what it must not import for that.
 */
#include "scene.h"

#include <dirent.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ROUNDS 20000  /* where no thread is to leave its kernel thread */
#define GONE_MS 20000 /* a thread that leaves is gone, on a busy machine too */
#define STILL_MS 200  /* a thread that looks every few milliseconds has looked in this time */

static atomic_bool moved;
static pid_t own[N + 1]; /* the kernel threads of the program */

/* ---- until a thread has left its kernel thread ---- */
static void *meet_until_moved(void *number) {
    long id = (long)number;
    own[id] = (pid_t)proc_kernel_thread();
    for (int i = 0;; i++) {
        if (proc_kernel_thread() != own[id])
            atomic_store(&moved, true);
        for (int k = 0; k < 100; k++)
            meet();
        bool over = getenv("SWITCHED") != NULL ? atomic_load(&moved) : i == ROUNDS / 100;
        meet(); /* all have looked before any of them goes on */
        if (over)
            return number;
    }
}

static void begins(void) {
    run(N, meet_until_moved);
    CHECK(atomic_load(&moved) == (getenv("SWITCHED") != NULL));
}

/* ---- the same by yields, as C++20's waits do: a thread's turn comes by a futex wake-up, and it yields until then ----
 */
static atomic_uint turn;

static void take_turn(unsigned id, unsigned round) {
    while (atomic_load(&turn) != round * N + id)
        sched_yield();
    atomic_fetch_add(&turn, 1);
    syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *yield_until_moved(void *number) {
    unsigned id = (unsigned)(long)number, round = 0;
    own[id] = (pid_t)proc_kernel_thread();
    for (int i = 0;; i++) {
        if (proc_kernel_thread() != own[id])
            atomic_store(&moved, true);
        for (int k = 0; k < 100; k++)
            take_turn(id, round++);
        bool over = getenv("SWITCHED") != NULL ? atomic_load(&moved) : i == ROUNDS / 1000;
        meet();
        if (over)
            return number;
    }
}

static void begins_by_yields(void) {
    run(N, yield_until_moved);
    CHECK(atomic_load(&moved) == (getenv("SWITCHED") != NULL));
}

/*
 * ---- what pays stays: futex wake-ups are the only thing that the threads get done ----
 * A trial's window of switching lasts 50 ms at most. Between trials there are 250 ms.
 */
#define LONGER_THAN_A_WINDOW_MS 200

static void *take_turns_until_it_stays(void *number) {
    static atomic_uint last = UINT_MAX; /* round; set before the first turn of the hundred that it ends */
    unsigned id = (unsigned)(long)number, round = 0;
    struct timespec stayed = {0};
    bool was_away = false;
    own[id] = (pid_t)proc_kernel_thread();
    while (round != atomic_load(&last)) {
        bool is_away = id == 0 && proc_kernel_thread() != own[id];
        if (is_away && !was_away)
            stayed = time_in_ms(CLOCK_MONOTONIC, LONGER_THAN_A_WINDOW_MS);
        was_away = is_away;
        if (getenv("SWITCHED") != NULL ? is_away && time_is_past(CLOCK_MONOTONIC, &stayed)
                                       : id == 0 && round == ROUNDS / 10)
            atomic_store(&last, round + 100);
        for (int k = 0; k < 100; k++)
            take_turn(id, round++);
    }
    return number;
}

static void stays_by_futexes(void) {
    run(N, take_turns_until_it_stays);
}

/* ---- the library's threads sleep when the program has nothing for them ---- */
static bool is_own(pid_t tid) {
    for (int i = 0; i <= N; i++)
        if (own[i] == tid)
            return true;
    return false;
}

/* How often kernel threads that are not the program's have slept. */
static unsigned long n_sleeps(void) {
    unsigned long n = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks)) != NULL) {
        char task[64], value[64];
        pid_t tid = (pid_t)atol(entry->d_name);
        snprintf(task, sizeof task, "self/task/%d", (int)tid);
        if (tid != 0 && !is_own(tid) && proc_status(task, "voluntary_ctxt_switches:", value, sizeof value))
            n += strtoul(value, NULL, 10);
    }
    closedir(tasks);
    return n;
}

static void await_rest(void) {
    unsigned long before;
    do {
        before = n_sleeps();
        sleep_ms(STILL_MS);
    } while (n_sleeps() != before);
}

static void rests(void) {
    own[N] = getpid();
    begins();
    await_rest();
}

/* ---- they are not in the way of a program that waits until all threads but its first have gone ---- */
static int n_kernel_threads(void) {
    int n = 0;
    struct dirent *entry;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while ((entry = readdir(tasks)) != NULL)
        n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static void *return_at_once(void *number) {
    return number;
}

static void await_alone(void) {
    for (int ms = 0; n_kernel_threads() > 1; ms++) {
        CHECK(ms < GONE_MS);
        sleep_ms(1);
    }
}

/* Threads that have ended and are not joined; and then switching begins as ever. */
static void leaves(void) {
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            threads[i] = thread_start(return_at_once, NULL);
        await_alone();
        for (int i = 0; i < N; i++)
            thread_join(threads[i]);
    }
    begins();
}

/*
 * ---- nor do they make a system call when the program has filtered those of all threads ----
 * The filter ends the process for calls but those that the program makes from then on.
 */
#define BUSY_MS 200 /* longer than the library's thread sleeps in a program of one thread */

static void allow_few_calls(void) {
    static const uint32_t allowed[] = {SYS_futex,  SYS_exit,    SYS_exit_group,
                                       SYS_munmap, SYS_madvise, SYS_rt_sigprocmask};
    enum { N_ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[2 * N_ALLOWED + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < N_ALLOWED; i++) {
        filter[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
        filter[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[2 * N_ALLOWED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

static void compute_for(int ms) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, ms);
    while (!time_is_past(CLOCK_MONOTONIC, &end))
        ;
}

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

static void *wait_at_door(void *number) {
    own[(long)number] = (pid_t)proc_kernel_thread();
    meet();
    OK(pthread_mutex_lock(&door));
    OK(pthread_mutex_unlock(&door));
    return number;
}

static void filters_all(void) {
    own[N] = getpid();
    OK(pthread_mutex_lock(&door));
    OK(pthread_barrier_init(&barrier, NULL, N + 1));
    for (long i = 0; i < N; i++)
        threads[i] = thread_start(wait_at_door, (void *)i);
    meet();
    await_rest();
    allow_few_calls();
    OK(pthread_mutex_unlock(&door));
    for (int i = 0; i < N; i++)
        thread_join(threads[i]);
    compute_for(BUSY_MS);
    _exit(0);
}

/* Its threads go on to wait often, after the library has seen that it must not switch them. */
static atomic_bool over;

static void *meet_for_long(void *number) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, 1000);
    own[(long)number] = (pid_t)proc_kernel_thread();
    while (!atomic_load(&over)) {
        for (int k = 0; k < 100; k++)
            meet();
        CHECK(proc_kernel_thread() == own[(long)number]);
        if ((long)number == 0 && time_is_past(CLOCK_MONOTONIC, &end))
            atomic_store(&over, true);
        meet();
    }
    return number;
}

/* It never waits often enough for the library to think of switching. */
static void ends_soon(void) {
    run(N, return_at_once);
}

static void gives_up(void) {
    own[N] = getpid();
    run(N, meet_for_long);
    await_rest();
}

/* It leaves the program, and threads that wait often come again. */
static void gives_up_for_good(void) {
    for (int round = 0; round < 2; round++) {
        atomic_store(&over, false);
        run(N, meet_for_long);
        await_alone();
    }
}

int main(int argc, char **argv) {
#ifdef INELIGIBLE
    static const struct scene scenes[] = {{"auto-gives-up", gives_up},
                                          {"auto-gives-up-for-good", gives_up_for_good},
                                          {"ends-soon", ends_soon},
                                          {NULL, NULL}};
    if (argc > 5) /* never: to import it is enough */
        return sighold(SIGUSR1);
    (void)rests, (void)leaves, (void)filters_all, (void)begins_by_yields, (void)stays_by_futexes;
#else
    static const struct scene scenes[] = {{"auto-begins", begins},
                                          {"auto-begins-by-yields", begins_by_yields},
                                          {"auto-stays-by-futexes", stays_by_futexes},
                                          {"auto-rests", rests},
                                          {"auto-leaves", leaves},
                                          {"auto-filters-all", filters_all},
                                          {NULL, NULL}};
    (void)gives_up, (void)gives_up_for_good, (void)ends_soon;
#endif
    return play(argc, argv, scenes);
}

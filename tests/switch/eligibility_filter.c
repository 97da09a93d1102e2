/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Filters of system calls (seccomp): of all threads, of single ones, from the start. */
#include "eligibility_dynamic.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define MANY 64

/* ---- a filter that kills a thread for a system call that the program itself never makes ---- */
static void kill_for_membarrier(bool by_number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (by_number)
        CHECK(syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    else
        OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- a filter of the calling thread alone: it stays at home, and so do the threads that it creates ---- */
static void install_filter(unsigned flags, bool by_prctl) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (by_prctl)
        OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    else
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0);
}

static pthread_barrier_t more; /* of all threads, and one more for each that has a filter */

/* Meet there. Has the caller been on a kernel thread that is not its own, `home`? */
static bool moves(long home) {
    bool moved = false;
    for (int i = 0; i < ROUNDS; i++) {
        int r = pthread_barrier_wait(&more);
        CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
        moved = moved || proc_kernel_thread() != home;
    }
    return moved;
}

static void *stay(void *argument) {
    CHECK(!moves(proc_kernel_thread()));
    return argument;
}

/* It and its threads have its parent's filter. */
static void be_filtered(void) {
    OK(pthread_barrier_init(&more, NULL, 3));
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, stay, NULL));
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    _exit(0);
}

static void *filter_one(void *number) {
    pthread_t own;
    bool filters = (long)number < 2;
    long home = proc_kernel_thread(); /* a thread begins there */
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if (filters) {
        install_filter(0, (long)number == 0);
        OK(pthread_create(&own, NULL, stay, NULL));
        pid_t child = fork();
        if (child == 0)
            be_filtered();
        child_join(child);
    }
    bool moved = moves(home);
    CHECK(!filters || !moved);
    atomic_fetch_add(&n_moved, moved);
    if (filters)
        OK(pthread_join(own, NULL));
    return number;
}

void filters_single_threads(void) {
    OK(pthread_barrier_init(&more, NULL, N + 2));
    run(N, filter_one);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

/*
 * A thread that has forbidden itself to sleep but by futex calls wakes another, again and again, each time after a
 * timed wait. That takes the core from a carrier, perhaps where it holds its run queue.
 */
static struct place {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int n;
} to_wake, between[N / 2]; /* not semaphores: threads of a program that signals threads wait for those at home */
static atomic_bool is_over;

static void add(struct place *at, int n) {
    OK(pthread_mutex_lock(&at->mutex));
    at->n += n;
    OK(pthread_cond_broadcast(&at->cond));
    OK(pthread_mutex_unlock(&at->mutex));
}

static void wait_for(struct place *at, int rest) {
    OK(pthread_mutex_lock(&at->mutex));
    while (at->n % 2 != rest && !is_over)
        OK(pthread_cond_wait(&at->cond, &at->mutex));
    OK(pthread_mutex_unlock(&at->mutex));
}

static void forbid_sleeps(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static void wake_again_and_again(void) {
    sem_t none;
    OK_ERRNO(sem_init(&none, 0, 0));
    forbid_sleeps();
    for (int i = 0; i < 1500; i++) {
        struct timespec soon = time_in_us(CLOCK_REALTIME, 200);
        CHECK(sem_timedwait(&none, &soon) == -1);
        add(&to_wake, 1);
    }
    is_over = true;
    add(&to_wake, 1);
    for (int i = 1; i < N / 2; i++)
        add(&between[i], 0);
}

static void *wake_or_be_woken(void *number) {
    long n = (long)number;
    if (n == 0)
        wake_again_and_again();
    for (int i = 0; n == 1 && !is_over; i++)
        wait_for(&to_wake, (i + 1) % 2);
    while (n > 1 && !is_over) {
        wait_for(&between[n / 2], n % 2);
        add(&between[n / 2], 1);
    }
    return number;
}

void filtered_one_wakes(void) {
    run(N, wake_or_be_woken);
}

/* What the kernel can do is asked without rules. */
static void ask_for_filters(void) {
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL) == -1 && errno == EFAULT);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) == -1);
}

void asks_for_filters(void) {
    ask_for_filters();
    all_meet(ask_for_filters, false);
}

/* All in one bucket of the lot: some have to sleep until it is free. */
static void *many(void *number) {
    static pthread_mutex_t filtered_mutex = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t filtered_cond = PTHREAD_COND_INITIALIZER;
    for (int i = 0; i < 10 * ROUNDS; i++) {
        OK(pthread_mutex_lock(&filtered_mutex));
        OK(pthread_cond_broadcast(&filtered_cond));
        struct timespec soon = time_now(CLOCK_REALTIME);
        CHECK(pthread_cond_timedwait(&filtered_cond, &filtered_mutex, &soon) != EINVAL);
        OK(pthread_mutex_unlock(&filtered_mutex));
    }
    return number;
}

void filtered(void) {
    kill_for_membarrier(false);
    run(MANY, many);
}

void filtered_by_number(void) {
    kill_for_membarrier(true);
    run(MANY, many);
}

/* Of all threads, while they wait by switching: the library's own too, which look once a millisecond from then on. */
static void filter_all(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getcpu, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    sleep_ms(50);
}

void ends_for_a_filter(void) {
    all_meet(filter_all, true);
}

/* From the start: it is the second time that the program runs. */
void filtered_from_the_start(void) {
    if (getenv("FILTERED") == NULL) {
        char self[4096], scene[] = "filtered-from-the-start", *again[] = {self, scene, NULL};
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        CHECK(n > 0);
        self[n] = '\0';
        kill_for_membarrier(false);
        setenv("FILTERED", "1", 1);
        execv(self, again);
    }
    CHECK(getenv("FILTERED") != NULL);
    run(MANY, many);
}

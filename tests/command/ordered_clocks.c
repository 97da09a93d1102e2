/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs for `ordered` that look at what clocks show while a thread makes no operation. */
#include <errno.h>
#include <inttypes.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "ordered.h"

enum { MS = 1000000 };

static int64_t shown(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void turn_round(uint64_t n) {
    for (volatile uint64_t i = 0; i < n; i++)
        ;
}

/* CPU time for so many turns, the least of ten. */
static int64_t cpu_ns_of(uint64_t n) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        int64_t begin = shown(CLOCK_THREAD_CPUTIME_ID);
        turn_round(n);
        int64_t took = shown(CLOCK_THREAD_CPUTIME_ID) - begin;
        least = took < least ? took : least;
    }
    return least;
}

/*
 * A time is not shown again when the thread has had 0.2 ms of CPU time: it computes for ten times that. The kernel may
 * count CPU time in ticks until it is asked for exactly, so nothing here asks in between.
 */
int clock_in_steps(void) {
    uint64_t n = 1000;
    unsigned n_same = 0;
    while (cpu_ns_of(n) < 2000000)
        n *= 2;
    for (int i = 0; i < 100; i++) {
        int64_t begin = shown(CLOCK_MONOTONIC);
        turn_round(n);
        n_same += shown(CLOCK_MONOTONIC) <= begin;
    }
    printf("%u times the same\n", n_same);
    return 0;
}

static _Atomic int64_t stamp;

static void *stamper(void *unused) {
    (void)unused;
    while (atomic_load(&flag) == 0)
        atomic_store(&stamp, shown(CLOCK_MONOTONIC));
    return NULL;
}

/* The monotonic clock shows no less than what another thread has been shown and has published. */
int clock_of_two(void) {
    pthread_t thread;
    unsigned n_before = 0;
    pthread_create(&thread, NULL, stamper, NULL);
    for (unsigned n = 0; n < 100000; n++) {
        int64_t seen = atomic_load(&stamp);
        n_before += shown(CLOCK_MONOTONIC) < seen;
    }
    atomic_store(&flag, 1);
    pthread_join(thread, NULL);
    printf("%u before\n", n_before);
    return 0;
}

/* The time goes on where a filter refuses to say what a thread has done. */
int clock_filtered(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrusage, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        puts("no filters here");
        return 0;
    }
    int64_t begin = shown(CLOCK_MONOTONIC);
    for (unsigned n = 0; n < 1000000; n++)
        if (shown(CLOCK_MONOTONIC) > begin) {
            puts("done");
            return 0;
        }
    puts("the time stands still");
    return 1;
}

/* The time of day is set back, and forth again: the next reading says so. `set_clock.c` has the clock. */
int clock_set_back(void) {
    int64_t begin = shown(CLOCK_REALTIME);
    setenv("CLOCK_SHIFT", "-10", 1);
    int64_t set = shown(CLOCK_REALTIME);
    unsetenv("CLOCK_SHIFT");
    int64_t end = shown(CLOCK_REALTIME);
    puts(set < begin - 9000 * (int64_t)MS && end >= begin ? "done" : "not set");
    return 0;
}

/* ---- waits in parts ---- */

enum { PARTS_MOST = 4 };
static pthread_cond_t in_parts;

/* The kernel's. The library sees no reading. */
static int64_t kernel_ns(clockid_t clock) {
    struct timespec t;
    syscall(SYS_clock_gettime, clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * At each second nanosecond the thread computes for a while, as if its machine stood still. Not for a millisecond: then
 * the next reading would be as good as this one.
 */
static void stand_still(void) {
    int64_t begin = kernel_ns(CLOCK_THREAD_CPUTIME_ID);
    while (begin % 2 == 0 && kernel_ns(CLOCK_THREAD_CPUTIME_ID) - begin < MS * 13 / 10)
        ;
}

static bool stands_still;

static int64_t shown_before(clockid_t clock) {
    int64_t ns = shown(clock);
    if (stands_still)
        stand_still();
    return ns;
}

static struct timespec at(int64_t ns) {
    return (struct timespec){ns / 1000000000, ns % 1000000000};
}

/*
 * For 12 ms of the time of day, in as many parts as the thread has for a number, each of which ends by the monotonic
 * clock; as Boost's timed waits do. For 90 ms in one part, where the machine stands still.
 */
static void *waits_in_parts(void *number) {
    const int64_t wait_ns = stands_still ? 90 * MS : 12 * MS;
    const int64_t part_ns = stands_still ? wait_ns : wait_ns / (int64_t)(uintptr_t)number;
    for (int i = 0; i < (stands_still ? 3 : 5); i++) {
        pthread_mutex_lock(&mutex);
        int64_t end_ns = shown_before(CLOCK_REALTIME) + wait_ns, left_ns;
        while ((left_ns = end_ns - shown_before(CLOCK_REALTIME)) > 0) {
            struct timespec end = at(shown(CLOCK_MONOTONIC) + (left_ns < part_ns ? left_ns : part_ns));
            pthread_cond_timedwait(&in_parts, &mutex, &end);
            add_to(MUTEX, (uintptr_t)number);
        }
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* All threads' waits end at the same time; a part may not end later because the one before did. */
int waits_of_parts(void) {
    pthread_t threads[PARTS_MOST];
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&in_parts, &attributes);
    for (uintptr_t i = 0; i < PARTS_MOST; i++)
        pthread_create(&threads[i], NULL, waits_in_parts, (void *)(i + 1));
    for (int i = 0; i < PARTS_MOST; i++)
        pthread_join(threads[i], NULL);
    printf("%016" PRIx64 "\n", sums[MUTEX]);
    return 0;
}

/* Each for what is left by a second reading, which is late now and then. */
int waits_of_what_is_left(void) {
    stands_still = true;
    return waits_of_parts();
}

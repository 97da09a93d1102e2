/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Futexes by syscall(): results, counts and errors. The kernel is the oracle. Source: futex(2), FUTEX_WAKE_OP's
 * numbers in linux/futex.h. With code that makes futex calls by its own instructions: futex_unseen.c.
 */
#include "futex_waiter.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static uint32_t word2;

/* --- waiting ------------------------------------------------------------------------------------------------------ */
TEST(futex_wait__another_value_returns_EAGAIN, "each wait, with and without a timeout, at once") {
    const struct timespec long_time = {LONG_MS / 1000, 0};
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, UINT_MAX, &long_time, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 1, NULL, NULL, 1), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &long_time, NULL, 1), EAGAIN);
}
TEST(futex_wait__another_value_returns_EAGAIN_beside_a_waiter, "which waits on") {
    struct waiter w;
    start(&w);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, UINT_MAX, NULL, NULL, 1), EAGAIN);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w);
}
TEST(futex_wait__leaves_errno_alone_when_woken) {
    struct waiter w;
    start(&w);
    errno = 77;
    CHECK_INT(wake(&word, 1), 1);
    CHECK_INT(errno, 77);
    check_woken(&w);
}
TEST(futex_wait__relative_time_ends_with_ETIMEDOUT, "not before the time is over") {
    const struct timespec time = {0, SHORT_MS * 1000000l};
    struct timespec begin = time_now(CLOCK_MONOTONIC);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &time, NULL, 0), ETIMEDOUT);
    CHECK(time_since_ms(CLOCK_MONOTONIC, begin) >= SHORT_MS);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
TEST(futex_wait__relative_time_zero_ends_at_once) {
    const struct timespec time = {0, 0};
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &time, NULL, 0), ETIMEDOUT);
}
TEST(futex_wait_bitset__absolute_times_of_both_clocks,
     "ETIMEDOUT, not before the clock shows that time; the past: at once") {
    const struct {
        clockid_t clock;
        int op;
    } ways[] = {{CLOCK_MONOTONIC, FUTEX_WAIT_BITSET}, {CLOCK_REALTIME, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME}};
    for (int i = 0; i < 2; i++) {
        struct timespec at = time_in_ms(ways[i].clock, SHORT_MS), past = {0, 0};
        CHECK_ERRNO(futex(&word, ways[i].op, 0, &at, NULL, 1), ETIMEDOUT);
        CHECK(time_is_past(ways[i].clock, &at));
        CHECK_ERRNO(futex(&word, ways[i].op, 0, &past, NULL, 1), ETIMEDOUT);
    }
}
TEST(futex_wait__times_out_of_range_return_EINVAL, "nanoseconds and seconds below zero, nanoseconds of a second") {
    const struct timespec *const wrong[] = {&time_nsec_too_big, &time_nsec_negative, &time_seconds_negative};
    for (int i = 0; i < 3; i++) {
        CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, wrong[i], NULL, 0), EINVAL);
        CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 0, wrong[i], NULL, 1), EINVAL);
    }
}
TEST(futex_wait__the_longest_time_is_no_error, "woken before") {
    const struct timespec longest = {(time_t)(~0ul >> 1), 999999999};
    struct waiter w = {.at = &word, .op = FUTEX_WAIT, .timeout = &longest};
    w.thread = thread_start(wait_once, &w);
    await_waiters(&word, 1);
    let_threads_block();
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w);
}
TEST(futex_wait__clock_flag_without_an_absolute_time, "FUTEX_WAKE with FUTEX_CLOCK_REALTIME: ENOSYS") {
    CHECK_ERRNO(futex(&word, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0), ENOSYS);
    CHECK_ERRNO(futex(&word, 100, 1, NULL, NULL, 0), ENOSYS);
}

/* --- bad addresses ------------------------------------------------------------------------------------------------ */
TEST(futex__misaligned_returns_EINVAL, "each operation") {
    uint32_t *odd = (uint32_t *)(void *)((char *)&word + 1);
    CHECK_ERRNO(futex(odd, FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(odd, FUTEX_WAIT_BITSET, 0, NULL, NULL, 1), EINVAL);
    CHECK_ERRNO(wake(odd, 1), EINVAL);
    CHECK_ERRNO(futex(odd, FUTEX_WAKE_BITSET, 1, NULL, NULL, 1), EINVAL);
    CHECK_ERRNO(futex(odd, FUTEX_REQUEUE, 1, number(1), &word2, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_REQUEUE, 1, number(1), odd, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, number(1), odd, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_OP, 1, number(1), odd, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)), EINVAL);
}
TEST(futex__unmapped_returns_EFAULT, "where the word is read; a wake-up reads none and finds no waiter") {
    uint32_t *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct timespec time = {0, 1000};
    uint32_t code = FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0);
    CHECK(gone != MAP_FAILED);
    for (int i = 0; i < 2; i++) {
        CHECK_ERRNO(futex(gone, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
        CHECK_ERRNO(futex(gone, FUTEX_WAIT_BITSET, 0, &time, NULL, 1), EFAULT);
        CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, gone, NULL, 0), EFAULT);
        CHECK_ERRNO(futex(gone, FUTEX_CMP_REQUEUE, 1, number(1), &word2, 0), EFAULT);
        CHECK_ERRNO(futex(&word, FUTEX_WAKE_OP, 1, number(1), gone, code), EFAULT);
#ifdef SHARED
        CHECK_ERRNO(wake(gone, 1), EFAULT);
        CHECK_ERRNO(futex(gone, FUTEX_REQUEUE, 1, number(1), &word2, 0), EFAULT);
        CHECK_ERRNO(futex(&word, FUTEX_REQUEUE, 1, number(1), gone, 0), EFAULT);
        CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, number(0), gone, 0), EFAULT);
        CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, number(1), NULL, word + 1), EFAULT);
#else
        CHECK_INT(wake(gone, 1), 0);
        CHECK_INT(futex(gone, FUTEX_REQUEUE, 1, number(1), &word2, 0), 0);
        CHECK_INT(futex(&word, FUTEX_REQUEUE, 1, number(1), gone, 0), 0);
        CHECK_INT(futex(&word, FUTEX_CMP_REQUEUE, 1, number(1), gone, word), 0);
#endif
        SYS(munmap(gone, 4096));
    }
    CHECK_ERRNO(futex(NULL, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
#ifdef SHARED
    CHECK_ERRNO(wake(NULL, 1), EFAULT);
#else
    CHECK_INT(wake(NULL, 1), 0);
#endif
    CHECK_ERRNO(futex((uint32_t *)(~0ul - 4095), FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(wake((uint32_t *)(~0ul - 4095), 1), EFAULT);
}
#ifndef SHARED /* then the kernel refuses the former, and finds no waiter in the latter */
/* Threads that wait one behind another, in private memory: the shortest way of a wait that is switched. */
enum { IN_CROWD = 4, IN_CROWD_ROUNDS = 400 };
static uint32_t *gone_for_crowd;

static void *ask_in_crowd(void *unused) {
    for (int i = 0; i < IN_CROWD_ROUNDS; i++) {
        sched_yield();
        CHECK_ERRNO(futex(gone_for_crowd, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
        CHECK_ERRNO(futex((uint32_t *)((char *)&word + 1), FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL);
        CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    }
    return unused;
}
TEST(futex_wait__unmapped_and_misaligned_among_runnable_threads, "EFAULT, EINVAL; another value: EAGAIN") {
    pthread_t t[IN_CROWD];
    gone_for_crowd = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(gone_for_crowd != MAP_FAILED);
    for (int i = 0; i < IN_CROWD; i++)
        CHECK_INT(pthread_create(&t[i], NULL, ask_in_crowd, NULL), 0);
    for (int i = 0; i < IN_CROWD; i++)
        CHECK_INT(pthread_join(t[i], NULL), 0);
}
/* A timed wait where other threads are runnable. */
static atomic_bool crowd_may_end;

static void *yield_in_crowd(void *unused) {
    while (!atomic_load(&crowd_may_end))
        sched_yield();
    return unused;
}
static void *wait_in_crowd(void *unused) {
    const struct timespec time = {0, 1000};
    for (int i = 0; i < IN_CROWD_ROUNDS; i++) {
        sched_yield();
        CHECK_ERRNO(futex(&word, FUTEX_WAIT, 0, &time, NULL, 0), ETIMEDOUT);
    }
    return unused;
}
static void among_yielding_threads(void *(*routine)(void *)) {
    pthread_t t[IN_CROWD], one = thread_start(routine, NULL);
    for (int i = 0; i < IN_CROWD; i++)
        t[i] = thread_start(yield_in_crowd, NULL);
    thread_join(one);
    atomic_store(&crowd_may_end, true);
    for (int i = 0; i < IN_CROWD; i++)
        thread_join(t[i]);
}
TEST(futex_wait__relative_time_among_runnable_threads, "ETIMEDOUT") {
    among_yielding_threads(wait_in_crowd);
}
/*
 * The same in memory that could be read at earlier waits, and cannot be any more. Where asynchronous cancellation may
 * strike at any instruction, none but the kernel's looks at the word.
 */
enum { EARLIER = 1000, PAGE = 4096 };
static uint32_t *pages; /* two of them */

static void map_pages(void) {
    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    for (int i = 0; i < EARLIER; i++) {
        CHECK_ERRNO(futex(pages, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
        CHECK_ERRNO(futex(pages + PAGE / sizeof *pages, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    }
}
static void *ask_asynchronously(void *unused) {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    for (int i = 0; i < IN_CROWD_ROUNDS; i++) {
        sched_yield();
        CHECK_ERRNO(futex(pages, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    }
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL));
    return unused;
}
TEST(futex_wait__unreadable_with_asynchronous_cancellation_among_runnable_threads, "EFAULT") {
    map_pages();
    SYS(mprotect(pages, PAGE, PROT_NONE));
    among_yielding_threads(ask_asynchronously);
}
/* Without that a library may look, and fault, with a lock of its own held. */
static atomic_int n_asked;

static void ask_in_handler(int signo, siginfo_t *info, void *unused) {
    int error = errno;
    (void)unused;
    if ((char *)info->si_addr < (char *)pages || (char *)info->si_addr >= (char *)pages + PAGE) {
        signal(signo, SIG_DFL);
        return;
    }
    CHECK_ERRNO(futex(pages + PAGE / sizeof *pages, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    SYS(mprotect(pages, PAGE, PROT_READ));
    atomic_fetch_add(&n_asked, 1);
    errno = error;
}
static void *ask_for_unreadable(void *unused) {
    for (int i = 0; i < IN_CROWD_ROUNDS; i++) {
        int before = atomic_load(&n_asked);
        SYS(mprotect(pages, PAGE, PROT_NONE));
        sched_yield();
        errno = 0;
        CHECK_INT(futex(pages, FUTEX_WAIT, 1, NULL, NULL, 0), -1);
        CHECK_INT(errno, atomic_load(&n_asked) == before ? EFAULT : EAGAIN);
    }
    return unused;
}
TEST(futex_wait__in_a_handler_that_interrupts_the_look_at_a_word, "another value: EAGAIN, among runnable threads") {
    const struct sigaction action = {.sa_sigaction = ask_in_handler, .sa_flags = SA_SIGINFO};
    map_pages();
    SYS(sigaction(SIGSEGV, &action, NULL));
    among_yielding_threads(ask_for_unreadable);
    signal(SIGSEGV, SIG_DFL);
}
TEST(futex__read_only_memory, "can be waited on, and cannot be operated on") {
    uint32_t *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct timespec time = {0, 1000};
    CHECK(constant != MAP_FAILED);
    CHECK_ERRNO(futex(constant, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(constant, FUTEX_WAIT, 0, &time, NULL, 0), ETIMEDOUT);
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_OP, 1, number(1), constant, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)),
                EFAULT);
}
TEST(futex__unmapped_while_a_thread_waits, "the address alone wakes it") {
    uint32_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct waiter w;
    CHECK(at != MAP_FAILED);
    start_at(&w, at, 0);
    SYS(munmap(at, 4096));
    CHECK_INT(wake(at, 1), 1);
    check_woken(&w);
}
#else
/* --- memory of several processes, and of one
 * -------------------------------------------------------------------------- */
static uint32_t *map(void *at, int flags) {
    uint32_t *memory = mmap(at, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    *memory = 0;
    return memory;
}

/* A child makes wake-ups until one has woken a thread; its status is 0 then. */
static pid_t start_waker(uint32_t *at) {
    pid_t child = fork();
    SYS(child);
    if (child == 0) {
        for (int i = 0; i < LONG_MS && wake(at, 1) != 1; i++)
            sleep_ms(1);
        _exit(wake(at, INT_MAX) == 0 ? 0 : 1);
    }
    return child;
}

static void check_child(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
}

static void wait_for_waker(uint32_t *at) {
    struct waiter w = {.at = at, .op = FUTEX_WAIT};
    pid_t child = start_waker(at);
    w.thread = thread_start(wait_once, &w);
    check_woken(&w);
    check_child(child);
}

TEST(futex_shared__another_process_wakes, "a thread that waits") {
    wait_for_waker(map(NULL, MAP_SHARED));
}
TEST(futex_shared__wakes_another_process, "that waits; it goes to no waiter of this one's private memory") {
    uint32_t *at = map(NULL, MAP_SHARED);
    pid_t child = fork();
    SYS(child);
    if (child == 0)
        _exit(futex(at, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ? 0 : 1);
    while (wake(at, 1) != 1)
        sleep_ms(1);
    check_child(child);
}
TEST(futex_shared__memory_becomes_shared, "where threads have waited in private memory before") {
    for (int i = 0; i < 3; i++) {
        uint32_t *at = map(NULL, MAP_PRIVATE);
        struct waiter w;
        start_at(&w, at, 0);
        CHECK_INT(wake(at, 1), 1);
        check_woken(&w);
        SYS(munmap(at, 4096));
        wait_for_waker(map(at, MAP_SHARED | MAP_FIXED));
        SYS(munmap(at, 4096));
    }
}
TEST(futex_shared__private_memory,
     "variables, heap, stack, mapped, of a file: each thread is found, and counted once") {
    char name[] = "/tmp/futex-XXXXXX";
    uint32_t on_stack = 0, *small = calloc(1, sizeof *small), *large = calloc(1, 1 << 20);
    int file = mkstemp(name);
    SYS(file);
    SYS(unlink(name));
    SYS(ftruncate(file, 4096));
    uint32_t *of_file = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(small != NULL && large != NULL && of_file != MAP_FAILED);
    *of_file = 0;
    uint32_t *const places[] = {&word, &on_stack, small, large, map(NULL, MAP_PRIVATE), of_file};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct waiter w[3];
        for (int k = 0; k < 3; k++)
            start_at(&w[k], places[i], 0);
        CHECK_INT(wake(places[i], 2), 2);
        CHECK_INT(wake(places[i], INT_MAX), 1);
        for (int k = 0; k < 3; k++)
            check_woken(&w[k]);
    }
    close(file);
}
TEST(futex_shared__requeue_to_shared_memory, "they are counted, and are woken there at the latest") {
    uint32_t *to = map(NULL, MAP_SHARED);
    struct waiter w[2];
    start(&w[0]);
    start(&w[1]);
    CHECK_INT(futex(&word, FUTEX_REQUEUE, 0, number(INT_MAX), to, 0), 2);
    CHECK(wake(to, INT_MAX) <= 2);
    CHECK_INT(wake(&word, INT_MAX), 0);
    check_woken(&w[0]);
    check_woken(&w[1]);
}
#endif
static union {
    uint32_t word;
    pthread_mutex_t mutex;
} memory;
static void *lock_once(void *unused) {
    OK(pthread_mutex_lock(&memory.mutex));
    atomic_fetch_add(&n_left, 1);
    OK(pthread_mutex_unlock(&memory.mutex));
    return unused;
}
TEST(futex__word_that_becomes_a_mutex, "a late wake-up of the freed word lets no thread into the mutex") {
    OK(pthread_mutex_init(&memory.mutex, NULL));
    OK(pthread_mutex_lock(&memory.mutex));
    pthread_t thread = thread_start(lock_once, NULL);
    let_threads_block();
    CHECK(wake(&memory.word, INT_MAX) <= 1); /* under glibc the mutex's waiter waits on that word */
    let_threads_block();
    CHECK_INT(atomic_load(&n_left), 0);
    OK(pthread_mutex_unlock(&memory.mutex));
    thread_join(thread);
}

/* --- waking: counts and order ------------------------------------------------------------------------------------- */
TEST(futex_wake__without_waiters_returns_0, "whatever number it may wake") {
    CHECK_INT(wake(&word, 0), 0);
    CHECK_INT(wake(&word, 1), 0);
    CHECK_INT(wake(&word, INT_MAX), 0);
    CHECK_INT(wake(&word, UINT_MAX), 0);
}
TEST(futex_wake__wakes_so_many_first_come_first, "2 of 5, then the rest; the word need not have changed") {
    struct waiter w[5];
    for (int i = 0; i < 5; i++)
        start(&w[i]);
    CHECK_INT(wake(&word, 2), 2);
    check_woken(&w[0]);
    check_woken(&w[1]);
    CHECK_INT(atomic_load(&n_left), 2);
    CHECK_INT(wake(&word, INT_MAX), 3);
    for (int i = 2; i < 5; i++)
        check_woken(&w[i]);
}
TEST(futex_wake__zero_and_negative_wake_one, "as the kernel does") {
    struct waiter w[3];
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    CHECK_INT(wake(&word, 0), 1);
    CHECK_INT(wake(&word, UINT_MAX), 1);
    CHECK_INT(wake(&word, INT_MAX), 1);
    for (int i = 0; i < 3; i++)
        check_woken(&w[i]);
}
TEST(futex_wake__other_word_wakes_none, "the next word, and the same word of the next page") {
    static uint32_t words[4096] __attribute__((aligned(4096)));
    struct waiter w;
    start_at(&w, &words[0], 0);
    for (int i = 1; i < 4096; i++)
        CHECK_INT(wake(&words[i], INT_MAX), 0);
    CHECK_INT(wake(&words[0], INT_MAX), 1);
    check_woken(&w);
}
TEST(futex_wake_bitset__wakes_those_with_a_common_bit, "others are passed over and not counted; zero: EINVAL") {
    struct waiter w[4];
    start_at(&w[0], &word, 1);
    start_at(&w[1], &word, 2);
    start_at(&w[2], &word, 6);
    start_at(&w[3], &word, 0); /* FUTEX_WAIT: all bits */
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0), EINVAL);
    CHECK_INT(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 4), 1);
    check_woken(&w[2]);
    CHECK_INT(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0x80000000u), 1);
    check_woken(&w[3]);
    CHECK_INT(futex(&word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, 8), 0);
    CHECK_INT(futex(&word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, 3), 2);
    check_woken(&w[0]);
    check_woken(&w[1]);
}
TEST(futex_wake__shared_and_private_are_apart, "a shared wake-up finds no private waiter, and the other way round") {
    struct waiter w;
    start(&w);
    CHECK_INT(syscall(SYS_futex, &word, FUTEX_WAKE | (FLAG ^ FUTEX_PRIVATE_FLAG), INT_MAX, NULL, NULL, 0), 0);
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w);
}

/* --- requeue ------------------------------------------------------------------------------------------------------ */
TEST(futex_requeue__wakes_and_moves, "1 of 4 woken, 2 moved, 1 stays; the sum is the result") {
    struct waiter w[4];
    for (int i = 0; i < 4; i++)
        start(&w[i]);
    CHECK_INT(futex(&word, FUTEX_REQUEUE, 1, number(2), &word2, 0), 3);
    check_woken(&w[0]);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w[3]);
    CHECK_INT(wake(&word2, 1), 1);
    check_woken(&w[1]);
    CHECK_INT(wake(&word2, INT_MAX), 1);
    check_woken(&w[2]);
}
TEST(futex_cmp_requeue__compares_first, "another value: EAGAIN and nothing done; also without waiters") {
    struct waiter w[3];
    CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, number(1), &word2, 5), EAGAIN);
    CHECK_INT(futex(&word, FUTEX_CMP_REQUEUE, 1, number(1), &word2, 0), 0);
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, number(INT_MAX), &word2, 5), EAGAIN);
    CHECK_INT(wake(&word2, INT_MAX), 0);
    CHECK_INT(futex(&word, FUTEX_CMP_REQUEUE, 0, number(INT_MAX), &word2, 0), 3);
    CHECK_INT(wake(&word, INT_MAX), 0);
    CHECK_INT(wake(&word2, INT_MAX), 3);
    for (int i = 0; i < 3; i++)
        check_woken(&w[i]);
}
TEST(futex_requeue__of_none_does_nothing, "0 to wake and 0 to move; negative numbers: EINVAL") {
    struct waiter w;
    start(&w);
    CHECK_INT(futex(&word, FUTEX_REQUEUE, 0, number(0), &word2, 0), 0);
    CHECK_ERRNO(futex(&word, FUTEX_REQUEUE, UINT_MAX, number(1), &word2, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, number(UINT_MAX), &word2, 0), EINVAL);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w);
}
TEST(futex_requeue__to_itself, "counts, and keeps the order") {
    struct waiter w[3];
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    CHECK_INT(futex(&word, FUTEX_CMP_REQUEUE, 0, number(2), &word, 0), 2);
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w[0]);
    CHECK_INT(futex(&word, FUTEX_REQUEUE, 1, number(INT_MAX), &word, 0), 2);
    check_woken(&w[1]);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w[2]);
}
TEST(futex_requeue__moves_whatever_the_bits_and_keeps_them) {
    struct waiter w;
    start_at(&w, &word, 2);
    CHECK_INT(futex(&word, FUTEX_REQUEUE, 0, number(1), &word2, 0), 1);
    CHECK_INT(futex(&word2, FUTEX_WAKE_BITSET, 1, NULL, NULL, 1), 0);
    CHECK_INT(futex(&word2, FUTEX_WAKE_BITSET, 1, NULL, NULL, 2), 1);
    check_woken(&w);
}
/* False: the deadline has come before the waiter was moved. */
static bool moved_times_out(long ms) {
    const struct timespec time = time_of_ns(ms * 1000000);
    struct waiter w = {.at = &word, .op = FUTEX_WAIT, .timeout = &time};
    struct timespec late = time_in_ms(CLOCK_MONOTONIC, ms);
    long moved = 0;
    w.thread = thread_start(wait_once, &w);
    while (moved == 0 && !time_is_past(CLOCK_MONOTONIC, &late))
        moved = futex(&word, FUTEX_REQUEUE, 0, number(1), &word2, 0);
    thread_join(w.thread);
    CHECK_INT(w.result, -1);
    CHECK_INT(w.error, ETIMEDOUT);
    CHECK_INT(wake(&word2, INT_MAX), 0);
    return moved != 0;
}

TEST(futex_requeue__a_moved_waiter_keeps_its_deadline, "ETIMEDOUT on the second word") {
    for (long ms = 4 * SHORT_MS; !moved_times_out(ms);)
        ms *= 2; /* on a busy machine this thread may not run for as long */
}

/* --- FUTEX_WAKE_OP ------------------------------------------------------------------------------------------------ */
TEST(futex_wake_op__operations, "set, add, or, and-not, exclusive or; the shifted argument; signed 12 bits") {
    const struct {
        uint32_t before, code, after;
    } cases[] = {
        {5, FUTEX_OP(FUTEX_OP_SET, 9, FUTEX_OP_CMP_EQ, 0), 9},
        {5, FUTEX_OP(FUTEX_OP_ADD, 3, FUTEX_OP_CMP_EQ, 0), 8},
        {5, FUTEX_OP(FUTEX_OP_ADD, 0xfff, FUTEX_OP_CMP_EQ, 0), 4},
        {5, FUTEX_OP(FUTEX_OP_OR, 10, FUTEX_OP_CMP_EQ, 0), 15},
        {7, FUTEX_OP(FUTEX_OP_ANDN, 5, FUTEX_OP_CMP_EQ, 0), 2},
        {7, FUTEX_OP(FUTEX_OP_XOR, 5, FUTEX_OP_CMP_EQ, 0), 2},
        {0, FUTEX_OP((FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT), 31, FUTEX_OP_CMP_EQ, 0), 0x80000000u},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        word2 = cases[i].before;
        CHECK_INT(futex(&word, FUTEX_WAKE_OP, 1, number(1), &word2, cases[i].code), 0);
        CHECK_INT(word2, cases[i].after);
    }
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_OP, 1, number(1), &word2, FUTEX_OP(6, 0, FUTEX_OP_CMP_EQ, 0)), ENOSYS);
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_OP, 1, number(1), &word2, FUTEX_OP(FUTEX_OP_SET, 0, 9, 0)), ENOSYS);
}
TEST(futex_wake_op__comparisons_are_signed,
     "the old value against a signed argument; the second word's waiter is woken or not") {
    const struct {
        uint32_t old, cmp, with;
        int holds;
    } cases[] = {
        {3, FUTEX_OP_CMP_EQ, 3, 1},        {3, FUTEX_OP_CMP_EQ, 4, 0},
        {3, FUTEX_OP_CMP_NE, 4, 1},        {3, FUTEX_OP_CMP_NE, 3, 0},
        {UINT_MAX, FUTEX_OP_CMP_LT, 0, 1}, {3, FUTEX_OP_CMP_LT, 3, 0},
        {3, FUTEX_OP_CMP_LE, 3, 1},        {4, FUTEX_OP_CMP_LE, 3, 0},
        {3, FUTEX_OP_CMP_GT, 0xfff, 1},    {UINT_MAX, FUTEX_OP_CMP_GT, 0xfff, 0},
        {3, FUTEX_OP_CMP_GE, 3, 1},        {2, FUTEX_OP_CMP_GE, 3, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct waiter w;
        word2 = cases[i].old;
        start_at(&w, &word2, 0);
        CHECK_INT(
            futex(&word, FUTEX_WAKE_OP, 1, number(1), &word2, FUTEX_OP(FUTEX_OP_SET, 9, cases[i].cmp, cases[i].with)),
            cases[i].holds);
        if (!cases[i].holds)
            CHECK_INT(wake(&word2, 1), 1);
        check_woken(&w);
    }
}
TEST(futex_wake_op__wakes_at_both_words, "so many at each; the sum is the result") {
    struct waiter w[5];
    for (int i = 0; i < 5; i++)
        start_at(&w[i], i < 3 ? &word : &word2, 0);
    CHECK_INT(futex(&word, FUTEX_WAKE_OP, 2, number(1), &word2, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)), 3);
    CHECK_INT(wake(&word, INT_MAX), 1);
    CHECK_INT(wake(&word2, INT_MAX), 1);
    for (int i = 0; i < 5; i++)
        check_woken(&w[i]);
}

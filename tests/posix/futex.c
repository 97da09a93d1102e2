/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Private futexes by syscall(): results, counts and errors. The kernel is the oracle. Source: futex(2), FUTEX_WAKE_OP's
 * numbers in linux/futex.h. With code that makes futex calls by its own instructions: futex_unseen.c.
 */
#include "topic.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint32_t word, word2;

static long futex(uint32_t *at, int op, uint32_t val, const void *more, uint32_t *at2, uint32_t val3) {
    return syscall(SYS_futex, at, op | FUTEX_PRIVATE_FLAG, val, more, at2, val3);
}
static long wake(uint32_t *at, uint32_t n) {
    return futex(at, FUTEX_WAKE, n, NULL, NULL, 0);
}
static const void *number(unsigned long n) {
    return (const void *)n;
}

/* A thread that makes one wait. `left`: it has returned; in which order the threads of a test did. */
struct waiter {
    uint32_t *at, val, bits;
    const struct timespec *timeout;
    int op;
    pthread_t thread;
    long result;
    int error, left;
};
static atomic_int n_left;

static void *wait_once(void *argument) {
    struct waiter *w = argument;
    w->result = futex(w->at, w->op, w->val, w->timeout, NULL, w->bits);
    w->error = w->result == -1 ? errno : 0;
    w->left = atomic_fetch_add(&n_left, 1) + 1;
    return NULL;
}
/* A thread that is about to wait is no waiter yet. A word's waiters moved to the word itself stay, and are counted. */
static long n_waiters(uint32_t *at) {
    return futex(at, FUTEX_REQUEUE, 0, number(INT_MAX), at, 0);
}
static void await_waiters(uint32_t *at, long n) {
    while (n_waiters(at) < n)
        sleep_ms(1);
}
static void start_at(struct waiter *w, uint32_t *at, uint32_t bits) {
    long before = n_waiters(at);
    *w = (struct waiter){.at = at, .val = *at, .bits = bits, .op = bits != 0 ? FUTEX_WAIT_BITSET : FUTEX_WAIT};
    w->thread = thread_start_small(1 << 17, wait_once, w);
    await_waiters(at, before + 1);
    let_threads_block();
}
static void start(struct waiter *w) {
    start_at(w, &word, 0);
}
static void check_woken(struct waiter *w) {
    thread_join(w->thread);
    CHECK_INT(w->result, 0);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */
TEST(futex_wait__another_value_returns_EAGAIN, "each wait, with and without a timeout, at once") {
    const struct timespec long_time = {LONG_MS / 1000, 0};
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, UINT_MAX, &long_time, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 1, NULL, NULL, 1), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 1, &long_time, NULL, 1), EAGAIN);
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
        CHECK_INT(wake(gone, 1), 0);
        CHECK_INT(futex(gone, FUTEX_REQUEUE, 1, number(1), &word2, 0), 0);
        SYS(munmap(gone, 4096));
    }
    CHECK_ERRNO(futex(NULL, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    CHECK_INT(wake(NULL, 1), 0);
    CHECK_ERRNO(futex((uint32_t *)(~0ul - 4095), FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(wake((uint32_t *)(~0ul - 4095), 1), EFAULT);
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
    CHECK_INT(syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0), 0);
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
TEST(futex_requeue__a_moved_waiter_keeps_its_deadline, "ETIMEDOUT on the second word") {
    const struct timespec time = {0, 4 * SHORT_MS * 1000000l};
    struct waiter w = {.at = &word, .op = FUTEX_WAIT, .timeout = &time};
    w.thread = thread_start(wait_once, &w);
    while (futex(&word, FUTEX_REQUEUE, 0, number(1), &word2, 0) == 0)
        ;
    thread_join(w.thread);
    CHECK_INT(w.result, -1);
    CHECK_INT(w.error, ETIMEDOUT);
    CHECK_INT(wake(&word2, INT_MAX), 0);
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

/* --- signals ------------------------------------------------------------------------------------------------------ */
TEST(futex_wait__handler_without_restart_returns_EINTR) {
    struct waiter w;
    signal_counter(SIGUSR1, false);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    thread_join(w.thread);
    CHECK_INT(w.result, -1);
    CHECK_INT(w.error, EINTR);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
TEST(futex_wait__handler_with_restart_goes_on) {
    struct waiter w;
    signal_counter(SIGUSR1, true);
    start(&w);
    signal_thread(w.thread, SIGUSR1, 3);
    let_threads_block();
    CHECK_INT(atomic_load(&n_left), 0);
    await_waiters(&word, 1);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w);
}
TEST(futex_wait__with_a_timeout_is_never_restarted, "EINTR in spite of SA_RESTART") {
    const struct timespec time = {LONG_MS / 1000, 0};
    struct waiter w = {.at = &word, .op = FUTEX_WAIT, .timeout = &time};
    signal_counter(SIGUSR1, true);
    w.thread = thread_start(wait_once, &w);
    await_waiters(&word, 1);
    let_threads_block();
    signal_thread(w.thread, SIGUSR1, 1);
    thread_join(w.thread);
    CHECK_INT(w.result, -1);
    CHECK_INT(w.error, EINTR);
}
static void change_word(int signo) {
    (void)signo;
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    atomic_fetch_add(&signals_seen, 1);
}
TEST(futex_wait__restarted_looks_at_the_word_again, "the handler changes the word, and makes no wake-up: EAGAIN") {
    struct waiter w;
    struct sigaction action = {.sa_handler = change_word, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &action, NULL));
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    thread_join(w.thread);
    CHECK_INT(w.result, -1);
    CHECK_INT(w.error, EAGAIN);
}
static void wake_word(int signo) {
    (void)signo;
    int error = errno;
    wake(&word, INT_MAX);
    errno = error;
    atomic_fetch_add(&signals_seen, 1);
}
TEST(futex_wake__by_a_handler_of_the_waiter_itself, "it returns, with 0 or EINTR") {
    struct waiter w;
    struct sigaction action = {.sa_handler = wake_word};
    SYS(sigaction(SIGUSR1, &action, NULL));
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    thread_join(w.thread);
    CHECK(w.result == 0 || w.error == EINTR);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
static void wait_in_handler(int signo) {
    (void)signo;
    int error = errno;
    word2 = 0;
    atomic_fetch_add(&signals_seen, 1);
    while (__atomic_load_n(&word2, __ATOMIC_SEQ_CST) == 0)
        futex(&word2, FUTEX_WAIT, 0, NULL, NULL, 0);
    errno = error;
}
TEST(futex_wait__in_a_handler_that_interrupts_a_wait, "both are woken") {
    struct waiter w;
    struct sigaction action = {.sa_handler = wait_in_handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &action, NULL));
    start(&w);
    signal_thread(w.thread, SIGUSR1, 1);
    let_threads_block();
    __atomic_store_n(&word2, 1, __ATOMIC_SEQ_CST);
    CHECK(wake(&word2, 1) <= 1);
    let_threads_block();
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w);
}
static void leave_by_exit(int signo) {
    (void)signo;
    pthread_exit(NULL);
}
TEST(futex_wait__thread_ends_in_a_handler, "leaves no waiter behind") {
    struct waiter w[2];
    struct sigaction action = {.sa_handler = leave_by_exit};
    SYS(sigaction(SIGUSR1, &action, NULL));
    start(&w[0]);
    start(&w[1]);
    OK(pthread_kill(w[0].thread, SIGUSR1));
    thread_join(w[0].thread);
    CHECK_INT(wake(&word, 1), 1);
    check_woken(&w[1]);
}

/* --- cancellation, processes -------------------------------------------------------------------------------------- */
TEST(futex_wait__is_no_cancellation_point, "a cancelled thread waits on, and ends at the next point") {
    struct waiter w;
    start(&w);
    OK(pthread_cancel(w.thread));
    await_waiters(&word, 1);
    let_threads_block();
    int woken = (int)wake(&word, INT_MAX);
    thread_join(w.thread);
    CHECK_INT(woken, 1);
}
static void *wait_asynchronously(void *unused) {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    for (;;)
        futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}
TEST(futex_wait__cancelled_asynchronously_ends) {
    pthread_t thread = thread_start(wait_asynchronously, NULL);
    let_threads_block();
    OK(pthread_cancel(thread));
    thread_join_cancelled(thread);
    CHECK_INT(wake(&word, INT_MAX), 0);
}
static void child_of_waiters(void *unused) {
    struct waiter w;
    (void)unused;
    CHECK_INT(wake(&word, INT_MAX), 0);
    start(&w);
    CHECK_INT(wake(&word, INT_MAX), 1);
    check_woken(&w);
}
TEST(futex__forked_child_has_no_waiters, "of its parent; its own are woken; so are the parent's afterwards") {
    struct waiter w[3];
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    run_in_child(child_of_waiters, NULL);
    CHECK_INT(wake(&word, INT_MAX), 3);
    for (int i = 0; i < 3; i++)
        check_woken(&w[i]);
}
static pid_t test_process;
static atomic_int child_woken;
static void *wake_until_it_has_returned(void *unused) {
    while (atomic_load(&child_woken) == 0) {
        wake(&word, 1);
        sleep_ms(1);
    }
    return unused;
}
static void fork_in_handler(int signo) {
    (void)signo;
    int error = errno;
    pid_t child = fork();
    if (child == 0) {
        thread_start(wake_until_it_has_returned, NULL);
        return;
    }
    int status;
    while (waitpid(child, &status, 0) == -1 && errno == EINTR)
        ;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    errno = error;
    atomic_fetch_add(&signals_seen, 1);
}
static void *wait_and_be_forked(void *unused) {
    futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
    atomic_store(&child_woken, 1);
    if (getpid() != test_process)
        _exit(0);
    return unused;
}
TEST(futex_wait__its_handler_forks_and_returns_in_the_child,
     "the child's wait is woken in the child, the parent's goes on") {
    struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
    test_process = getpid();
    SYS(sigaction(SIGUSR1, &action, NULL));
    pthread_t thread = thread_start(wait_and_be_forked, NULL);
    let_threads_block();
    signal_thread(thread, SIGUSR1, 1);
    let_threads_block();
    await_waiters(&word, 1);
    CHECK_INT(wake(&word, INT_MAX), 1);
    thread_join(thread);
}
static void exit_with_waiters(void *unused) {
    struct waiter *w = calloc(3, sizeof *w);
    (void)unused;
    for (int i = 0; i < 3; i++)
        start(&w[i]);
    exit(0);
}
TEST(futex__process_ends_with_waiters) {
    run_in_child(exit_with_waiters, NULL);
}

/* --- many --------------------------------------------------------------------------------------------------------- */
enum { MANY = 4000 };
static atomic_int n_waiting;
static void *wait_for_start(void *unused) {
    atomic_fetch_add(&n_waiting, 1);
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
    return unused;
}
TEST(futex_wake__thousands_of_threads_on_one_word, "all go on") {
    static pthread_t threads[MANY];
    int n = 0;
    pthread_attr_t attr;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, 1 << 17));
    while (n < MANY && pthread_create(&threads[n], &attr, wait_for_start, NULL) == 0)
        n++;
    CHECK(n >= 100);
    await(&n_waiting, n);
    let_threads_block();
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    CHECK(wake(&word, INT_MAX) <= n);
    for (int i = 0; i < n; i++)
        thread_join(threads[i]);
    CHECK_INT(wake(&word, INT_MAX), 0);
}

/* A turn goes round: each thread waits until the word is its number, and passes it on. */
enum { RING = 8, TURNS = 4000 };
static void *take_turns(void *argument) {
    uint32_t me = (uint32_t)(uintptr_t)argument;
    for (;;) {
        uint32_t seen;
        while ((seen = __atomic_load_n(&word, __ATOMIC_ACQUIRE)) < TURNS && seen % RING != me)
            futex(&word, FUTEX_WAIT, seen, NULL, NULL, 0);
        if (seen >= TURNS)
            return NULL;
        __atomic_store_n(&word, seen + 1, __ATOMIC_RELEASE);
        futex(&word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}
TEST(futex__a_turn_goes_round, "the look at the word and the sleep are one step: no wake-up is missed") {
    pthread_t threads[RING];
    for (uintptr_t i = 0; i < RING; i++)
        threads[i] = thread_start(take_turns, (void *)i);
    for (int i = 0; i < RING; i++)
        thread_join(threads[i]);
    CHECK_INT(word, TURNS);
}

/* A mutex of three states (Drepper, "Futexes Are Tricky", mutex 2) and a condition that moves its waiters. */
static uint32_t lock_word, sequence;
static int shared, round_over;
static void take(void) {
    uint32_t zero = 0;
    if (__atomic_compare_exchange_n(&lock_word, &zero, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
        futex(&lock_word, FUTEX_WAIT, 2, NULL, NULL, 0);
}
static void drop(void) {
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
        wake(&lock_word, 1);
}
enum { WORKERS = 6, ROUNDS = 300 };
static int arrived;
static void *meet(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        take();
        shared++;
        if (++arrived == WORKERS) {
            arrived = 0;
            round_over++;
            uint32_t now = __atomic_add_fetch(&sequence, 1, __ATOMIC_SEQ_CST);
            /* Waiters go to the mutex: it counts as contended. */
            __atomic_store_n(&lock_word, 2, __ATOMIC_SEQ_CST);
            futex(&sequence, FUTEX_CMP_REQUEUE, 1, number(INT_MAX), &lock_word, now);
        } else {
            for (int mine = round_over; round_over == mine;) {
                uint32_t seen = __atomic_load_n(&sequence, __ATOMIC_SEQ_CST);
                drop();
                futex(&sequence, FUTEX_WAIT, seen, NULL, NULL, 0);
                while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
                    futex(&lock_word, FUTEX_WAIT, 2, NULL, NULL, 0);
            }
        }
        drop();
    }
    return unused;
}
TEST(futex__mutex_and_condition_of_the_program, "6 threads meet 300 times; waiters are moved to the mutex") {
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        threads[i] = thread_start(meet, NULL);
    for (int i = 0; i < WORKERS; i++)
        thread_join(threads[i]);
    CHECK_INT(shared, WORKERS * ROUNDS);
    CHECK_INT(round_over, ROUNDS);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * futex(2): futexes without owners are the engine's. All else is the kernel's: those with priority inheritance,
 * futex_waitv, and each call with an argument that futex(2) refuses. So errors are the kernel's own.
 *
 * Calls without FUTEX_PRIVATE_FLAG may be for memory that other processes have too. A wait is the engine's only if the
 * word lies in memory of this process alone (os/private.h). Many programs make such calls for all their futexes:
 * libstdc++ does, where it was built without the flag.
 *
 * The two kinds of waiters, the engine's and the kernel's, may wait on one word. A wake-up looks for the engine's
 * first, and asks the kernel if there may be others: brought there by code that the library does not see
 * (abi/unseen.h), or by this file.
 *
 *  1. A wait for the kernel counts itself, makes a fence (by the addition), and lets the kernel compare the word.
 *  2. A wake-up comes after a change of the word; it makes a fence, and reads the count.
 *
 * Either the wake-up sees the count, or the kernel sees the changed word.
 *
 * A thread that is not switched waits actively and then in the kernel, as if its call had come later. There one call
 * wakes all waiters of a word; in the parking lot it would take a call for each. Under an engine that keeps an order of
 * all operations each wait is the engine's, and one that is left to the kernel is outside of the order.
 */
#include "abi/futex.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "abi/abi.h"
#include "abi/futex_op.h"
#include "abi/futex_time.h"
#include "abi/unseen.h"
#include "core/cpus.h"
#include "core/probes.h"
#include "core/sites.h"
#include "core/thread.h"
#include "engine/engine.h"
#include "os/futex.h"
#include "os/mapped.h"
#include "os/private.h"
#include "start/init.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/park.h"
#include "wait/wake_gap.h"
#include "wait/yield_gate.h"

/* Addresses from here on are left to the kernel's judgement. */
#if defined(__x86_64__)
#define ADDRESSES_END 0x7fffffffe000u
#else
#define ADDRESSES_END 0x1000000000000u
#endif

/*
 * Waits that this file has left to the kernel, by their word; words share a count. In a forked child perhaps its
 * parent's too. The kernel may have moved a waiter to another word: then all of them count for each word.
 */
#define N_COUNTS 64
static uint32_t n_in_kernel[N_COUNTS];
static bool has_moved; /* atomic; set before the kernel is asked to move */

/* Waits of an engine that keeps an order; in a forked child perhaps its parent's too. */
static uint32_t n_in_order;

static uint32_t *count_of(const uint32_t *word) {
    return &n_in_kernel[((uint64_t)(uintptr_t)word * 0x9E3779B97F4A7C15u) >> 58];
}
_Static_assert(N_COUNTS == 1 << (64 - 58), "as many bits of the hash");

static long kernel(const uint32_t *word, int op, uint32_t val, uintptr_t more, const uint32_t *word2, uint32_t val3) {
    return sbt_syscall6(SYS_futex, (long)word, op, (long)val, (long)more, (long)word2, (long)val3);
}

static long wait_in_kernel(uint32_t *word, int op, uint32_t val, uintptr_t timeout, uint32_t val3) {
    struct sbt_asleep_in_call asleep;
    ABI_OUTSIDE;
    sbt_asleep_in_call(&asleep, count_of(word)); /* counted: pairs with the fence before asks_kernel */
    long r = sbt_futex_call_frame(word, op, val, timeout, val3);
    if (SBT_UNLIKELY(sbt_wake_gap_on) && r == 0)
        sbt_wake_gap_woken(word);
    sbt_awake_after_call(&asleep);
    if (r == 0)
        sbt_switch_note_wait();
    return r;
}

/* The engine has made a fence since the word was written (futex_wake, futex_requeue); wait_in_kernel pairs with that.
 */
static bool asks_kernel(const uint32_t *word) {
    bool any = __atomic_load_n(count_of(word), __ATOMIC_RELAXED) != 0;
    if (SBT_UNLIKELY(__atomic_load_n(&has_moved, __ATOMIC_RELAXED)))
        for (int i = 0; i < N_COUNTS; i++)
            any |= __atomic_load_n(&n_in_kernel[i], __ATOMIC_RELAXED) != 0;
    return any || abi_unseen_any();
}

/* Calls without FUTEX_PRIVATE_FLAG: may waiters of other processes be in the kernel, on that word? */
static bool may_have_others(const uint32_t *word, int flag) {
    return flag == 0 && !sbt_private_for_good(word);
}

static bool is_plain(const uint32_t *word) {
    return (uintptr_t)word < ADDRESSES_END && (uintptr_t)word % sizeof *word == 0;
}

/*
 * A thread that clone has made may share its creator's thread-local storage, which the parking lot uses. Where there
 * may be such threads all new waits are the kernel's. Waiters may be left in the parking lot from before.
 */
static bool may_enter_lot(void) {
    return SBT_LIKELY(!abi_unseen_clones()) || (uint32_t)sbt_syscall0(SYS_gettid) == sbt_thread_owner();
}

static bool is_served(void) {
    if (SBT_UNLIKELY(!sbt_init_done()))
        sbt_init();
    return sbt_engine.futex_wait != NULL && may_enter_lot();
}

/*
 * A program with code that makes futex calls unseen has no order of them. So there all its waits are outside, and a
 * wake-up is no operation, which would wait for the turn: a thread may sleep in an unseen call and have it. Waiters
 * may be left in the engine from before such code was loaded.
 *
 *  1. A wait counts itself, then looks for such code, then compares the word.
 *  2. A wake-up comes after a change of the word; it looks for such code, makes a fence, and reads the count.
 */
static bool is_outside(void) {
    if (SBT_LIKELY(sbt_engine.order == NULL || !abi_unseen_in_order()))
        return false;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&n_in_order, __ATOMIC_RELAXED) == 0;
}

/* ---- waiting ---- */

static long sleep_unswitched(uint32_t *word, int flag, uint32_t val, uint32_t bits,
                             const struct sbt_deadline *deadline) {
    int clock = deadline != NULL && deadline->clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0;
    sbt_cpus_look();
    return wait_in_kernel(word, FUTEX_WAIT_BITSET | flag | clock, val, deadline != NULL ? (uintptr_t)&deadline->at : 0,
                          bits);
}

/*
 * The loads acquire what was written before the word was: the caller goes on with it, as after a wake-up. A caller that
 * has just yielded (libstdc++ does so four times before each wait) has waited actively itself, and sleeps.
 */
static long wait_unswitched(uint32_t *word, int flag, uint32_t val, uint32_t bits,
                            const struct sbt_deadline *deadline) {
    struct sbt_adapt *memory = sbt_adapt_of_word(word);
    struct sbt_active active;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != val)
        return -EAGAIN;
    bool has_yielded = sbt_self.has_yielded;
    sbt_self.has_yielded = false;
    if ((has_yielded && !sbt_cores_to_spare()) || (deadline != NULL && abi_futex_is_soon(deadline)))
        return sleep_unswitched(word, flag, val, bits, deadline);
    sbt_active_begin(&active, memory);
    while (sbt_active_step(&active))
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != val) {
            sbt_active_end(&active, memory);
            sbt_yield_gate_waited(&sbt_self.spare_yields, 0);
            return -EAGAIN;
        }
    long r = sleep_unswitched(word, flag, val, bits, deadline);
    if (r != -EAGAIN)
        sbt_active_end(&active, memory);
    return r;
}

/* Counted as long as it may be in a queue of the engine's. */
static int wait_in_engine(uint32_t *word, int flag, uint32_t val, uint32_t bits, const struct sbt_deadline *deadline,
                          uint64_t in_ns) {
    if (SBT_LIKELY(sbt_engine.order == NULL))
        return sbt_engine.futex_wait(word, flag == 0, val, bits, deadline, in_ns);
    int r = EDEADLK;
    __atomic_fetch_add(&n_in_order, 1, __ATOMIC_SEQ_CST); /* pairs with the fence in is_outside */
    if (SBT_LIKELY(!abi_unseen_in_order()))
        r = sbt_engine.futex_wait(word, flag == 0, val, bits, deadline, in_ns);
    __atomic_fetch_sub(&n_in_order, 1, __ATOMIC_RELAXED);
    return r;
}

static long wait(uint32_t *word, int op, uint32_t val, uintptr_t timeout, uint32_t val3, const void *caller) {
    const int flag = op & FUTEX_PRIVATE_FLAG;
    uint32_t bits = (op & FUTEX_CMD_MASK) == FUTEX_WAIT ? FUTEX_BITSET_MATCH_ANY : val3;
    struct abi_futex_until until = {.in_ns = 0};
    const struct sbt_deadline *deadline = timeout != 0 ? &until.deadline : NULL;
    int type, r = EDEADLK;
    if (is_plain(word) && bits != 0 && is_served() && !abi_unseen_at(caller) && !abi_unseen_clones() &&
        sbt_mapped_readable(word, sizeof *word) &&
        (timeout == 0 || abi_futex_read_until(&until, op, (const struct timespec *)timeout))) {
        /* Asynchronous cancellation would strike in the parking lot. In the kernel it may. */
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
        if (SBT_UNLIKELY(type != PTHREAD_CANCEL_DEFERRED))
            pthread_setcanceltype(type, NULL);
        else if (sbt_engine.order == NULL && sbt_waiter_word() == NULL)
            return wait_unswitched(word, flag, val, bits, deadline);
        else if (flag != 0 || sbt_private_now(word))
            r = wait_in_engine(word, flag, val, bits, deadline, until.in_ns);
    }
    return r != EDEADLK ? -(long)r : wait_in_kernel(word, op, val, timeout, val3);
}

/* ---- waking ---- */

/* The kernel wakes one waiter even if it is asked for none, or for a negative number. */
static uint32_t at_least_one(uint32_t n) {
    return (int32_t)n <= 0 ? 1 : n;
}

/*
 * The engine's waiters come first, and may come for ever. So one wake-up in so many asks the kernel first, where
 * waiters sleep: of threads that are not switched, or were not when they began to wait.
 */
#define KERNEL_FIRST_EVERY 16
static _Thread_local uint32_t n_wakes __attribute__((tls_model("initial-exec")));

static bool is_kernels_turn(const uint32_t *word) {
    return __atomic_load_n(count_of(word), __ATOMIC_RELAXED) != 0 && ++n_wakes % KERNEL_FIRST_EVERY == 0;
}

/* The waiters that it woke, or an error. Only private ones are woken with gaps. */
static long wake_in_kernel(uint32_t *word, int flag, uint32_t n, uint32_t bits) {
    if (SBT_LIKELY(!sbt_wake_gap_on || n < 2 || flag == 0))
        return kernel(word, FUTEX_WAKE_BITSET | flag, n, 0, NULL, bits);
    return sbt_wake_gap_wake(word, n < INT_MAX ? (int)n : INT_MAX, bits);
}

static long wake(uint32_t *word, int flag, uint32_t val, uint32_t bits) {
    uint32_t n = at_least_one(val);
    sbt_progress_surely();
    if (!is_plain(word) || bits == 0 || !is_served() || is_outside())
        return kernel(word, FUTEX_WAKE_BITSET | flag, val, 0, NULL, bits);
    long woken = is_kernels_turn(word) ? wake_in_kernel(word, flag, n, bits) : 0;
    if (woken < 0) /* a page without the flag may not be mapped; the second call says so */
        woken = 0;
    if (woken < (long)n)
        woken += sbt_engine.futex_wake(word, flag == 0, n - (uint32_t)woken, bits);
    if (woken < (long)n && (asks_kernel(word) || may_have_others(word, flag))) {
        long more = wake_in_kernel(word, flag, n - (uint32_t)woken, bits);
        abi_unseen_asked_kernel();
        if (more < 0 && woken == 0)
            return more;
        woken += more > 0 ? more : 0;
    }
    SBT_PROBE2(futex_wake, word, woken);
    return woken;
}

/*
 * A barrier of libgomp that its last thread leaves without a call to wake others: there was none asleep, and they have
 * waited by looks of their own. Such programs may never sleep. So it is here that they find out which CPUs they may
 * use. And waits that come every few microseconds are a sign that switching might pay.
 */
#define EMPTY_WAKES_NOTED 8
static _Thread_local uint32_t n_empty_wakes __attribute__((tls_model("initial-exec")));

/* A stub of libgomp's names no caller (abi_futex). */
static void note_empty_wake(const void *caller) {
    if (SBT_LIKELY(++n_empty_wakes % EMPTY_WAKES_NOTED != 0) || (caller != NULL && !sbt_sites_have(caller)))
        return;
    sbt_cpus_look();
    sbt_switch_note_wait();
}

/*
 * A waiter that is moved is counted where it was. A wake-up of the word to which it is moved, that comes after this
 * call, sees the mark.
 */
static long kernel_moves(uint32_t *from, int op, uint32_t n_wake, uintptr_t n_move, uint32_t *to, uint32_t val3) {
    if (n_move != 0)
        __atomic_store_n(&has_moved, true, __ATOMIC_SEQ_CST);
    return kernel(from, op, n_wake, n_move, to, val3);
}

/*
 * What the kernel says of the two addresses of a call without FUTEX_PRIVATE_FLAG: it looks for the memory behind them,
 * and refuses the call if there is none, before it looks for waiters. It is asked to wake none and to move none.
 */
static long refusal_of_others(uint32_t *from, uint32_t *to) {
    return kernel(from, FUTEX_REQUEUE, 0, 0, to, 0);
}

static long requeue(uint32_t *from, int op, uint32_t n_wake, uintptr_t n_move, uint32_t *to, uint32_t val3) {
    struct sbt_futex_moved most = {n_wake, (uint32_t)n_move};
    const int flag = op & FUTEX_PRIVATE_FLAG;
    bool compares = (op & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE;
    long r;
    if (!is_plain(from) || !is_plain(to) || (int32_t)most.woken < 0 || (int32_t)most.moved < 0 || !is_served() ||
        is_outside() || (compares && !sbt_mapped_readable(from, sizeof *from)))
        return kernel_moves(from, op, n_wake, n_move, to, val3);
    if (flag == 0 && (r = refusal_of_others(from, to)) < 0)
        return r;
    if (flag == 0 && from != to && !sbt_private_now(to)) { /* no other process could wake them there: they look again */
        most.woken += most.moved;
        most.moved = 0;
    }
    r = -(long)sbt_engine.futex_requeue(from, to, flag == 0, &most, compares ? &val3 : NULL);
    if (r != 0)
        return r;
    long n = (long)most.woken + most.moved;
    if (n < (long)n_wake + (uint32_t)n_move && (asks_kernel(from) || may_have_others(from, flag))) {
        uint32_t woken = most.woken < n_wake ? most.woken : n_wake;
        long more = kernel_moves(from, op, n_wake - woken, (uintptr_t)((uint32_t)n_move - (n - woken)), to, val3);
        if (more < 0 && n == 0)
            return more;
        n += more > 0 ? more : 0; /* EAGAIN: the word has changed since it was compared, which was in time */
    }
    return n;
}

/* ---- FUTEX_WAKE_OP: an operation on a second word, and a wake-up there if the word was as said ---- */

static long wake_op(uint32_t *word, int flag, uint32_t val, uintptr_t val2, uint32_t *word2, uint32_t code) {
    int32_t old = 0;
    if (!is_plain(word) || !is_plain(word2) || !abi_futex_op_is_known(code) || !is_served() ||
        !sbt_mapped_writable(word2) || !abi_futex_operate(word2, code, &old))
        return kernel(word, FUTEX_WAKE_OP | flag, val, val2, word2, code);
    long n = wake(word, flag, val, FUTEX_BITSET_MATCH_ANY);
    if (abi_futex_holds(old, code))
        n += wake(word2, flag, (uint32_t)val2, FUTEX_BITSET_MATCH_ANY);
    return n;
}

long abi_futex_serve(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t more, uint32_t *word2,
                     uint32_t val3) {
    const int flag = op & FUTEX_PRIVATE_FLAG;
    long r;
    switch (op & ~FUTEX_PRIVATE_FLAG) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME:
        SBT_PROBE2(futex_entry, word, val);
        r = wait(word, op, val, more, val3, caller);
        sbt_yield_gate_waited(&sbt_self.spare_yields, r);
        SBT_PROBE2(futex_exit, word, r);
        return r;
    case FUTEX_WAKE:
        r = wake(word, flag, val, FUTEX_BITSET_MATCH_ANY);
        if (r == 0)
            note_empty_wake(caller);
        return r;
    case FUTEX_WAKE_BITSET:
        return wake(word, flag, val, val3);
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        return requeue(word, op, val, more, word2, val3);
    case FUTEX_WAKE_OP:
        return wake_op(word, flag, val, more, word2, val3);
    default:
        return kernel(word, op, val, more, word2, val3);
    }
}

/* ---- the usual wait ---- */

/*
 * A fiber waits, another one is runnable behind it, and all that `wait` looks at is as it nearly always is. Each thread
 * of an OpenMP team waits so at each barrier: what it costs is the number of its instructions, and the depth of its
 * stack, since the frames of all fibers share the first cache. The address has been judged with its page.
 */
static inline bool is_usual(const uint32_t *word, int op, uintptr_t timeout) {
    return op == FUTEX_WAIT_PRIVATE && timeout == 0 && (uintptr_t)word % sizeof *word == 0 &&
           sbt_mapped_is_known(word) && abi_unseen_is_nothing() && sbt_switch_waits_behind() &&
           sbt_engine.order == NULL && sbt_engine.futex_wait != NULL;
}

/* As abi_futex_serve. */
static SBT_NOINLINE long wait_usually(uint32_t *word, uint32_t val) {
    int type, r = EDEADLK;
    SBT_PROBE2(futex_entry, word, val);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    if (SBT_LIKELY(type == PTHREAD_CANCEL_DEFERRED))
        r = sbt_engine.futex_wait(word, false, val, FUTEX_BITSET_MATCH_ANY, NULL, 0);
    else
        pthread_setcanceltype(type, NULL);
    const long result = SBT_LIKELY(r != EDEADLK) ? -(long)r : wait_in_kernel(word, FUTEX_WAIT_PRIVATE, val, 0, 0);
    sbt_yield_gate_waited(&sbt_self.spare_yields, result);
    SBT_PROBE2(futex_exit, word, result);
    return result;
}

#ifdef SBT_OBSERVED
abi_futex_function *abi_futex_observer = abi_futex_serve;
#define SERVE abi_futex_observer
#define IS_USUAL(word, op, timeout) ((void)is_usual, false)
#else
#define SERVE abi_futex_serve
#define IS_USUAL is_usual
#endif

long abi_futex_from(const void *caller, uint32_t *word, int op, uint32_t val, uintptr_t more, uint32_t *word2,
                    uint32_t val3) {
    if (IS_USUAL(word, op, more))
        return wait_usually(word, val);
    return SERVE(caller, word, op, val, more, word2, val3);
}

long abi_futex(uint32_t *word, int op, uint32_t val, uintptr_t timeout_or_val2, uint32_t *word2, uint32_t val3) {
    return abi_futex_from(NULL, word, op, val, timeout_or_val2, word2, val3);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The deterministic engine, put together (det.h). */
#include <errno.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "core/log.h"
#include "core/sites.h"
#include "decimal.h"
#include "engine/det/hints.h"
#include "engine/det/places.h"
#include "engine/det/site.h"
#include "engine/functions.h"
#include "os/clock.h"
#include "os/fence.h"
#include "os/futex.h"
#include "os/memory.h"
#include "switch/switch.h"
#include "wait/adapt.h"

#define END_PAUSE_NS 50000 /* between two looks of a thread that ends the process */

static int start(const struct sbt_options *options) {
    sbt_adapt_start((uint32_t)options->value[SBT_OPT_SPIN_NS].u, (uint32_t)options->value[SBT_OPT_YIELDS].u);
    sbt_handlers_interrupt = det_handler_runs;
    det_is_serial = options->value[SBT_OPT_SERIAL].u != 0;
    det_thread_start();
    det_site_start();
    sbt_sites_spin(false); /* the thread that is waited for may need the turn */
    const char *schedule = options->value[SBT_OPT_SCHEDULE].s;
    if (schedule != NULL && !det_schedule_start(schedule, options->value[SBT_OPT_SCHEDULE_TIMES].u != 0,
                                                (unsigned)options->value[SBT_OPT_SCHEDULE_CALLERS].u))
        return ENOMEM;
    return det_hints_start(options);
}

/* A round begins. Threads from nowhere may make the first operations of a process at once. */
static struct sbt_lock beginning;

/* With that lock. */
static void begin_round(void) {
    struct det_round *r = det_round;
    bool is_forked = r->generation != 0;
    if (is_forked) {
        sbt_memory_clear(r, sizeof *r);
        det_watch_forked();
    }
    turn_begin(&r->turn, sbt_options.value[SBT_OPT_SEED].u);
    __atomic_store_n(&r->generation, sbt_fork_generation() + 1, __ATOMIC_RELEASE); /* det_await_begun is its partner */
    r->process = sbt_syscall0(SYS_getpid);
    det_adopt_unknown(0, sbt_thread_tid() != (uint32_t)r->process); /* the main thread can be joined */
    det_thread_enter();
    det_site_warm();
    det_places_begin();
    r->is_timed = sbt_options.value[SBT_OPT_SCHEDULE_TIMES].u != 0;
    r->is_logged = det_schedule_begin(sbt_options.value[SBT_OPT_SEED].u, is_forked, det_hints_begin());
    r->is_watched = r->is_logged || r->is_hinted;
}

void det_begin_round(void) {
    sbt_lock_take(&beginning);
    if (det_round->generation != sbt_fork_generation() + 1)
        begin_round();
    sbt_lock_drop(&beginning);
}

void det_await_begun(void) {
    sbt_lock_take(&beginning);
    sbt_lock_drop(&beginning);
}

static void once_begin(void) {
    det_take(DET_ONCE);
}

/* No other thread waits for the turn: the kernel chooses, which may know of other processes. */
static void yield(void) {
    det_take(DET_YIELD);
    bool is_alone = det_is_alone();
    det_pass();
    if (is_alone)
        sbt_yield();
}

static void once_wait(const void *key) {
    det_block(key, &(struct det_wait){.op = DET_ONCE});
}

static void once_wake(const void *key) {
    det_wake(key, UINT32_MAX);
}

/* Where the process has made operations before, as in an allocator's start, the first of them could not warm it. */
static void unwinder_loaded(void) {
    if (det_round->generation == 0)
        return;
    det_take(DET_ONCE);
    det_site_warm();
    det_pass();
}

/* The turn is kept, and handlers are deferred, until the fork has been made. */
static void fork_begin(void) {
    det_take(DET_FORK);
    det_self.in_fork = true;
}

static void fork_parent(void) {
    det_self.in_fork = false;
    det_pass();
}

/* The child's round begins with its first operation. */
static void fork_child(void) {
    if (!det_self.in_fork)
        return;
    det_self.in_fork = false;
    det_self.in_op = det_self.n_inner = 0;
    det_self.creates = false;
    det_self.hint = NULL;
    sbt_handlers_release();
}

static void hex_of(char text[17], uint64_t u) {
    for (int i = 0; i < 16; i++)
        text[i] = "0123456789abcdef"[u >> (60 - 4 * i) & 15];
    text[16] = '\0';
}

/*
 * Until the caller has the turn, so that no other thread goes on: where the process ends is part of the schedule. For
 * as long as a stall at most, or ten times that while the turn goes round: the process must end even if another thread
 * keeps the turn. One that has been expelled would never get it. A fiber lets the others run: it would keep its carrier
 * from them.
 */
static void await_turn(void) {
    uint64_t now = sbt_now_ns(), end = now + DET_STALL_NS, logical = 0;
    const uint64_t last_end = now + 10 * (uint64_t)DET_STALL_NS;
    if (det_self.generation != det_round->generation || det_self.number == DET_NO_NUMBER)
        return;
    while (__atomic_load_n(&det_round->turn.holder, __ATOMIC_ACQUIRE) != det_self.number && now < end) {
        det_be_present();
        if (!sbt_switch_yield(false))
            sbt_pause_ns(END_PAUSE_NS);
        now = sbt_now_ns();
        uint64_t seen = __atomic_load_n(&det_round->turn.now, __ATOMIC_RELAXED);
        if (seen != logical)
            end = now + DET_STALL_NS < last_end ? now + DET_STALL_NS : last_end;
        logical = seen;
    }
}

/* Of `told`. */
enum { UNTOLD, TELLER_WAITS, TELLER_WRITES, TOLD };

/* With the turn, if it came in time. */
static void tell(void) {
    char hash[17], ops[DECIMAL_SIZE], outside[DECIMAL_SIZE], futexes[DECIMAL_SIZE];
    struct det_round *r = det_round;
    if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        det_schedule_end(&(struct schedule_totals){
            .hash = r->hash, .n_ops = r->n_ops, .n_outside = r->n_outside, .n_objects = r->n_objects});
    hex_of(hash, det_round->hash);
    bool has_futexes = r->n_futexes != 0 && !det_is_serial;
    sbt_log(2, "schedule ", hash, ", ", decimal_of(ops, r->n_ops), " operations, ", decimal_of(outside, r->n_outside),
            " returns from outside", has_futexes ? ", " : "", has_futexes ? decimal_of(futexes, r->n_futexes) : "",
            has_futexes ? " of them on futexes: whether they are made is not the engine's order (with --serial it is)"
                        : "",
            NULL);
    det_hints_stop();
}

/* The process may end as soon as a thread that leaves returns. */
static void await_teller(void) {
    const uint64_t end = sbt_now_ns() + DET_STALL_NS;
    while (__atomic_load_n(&det_round->told, __ATOMIC_ACQUIRE) != TOLD && sbt_now_ns() < end)
        sbt_pause_ns(END_PAUSE_NS);
}

/*
 * Once. An exit handler may leave by _exit: `tells`. Several threads may leave: the first that has the turn tells, and
 * the others wait for it. So a thread that leaves without the turn does not keep one that has it from telling.
 */
static void stop(void) {
    static _Thread_local bool tells __attribute__((tls_model("initial-exec")));
    struct det_round *r = det_round;
    uint32_t untold = UNTOLD, waits = TELLER_WAITS;
    if (r->generation != sbt_fork_generation() + 1 || tells)
        return;
    if (!__atomic_compare_exchange_n(&r->told, &untold, TELLER_WAITS, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
        untold == TOLD)
        return;
    tells = true;
    if (sbt_options.value[SBT_OPT_VERBOSE].u >= 2 || __atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        await_turn();
    if (__atomic_compare_exchange_n(&r->told, &waits, TELLER_WRITES, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        tell();
        __atomic_store_n(&r->told, TOLD, __ATOMIC_RELEASE);
    } else {
        await_teller();
    }
    tells = false;
}

/*
 * By _exit or quick_exit. Not in a child of vfork, which has its parent's memory, nor in a copy of the process that
 * was made by a system call. Nor in a handler that cannot be deferred and has interrupted a section: that may have a
 * lock that is needed.
 */
static void leave(void) {
    if (sbt_self.handlers_held == 0 && det_round->process == sbt_syscall0(SYS_getpid))
        stop();
}

/*
 * Not in a child of vfork or a copy, as above: such a child is not the thread that it seems to be. A program that has a
 * filter of system calls need not allow these. It is an operation: it may be the first, and places are read with the
 * turn.
 */
static void files_end(void) {
    if (sbt_fence_is_forbidden() || sbt_self.handlers_held != 0 ||
        sbt_thread_tid() != (uint32_t)sbt_syscall0(SYS_gettid))
        return;
    det_take(DET_ONCE);
    if (__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED))
        det_schedule_keep();
    det_pass();
}

static const struct sbt_order order = {
    .create_begin = det_create_begin,
    .create_end = det_create_end,
    .created = det_created,
    .join = det_join,
    .detach = det_detach,
    .cancel = det_cancel,
    .unwinds = det_site_unwinds,
    .unwinder_loaded = unwinder_loaded,
    .turn_take = once_begin,
    .turn_wait = once_wait,
    .turn_wake = once_wake,
    .turn_pass = det_pass,
    .yield = yield,
    .fork_begin = fork_begin,
    .fork_parent = fork_parent,
    .files_end = files_end,
    .leave = leave,
    .sleep = det_sleep,
    .outside_begin = det_outside_begin,
    .outside_end = det_outside_end,
    .looks = det_looks,
    .clock_read = det_clock_read,
    .give_up_turn = det_give_up_turn,
    .soft_barrier = det_soft_barrier,
    .pcs = det_pcs,
};

const struct sbt_engine sbt_engine_det = {
    .name = "det",
    .start = start,
    .thread_enter = det_thread_enter,
    .thread_exit = det_abandon_wait,
    .stop = stop,
    .fork_child = fork_child,
    .order = &order,
    .weighs_switching = true,
    SBT_MUTEXES_OF(det),
    SBT_CONDS_OF(det),
    SBT_BARRIERS_OF(det),
    SBT_RWLOCKS_OF(det),
    SBT_SEMS_OF(det),
    SBT_FUTEXES_OF(det),
    SBT_SPINS_OF(det),
};

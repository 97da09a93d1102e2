/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stalls: a thread keeps the turn without an operation, and others wait. It computes, or it loops on a variable that
 * another thread must write; that loop would never end. Or it sleeps in a system call that this library does not see
 * (a read of stdio's, a lock inside the C library): such a call waits for the outside, or for a thread that waits for
 * the turn, so the thread goes on outside.
 *
 * A thread that could run, but has hardly had a processor since it got the turn, is no stall: the machine is busy.
 * Nor does a thread wait in such a call that computes, and sleeps at the moment of a look (nap.h).
 *
 * A program that has set a filter of system calls may be ended by it for a file of /proc that is opened. There CPU
 * clocks alone are looked at, and a thread that has run for less than half of DET_STALL_ASLEEP_NS counts as asleep.
 *
 * A thread that has been given the turn, and is still in its wait for it, is woken again before that: its wake-up may
 * have been lost. No kernel or processor loses one, but an emulator has.
 *
 * A wait with a deadline may be late, where the turns of others take longer than they count: logical time lags behind
 * the kernel's. That is told too.
 *
 * Letting a holder go on outside takes the turn away from a thread that may use it at that moment:
 *  1. The thread that expels writes `holder`, makes a heavy fence, and reads the other's in_op.
 *  2. The other thread writes in_op, and then reads `holder`.
 * Either the first sees in_op and gives the turn back, or the second sees that it has not got the turn. Where heavy
 * fences fail, the same holds if the other thread does not run at all from before 1. on: the kernel makes full fences
 * when it takes a thread off a processor, and when it puts one on.
 */
#include <sys/syscall.h>
#include <time.h>

#include "core/log.h"
#include "decimal.h"
#include "engine/det/det.h"
#include "os/arch.h"
#include "os/fence.h"
#include "os/proc.h"
#include "switch/switch.h"

static bool has_told; /* and what follows is used */
static char place[DET_PLACE_BYTES];
static bool has_told_late;

/* The call is known where operations are logged, or looked at for hints. */
static void tell(uint32_t holder, bool releases) {
    char number[DECIMAL_SIZE];
    if (__atomic_exchange_n(&has_told, true, __ATOMIC_RELAXED))
        return;
    det_place_text(__atomic_load_n(&det_round->thread[holder].site, __ATOMIC_RELAXED), place);
    bool is_known = place[0] != '\0';
    sbt_log(1, "thread ", decimal_of(number, holder), " keeps the turn and makes no operation: ",
            releases ? "it goes on outside the order" : "the others wait (--stall release lets them go on)",
            is_known ? "; hints for its last call: 'pcs "
                     : "; with --schedule FILE this line has a hint for its last call",
            is_known ? place : "", is_known ? "' if it loops on a variable, 'give-up-turn " : "", is_known ? place : "",
            is_known ? "' if it computes" : "", NULL);
}

static bool makes_operation(uint32_t holder, bool sleeps) {
    const uint32_t *in_op = __atomic_load_n(&det_round->thread[holder].in_op, __ATOMIC_ACQUIRE);
    uint32_t value = in_op != NULL ? __atomic_load_n(in_op, __ATOMIC_SEQ_CST) : 1;
    return value == 1 || (value == DET_CREATES && !sleeps);
}

/* The kernel thread on which it runs now; 0: it is not known. */
static uint32_t runs_on(uint32_t holder) {
    uint32_t tid = __atomic_load_n(&det_round->thread[holder].tid, __ATOMIC_RELAXED);
    return tid != 0 ? sbt_switch_runs_on(tid) : 0;
}

/* CPU time of that kernel thread so far; the clock's number is the kernel's. */
static uint64_t cpu_ns_of(uint32_t tid) {
    const long by_scheduler = 2, of_thread = 4, clock = (long)~(int)tid * 8 | of_thread | by_scheduler;
    struct timespec t;
    return sbt_syscall3(SYS_clock_gettime, clock, (long)&t, 0) == 0
               ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec
               : 0;
}

/* Since that look. */
static bool has_not_run(uint32_t holder, const struct det_nap *nap) {
    return nap->cpu_ns != 0 && runs_on(holder) == nap->on && cpu_ns_of(nap->on) == nap->cpu_ns;
}

/* False: it makes an operation, or may begin one that would be missed. */
static bool expel(uint32_t holder, bool sleeps, const struct det_nap *nap) {
    struct det_round *r = det_round;
    uint32_t next = TURN_NO_THREAD;
    bool is_out = false;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    if (r->turn.holder == holder && r->turn.thread[holder].state == TURN_RUNNABLE) {
        __atomic_store_n(&r->turn.holder, TURN_NO_THREAD, __ATOMIC_SEQ_CST);
        bool is_fenced = sbt_fence_heavy() || (sleeps && has_not_run(holder, nap));
        if (!is_fenced || makes_operation(holder, sleeps)) {
            __atomic_store_n(&r->turn.holder, holder, __ATOMIC_SEQ_CST);
            next = holder;
        } else {
            is_out = true;
            turn_expel(&r->turn, holder);
            next = turn_choose(&r->turn);
            if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
                det_schedule_released(holder);
        }
    }
    sbt_lock_drop(&r->lock);
    det_give(next);
    sbt_handlers_release();
    return is_out;
}

static bool may_open_files(void) {
    return !sbt_fence_is_forbidden();
}

/* `on` 0: it is in a wait of ours, or not known. Where no file may be opened each thread counts as asleep. */
static struct det_nap look_at(uint32_t holder) {
    const uint32_t on = holder != TURN_NO_THREAD ? runs_on(holder) : 0;
    if (on == 0 || __atomic_load_n(&det_round->thread[holder].waits, __ATOMIC_RELAXED) != 0)
        return (struct det_nap){0};
    const bool opens = may_open_files();
    struct det_nap nap = {.on = on, .is_asleep = !opens || sbt_proc_state(on) == 'S', .at_ns = sbt_now_ns()};
    if (!opens || !sbt_proc_used(on, &nap.cpu_ns, &nap.queued_ns))
        nap.cpu_ns = cpu_ns_of(on);
    return runs_on(holder) == on && (opens || nap.cpu_ns != 0) ? nap : (struct det_nap){0};
}

static uint64_t patience_ns(uint32_t holder) {
    bool is_asleep = __atomic_load_n(&det_round->thread[holder].waits, __ATOMIC_RELAXED) != 0;
    return is_asleep                                                 ? DET_STALL_ASLEEP_NS
           : sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE ? DET_STALL_RELEASE_NS
                                                                     : DET_STALL_NS;
}

void det_look(uint32_t number) {
    struct det_round *r = det_round;
    if (__atomic_exchange_n(&r->thread[number].looks, 1, __ATOMIC_SEQ_CST) == 0)
        __atomic_fetch_add(&r->n_lookers, 1, __ATOMIC_RELAXED);
}

void det_look_no_more(uint32_t number) {
    struct det_round *r = det_round;
    if (__atomic_load_n(&r->thread[number].looks, __ATOMIC_SEQ_CST) != 0 &&
        __atomic_exchange_n(&r->thread[number].looks, 0, __ATOMIC_SEQ_CST) != 0)
        __atomic_fetch_sub(&r->n_lookers, 1, __ATOMIC_RELAXED);
}

/*
 * A looker that has the turn is one no more. Relaxed is enough: what the caller, which had the turn, must see came
 * before that turn, and a looker that it does not see yet is only called beside another one.
 *  1. A looker ends its wait when it has been given the turn, and takes itself off the count.
 *  2. It passes the turn. So each thread that has the turn later sees the lower count.
 */
static bool has_looker(uint32_t holder) {
    const struct det_round *r = det_round;
    return __atomic_load_n(&r->n_lookers, __ATOMIC_RELAXED) >
           __atomic_load_n(&r->thread[holder].looks, __ATOMIC_RELAXED);
}

void det_call_looker(uint32_t holder) {
    struct det_round *r = det_round;
    uint32_t called = TURN_NO_THREAD;
    if (SBT_LIKELY(__atomic_load_n(&r->turn.n_back, __ATOMIC_RELAXED) == 0 || has_looker(holder)))
        return;
    sbt_lock_take(&r->lock);
    if (r->turn.holder != TURN_NO_THREAD && !has_looker(r->turn.holder))
        called = turn_last_back(&r->turn);
    if (called != TURN_NO_THREAD)
        det_look(called);
    sbt_lock_drop(&r->lock);
    if (called != TURN_NO_THREAD)
        det_wake_waiter(called);
}

uint64_t det_look_every_ns(void) {
    uint64_t every = sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE ? DET_STALL_RELEASE_NS : DET_STALL_NS;
    return every / 2 + every * __atomic_load_n(&det_round->turn.n_runnable, __ATOMIC_RELAXED) / DET_LOOKERS;
}

/* With the lock: true, the holder has kept the turn for long enough since that look, of which *since is a copy then. */
static bool is_late(struct det_round *r, struct det_look *since) {
    uint64_t now = sbt_now_ns();
    if (r->turn.holder == TURN_NO_THREAD || __atomic_load_n(&r->sleeps_off, __ATOMIC_RELAXED) != 0)
        return false;
    uint64_t logical = __atomic_load_n(&r->turn.now, __ATOMIC_RELAXED); /* the holder's, without the lock */
    if (r->look.holder != r->turn.holder || r->look.logical != logical || r->look.since_ns == 0) {
        uint32_t on = runs_on(r->turn.holder);
        r->look = (struct det_look){.holder = r->turn.holder,
                                    .logical = logical,
                                    .since_ns = now,
                                    .on = on,
                                    .cpu_ns = on != 0 ? cpu_ns_of(on) : 0};
    }
    *since = r->look;
    return now - since->since_ns >= patience_ns(since->holder);
}

/* The look that began as `since` has found the holder so. Does it wait in the kernel? */
static bool is_wait(const struct det_look *since, const struct det_nap *nap) {
    struct det_round *r = det_round;
    const uint64_t patience = may_open_files() ? patience_ns(since->holder) : DET_STALL_ASLEEP_NS;
    sbt_lock_take(&r->lock);
    bool waits = r->look.holder == since->holder && r->look.logical == since->logical &&
                 r->look.since_ns == since->since_ns && det_nap_is_wait(&r->look.nap, nap, patience);
    sbt_lock_drop(&r->lock);
    return waits;
}

static uint64_t stall_ns(uint32_t holder) {
    return det_is_serial ? DET_STALL_SERIAL_NS : patience_ns(holder);
}

/* Has it run for less than half of what a stall takes, although it could run? */
static bool lacks_processor(const struct det_look *since) {
    return since->on != 0 && runs_on(since->holder) == since->on &&
           (!may_open_files() || sbt_proc_state(since->on) == 'R') &&
           cpu_ns_of(since->on) - since->cpu_ns < stall_ns(since->holder) / 2;
}

/* In the log, unless the turn has gone on meanwhile. */
static void note(uint32_t holder) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    if (r->turn.holder == holder && __atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        det_schedule_stall(holder);
    sbt_lock_drop(&r->lock);
}

bool det_look_for_stall(void) {
    struct det_round *r = det_round;
    bool releases = sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    struct det_look since = {.holder = TURN_NO_THREAD};
    bool stalls = is_late(r, &since);
    sbt_lock_drop(&r->lock);
    uint32_t holder = since.holder;
    const struct det_nap nap = look_at(holder);
    bool waits = holder != TURN_NO_THREAD && is_wait(&since, &nap);
    bool sleeps = nap.is_asleep && (waits || may_open_files());
    if (stalls)
        stalls = sleeps ? waits : sbt_now_ns() - since.since_ns >= stall_ns(holder) && !lacks_processor(&since);
    if (stalls && __atomic_load_n(&det_round->thread[holder].waits, __ATOMIC_RELAXED) != 0)
        det_wake_again(holder);
    bool is_out = stalls && (releases || sleeps) && expel(holder, sleeps, &nap);
    if (stalls && !is_out)
        note(holder);
    sbt_handlers_release();
    if (stalls && !sleeps && (is_out || !releases))
        tell(holder, releases);
    return stalls;
}

/* ---- waits that are late ---- */

static bool has_passed_since(const struct sbt_deadline *deadline, uint64_t ns) {
    const uint64_t second = 1000000000, at = (uint64_t)deadline->at.tv_nsec + ns;
    const struct sbt_deadline later = {deadline->clock,
                                       {deadline->at.tv_sec + (time_t)(at / second), (long)(at % second)}};
    return sbt_deadline_passed(&later);
}

/* With the lock. A holder that sleeps off what logical time is ahead does not make it lag. */
static bool lags(const struct det_round *r, uint32_t number) {
    const struct turn_thread *thread = &r->turn.thread[number];
    return thread->state == TURN_BLOCKED && thread->overdue && !thread->is_absent && r->turn.holder != TURN_NO_THREAD &&
           thread->deadline > __atomic_load_n(&r->turn.now, __ATOMIC_RELAXED) &&
           __atomic_load_n(&r->sleeps_off, __ATOMIC_RELAXED) == 0;
}

static void tell_late(uint32_t number, bool releases) {
    char text[DECIMAL_SIZE];
    if (!__atomic_exchange_n(&has_told_late, true, __ATOMIC_RELAXED))
        sbt_log(1, "thread ", decimal_of(text, number),
                " waits, though its time has passed: a turn of the others counts 1 us, one that is kept 0.1 us, and "
                "takes longer; ",
                releases ? "it goes on outside the order" : "it waits on (--stall release lets it go on)", NULL);
}

void det_look_for_late(uint32_t number, const struct sbt_deadline *deadline) {
    struct det_round *r = det_round;
    bool releases = sbt_options.value[SBT_OPT_STALL].u == SBT_STALL_RELEASE;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    bool is_late = lags(r, number) && has_passed_since(deadline, releases ? DET_LATE_RELEASE_NS : DET_LATE_NS);
    if (is_late && releases) {
        turn_wake_thread(&r->turn, number, TURN_TIMED_OUT);
        det_returned(number, SCHEDULE_FROM_ABSENCE);
    }
    sbt_lock_drop(&r->lock);
    sbt_handlers_release();
    if (is_late)
        tell_late(number, releases);
}

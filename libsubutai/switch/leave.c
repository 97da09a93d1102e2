/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A fiber leaves the place where it runs, a carrier or its home thread, and another fiber goes on.
 *
 * A carrier leaves a fiber that waits by switching straight to the next fiber. Then one thing is left to do for the
 * first fiber: say that it is PARKED, or queue it again. That is done on the stack that was switched to, because only
 * then is the fiber's own stack no longer in use. It is finish_switch, as in Linux's scheduler.
 *
 * Each wait that switches goes this way. What it costs is the number of its instructions, beside the switch of the TLS
 * base; its locked operations are a twentieth (docs/notes.md). So the way of a wait without anything unusual is one
 * function, and what is unusual is in functions of its own: a call saves registers, and the frames of all fibers share
 * the first cache.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "core/priority.h"
#include "core/probes.h"
#include "os/real.h"
#include "switch/carrier.h"
#include "switch/mask.h"
#include "switch/pin.h"
#include "switch/recall.h"
#include "switch/receive.h"
#include "switch/runq_pop.h"
#include "switch/sanitizer.h"
#include "switch/serve.h"
#include "switch/state.h"
#include "switch/tuning.h"

/* ---- the fiber that was left ---- */

/*
 * Before this the count of runnable threads may be too high, and a thread that waits may switch at once instead of
 * spinning. That does no harm while other fibers are runnable here.
 */
SBT_NOINLINE void sbt_carrier_count_parked(struct sbt_carrier *x) {
    if (x->n_parked != 0)
        sbt_runnable_add(-(int)x->n_parked);
    x->n_parked = 0;
}

/* Queue it again, or send it home. */
static void dispose(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_leaving why) {
    switch (why) {
    case SBT_LEAVES_TO_PARK: /* it has been woken: this carrier still owns it and must make it runnable */
    case SBT_LEAVES_TO_GO_ON:
        sbt_serve_queue(x, f, SBT_WOKEN);
        break;
    case SBT_LEAVES_TO_YIELD:
        sbt_serve_queue(x, f, SBT_YIELDED);
        break;
    case SBT_LEAVES_FRESH:
        sbt_serve_queue(x, f, SBT_FRESH);
        break;
    case SBT_LEAVES_FOR_HOME:
        sbt_pin_send_home(f);
        break;
    case SBT_LEAVES_NOTHING:
        break;
    }
}

/* Between the fences: until then `mask` may change (sbt_leave_put_back), and the carrier looks at it next. */
static inline void end_leaving(struct sbt_carrier *x) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    x->is_leaving = false;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/*
 * A handler that forks may have come after the two reads of finish_switch, and this be the child. f is a fiber of the
 * parent's then, and the child's carriers must not run it:
 *  1. From here on handlers are deferred. A fork is over, or comes after the fiber has been disposed of.
 *  2. If it is over, and this is the child, the fork has taken the fiber from the thread that called it. No thread but
 *     a new one is given a fiber, so the caller's is not `self`. Nothing is done.
 *  3. Otherwise the fiber is this process's. A child that is forked later has no run queue with it.
 *
 * A carrier's loop (`self` is NULL) is interrupted by no handler: it blocks all signals.
 */
static SBT_NOINLINE void finish_otherwise(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_leaving why,
                                          const struct sbt_fiber *self) {
    sbt_handlers_hold();
    if (SBT_LIKELY(sbt_self.fiber == self))
        dispose(x, f, why);
    end_leaving(x); /* before a deferred handler runs */
    sbt_handlers_release();
}

/*
 * `self`: the fiber that goes on; NULL: the carrier's loop does.
 *
 * A handler may fork between the two reads, and this be the child, which has cleared both. Then `why` is NOTHING, and
 * the fiber is left alone; in the other order it would be no fiber with a reason. If the fork comes after both reads, a
 * fiber that is to be PARKED is marked so in the child too. That does no harm: the next thread that uses it sets its
 * token.
 */
static inline void finish_switch(struct sbt_carrier *x, const struct sbt_fiber *self) {
    struct sbt_fiber *f = x->leaving;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    enum sbt_leaving why = x->why;
    uint32_t none = SBT_TOKEN_NONE;
    x->leaving = NULL;
    x->why = SBT_LEAVES_NOTHING;
    /* Release: the fiber's registers. */
    if (SBT_UNLIKELY(why != SBT_LEAVES_TO_PARK) ||
        !__atomic_compare_exchange_n(&f->token, &none, SBT_TOKEN_PARKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        finish_otherwise(x, f, why, self);
    else if (++x->n_parked >= (__atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0 ? PARKED_FEW : PARKED_MOST))
        sbt_carrier_count_parked(x);
    end_leaving(x);
}

void sbt_carrier_finish_switch(struct sbt_carrier *x) {
    finish_switch(x, NULL);
}

/* ---- the fiber that goes on ---- */

/* Count how often fibers sleep in the kernel on this carrier. The monitor decides whether that is too often. */
static void count_sleeps(struct sbt_carrier *x) {
    struct rusage usage;
    x->pops_at_count = x->pops;
    if (sbt_syscall3(SYS_getrusage, RUSAGE_THREAD, &usage, 0) != 0)
        return;
    uint32_t all = (uint32_t)usage.ru_nvcsw - x->idle_sleeps;
    /* The count falls if an idle sleep was counted and the kernel did not sleep, because there was work. */
    if ((int32_t)(all - x->sleeps_counted) > 0)
        __atomic_fetch_add(&SBT_SWITCH->sleeps, all - x->sleeps_counted, __ATOMIC_RELAXED);
    x->sleeps_counted = all;
}

/*
 * Under SCHED_FIFO the kernel takes no core from a thread that does not wait, and a carrier of fibers that wake each
 * other does not. Natively each of their waits lets another thread of that priority run: a thread at home perhaps,
 * which is to end all this. Another process may have set the policy (chrt -p), so the kernel is asked.
 */
static void let_equals_run(void) {
    if (SBT_UNLIKELY(sbt_priority_read() != 0))
        sbt_syscall3(SYS_sched_yield, 0, 0, 0);
}

/* What a carrier does once in so many fibers. */
static SBT_NOINLINE void take_stock(struct sbt_carrier *x) {
    count_sleeps(x);
    x->rests = sbt_carrier_is_surplus(x);
    let_equals_run();
}

/*
 * A chosen fiber is no progress (`pops`): while a batch lasts idle carriers take the fibers that are queued here. A
 * handler finds it either among the chosen or as the current one. NULL: a handler has queued it.
 */
static SBT_NOINLINE struct sbt_fiber *take_chosen(struct sbt_carrier *x) {
    sbt_handlers_hold();
    struct sbt_fiber *chosen = x->chosen;
    if (chosen != NULL) {
        sbt_carrier_set_current(x, chosen);
        x->n_in_row++;
        x->chosen = NULL;
    }
    sbt_handlers_release();
    return chosen;
}

/* The fiber that was chosen, or the first of the run queue. */
static inline struct sbt_fiber *choose(struct sbt_carrier *x) {
    struct sbt_fiber *chosen = SBT_UNLIKELY(x->chosen != NULL) ? take_chosen(x) : NULL;
    if (SBT_UNLIKELY(chosen != NULL))
        return chosen;
    x->n_in_row = 0;
    return SBT_UNLIKELY(x->rests) ? NULL : sbt_runq_pop(x);
}

/*
 * The carrier is about to leave its fiber: take the fiber that it runs next. From here on no signal that this fiber
 * blocks is handled. NULL: the carrier's loop is next.
 */
static inline struct sbt_fiber *take_next(struct sbt_carrier *x) {
    if (SBT_UNLIKELY(x->woke))
        sbt_runq_judge(x);
    struct sbt_fiber *next = choose(x);
    if (next == NULL)
        sbt_carrier_set_current(x, NULL);
    else if (SBT_UNLIKELY(x->pops - x->pops_at_count >= POPS_PER_COUNT))
        take_stock(x);
    sbt_mask_block_for(x, next != NULL ? next->mask : sbt_receive_idle_mask());
    return next;
}

/* ---- leaving a carrier ---- */

/* Take back the choice of carrier x, which still runs f. NULL: there is none. */
static struct sbt_fiber *take_back(struct sbt_carrier *x, struct sbt_fiber *f) {
    struct sbt_fiber *next = __atomic_load_n(&x->current, __ATOMIC_RELAXED);
    if (next == f) {
        next = x->chosen;
        x->chosen = NULL;
    } else if (x->leaving == f) {
        sbt_carrier_set_current(x, f);
    } else {
        next = NULL; /* f has just been resumed on another carrier than this, where it ran before */
    }
    return next;
}

/*
 * Before the carrier's last look at its choice: the fiber that was chosen is queued again, and the carrier chooses anew
 * when the handler has returned.
 */
void sbt_leave_undo(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    struct sbt_carrier *x = f != NULL && sbt_self.in_switch != 0 && sbt_self.handlers_held == 0 ? f->carrier : NULL;
    struct sbt_fiber *next = x != NULL && !x->is_leaving ? take_back(x, f) : NULL;
    if (next == NULL)
        return;
    if (sbt_serves(x) && sbt_in_section(next))
        sbt_runq_serve(x, next, SBT_WOKEN, true);
    else
        sbt_runq_push_first(x, next);
}

static struct sbt_carrier *carrier_of(uint32_t tid) {
    struct sbt_switch_state *s = SBT_SWITCH;
    for (uint32_t i = 0; i < __atomic_load_n(&s->n_carriers, __ATOMIC_RELAXED); i++)
        if (__atomic_load_n(&s->carrier[i].tid, __ATOMIC_RELAXED) == tid)
            return &s->carrier[i];
    return NULL;
}

/*
 * Behind that look, until the switch is finished: this kernel thread gets the signal again, and blocks it until the
 * next fiber goes on, which finds another mask in `mask` than its own. Not a signal that was meant for the fiber, or
 * that the next one blocks, nor one of which the handler was for once: the kernel has forgotten that already.
 */
bool sbt_leave_put_back(int signal, siginfo_t *info, ucontext_t *context) {
    const uint64_t bit = (uint64_t)1 << (signal - 1), all = ~SBT_MASK_RESERVED;
    struct sigaction action;
    if (sbt_self.fiber == NULL || sbt_self.in_switch == 0 || info->si_code == SI_TKILL)
        return false;
    const long tid = sbt_syscall0(SYS_gettid);
    struct sbt_carrier *x = carrier_of((uint32_t)tid);
    struct sbt_fiber *next = x != NULL ? __atomic_load_n(&x->current, __ATOMIC_RELAXED) : NULL;
    if (next == NULL || !x->is_leaving || (__atomic_load_n(&next->mask, __ATOMIC_RELAXED) & bit) != 0 ||
        sbt_real.sigaction(signal, NULL, &action) != 0 || action.sa_handler == SIG_DFL)
        return false;
    uint64_t mask = sbt_mask_set(&all); /* until this returns: with SA_NODEFER the signal would come here at once */
    if (sbt_syscall6(SYS_rt_tgsigqueueinfo, sbt_syscall0(SYS_getpid), tid, signal, (long)info, 0, 0) != 0) {
        sbt_mask_set(&mask);
        return false;
    }
    memcpy(&mask, &context->uc_sigmask, sizeof mask);
    mask |= bit;
    memcpy(&context->uc_sigmask, &mask, sizeof mask);
    __atomic_store_n(&x->mask, x->mask | bit, __ATOMIC_RELEASE);
    return true;
}

/* The choice is final, unless a handler has undone it. */
static inline bool keeps_choice(struct sbt_carrier *x, const struct sbt_fiber *next) {
    x->is_leaving = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_LIKELY(__atomic_load_n(&x->current, __ATOMIC_RELAXED) == next))
        return true;
    x->is_leaving = false;
    return false;
}

/* The carrier makes progress. A hint, and it is seldom needed. */
static SBT_NOINLINE void note_progress(struct sbt_carrier *x) {
    if (!sbt_serves(x))
        __atomic_store_n(&SBT_SWITCH->all_held, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&x->held, 0, __ATOMIC_RELAXED);
}

/*
 * Switch from carrier *x to the next fiber, or to the carrier's loop. When f has been resumed, *x is the carrier that
 * runs it; NULL: its home thread does. False: a handler has forked just now; this is the child, and f is no fiber in
 * it.
 */
static inline bool leave_carrier(struct sbt_fiber *f, enum sbt_leaving why, struct sbt_carrier **at) {
    struct sbt_carrier *x = *at;
    if (SBT_UNLIKELY(__atomic_load_n(&SBT_SWITCH->all_held, __ATOMIC_RELAXED) != 0) ||
        SBT_UNLIKELY(__atomic_load_n(&x->held, __ATOMIC_RELAXED) != 0))
        note_progress(x);
    struct sbt_fiber *next;
    x->leaving = f;
    x->why = why;
    do {
        next = take_next(x);
        if (SBT_UNLIKELY(sbt_self.fiber != f)) {
            x->leaving = NULL;
            x->why = SBT_LEAVES_NOTHING;
            sbt_mask_set(&f->mask); /* take_next has blocked what a carrier without a fiber blocks */
            return false;
        }
    } while (!keeps_choice(x, next));
    SBT_TSAN_RELEASE(x);
    if (next == NULL)
        *at = sbt_regs_switch(&f->regs, &x->regs, x);
    else if (next != f)
        *at = sbt_regs_switch(&f->regs, &next->regs, x);
    return true;
}

/* The last step of a way home: pending signals are handled now, and a handler may end the thread. */
static SBT_NOINLINE void arrive_home(struct sbt_fiber *f) {
    sbt_switch_leave();
    uint32_t in_switch = sbt_self.in_switch;
    sbt_self.in_switch = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_pin_arrived(f);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.in_switch = in_switch;
}

/*
 * The fence pairs with sbt_recall's: either the recall sees that f runs on this carrier, or f sees here that it is
 * pinned.
 */
static SBT_NOINLINE void obey_recall(struct sbt_fiber *f, enum sbt_leaving why) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&f->pinned, __ATOMIC_RELAXED) != SBT_PIN_NOT && why != SBT_LEAVES_FOR_HOME)
        sbt_fiber_leave(f, SBT_LEAVES_FOR_HOME);
}

/* f has been resumed on x; NULL: on its home thread. Of what was known before the switch only f is still true. */
static inline void go_on(struct sbt_fiber *f, struct sbt_carrier *x, enum sbt_leaving why) {
    SBT_TSAN_ACQUIRE(x != NULL ? (void *)x : (void *)&f->home_call);
    __atomic_store_n(&f->carrier, x, __ATOMIC_RELAXED);
    SBT_PROBE2(fiber_resume, f, x);
    if (SBT_UNLIKELY(x == NULL)) {
        arrive_home(f);
        return;
    }
    finish_switch(x, f);
    if (SBT_UNLIKELY(x->mask != f->mask))
        sbt_mask_carry(x, f->mask);
    sbt_switch_leave();
    if (SBT_UNLIKELY(sbt_recall_signals != 0))
        obey_recall(f, why);
}

void sbt_fiber_leave(struct sbt_fiber *f, enum sbt_leaving why) {
    sbt_switch_enter();
    struct sbt_carrier *x = f->carrier; /* read here: a handler that forks may have taken the fiber home before */
    if (SBT_UNLIKELY(x == NULL && why == SBT_LEAVES_FOR_HOME)) {
        sbt_switch_leave();
        return;
    }
    if (SBT_UNLIKELY(f->mask_unsure))
        sbt_mask_read(f);
    SBT_PROBE2(fiber_leave, f, why);
    if (x == NULL) {
        SBT_TSAN_RELEASE(&f->token);
        x = sbt_pin_leave_home(f, why);
    } else if (!leave_carrier(f, why, &x)) {
        sbt_switch_leave();
        return;
    }
    go_on(f, x, why);
}

/* ---- the usual wait ---- */

/*
 * Is there nothing that sbt_fiber_park would have to look after? f runs on carrier x, the caller is inside switch/
 * once, and everything else that may make a fiber wait elsewhere is as it nearly always is.
 */
static inline bool waits_as_usual(const struct sbt_fiber *f, const struct sbt_carrier *x) {
    const struct sbt_switch_state *s = SBT_SWITCH;
    /* One branch for what is 0 as a rule. */
    uint32_t unusual = (sbt_self.in_switch - 1) | sbt_self.pin_held | f->mask_unsure |
                       __atomic_load_n(&f->pinned_waits, __ATOMIC_RELAXED) |
                       __atomic_load_n(&f->pinned, __ATOMIC_RELAXED) |
                       __atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED);
    return x != NULL && unusual == 0 && !sbt_signal_stack_is_here(f) &&
           __atomic_load_n(&f->token, __ATOMIC_RELAXED) != SBT_TOKEN_TOKEN &&
           (__atomic_load_n(&s->main_mask, __ATOMIC_RELAXED) & ~f->mask) == 0 &&
           (__atomic_load_n(&s->on_duty, __ATOMIC_RELAXED) == 0 || f->duty == 0) &&
           __atomic_load_n(&s->running, __ATOMIC_RELAXED) != 0;
}

static SBT_NOINLINE int park_otherwise(void) {
    sbt_switch_leave();
    return sbt_fiber_park_otherwise(NULL);
}

int sbt_fiber_park_entered(struct sbt_fiber *f) {
    struct sbt_carrier *x = f->carrier;
    if (SBT_UNLIKELY(!waits_as_usual(f, x)))
        return park_otherwise();
    f->interrupted = false;
    SBT_PROBE2(fiber_leave, f, SBT_LEAVES_TO_PARK);
    if (SBT_LIKELY(leave_carrier(f, SBT_LEAVES_TO_PARK, &x)))
        go_on(f, x, SBT_LEAVES_TO_PARK);
    else
        sbt_switch_leave();
    if (SBT_UNLIKELY(__atomic_load_n(&f->token, __ATOMIC_ACQUIRE) != SBT_TOKEN_NONE))
        __atomic_exchange_n(&f->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL);
    return SBT_UNLIKELY(f->interrupted) ? EINTR : 0;
}

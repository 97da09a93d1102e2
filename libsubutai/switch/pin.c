/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Home threads and pinned fibers: how a fiber leaves the kernel thread that was created with it, how it comes back, and
 * what keeps it there.
 *
 * While its fiber is away, a kernel thread sleeps as a parked home thread: on a small stack that belongs to the fiber
 * (pool.h), with all signals blocked. Its TLS is the fiber's, and the fiber runs elsewhere. So only this file and
 * due.c may run there meanwhile, and they touch no thread-local variable on that thread. For the same reason the build
 * leaves the two files out of what a sanitizer instruments.
 *
 * A pinned fiber stays on its home thread: for the length of a call (sbt_pin_hold), or for good, because the program
 * knows its kernel thread or something that belongs to it (sbt_pin_self, _tid, _thread).
 */
#include "switch/pin.h"

#include "core/cpus.h"
#include "core/thread.h"
#include "switch/due.h"
#include "switch/mask.h"
#include "switch/recall.h"
#include "switch/receive.h"
#include "switch/sanitizer.h"
#include "switch/state.h"
#include "switch/tuning.h"

#define ALL_SIGNALS (~(uint64_t)0)

/* As sbt_carrier_finish_switch. False: the fiber has been woken already, and does not leave. */
static bool let_go(struct sbt_fiber *f) {
    uint32_t none = SBT_TOKEN_NONE;
    /* A yield at home counts as one in vain: the fiber joins behind those that already take turns. */
    if (f->why == SBT_LEAVES_TO_YIELD || f->why == SBT_LEAVES_FRESH || f->why == SBT_LEAVES_TO_GO_ON) {
        sbt_runq_push_from_home(f, f->why == SBT_LEAVES_TO_GO_ON ? SBT_WOKEN : SBT_YIELDED);
        return true;
    }
    sbt_runnable_add(-1);
    if (__atomic_compare_exchange_n(&f->token, &none, SBT_TOKEN_PARKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return true;
    sbt_runnable_add(1);
    return false;
}

static void parked_home_main(void *argument) {
    struct sbt_fiber *f = argument;
    if (let_go(f)) {
        sbt_due_sleep(f);
        /* Relaxed: only this thread looks at the call, and the next call comes after the fiber has left again. */
        __atomic_store_n(&f->home_call, SBT_HOME_NOTHING, __ATOMIC_RELAXED);
    }
    sbt_regs_switch(&f->scratch, &f->regs, NULL);
}

struct sbt_carrier *sbt_pin_leave_home(struct sbt_fiber *f, enum sbt_leaving why) {
    uint64_t all = ALL_SIGNALS;
    __atomic_store_n(&f->mask, sbt_mask_set(&all) & ~sbt_recall_signals, __ATOMIC_RELAXED);
    f->mask_unsure |= sbt_mask_jumps; /* that may have become known since the mask was read */
    /* Do what handlers have deferred until now: a parked home thread does nothing for other threads. */
    if (SBT_UNLIKELY(sbt_switch_has_deferred()))
        sbt_switch_deliver();
    if (SBT_UNLIKELY(sbt_self.fiber != f)) /* a handler has forked just now; this is the child, and it stays */
        return NULL;
    /*
     * Pairs with the order in recall_all: either recall_all sees the fiber away, or the fiber sees that it has to stay.
     */
    __atomic_store_n(&f->away, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY((__atomic_load_n(&SBT_SWITCH->no_more, __ATOMIC_RELAXED) & SBT_SWITCH_ENDED) != 0))
        return NULL;
    f->why = why;
    sbt_regs_make(&f->home_regs, f->home_stack, SBT_HOME_STACK_BYTES, parked_home_main, f->regs.tls);
    return sbt_regs_switch(&f->regs, &f->home_regs, f);
}

void sbt_pin_arrived(struct sbt_fiber *f) {
    __atomic_store_n(&f->away, 0, __ATOMIC_RELAXED);
    sbt_mask_set(&f->mask);
}

void sbt_pin_send_home(struct sbt_fiber *f) {
    SBT_TSAN_RELEASE(&f->home_call);
    __atomic_store_n(&f->home_call, SBT_HOME_COME, __ATOMIC_RELEASE);
    sbt_futex_wake(&f->home_call, 1); /* a late wake-up finds a fiber too: they are never freed */
}

static void go_home(struct sbt_fiber *f) {
    if (f->carrier != NULL)
        sbt_fiber_leave(f, SBT_LEAVES_FOR_HOME);
}

/* Between this and the release a handler that yields comes back to the same kernel thread. */
static void hold(void) {
    sbt_self.pin_held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void sbt_pin_hold(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    hold();
    if (SBT_LIKELY(f == NULL))
        return;
    f->mask_unsure = 1;         /* the caller may be a signal handler, which has another mask */
    if (!sbt_switch_is_fixed()) /* otherwise this is a handler */
        go_home(f);
}

void sbt_pin_release(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.pin_held--;
}

void sbt_pin_before_sleep(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (SBT_LIKELY(f == NULL) || f->carrier == NULL ||
        __atomic_load_n(&f->tid, __ATOMIC_RELAXED) != SBT_SWITCH->main_tid)
        return;
    f->mask_unsure = 1; /* as in sbt_pin_hold */
    if (!sbt_switch_is_fixed())
        go_home(f);
}

/* The caller may be a handler with a mask of its own: that mask goes home with the fiber. */
static void pin_self(enum sbt_pin pin) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (__atomic_load_n(&SBT_SWITCH->decided, __ATOMIC_RELAXED) == 0)
        pin = SBT_PIN_ITSELF;
    sbt_self.pin |= (uint8_t)pin;
    if (f == NULL)
        return;
    f->mask_unsure = 1;
    __atomic_fetch_or(&f->pinned, (uint8_t)pin, __ATOMIC_RELAXED);
    if (!sbt_switch_is_fixed())
        go_home(f);
}

/*
 * Constructors of the program's libraries may call before the library has started, as libgomp's does where it binds
 * threads. Whether switching is wanted is not known then.
 */
static void pin_self_early(void) {
    sbt_self.pin |= SBT_PIN_ITSELF;
}

void sbt_pin_self(bool heritably) {
    if (SBT_UNLIKELY(sbt_switch_wanted))
        pin_self(heritably ? SBT_PIN_HERITABLY : SBT_PIN_ITSELF);
    else
        pin_self_early();
}

static bool may_be_unbound(void) {
    return sbt_switch_wanted && __atomic_load_n(&SBT_SWITCH->decided, __ATOMIC_RELAXED) == 0;
}

/*
 * No: in a child of vfork, which chooses its own CPUs, and has the memory of the thread that waits for it at home.
 * Where a filter refuses to tell, it is taken for the thread.
 */
static bool is_the_thread_itself(void) {
    const struct sbt_fiber *f = sbt_self.fiber;
    if (f != NULL && f->carrier != NULL)
        return true;
    long tid = sbt_syscall0(SYS_gettid);
    return tid <= 0 || tid == (long)sbt_thread_tid();
}

/*
 * Beside other threads: a thread that has the CPUs of the beginning, as the carriers have, is pinned until it has them
 * again. One that has others, as what it has inherited, is pinned for good: its carriers may have other ones.
 */
void sbt_pin_before_affinity(void) {
    if (may_be_unbound() || !is_the_thread_itself())
        return;
    bool is_bound = (sbt_self.pin & SBT_PIN_WHILE_BOUND) != 0;
    if (sbt_switch_wanted)
        pin_self(SBT_PIN_WHILE_BOUND);
    if (!sbt_switch_wanted || sbt_switch_is_fixed() || (!is_bound && !sbt_cpus_are_as_at_start()))
        sbt_pin_self(true);
}

void sbt_pin_after_affinity(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (!sbt_switch_wanted || sbt_switch_is_fixed() || !is_the_thread_itself())
        return;
    bool as_at_start = sbt_cpus_are_as_at_start();
    if (as_at_start)
        sbt_self.pin &= (uint8_t)~SBT_PIN_WHILE_BOUND;
    if (as_at_start && f != NULL)
        __atomic_fetch_and(&f->pinned, (uint8_t)~SBT_PIN_WHILE_BOUND, __ATOMIC_RELAXED);
    if (may_be_unbound())
        sbt_self.pin = (uint8_t)((sbt_self.pin & ~SBT_PIN_BOUND) | (as_at_start ? 0 : SBT_PIN_BOUND));
}

static bool is_of_process(uint32_t tid) {
    return sbt_syscall3(SYS_tgkill, sbt_syscall0(SYS_getpid), tid, 0) == 0;
}

uint32_t sbt_switch_runs_on(uint32_t home_tid) {
    const struct sbt_switch_state *s = SBT_SWITCH;
    const struct sbt_fiber *f = sbt_pool_find(0, home_tid);
    if (f == NULL || __atomic_load_n(&f->away, __ATOMIC_RELAXED) == 0)
        return home_tid;
    for (uint32_t i = 0; i < sbt_switch_n_carriers(s); i++)
        if (__atomic_load_n(&s->carrier[i].current, __ATOMIC_RELAXED) == f)
            return __atomic_load_n(&s->carrier[i].tid, __ATOMIC_RELAXED);
    return 0;
}

/*
 * A thread that is not known may not have begun: then it must get no fiber. A fiber that is away is brought home, as
 * for a signal: it may compute for long before it waits.
 */
static void pin_other(pthread_t thread, uint32_t tid, enum sbt_pin pin) {
    struct sbt_fiber *f = sbt_pool_find(thread, tid);
    bool is_main = thread != 0 ? thread == SBT_SWITCH->main_thread : tid == SBT_SWITCH->main_tid;
    if (f == NULL && !is_main && (thread != 0 || is_of_process(tid))) {
        __atomic_fetch_or(&SBT_SWITCH->no_more, SBT_SWITCH_NO_MORE, __ATOMIC_RELAXED);
        /*
         * Pairs with the fence of sbt_switch_thread_begin: either the beginning thread sees no_more, or this sees its
         * fiber.
         */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        f = sbt_pool_find(thread, tid);
    }
    if (f == NULL)
        return;
    __atomic_fetch_or(&f->pinned, (uint8_t)pin, __ATOMIC_SEQ_CST); /* pairs with the fence of obey_recall */
    if (__atomic_load_n(&f->away, __ATOMIC_RELAXED) != 0 && sbt_recall_start())
        sbt_recall(f, SBT_RECALL_TO_GO_ON, RECALL_LOOKS);
}

void sbt_pin_tid(uint32_t tid, bool heritably) {
    if (tid == 0 || tid == sbt_thread_tid())
        sbt_pin_self(heritably);
    else if (SBT_UNLIKELY(sbt_switch_wanted))
        pin_other(0, tid, heritably ? SBT_PIN_HERITABLY : SBT_PIN_ITSELF);
}

void sbt_pin_thread(pthread_t thread) {
    if (pthread_equal(thread, pthread_self()))
        sbt_pin_self(true);
    else if (SBT_UNLIKELY(sbt_switch_wanted))
        pin_other(thread, 0, SBT_PIN_HERITABLY);
}

uint32_t sbt_switch_home_tid(void) {
    const struct sbt_fiber *f = sbt_self.fiber;
    if (SBT_LIKELY(f == NULL))
        return 0;
    bool stays = sbt_self.pin_held != 0 || __atomic_load_n(&f->pinned, __ATOMIC_RELAXED) != SBT_PIN_NOT;
    return f->carrier == NULL && stays ? 0 : f->tid;
}

enum sbt_pin sbt_pin_inherited(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    uint8_t pin = sbt_self.pin | (f != NULL ? __atomic_load_n(&f->pinned, __ATOMIC_RELAXED) : 0);
    return (pin & SBT_PIN_HERITABLY) == SBT_PIN_HERITABLY || (pin & SBT_PIN_WHILE_BOUND) != 0 ? SBT_PIN_HERITABLY
                                                                                              : SBT_PIN_NOT;
}

static void give_back(struct sbt_fiber *f) {
    __atomic_store_n(&f->thread, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&f->tid, 0, __ATOMIC_RELAXED);
    sbt_pool_put(f);
}

void sbt_switch_thread_begin(void) {
    if (sbt_switch_running_load() == 0 || sbt_self.pin != SBT_PIN_NOT)
        return;
    struct sbt_fiber *f = sbt_pool_get();
    if (f == NULL)
        return;
    f->token = SBT_TOKEN_NONE;
    f->home_call = SBT_HOME_NOTHING;
    f->due = 0;
    f->dozes = false;
    f->duty = 0;
    __atomic_store_n(&f->section, NULL, __ATOMIC_RELAXED);
    f->pinned = SBT_PIN_NOT;
    __atomic_store_n(&f->away, 0, __ATOMIC_RELAXED); /* in a forked child it still says how the parent's thread stood */
    f->mask_unsure = 1;
    __atomic_store_n(&f->thread, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&f->tid, sbt_thread_tid(), __ATOMIC_RELAXED);
    f->regs.tls = sbt_tls_base();
    f->carrier = NULL;
    f->pinned_waits = f->pinned_waits_next = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with pin_other's */
    if (SBT_UNLIKELY(__atomic_load_n(&SBT_SWITCH->no_more, __ATOMIC_RELAXED) != 0))
        give_back(f);
    else
        sbt_self.fiber = f;
}

void sbt_switch_thread_end(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    sbt_receive_thread_end();
    if (f == NULL)
        return;
    hold(); /* a handler that yields from here on must not take the thread away again */
    go_home(f);
    sbt_self.fiber = NULL;
    sbt_pin_release();
    give_back(f);
}

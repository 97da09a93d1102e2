/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Signals to the process. A thread of the program must take them, on its own stack and TLS, even while each thread that
 * accepts them is a fiber that waits away from its home thread.
 *
 * The kernel gives such a signal to a thread that does not block it, and to the main thread first. Parked home threads
 * block all signals. So do idle carriers, because their TLS belongs to no thread of the program. A signal that the main
 * thread accepts needs no care. For each signal that the main thread blocks, a fiber that accepts it is on duty: it
 * waits on its home thread, where the kernel finds it. The other fibers switch as ever.
 *  - A fiber takes the duty when it is about to wait and no other fiber has the duty.
 *  - A fiber gives the duty up when it ends, when it blocks the signal, or when the main thread accepts the signal
 *    again. If the main thread still blocks the signal, another fiber that accepts it is sent home, to take the duty.
 *
 * Two consequences:
 *  - A signal is pending, and handled late, while the main thread blocks it only inside a call (ppoll, sigsuspend) and
 *    no other thread that accepts it is on a kernel thread of its own: the mask of that call is not seen here.
 *  - A waiting fiber has no kernel thread that takes signals, unless it is on duty. So the kernel interrupts a thread
 *    that runs, where without switching it would also have had waiting threads to choose from.
 *
 * As long as the program has neither installed a handler nor changed a mask, any thread may be given a signal. Then
 * nothing is done, and idle carriers accept the signals that the program's first thread accepted. The first handler or
 * mask makes the idle carriers block all signals, and waits until they do (sbt_receive_begin).
 */
#include "switch/receive.h"

#include <signal.h>

#include "os/fence.h"
#include "switch/mask.h"
#include "switch/pin.h"
#include "switch/recall.h"
#include "switch/state.h"
#include "switch/tuning.h"

#define BIT(signal) ((uint64_t)1 << ((signal)-1))
/* No thread may block these. */
#define NO_DUTY (SBT_MASK_RESERVED | BIT(SIGKILL) | BIT(SIGSTOP))

static uint32_t matters;  /* 1: it matters which thread takes a signal; atomic; a forked child keeps it */
static uint32_t is_ready; /* 1: and idle carriers block all signals; atomic */

static uint64_t idle_mask(void) {
    return ~SBT_MASK_RESERVED & ~sbt_recall_signals;
}

uint64_t sbt_receive_idle_mask(void) {
    return __atomic_load_n(&matters, __ATOMIC_RELAXED) != 0 ? idle_mask() : SBT_SWITCH->main_mask;
}

/* ---- idle carriers ---- */
static bool has_blocked(const struct sbt_carrier *x, uint64_t mask) {
    return __atomic_load_n(&x->current, __ATOMIC_RELAXED) != NULL || __atomic_load_n(&x->tid, __ATOMIC_RELAXED) == 0 ||
           __atomic_load_n(&x->mask, __ATOMIC_ACQUIRE) == mask;
}

/* A carrier that runs a fiber, or has not begun, looks by itself before it becomes idle. */
static void block_on_idle_carriers(struct sbt_switch_state *s) {
    for (uint32_t i = 0; i < sbt_switch_n_carriers(s); i++) {
        struct sbt_carrier *x = &s->carrier[i];
        while (!has_blocked(x, idle_mask()) && __atomic_load_n(&s->quit, __ATOMIC_RELAXED) == 0) {
            __atomic_store_n(&x->asleep, 0, __ATOMIC_RELEASE);
            sbt_futex_wake(&x->asleep, 1);
            sbt_pause_ns(RECEIVE_GAP_NS);
        }
    }
}

void sbt_receive_check_idle(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    /*
     * Two threads come here: the first has stored `running`, the second `matters`. The later of them sees
     * both. The heavy fence pairs with the light fence of a carrier that becomes idle (find): either the carrier sees
     * `matters`, or this sees that the carrier is idle. If the kernel refuses the heavy fence, the carrier sees
     * `matters` a moment later.
     */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    sbt_fence_heavy();
    if (__atomic_load_n(&matters, __ATOMIC_RELAXED) == 0 || sbt_switch_running_load() == 0)
        return;
    block_on_idle_carriers(s);
    if (__atomic_load_n(&s->main_ended, __ATOMIC_RELAXED) != 0)
        sbt_receive_main_mask(~sbt_recall_signals);
}

void sbt_receive_begin(void) {
    if (SBT_LIKELY(!sbt_switch_wanted) || __atomic_load_n(&is_ready, __ATOMIC_ACQUIRE) != 0)
        return;
    __atomic_store_n(&matters, 1, __ATOMIC_RELAXED);
    sbt_receive_check_idle();
    __atomic_store_n(&is_ready, 1, __ATOMIC_RELEASE);
}

/* ---- duty ---- */
static uint64_t blocked_by_main(void) {
    return __atomic_load_n(&SBT_SWITCH->main_mask, __ATOMIC_RELAXED);
}

static uint64_t without_duty(uint64_t signals) {
    return signals & ~__atomic_load_n(&SBT_SWITCH->on_duty, __ATOMIC_RELAXED);
}

static void read_mask(struct sbt_fiber *f) {
    if (!f->mask_unsure || sbt_self.in_switch != 0)
        return;
    sbt_switch_enter();
    sbt_mask_read(f);
    sbt_switch_leave();
}

/* Make the fiber go on at its home thread, and decide anew at its next wait. False: it was awake or at home: it does so
 * anyway. */
static bool send_home(struct sbt_fiber *f) {
    sbt_handlers_hold(); /* no thread runs a fiber that this thread owns, until it is sent home */
    uint32_t old = __atomic_exchange_n(&f->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL);
    if (old == SBT_TOKEN_BLOCKED)
        sbt_futex_wake(&f->token, 1);
    if (old == SBT_TOKEN_PARKED) {
        f->interrupted = false;
        sbt_runnable_add(1);
        sbt_pin_send_home(f);
    }
    sbt_handlers_release();
    return old == SBT_TOKEN_PARKED;
}

/*
 * For each of these signals, send home another fiber that accepts it, if there is any. The main thread blocks them all,
 * whatever its fiber was known to block: where switching begins by itself main has a fiber, which may never have left.
 */
static void find_others(uint64_t signals) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (signals == 0)
        return;
    uint32_t n = __atomic_load_n(&s->pool_used, __ATOMIC_ACQUIRE);
    /* What has changed is stored before the tokens are taken. Pairs with a fiber that parks (sbt_fiber_park). */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < n && signals != 0; i++) {
        struct sbt_fiber *f = sbt_pool_nth(i);
        uint64_t mask = __atomic_load_n(&f->mask, __ATOMIC_RELAXED);
        uint32_t tid = __atomic_load_n(&f->tid, __ATOMIC_RELAXED);
        if (f == sbt_self.fiber || tid == 0 || tid == (uint32_t)s->process || (signals & ~mask) == 0)
            continue;
        if (send_home(f)) /* of a fiber that is awake, or at home, the mask may be an old one */
            signals &= mask;
    }
}

static void give_up(struct sbt_fiber *f, uint64_t signals) {
    f->duty &= ~signals;
    __atomic_fetch_and(&SBT_SWITCH->on_duty, ~signals, __ATOMIC_ACQ_REL);
    find_others(signals & blocked_by_main());
}

bool sbt_receive_decide(struct sbt_fiber *f) {
    struct sbt_switch_state *s = SBT_SWITCH;
    read_mask(f);
    uint64_t wanted = blocked_by_main() & ~f->mask;
    if ((f->duty & ~wanted) != 0)
        give_up(f, f->duty & ~wanted);
    wanted &= ~f->duty;
    if (without_duty(wanted) != 0)
        f->duty |= wanted & ~__atomic_fetch_or(&s->on_duty, wanted, __ATOMIC_ACQ_REL);
    return f->duty != 0;
}

/* ---- what the program does ---- */
void sbt_receive_main_mask(uint64_t mask) {
    struct sbt_switch_state *s = SBT_SWITCH;
    mask &= ~NO_DUTY;
    uint64_t old = __atomic_exchange_n(&s->main_mask, mask, __ATOMIC_ACQ_REL);
    find_others(without_duty(mask & ~old));
}

static bool is_main(void) {
    return sbt_thread_tid() == (uint32_t)SBT_SWITCH->process;
}

/* Perhaps no other fiber that is awake accepts what this fiber blocks now. */
static void fiber_mask_set(struct sbt_fiber *f) {
    uint64_t before = f->mask;
    if (f->duty != 0)
        sbt_receive_decide(f);
    read_mask(f);
    find_others(without_duty(blocked_by_main() & f->mask & ~before));
}

void sbt_receive_mask_set(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (SBT_LIKELY(sbt_switch_running_load() == 0))
        return;
    if (is_main())
        sbt_receive_main_mask(sbt_mask_set(NULL) & ~sbt_recall_signals);
    else if (f != NULL && blocked_by_main() != 0 && sbt_self.in_switch == 0)
        fiber_mask_set(f);
}

void sbt_receive_thread_end(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct sbt_fiber *f = sbt_self.fiber;
    if (sbt_switch_running_load() == 0)
        return;
    if (f != NULL && blocked_by_main() != 0) {
        give_up(f, f->duty);
        read_mask(f);
        find_others(without_duty(blocked_by_main() & ~f->mask));
    }
    if (!is_main())
        return;
    __atomic_store_n(&s->main_ended, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&matters, __ATOMIC_SEQ_CST) != 0)
        sbt_receive_main_mask(~sbt_recall_signals);
}

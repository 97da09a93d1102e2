/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carriers: they run runnable fibers, and look for some when they have none. How they go from fiber to fiber is in
 * leave.c.
 *
 * A carrier without a runnable fiber first searches for a while, then sleeps. A searching carrier takes fibers from a
 * carrier that makes no progress. A waker relies on that: while a carrier searches, the waker wakes none.
 *
 * The CPUs that may be used can become fewer and more. Carriers beyond their number rest: they sleep, and no
 * waker takes them for idle. One carrier more than usable CPUs rests from the beginning if the machine has more CPUs.
 * It is the one that creates others, because the monitor does not share the program's table of file descriptors.
 */
#include "switch/carrier.h"

#include "switch/mask.h"
#include "switch/pin.h"
#include "switch/receive.h"
#include "switch/runq_pop.h"
#include "switch/sanitizer.h"
#include "switch/serve.h"
#include "switch/state.h"
#include "switch/tuning.h"

bool sbt_carrier_is_surplus(const struct sbt_carrier *x) {
    return (uint32_t)(x - SBT_SWITCH->carrier) >= __atomic_load_n(&SBT_SWITCH->n_active, __ATOMIC_RELAXED);
}

/* What a searching carrier has seen of the other carriers. */
struct seen {
    uint32_t pops[SBT_CARRIERS_MAX];
    uint32_t looks[SBT_CARRIERS_MAX]; /* looks in a row that saw no progress */
    uint32_t patience;
};

/*
 * Take a fiber from the carrier's own run queue, or from a carrier that makes no progress. A carrier that is about to
 * wait will take its queued fibers in a moment, and they are better off there. So a single fiber is left alone for
 * longer than many fibers. A sleeping carrier makes no progress either: a waker leaves it asleep while another carrier
 * searches. Sections that wait for a server are not taken, and a server takes nothing but those.
 */
static struct sbt_fiber *look_around(struct sbt_carrier *x, struct seen *seen) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct sbt_fiber *f = sbt_runq_pop(x);
    if (sbt_serves(x))
        return f;
    for (uint32_t i = sbt_switch_servers; f == NULL && i < sbt_switch_n_carriers(s); i++) {
        struct sbt_carrier *from = &s->carrier[i];
        uint32_t n = __atomic_load_n(&from->n, __ATOMIC_RELAXED), now = __atomic_load_n(&from->pops, __ATOMIC_RELAXED);
        seen->looks[i] = n > 0 && now == seen->pops[i] ? seen->looks[i] + 1 : 0;
        seen->pops[i] = now;
        if (from != x && n > 0 && seen->looks[i] * n >= seen->patience && sbt_runq_steal(x, from)) {
            f = sbt_runq_pop(x);
            x->found_at = from;
            x->found_ns = sbt_now_ns();
        }
    }
    return f;
}

static void pause_between_looks(void) {
    for (int i = 0; i < LOOK_GAP_PAUSES; i++)
        sbt_cpu_relax();
}

/*
 * Should the carrier search, or sleep at once until it is woken? It searches unless its last few finds were in vain. A
 * find is in vain if the fiber waited again at once, as a waiter does for a mutex that another thread takes again and
 * again.
 */
static bool is_worth_a_search(struct sbt_carrier *x) {
    if (x->found_at != NULL) {
        bool in_vain = sbt_now_ns() - x->found_ns < VAIN_NS;
        x->in_vain = in_vain ? x->in_vain + 1 : 0;
        sbt_runq_learn(x->found_at, in_vain);
        x->found_at = NULL;
    }
    return x->in_vain < VAIN_MANY || sbt_switch_idle_work != NULL;
}

static _Thread_local struct sbt_carrier *works_idly __attribute__((tls_model("initial-exec")));

/* Let the engine work. That is outside of switch/: a fiber that is woken there becomes runnable on this carrier. */
static bool work_idly(struct sbt_carrier *x) {
    if (sbt_switch_idle_work == NULL)
        return false;
    works_idly = x;
    sbt_switch_leave();
    bool worked = sbt_switch_idle_work();
    sbt_switch_enter();
    works_idly = NULL;
    return worked;
}

/* The carrier's bit of `idle` and `searching`. A server has none: no waker takes it for a carrier with nothing to run.
 */
static uint64_t bit_of(const struct sbt_carrier *x) {
    return sbt_serves(x) ? 0 : (uint64_t)1 << (x - SBT_SWITCH->carrier);
}

/* Search for a while. A waker that makes a fiber runnable meanwhile relies on that. */
static struct sbt_fiber *search(struct sbt_carrier *x, struct seen *seen) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint64_t bit = bit_of(x);
    struct sbt_fiber *f;
    seen->patience = PATIENCE;
    __atomic_fetch_or(&s->searching, bit, __ATOMIC_RELAXED);
    uint64_t begin = sbt_now_ns();
    do {
        for (int k = 0; k < LOOKS_PER_CLOCK && (f = look_around(x, seen)) == NULL; k++)
            pause_between_looks();
        if (f == NULL && work_idly(x))
            begin = sbt_now_ns();
    } while (f == NULL && sbt_now_ns() - begin < SEARCH_NS);
    __atomic_fetch_and(&s->searching, ~bit, __ATOMIC_RELAXED);
    return f;
}

/*
 * The last looks before the carrier sleeps, after it has announced that.
 *  1. The first look takes only fibers of its own run queue. The heavy fence has just held up all other carriers.
 *  2. After a search, the second look takes what a waker has queued elsewhere, relying on the search, unless that
 *     carrier has made progress since. If that carrier is held up later, the monitor sees it.
 *
 * Without a search no waker relied on one, and a second look would make this sleep a search after all.
 */
static struct sbt_fiber *last_look(struct sbt_carrier *x, struct seen *seen, bool has_searched) {
    seen->patience = UINT32_MAX;
    struct sbt_fiber *f = look_around(x, seen);
    if (f == NULL && has_searched) {
        pause_between_looks();
        seen->patience = 1;
        f = look_around(x, seen);
    }
    return f;
}

/*
 * Without a heavy fence a wake-up may be missed. Then this sleeps once, for a short time, and the caller looks again.
 */
static void sleep_until_woken(struct sbt_carrier *x, bool fenced) {
    const struct sbt_switch_state *s = SBT_SWITCH;
    sbt_switch_leave();
    while (__atomic_load_n(&x->asleep, __ATOMIC_ACQUIRE) != 0 && __atomic_load_n(&s->quit, __ATOMIC_RELAXED) == 0) {
        x->idle_sleeps++;
        sbt_sleep_fenced(&x->asleep, 1, fenced);
        if (!fenced)
            break;
    }
    sbt_switch_enter();
}

/*
 * The next fiber, as soon as there is one. NULL: there will be none.
 *
 * The race between a carrier that goes to sleep and a waker:
 *  1. The carrier sets `asleep` and its bit of `idle`.
 *  2. It makes a heavy fence, which pairs with the light fence in sbt_runq_push.
 *  3. It looks once more.
 *
 * Either the waker sees the bits of step 1, or step 3 sees the fiber that the waker has queued.
 *
 * A carrier that rests does the same without its bit of `idle`, so no waker chooses it. The monitor stores `n_active`,
 * fences, and clears `asleep`. So either step 3 sees that the carrier is active again, or the monitor clears `asleep`
 * after step 1. A fiber that is queued here all the same is found by a searching carrier or by the monitor.
 *
 * A server does it without its bit, too. A thread that queues a section there looks at its `asleep` (sbt_runq_serve).
 */
static struct sbt_fiber *find(struct sbt_carrier *x) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct seen seen = {0};
    uint64_t bit = bit_of(x);
    struct sbt_fiber *f;
    bool searches = is_worth_a_search(x);
    sbt_carrier_count_parked(x);
    for (;; searches = true) {
        x->rests = sbt_carrier_is_surplus(x);
        if (SBT_UNLIKELY(x->rests)) {
            sbt_runq_give_away(x);
            searches = false;
        } else if (SBT_UNLIKELY(__atomic_load_n(&s->n_wanted, __ATOMIC_RELAXED) > 0)) {
            sbt_switch_add_carriers(x);
        }
        /*
         * The carrier is idle (`current`), fences, and reads which signals it must block then. Pairs with
         * sbt_receive_check_idle, which changes that, fences heavily, and looks for idle carriers.
         */
        sbt_fence_light();
        if (SBT_UNLIKELY(x->mask != sbt_receive_idle_mask()))
            sbt_mask_carry(x, sbt_receive_idle_mask());
        f = searches ? search(x, &seen) : NULL;
        if (f != NULL)
            return f;
        __atomic_store_n(&x->asleep, 1, __ATOMIC_RELAXED);
        if (SBT_LIKELY(!x->rests))
            __atomic_fetch_or(&s->idle, bit, __ATOMIC_RELAXED);
        bool fenced = sbt_fence_heavy();
        if (fenced) /* a failure means that the program filters system calls, and perhaps this one too */
            sbt_runq_note_cpu(x);
        /* pairs with the monitor's look */
        if (SBT_UNLIKELY(__atomic_load_n(&s->all_held, __ATOMIC_RELAXED) != 0) && !sbt_serves(x))
            __atomic_store_n(&s->all_held, 0, __ATOMIC_RELAXED);
        f = last_look(x, &seen, searches);
        if (f == NULL && x->rests == sbt_carrier_is_surplus(x)) {
            sleep_until_woken(x, fenced);
            if (__atomic_load_n(&s->quit, __ATOMIC_RELAXED) != 0)
                return NULL;
        }
        __atomic_fetch_and(&s->idle, ~bit, __ATOMIC_RELAXED);
        if (f != NULL)
            return f;
    }
}

void *sbt_carrier_main(void *argument) {
    struct sbt_carrier *x = argument;
    x->regs.tls = sbt_tls_base();
    __atomic_store_n(&x->tid, sbt_thread_tid(), __ATOMIC_RELAXED);
    sbt_mask_carry(x, sbt_receive_idle_mask());
    sbt_signal_stack_carry(x);
    sbt_switch_enter();
    for (struct sbt_fiber *f; (f = find(x)) != NULL;) {
        sbt_carrier_set_current(x, f);
        sbt_mask_block_for(x, f->mask);
        SBT_TSAN_RELEASE(x);
        sbt_regs_switch(&x->regs, &f->regs, x);
        SBT_TSAN_ACQUIRE(x);
        sbt_carrier_finish_switch(x);
    }
    sbt_switch_leave();
    return NULL;
}

struct sbt_carrier *sbt_carrier_of_caller(void) {
    return sbt_self.fiber != NULL ? sbt_self.fiber->carrier : works_idly;
}

/* Fibers that were parked here and are still on the count of runnable threads stay on it. */
void sbt_carrier_count_woken(struct sbt_carrier *x, uint32_t n) {
    uint32_t here = x == NULL ? 0 : x->n_parked < n ? x->n_parked : n;
    if (here != 0)
        x->n_parked -= here;
    if (n != here)
        sbt_runnable_add((int)(n - here));
}

void sbt_carrier_unpark(struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n) {
    struct sbt_carrier *x = sbt_carrier_of_caller();
    sbt_carrier_count_woken(x, n);
    if (SBT_LIKELY(sbt_switch_servers == 0))
        sbt_runq_push(x, first, last, n, SBT_WOKEN);
    else
        sbt_serve_woken(x, first, n);
}

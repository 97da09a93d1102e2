/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a fiber does: it leaves the place where it runs, waits (park), and yields. And what other threads do to it: they
 * wake it (unpark), alone or together with other fibers in a wake list (Linux: wake_q).
 *
 * The place is a carrier or the fiber's home thread. A fiber that is pinned, or that the monitor has told to, waits on
 * its home thread, asleep in the kernel (block). Any other fiber waits by switching (park). fiber.h has the states of
 * its token and what must stay true, state.h the lock order.
 */
#include "switch/fiber.h"

#include <errno.h>

#include "core/cpus.h"
#include "core/probes.h"
#include "switch/due.h"
#include "switch/mask.h"
#include "switch/pin.h"
#include "switch/recall.h"
#include "switch/receive.h"
#include "switch/sanitizer.h"
#include "switch/serve.h"
#include "switch/state.h"
#include "switch/tuning.h"

/* ---- waking ---- */

/* `deferred`: the caller has deferred the program's signal handlers. */
static inline bool unpark(struct sbt_fiber *f, bool deferred) {
    bool asleep;
    if (sbt_token_give(f, &asleep)) {
        sbt_switch_enter();
        const struct sbt_fiber *self = sbt_self.fiber;
        struct sbt_carrier *x = self != NULL ? self->carrier : NULL;
        if (SBT_LIKELY(x != NULL && x->n_parked != 0 && sbt_switch_servers == 0)) { /* as below, in few instructions */
            x->n_parked--;
            if (!deferred)
                sbt_handlers_hold();
            sbt_runq_push_woken(x, f);
            if (!deferred)
                sbt_handlers_release();
        } else {
            sbt_carrier_unpark(f, f, 1);
        }
        sbt_switch_leave();
    }
    return asleep;
}

/*
 * A handler that interrupted its thread inside switch/ cannot use a run queue, and it may last. So it sends the fiber
 * to its home thread. The answer is true to a waker that relies on it: an awake fiber, the handler's own too, was not
 * asleep.
 */
static SBT_NOINLINE bool unpark_in_handler(struct sbt_fiber *f) {
    bool asleep;
    if (sbt_token_give(f, &asleep)) {
        sbt_runnable_add(1);
        sbt_pin_send_home(f);
    }
    return asleep;
}

bool sbt_fiber_unpark(uint32_t *word) {
    struct sbt_fiber *f = (struct sbt_fiber *)(void *)word;
    return SBT_UNLIKELY(sbt_self.in_switch != 0) ? unpark_in_handler(f) : unpark(f, false);
}

bool sbt_fiber_unpark_deferred(uint32_t *word) {
    struct sbt_fiber *f = (struct sbt_fiber *)(void *)word;
    return SBT_UNLIKELY(sbt_self.in_switch != 0) ? unpark_in_handler(f) : unpark(f, true);
}

void sbt_wake_list_begin(struct sbt_wake_list *list) {
    sbt_handlers_hold();
    *list = (struct sbt_wake_list){.in_handler = sbt_self.in_switch != 0};
    sbt_switch_enter();
}

bool sbt_wake_list_add(struct sbt_wake_list *list, uint32_t *word, bool sleeping) {
    struct sbt_fiber *f = (struct sbt_fiber *)(void *)word;
    bool asleep;
    if (!sbt_fiber_is_word(word))
        return false;
    if (!sleeping && SBT_UNLIKELY(__atomic_load_n(&f->token, __ATOMIC_RELAXED) == SBT_TOKEN_BLOCKED))
        return false;
    if (sbt_token_give(f, &asleep))
        sbt_wake_list_append(list, f);
    return true;
}

/*
 * Does a fiber that was woken alone run before those that are queued here (Go: runnext)? Behind them it would find what
 * each of them has left for it, and they would have waited for it meanwhile. Only one goes first for each fiber that
 * the carrier takes: those that one waker wakes one by one keep their order. And no more than a batch of them in a row.
 */
static bool goes_first(struct sbt_carrier *x) {
    uint32_t pops = __atomic_load_n(&x->pops, __ATOMIC_RELAXED), since = pops - x->pops_at_next;
    if (since == 0 || __atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0)
        return false;
    x->pops_at_next = pops;
    x->n_next = since == 1 ? x->n_next + 1 : 1;
    if (x->n_next <= BATCH_MOST)
        return true;
    x->n_next = 0;
    return false;
}

static void unpark_list(const struct sbt_wake_list *list) {
    const struct sbt_fiber *self = sbt_self.fiber;
    struct sbt_carrier *x = self != NULL ? self->carrier : NULL;
    if (list->n == 1 && x != NULL && sbt_switch_servers == 0 && goes_first(x)) {
        sbt_carrier_count_woken(x, 1);
        sbt_runq_push_first(x, list->first);
    } else {
        sbt_carrier_unpark(list->first, list->last, list->n);
    }
}

void sbt_wake_list_end(const struct sbt_wake_list *list) {
    if (SBT_UNLIKELY(list->in_handler)) { /* the code that the handler interrupted may hold a run queue's lock */
        for (struct sbt_fiber *f = list->first, *next; f != NULL; f = next) {
            next = f->next;
            sbt_runnable_add(1);
            sbt_pin_send_home(f);
        }
    } else if (list->n > 0) {
        unpark_list(list);
    }
    sbt_switch_leave();
    sbt_handlers_release();
}

/*
 * Wake all fibers; they look again. That is always allowed, because every wait here may end spuriously. It is rare:
 * only after a handler that interrupted its thread inside switch/ has tried to wake a fiber.
 */
void sbt_switch_deliver(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (__atomic_exchange_n(&s->deferred, 0, __ATOMIC_ACQ_REL) == 0)
        return;
    uint32_t n = __atomic_load_n(&s->pool_used, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        unpark(sbt_pool_nth(i), false);
}

/* ---- where a fiber waits ---- */
static bool is_pinned(struct sbt_fiber *f) {
    return (SBT_UNLIKELY(f->duty != 0) && sbt_receive_decide(f)) ||
           __atomic_load_n(&f->pinned, __ATOMIC_RELAXED) != SBT_PIN_NOT ||
           __atomic_load_n(&SBT_SWITCH->all_pinned, __ATOMIC_RELAXED) != 0;
}

static bool is_running(void) {
    return __atomic_load_n(&SBT_SWITCH->running, __ATOMIC_RELAXED) != 0;
}

static bool waits_pinned(struct sbt_fiber *f) {
    return __atomic_load_n(&f->pinned_waits, __ATOMIC_RELAXED) != 0 || is_pinned(f) || !is_running();
}

/* False: there is none left. */
static bool spend_pinned_wait(struct sbt_fiber *f) {
    uint32_t n = __atomic_load_n(&f->pinned_waits, __ATOMIC_RELAXED);
    if (n == 0)
        return false;
    __atomic_store_n(&f->pinned_waits, n - 1, __ATOMIC_RELAXED);
    return true;
}

bool sbt_switch_roams(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    return f != NULL && (f->carrier != NULL || !waits_pinned(f));
}

/*
 * The fiber's next waits are spent in the kernel. By switching it would run on the carrier of the thread that wakes it,
 * and leave a core idle again. The program's first thread is not counted, because it often only waits for the others.
 */
bool sbt_switch_spread(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (f == NULL || __atomic_load_n(&SBT_SWITCH->n_threads, __ATOMIC_RELAXED) > (int32_t)sbt_usable_cpus())
        return false;
    if (__atomic_load_n(&f->pinned_waits, __ATOMIC_RELAXED) < SPREAD_WAITS)
        __atomic_store_n(&f->pinned_waits, SPREAD_WAITS, __ATOMIC_RELAXED);
    return true;
}

bool sbt_switch_takes_part(void) {
    return sbt_self.fiber != NULL && __atomic_load_n(&SBT_SWITCH->all_pinned, __ATOMIC_RELAXED) == 0;
}

bool sbt_switch_begins_wait(void) {
    if (SBT_LIKELY(sbt_switch_roams()))
        return true;
    if (sbt_self.fiber != NULL)
        spend_pinned_wait(sbt_self.fiber);
    return false;
}

static SBT_NOINLINE uint32_t *word_at_home(void) {
    return sbt_switch_begins_wait() ? &sbt_self.fiber->token : NULL;
}

uint32_t *sbt_fiber_word(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    return f != NULL && f->carrier != NULL ? &f->token : word_at_home(); /* on a carrier it roams */
}

/* ---- waiting ---- */

/* Sleep in the kernel, on a carrier or on the home thread. 0, ETIMEDOUT or EINTR. */
static int block(struct sbt_fiber *f, const struct sbt_deadline *deadline) {
    uint32_t none = SBT_TOKEN_NONE;
    int r = 0;
    sbt_cpus_look();
    if (__atomic_compare_exchange_n(&f->token, &none, SBT_TOKEN_BLOCKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sbt_runnable_add(-1);
        r = sbt_futex_wait_frame(&f->token, SBT_TOKEN_BLOCKED, deadline);
        sbt_runnable_add(1);
    }
    return __atomic_exchange_n(&f->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL) == SBT_TOKEN_TOKEN ? 0 : r;
}

static int block_at_home(struct sbt_fiber *f, const struct sbt_deadline *deadline) {
    if (f->carrier != NULL)
        sbt_fiber_leave(f, SBT_LEAVES_FOR_HOME);
    int r = block(f, deadline);
    if (deadline != NULL)
        f->dozes = r == ETIMEDOUT;
    return r;
}

static int park(struct sbt_fiber *f) {
    f->interrupted = false;
    sbt_fiber_leave(f, SBT_LEAVES_TO_PARK);
    if (__atomic_load_n(&f->token, __ATOMIC_ACQUIRE) != SBT_TOKEN_NONE)
        __atomic_exchange_n(&f->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL);
    return f->interrupted ? EINTR : 0;
}

/*
 * The clock says whether the wait timed out: a wake-up that comes as late as the deadline is seen by the caller, which
 * looks again. The whole wait counts as inside switch/: a handler that waited with another deadline would clear this
 * one.
 */
static int park_until(struct sbt_fiber *f, const struct sbt_deadline *deadline) {
    int r = 0;
    sbt_switch_enter();
    f->dozes = true;
    if (sbt_due_set(f, deadline)) {
        r = park(f);
        sbt_due_clear(f);
        f->dozes = sbt_deadline_passed(deadline);
    }
    sbt_switch_leave();
    return f->dozes ? ETIMEDOUT : r;
}

/*
 * Is a fiber that is on its home thread better off there? It is if no carrier would run it, or if it would only come
 * back: a fiber that sleeps from deadline to deadline does so on its home thread.
 */
static bool is_better_at_home(const struct sbt_fiber *f, const struct sbt_deadline *deadline) {
    return f->carrier == NULL &&
           (__atomic_load_n(&SBT_SWITCH->all_held, __ATOMIC_RELAXED) != 0 || (deadline != NULL && f->dozes));
}

int sbt_fiber_park_otherwise(const struct sbt_deadline *deadline) {
    struct sbt_fiber *f = sbt_self.fiber; /* read here: a handler may have forked since the caller was called */
    /* This is a handler that may not leave; or a child: a handler forked it and returned to a wait. Poll. */
    if (SBT_UNLIKELY(f == NULL) || sbt_switch_is_fixed()) {
        sbt_pause_ns(SBT_HANDLER_POLL_NS);
        return deadline != NULL && sbt_deadline_passed(deadline) ? ETIMEDOUT : 0;
    }
    if (__atomic_load_n(&f->token, __ATOMIC_RELAXED) == SBT_TOKEN_TOKEN) {
        __atomic_exchange_n(&f->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL);
        return 0;
    }
    if (SBT_UNLIKELY(sbt_self.pin_held != 0))
        return block(f, deadline);
    if (SBT_UNLIKELY(f->mask_unsure)) {
        sbt_switch_enter();
        sbt_mask_read(f);
        sbt_switch_leave();
    }
    /*
     * Pairs with the fence of find_others and its exchange of the token: either this sees which signals the main thread
     * blocks, or the fiber is woken.
     */
    if (SBT_UNLIKELY((__atomic_load_n(&SBT_SWITCH->main_mask, __ATOMIC_RELAXED) & ~f->mask) != 0))
        sbt_receive_decide(f);
    bool better_at_home = is_better_at_home(f, deadline);
    if (SBT_UNLIKELY(spend_pinned_wait(f) || better_at_home || is_pinned(f) || !is_running()))
        return block_at_home(f, deadline);
    return deadline != NULL ? park_until(f, deadline) : park(f);
}

int sbt_fiber_park(const struct sbt_deadline *deadline) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (SBT_UNLIKELY(f == NULL || deadline != NULL))
        return sbt_fiber_park_otherwise(deadline);
    sbt_switch_enter();
    return sbt_fiber_park_entered(f);
}

/* ---- running in the caller's place ---- */

bool sbt_fiber_is_parked(const uint32_t *word) {
    return sbt_fiber_is_word(word) && __atomic_load_n(word, __ATOMIC_RELAXED) == SBT_TOKEN_PARKED;
}

/* Acquire: the fiber's registers. Release: as sbt_token_give. */
bool sbt_fiber_seize(uint32_t *word) {
    uint32_t parked = SBT_TOKEN_PARKED;
    if (SBT_UNLIKELY(sbt_self.in_switch != 0)) /* a handler that interrupted its thread in there uses no run queue */
        return false;
    return sbt_fiber_is_word(word) &&
           __atomic_compare_exchange_n(word, &parked, SBT_TOKEN_NONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool may_give_place(const struct sbt_fiber *f) {
    return f != NULL && f->carrier != NULL && sbt_self.pin_held == 0 && !sbt_switch_is_fixed();
}

bool sbt_fiber_run_here(uint32_t *word) {
    struct sbt_fiber *f = sbt_self.fiber, *next = (struct sbt_fiber *)(void *)word;
    bool may = may_give_place(f) && !is_pinned(f), has_run = false;
    sbt_switch_enter();
    struct sbt_carrier *x = may ? f->carrier : NULL;
    if (x == NULL || !sbt_serve_is_here(x, f, next)) {
        sbt_carrier_unpark(next, next, 1);
    } else {
        sbt_carrier_count_woken(x, 1);
        has_run = x->n_in_row < BATCH_MOST;
        if (has_run)
            x->chosen = next;
        else
            sbt_serve_queue(x, next, SBT_WOKEN);
        /*
         * A handler that was deferred during the switch would leave all signals blocked on this kernel thread, for the
         * next fiber too. It may run from here on: the chosen fiber is queued before it does (sbt_leave_undo).
         */
        sbt_handlers_release();
        sbt_fiber_leave(f, SBT_LEAVES_TO_GO_ON);
        sbt_handlers_hold();
    }
    sbt_switch_leave();
    return has_run;
}

bool sbt_switch_runs_in_place(void) {
    const struct sbt_fiber *f = sbt_self.fiber;
    return f != NULL && f->carrier != NULL && f->carrier->n_in_row != 0;
}

void sbt_fiber_run_next(uint32_t *word) {
    struct sbt_fiber *f = sbt_self.fiber, *next = (struct sbt_fiber *)(void *)word;
    bool may = may_give_place(f);
    sbt_switch_enter();
    struct sbt_carrier *x = may ? f->carrier : NULL;
    sbt_carrier_count_woken(x, 1);
    if (sbt_in_section(next)) {
        bool first = x == sbt_server_of(next) && x->n_first < BATCH_MOST;
        if (x != NULL)
            x->n_first = first ? x->n_first + 1 : 0;
        sbt_runq_serve(sbt_server_of(next), next, SBT_WOKEN, first);
    } else if (x != NULL) {
        sbt_runq_push_first(x, next);
    } else {
        sbt_runq_push(NULL, next, next, 1, SBT_WOKEN);
    }
    sbt_switch_leave();
}

void sbt_switch_leave_server(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (!may_give_place(f) || !sbt_serves(f->carrier) || sbt_in_section(f))
        return;
    sbt_fiber_leave(f, is_pinned(f) ? SBT_LEAVES_FOR_HOME : SBT_LEAVES_TO_GO_ON);
}

void sbt_switch_will_compute(void) {
    const struct sbt_fiber *f = sbt_self.fiber;
    if (SBT_LIKELY(f == NULL) || SBT_UNLIKELY(sbt_self.in_switch != 0))
        return;
    sbt_switch_enter();
    if (f->carrier != NULL) /* read here, as in sbt_fiber_leave */
        sbt_runq_call_help(f->carrier);
    sbt_switch_leave();
}

/* ---- yielding ---- */
bool sbt_switch_carried(void) {
    return sbt_self.fiber != NULL && sbt_self.fiber->carrier != NULL;
}

bool sbt_switch_among_carriers(void) {
    return sbt_switch_carried() && __atomic_load_n(&SBT_SWITCH->n_active, __ATOMIC_RELAXED) > 1;
}

bool sbt_switch_others_runnable(void) {
    struct sbt_carrier *x = sbt_carrier_of_caller();
    return x != NULL && __atomic_load_n(&x->n, __ATOMIC_RELAXED) != 0;
}

bool sbt_switch_waits_behind(void) {
    const struct sbt_fiber *f = sbt_self.fiber;
    /* Read once: a handler may take the fiber home. */
    const struct sbt_carrier *x = f != NULL ? __atomic_load_n(&f->carrier, __ATOMIC_RELAXED) : NULL;
    return x != NULL && __atomic_load_n(&x->n, __ATOMIC_RELAXED) != 0;
}

/*
 * Is another fiber runnable here? If not, take a fiber that waits behind another carrier. f is the caller's own fiber.
 */
static bool find_another(const struct sbt_fiber *f) {
    struct sbt_switch_state *s = SBT_SWITCH;
    const struct sbt_carrier *here = f->carrier;
    bool found = here != NULL && __atomic_load_n(&here->n, __ATOMIC_RELAXED) != 0;
    if (sbt_serves(here))
        return found;
    for (uint32_t i = sbt_switch_servers; !found && i < sbt_switch_n_carriers(s); i++) {
        if (__atomic_load_n(&s->carrier[i].n, __ATOMIC_RELAXED) < 2)
            continue;
        sbt_switch_enter();
        struct sbt_carrier *x = sbt_self.fiber == f ? f->carrier : NULL; /* read here, as in sbt_fiber_leave */
        found = x != NULL && sbt_runq_steal(x, &s->carrier[i]);
        sbt_switch_leave();
    }
    return found;
}

/*
 * On its home thread a fiber competes with the carriers for a core. There it joins the fibers that take turns without
 * the kernel.
 */
static bool may_join_carriers(const struct sbt_fiber *f) {
    return SBT_HOME_MAY_PUSH && !sbt_cores_to_spare() && __atomic_load_n(&f->pinned_waits, __ATOMIC_RELAXED) == 0 &&
           sbt_switch_running_load() != 0;
}

void (*sbt_switch_yield_to_kernel)(void) = sbt_yield;

static inline bool yield(enum sbt_leaving why) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (f == NULL || sbt_self.pin_held != 0 || sbt_switch_is_fixed() || is_pinned(f))
        return false;
    if (!(f->carrier == NULL ? may_join_carriers(f) : find_another(f)))
        return false;
    sbt_fiber_leave(f, why);
    struct sbt_carrier *x = f->carrier;
    if (x == NULL)
        return true;
    /*
     * Yield to the kernel now and then: under a real-time policy all these fibers may wait for a kernel thread that
     * gets a core in no other way. Beside threads that compute such a yield lasts for milliseconds. pops_at_yield is
     * atomic: if a handler has waited just now, another carrier's thread may write it too.
     */
    uint32_t pops = __atomic_load_n(&x->pops, __ATOMIC_RELAXED);
    if (pops - __atomic_load_n(&x->pops_at_yield, __ATOMIC_RELAXED) >= POPS_PER_SYS_YIELD) {
        __atomic_store_n(&x->pops_at_yield, pops, __ATOMIC_RELAXED);
        sbt_switch_yield_to_kernel();
    }
    return true;
}

bool sbt_switch_yield(bool goes_on) {
    return yield(goes_on ? SBT_LEAVES_TO_GO_ON : SBT_LEAVES_TO_YIELD);
}

bool sbt_switch_yield_asked(void) {
    return yield(sbt_progress_is_vain(&sbt_self) ? SBT_LEAVES_TO_YIELD : SBT_LEAVES_FRESH);
}

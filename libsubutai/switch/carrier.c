/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Carriers run ready contexts; a context that waits is switched away from, straight to the next. What is left to do for
 * it (say that it is PARKED, or queue it again) is done on the stack that was switched to: not before that has it
 * stopped using its own.
 */
#include "switch/inner.h"
#include "switch/sanitizer.h"

#include <errno.h>
#include <sys/resource.h>

#include "core/real.h"

#ifndef LOOKS_PER_CLOCK    /* the model test takes other numbers */
#define SEARCH_NS 30000    /* how long a carrier looks for something to do before it sleeps, */
#define LOOKS_PER_CLOCK 8  /* reading the clock after so many looks */
#define LOOK_GAP_PAUSES 24 /* between two looks */
#define KERNEL_TURN 64     /* contexts taken, after which one that yields asks the kernel, once */
#define POPS_PER_COUNT 256 /* contexts taken from the queue between two counts of their sleeps, or a few more */
#define VAIN_NS 10000      /* what is found and waits again within that time was found in vain */
#define PATIENCE 32        /* looks without progress, times contexts queued, before a carrier is helped out */
#endif
#define SPREAD_WAITS 64 /* at home, of who has been crowded out */
#define PARKED_MOST 16  /* before they are taken off sbt_n_runnable, a word of all carriers, */
#define PARKED_FEW 2    /* and the same with nobody queued: who runs now may do so for long */

/* Who waits and finds the count too high waits by switching, at once: of no harm while others are to be run here. */
static void count_parked(struct sbt_carrier *x) {
    if (x->n_parked != 0)
        sbt_runnable_add(-(int)x->n_parked);
    x->n_parked = 0;
}

/* For the context that has just been left on this carrier. */
static void settle(struct sbt_carrier *x) {
    struct sbt_context *c = x->leaving;
    enum sbt_leaving why = x->why;
    uint32_t none = SBT_TOKEN_NONE;
    x->leaving = NULL;
    x->why = SBT_LEAVES_NOTHING;
    switch (why) {
    case SBT_LEAVES_TO_PARK:
        /* Release: its registers. On failure it has been woken: it is still ours, and ready. */
        if (!__atomic_compare_exchange_n(&c->token, &none, SBT_TOKEN_PARKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            sbt_ready_push(x, c, c, 1, SBT_WOKEN);
        else if (++x->n_parked >= (__atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0 ? PARKED_FEW : PARKED_MOST))
            count_parked(x);
        break;
    case SBT_LEAVES_TO_GO_ON:
        sbt_ready_push(x, c, c, 1, SBT_WOKEN);
        break;
    case SBT_LEAVES_TO_YIELD:
        sbt_ready_push(x, c, c, 1, SBT_GAVE_WAY);
        break;
    case SBT_LEAVES_FOR_HOME:
        sbt_home_call(c);
        break;
    case SBT_LEAVES_NOTHING:
        break;
    }
}

/* How often those that it runs sleep in the kernel on it: whether that is too often the watcher decides. */
static void count_sleeps(struct sbt_carrier *x) {
    struct rusage usage;
    x->pops_at_count = x->pops;
    if (sbt_syscall3(SYS_getrusage, RUSAGE_THREAD, &usage, 0) != 0)
        return;
    uint32_t all = (uint32_t)usage.ru_nvcsw - x->idle_sleeps;
    /* Fewer than the last time: when it was to sleep for want of work it did not, for there was some. */
    if ((int32_t)(all - x->sleeps_counted) > 0)
        __atomic_fetch_add(&SBT_SWITCH->sleeps, all - x->sleeps_counted, __ATOMIC_RELAXED);
    x->sleeps_counted = all;
}

static void set_current(struct sbt_carrier *x, struct sbt_context *c) {
    __atomic_store_n(&x->current, c, __ATOMIC_RELAXED);
}

/* Before its stack is switched to: what it blocks must not be handled there. */
static void block_for(struct sbt_carrier *x, const struct sbt_context *c) {
    if (SBT_UNLIKELY((c->mask & ~x->mask) != 0))
        sbt_mask_carry(x, x->mask | c->mask);
}

void sbt_context_leave(struct sbt_context *c, enum sbt_leaving why) {
    sbt_switch_enter();
    struct sbt_carrier *x = c->carrier; /* now: until here a handler that forks may have taken the context home */
    if (SBT_UNLIKELY(x == NULL && why == SBT_LEAVES_FOR_HOME)) {
        sbt_switch_leave();
        return;
    }
    if (SBT_UNLIKELY(c->mask_unsure))
        sbt_mask_read(c);
    if (x == NULL) {
        SBT_TSAN_RELEASE(&c->token);
        x = sbt_home_leave(c, why);
    } else {
        if (SBT_UNLIKELY(__atomic_load_n(&SBT_SWITCH->all_held, __ATOMIC_RELAXED) != 0))
            __atomic_store_n(&SBT_SWITCH->all_held, 0, __ATOMIC_RELAXED); /* this one is not */
        x->leaving = c;
        x->why = why;
        if (SBT_UNLIKELY(x->woke))
            sbt_ready_judge(x);
        struct sbt_context *next = sbt_ready_pop(x);
        if (SBT_UNLIKELY(x->pops - x->pops_at_count >= POPS_PER_COUNT && next != NULL))
            count_sleeps(x);
        set_current(x, next);
        if (next != NULL)
            block_for(x, next);
        if (SBT_UNLIKELY(sbt_self.context != c)) { /* a handler has forked just now, and this is the child */
            x->leaving = NULL;
            x->why = SBT_LEAVES_NOTHING;
            sbt_switch_leave();
            return;
        }
        SBT_TSAN_RELEASE(x);
        if (next != NULL && next != c)
            x = sbt_regs_switch(&c->regs, &next->regs, x);
        else if (next == NULL)
            x = sbt_regs_switch(&c->regs, &x->regs, x);
    }
    /* Another carrier perhaps, or its home: everything from before is stale but c. */
    __atomic_store_n(&c->carrier, x, __ATOMIC_RELAXED);
    if (x != NULL) {
        SBT_TSAN_ACQUIRE(x);
        settle(x);
        if (SBT_UNLIKELY(x->mask != c->mask))
            sbt_mask_carry(x, c->mask);
    } else {
        SBT_TSAN_ACQUIRE(&c->home_call);
    }
    sbt_switch_leave();
    if (x == NULL) {
        /* Last: what is pending here is handled now, and may end the thread. */
        uint32_t in_switch = sbt_self.in_switch;
        sbt_self.in_switch = 0;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        sbt_home_arrived(c);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        sbt_self.in_switch = in_switch;
    } else if (SBT_UNLIKELY(sbt_kick_bits != 0)) {
        /* Pairs with summon's: either that sees it run here, or this that it is wanted at home. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(&c->bidden, __ATOMIC_RELAXED) != SBT_STAYS_NOT && why != SBT_LEAVES_FOR_HOME)
            sbt_context_leave(c, SBT_LEAVES_FOR_HOME);
    }
}

/* What a carrier that looks around has seen of the others. */
struct seen {
    uint32_t pops[SBT_CARRIERS_MAX];
    uint32_t looks[SBT_CARRIERS_MAX]; /* in a row that saw no progress */
    uint32_t patience;
};

/*
 * Anything anywhere that does not get on? A context that is queued will be taken by its own carrier in a moment if that
 * is about to wait, and is better off there: one alone is left longer than a crowd. Unless that sleeps: who pushes
 * leaves it asleep when he sees somebody who looks around.
 */
static struct sbt_context *look_around(struct sbt_carrier *x, struct seen *seen) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct sbt_context *c = sbt_ready_pop(x);
    for (uint32_t i = 0; c == NULL && i < s->n_carriers; i++) {
        struct sbt_carrier *from = &s->carrier[i];
        uint32_t n = __atomic_load_n(&from->n, __ATOMIC_RELAXED), now = __atomic_load_n(&from->pops, __ATOMIC_RELAXED);
        seen->looks[i] = n > 0 && now == seen->pops[i] ? seen->looks[i] + 1 : 0;
        seen->pops[i] = now;
        if (from != x && n > 0 && seen->looks[i] * n >= seen->patience && sbt_ready_steal(x, from)) {
            c = sbt_ready_pop(x);
            x->found_at = from;
            x->found_ns = sbt_now_ns();
        }
    }
    return c;
}

/*
 * What it has found the last time: did that go on for a while, or wait again at once, as whoever waits for a mutex that
 * another takes again and again? After several of those it does better to sleep until somebody wakes it.
 */
static bool is_worth_a_search(struct sbt_carrier *x) {
    if (x->found_at != NULL) {
        bool in_vain = sbt_now_ns() - x->found_ns < VAIN_NS;
        x->in_vain = in_vain ? x->in_vain + 1 : 0;
        sbt_ready_learn(x->found_at, in_vain);
        x->found_at = NULL;
    }
    return x->in_vain < SBT_VAIN_MANY || sbt_switch_idle_work != NULL;
}

static _Thread_local struct sbt_carrier *works_idly __attribute__((tls_model("initial-exec")));

/* Outside of switch/: what is woken here is made ready here. */
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

/* Look around for a while; who makes something ready meanwhile relies on that. */
static struct sbt_context *search(struct sbt_carrier *x, struct seen *seen) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint64_t bit = (uint64_t)1 << (x - s->carrier);
    struct sbt_context *c;
    seen->patience = PATIENCE;
    __atomic_fetch_or(&s->searching, bit, __ATOMIC_RELAXED);
    uint64_t begin = sbt_now_ns();
    do {
        for (int k = 0; k < LOOKS_PER_CLOCK && (c = look_around(x, seen)) == NULL; k++)
            for (int i = 0; i < LOOK_GAP_PAUSES; i++)
                sbt_cpu_relax();
        if (c == NULL && work_idly(x))
            begin = sbt_now_ns();
    } while (c == NULL && sbt_now_ns() - begin < SEARCH_NS);
    __atomic_fetch_and(&s->searching, ~bit, __ATOMIC_RELAXED);
    return c;
}

/* Until there is something to run. NULL: there never will be. */
static struct sbt_context *find(struct sbt_carrier *x) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct seen seen = {0};
    uint64_t bit = (uint64_t)1 << (x - s->carrier);
    struct sbt_context *c;
    bool searches = is_worth_a_search(x);
    count_parked(x);
    for (;; searches = true) {
        c = searches ? search(x, &seen) : NULL;
        if (c != NULL)
            return c;
        __atomic_store_n(&x->asleep, 1, __ATOMIC_RELAXED);
        __atomic_fetch_or(&s->idle, bit, __ATOMIC_RELAXED);
        /*
         * Pairs with the light one in sbt_ready_push: either it sees the bits as they are now, or this sees what it has
         * pushed, relying on the search. That is taken at once, unless its carrier gets on meanwhile: should it be held
         * up afterwards, the watcher will see. Two looks, because the heavy one holds everybody up itself. Without a
         * search nobody has relied on one: to take what waits elsewhere would make this sleep a search after all.
         */
        bool fenced = sbt_fence_heavy();
        if (fenced) /* else the program filters system calls, this one perhaps as well */
            sbt_ready_note_cpu(x);
        if (SBT_UNLIKELY(__atomic_load_n(&s->all_held, __ATOMIC_RELAXED) != 0)) /* pairs with the watcher's look */
            __atomic_store_n(&s->all_held, 0, __ATOMIC_RELAXED);
        seen.patience = UINT32_MAX;
        c = look_around(x, &seen);
        if (c == NULL && searches) {
            for (int i = 0; i < LOOK_GAP_PAUSES; i++)
                sbt_cpu_relax();
            seen.patience = 1;
            c = look_around(x, &seen);
        }
        if (c == NULL) {
            sbt_switch_leave();
            while (__atomic_load_n(&x->asleep, __ATOMIC_ACQUIRE) != 0 &&
                   __atomic_load_n(&s->quit, __ATOMIC_RELAXED) == 0) {
                x->idle_sleeps++;
                sbt_sleep_fenced(&x->asleep, 1, fenced);
                if (!fenced)
                    break;
            }
            sbt_switch_enter();
            if (__atomic_load_n(&s->quit, __ATOMIC_RELAXED) != 0)
                return NULL;
        }
        __atomic_fetch_and(&s->idle, ~bit, __ATOMIC_RELAXED);
        if (c != NULL)
            return c;
    }
}

void *sbt_carrier_main(void *argument) {
    struct sbt_carrier *x = argument;
    x->regs.tls = sbt_tls_base();
    __atomic_store_n(&x->tid, sbt_thread_tid(), __ATOMIC_RELAXED);
    sbt_mask_carry(x, SBT_SWITCH->base_mask);
    sbt_switch_enter();
    for (struct sbt_context *c; (c = find(x)) != NULL;) {
        set_current(x, c);
        block_for(x, c);
        SBT_TSAN_RELEASE(x);
        sbt_regs_switch(&x->regs, &c->regs, x);
        SBT_TSAN_ACQUIRE(x);
        settle(x);
        if (SBT_UNLIKELY(x->mask != SBT_SWITCH->base_mask))
            sbt_mask_carry(x, SBT_SWITCH->base_mask);
    }
    sbt_switch_leave();
    return NULL;
}

/* ---- waking and waiting ---- */
struct sbt_carrier *sbt_carrier_of_caller(void) {
    return sbt_self.context != NULL ? sbt_self.context->carrier : works_idly;
}

/* What has been parked here and is not taken off the count yet stays there. */
void sbt_carrier_unpark(struct sbt_context *first, struct sbt_context *last, uint32_t n) {
    struct sbt_carrier *x = sbt_carrier_of_caller();
    uint32_t here = x == NULL ? 0 : x->n_parked < n ? x->n_parked : n;
    if (here != 0)
        x->n_parked -= here;
    if (n != here)
        sbt_runnable_add((int)(n - here));
    sbt_ready_push(x, first, last, n, SBT_WOKEN);
}

static bool unpark(struct sbt_context *c) {
    bool asleep;
    if (sbt_token_give(c, &asleep)) {
        sbt_switch_enter();
        sbt_carrier_unpark(c, c, 1);
        sbt_switch_leave();
    }
    return asleep;
}

bool sbt_context_unpark(uint32_t *word) {
    if (SBT_UNLIKELY(sbt_self.in_switch != 0)) { /* in a handler that interrupted this thread in here */
        __atomic_store_n(&SBT_SWITCH->overdue, 1, __ATOMIC_RELEASE);
        return true;
    }
    return unpark((struct sbt_context *)(void *)word);
}

void sbt_chain_begin(struct sbt_chain *chain) {
    sbt_handlers_hold();
    *chain = (struct sbt_chain){.in_handler = sbt_self.in_switch != 0};
    sbt_switch_enter();
}

bool sbt_chain_add(struct sbt_chain *chain, uint32_t *word, bool sleeping) {
    struct sbt_context *c = (struct sbt_context *)(void *)word;
    bool asleep;
    if (!sbt_context_is_word(word))
        return false;
    if (!sleeping && SBT_UNLIKELY(__atomic_load_n(&c->token, __ATOMIC_RELAXED) == SBT_TOKEN_BLOCKED))
        return false;
    if (sbt_token_give(c, &asleep))
        sbt_chain_append(chain, c);
    return true;
}

void sbt_chain_end(const struct sbt_chain *chain) {
    if (SBT_UNLIKELY(chain->in_handler)) { /* that interrupted this thread in here: the queues may be its */
        for (struct sbt_context *c = chain->first, *next; c != NULL; c = next) {
            next = c->next;
            sbt_runnable_add(1);
            sbt_home_call(c);
        }
    } else if (chain->n > 0) {
        sbt_carrier_unpark(chain->first, chain->last, chain->n);
    }
    sbt_switch_leave();
    sbt_handlers_release();
}

/*
 * Everybody looks again: always allowed, for every wait here may end for no reason, and as rare as handlers that wake
 * just then.
 */
void sbt_switch_catch_up(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (__atomic_exchange_n(&s->overdue, 0, __ATOMIC_ACQ_REL) == 0)
        return;
    uint32_t n = __atomic_load_n(&s->pool_used, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        unpark(sbt_pool_nth(i));
}

/* Sleep in the kernel, wherever the context is. */
static int block(struct sbt_context *c, const struct sbt_deadline *deadline) {
    uint32_t none = SBT_TOKEN_NONE;
    int r = 0;
    if (__atomic_compare_exchange_n(&c->token, &none, SBT_TOKEN_BLOCKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        sbt_runnable_add(-1);
        r = sbt_futex_wait_frame(&c->token, SBT_TOKEN_BLOCKED, deadline);
        sbt_runnable_add(1);
    }
    return __atomic_exchange_n(&c->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL) == SBT_TOKEN_TOKEN ? 0 : r;
}

static bool has_to_stay(const struct sbt_context *c) {
    return c->receives || __atomic_load_n(&c->bidden, __ATOMIC_RELAXED) != SBT_STAYS_NOT ||
           __atomic_load_n(&SBT_SWITCH->all_home, __ATOMIC_RELAXED) != 0;
}

static bool waits_at_home(const struct sbt_context *c) {
    return __atomic_load_n(&c->homebody, __ATOMIC_RELAXED) != 0 || has_to_stay(c) || sbt_switch_running_load() == 0;
}

bool sbt_switch_roams(void) {
    const struct sbt_context *c = sbt_self.context;
    return c != NULL && (c->carrier != NULL || !waits_at_home(c));
}

/*
 * Not by switching: that would put the caller on the carrier of whoever wakes it, and leave a core idle as well. The
 * program's first thread is not counted, for it often does nothing but wait for the others.
 */
bool sbt_switch_spread(void) {
    struct sbt_context *c = sbt_self.context;
    if (c == NULL || __atomic_load_n(&SBT_SWITCH->n_threads, __ATOMIC_RELAXED) > (int32_t)sbt_n_cpus)
        return false;
    if (__atomic_load_n(&c->homebody, __ATOMIC_RELAXED) < SPREAD_WAITS)
        __atomic_store_n(&c->homebody, SPREAD_WAITS, __ATOMIC_RELAXED);
    return true;
}

bool sbt_switch_begins_wait(void) {
    struct sbt_context *c = sbt_self.context;
    if (SBT_LIKELY(c != NULL && (c->carrier != NULL || !waits_at_home(c))))
        return true;
    uint32_t homebody = c != NULL ? __atomic_load_n(&c->homebody, __ATOMIC_RELAXED) : 0;
    if (homebody != 0)
        __atomic_store_n(&c->homebody, homebody - 1, __ATOMIC_RELAXED);
    return false;
}

uint32_t *sbt_context_word(void) {
    return sbt_switch_begins_wait() ? &sbt_self.context->token : NULL;
}

static int park(struct sbt_context *c) {
    c->interrupted = false;
    sbt_context_leave(c, SBT_LEAVES_TO_PARK);
    if (__atomic_load_n(&c->token, __ATOMIC_ACQUIRE) != SBT_TOKEN_NONE)
        __atomic_exchange_n(&c->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL);
    return c->interrupted ? EINTR : 0;
}

/*
 * The clock tells which it was: a wake-up that comes as late as the deadline is found by whoever looks after that. All
 * of it counts as inside: a handler that waited with another deadline would leave none.
 */
static int park_until(struct sbt_context *c, const struct sbt_deadline *deadline) {
    int r = 0;
    sbt_switch_enter();
    c->dozes = true;
    if (sbt_due_set(c, deadline)) {
        r = park(c);
        sbt_due_clear(c);
        c->dozes = sbt_deadline_passed(deadline);
    }
    sbt_switch_leave();
    return c->dozes ? ETIMEDOUT : r;
}

int sbt_context_park(const struct sbt_deadline *deadline) {
    struct sbt_context *c = sbt_self.context;
    /* A handler that waits, in the middle of a switch, or one that has forked and returned to a wait: poll. */
    if (SBT_UNLIKELY(c == NULL || sbt_self.in_switch != 0)) {
        sbt_pause_ns(200000);
        return 0;
    }
    if (__atomic_load_n(&c->token, __ATOMIC_RELAXED) == SBT_TOKEN_TOKEN) {
        __atomic_exchange_n(&c->token, SBT_TOKEN_NONE, __ATOMIC_ACQ_REL);
        return 0;
    }
    uint32_t homebody = __atomic_load_n(&c->homebody, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(sbt_self.held != 0))
        return block(c, deadline);
    if (SBT_UNLIKELY(c->mask_unsure)) {
        sbt_switch_enter();
        sbt_mask_read(c);
        sbt_switch_leave();
    }
    /* Nobody would run it, or it would only come back: one that sleeps from deadline to deadline does so at home. */
    bool stays = c->carrier == NULL &&
                 (__atomic_load_n(&SBT_SWITCH->all_held, __ATOMIC_RELAXED) != 0 || (deadline != NULL && c->dozes));
    if (SBT_UNLIKELY(homebody != 0 || stays || has_to_stay(c) || sbt_switch_running_load() == 0)) {
        if (homebody != 0)
            __atomic_store_n(&c->homebody, homebody - 1, __ATOMIC_RELAXED);
        if (c->carrier != NULL)
            sbt_context_leave(c, SBT_LEAVES_FOR_HOME);
        int r = block(c, deadline);
        if (deadline != NULL)
            c->dozes = r == ETIMEDOUT;
        return r;
    }
    return deadline != NULL ? park_until(c, deadline) : park(c);
}

bool sbt_switch_carried(void) {
    return sbt_self.context != NULL && sbt_self.context->carrier != NULL;
}

bool sbt_switch_among_carriers(void) {
    return sbt_switch_carried() && SBT_SWITCH->n_carriers > 1;
}

bool sbt_switch_others_ready(void) {
    struct sbt_carrier *x = sbt_carrier_of_caller();
    return x != NULL && __atomic_load_n(&x->n, __ATOMIC_RELAXED) != 0;
}

/* Is there another to run here, if need be of those that wait on another carrier? The context c is the caller's. */
static bool find_another(const struct sbt_context *c) {
    struct sbt_switch_state *s = SBT_SWITCH;
    const struct sbt_carrier *here = c->carrier;
    bool found = here != NULL && __atomic_load_n(&here->n, __ATOMIC_RELAXED) != 0;
    for (uint32_t i = 0; !found && i < s->n_carriers; i++) {
        if (__atomic_load_n(&s->carrier[i].n, __ATOMIC_RELAXED) < 2)
            continue;
        sbt_switch_enter();
        struct sbt_carrier *x = sbt_self.context == c ? c->carrier : NULL; /* now: as in sbt_context_leave */
        found = x != NULL && sbt_ready_steal(x, &s->carrier[i]);
        sbt_switch_leave();
    }
    return found;
}

bool sbt_switch_yield(bool goes_on) {
    struct sbt_context *c = sbt_self.context;
    if (c == NULL || sbt_self.held != 0 || sbt_self.in_switch != 0 || has_to_stay(c))
        return false;
    /* At home it competes with the carriers for a core: it joins those that take turns without the kernel. */
    if (c->carrier == NULL ? !SBT_HUSK_MAY_PUSH || sbt_cores_to_spare() ||
                                 __atomic_load_n(&c->homebody, __ATOMIC_RELAXED) != 0 || sbt_switch_running_load() == 0
                           : !find_another(c))
        return false;
    sbt_context_leave(c, goes_on ? SBT_LEAVES_TO_GO_ON : SBT_LEAVES_TO_YIELD);
    struct sbt_carrier *x = c->carrier;
    /* Under a real-time policy whoever all these wait for may be a kernel thread that has no other chance to run. */
    if (x == NULL)
        return true;
    /* A handler may have waited just now: then it is another carrier's thread that writes there, too. */
    uint32_t pops = __atomic_load_n(&x->pops, __ATOMIC_RELAXED);
    if (pops - __atomic_load_n(&x->pops_at_turn, __ATOMIC_RELAXED) >= KERNEL_TURN) {
        __atomic_store_n(&x->pops_at_turn, pops, __ATOMIC_RELAXED);
        sbt_yield();
    }
    return true;
}

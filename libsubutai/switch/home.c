/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leaving home and coming back. A kernel thread whose context is away sleeps as a husk, on a small stack at the root of
 * the thread's own, with every signal blocked: its TLS is the context's, which runs elsewhere, so nothing but this file
 * and deadline.c may run here meanwhile. The husk touches no thread-local variable.
 */
#include "switch/inner.h"

#include "core/thread.h"
#include "switch/sanitizer.h"

#define ALL_SIGNALS (~(uint64_t)0)

/* As settle (carrier.c). False: it has been woken already and has not left after all. */
static bool let_go(struct sbt_context *c) {
    uint32_t none = SBT_TOKEN_NONE;
    if (c->why == SBT_LEAVES_TO_YIELD || c->why == SBT_LEAVES_TO_GO_ON) {
        sbt_ready_push_from_husk(c, c->why == SBT_LEAVES_TO_YIELD ? SBT_GAVE_WAY : SBT_WOKEN);
        return true;
    }
    sbt_runnable_add(-1);
    if (__atomic_compare_exchange_n(&c->token, &none, SBT_TOKEN_PARKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return true;
    sbt_runnable_add(1);
    return false;
}

static void husk_main(void *argument) {
    struct sbt_context *c = argument;
    if (let_go(c)) {
        sbt_due_sleep(c);
        /* Its own: the next call is after the next leaving. */
        __atomic_store_n(&c->home_call, SBT_HOME_NOTHING, __ATOMIC_RELAXED);
    }
    sbt_regs_switch(&c->scratch, &c->regs, NULL);
}

struct sbt_carrier *sbt_home_leave(struct sbt_context *c, enum sbt_leaving why) {
    uint64_t all = ALL_SIGNALS;
    c->mask = sbt_mask_set(&all) & ~sbt_kick_bits;
    if (SBT_UNLIKELY(sbt_switch_is_overdue())) /* by a handler until now; the husk does nothing for others */
        sbt_switch_catch_up();
    if (SBT_UNLIKELY(sbt_self.context != c)) /* a handler has forked just now, and this is the child: it stays */
        return NULL;
    /* Pairs with sbt_switch_end's: either that sees it away, or this that it has to stay. */
    __atomic_store_n(&c->away, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY((__atomic_load_n(&SBT_SWITCH->no_more, __ATOMIC_RELAXED) & SBT_SWITCH_ENDED) != 0))
        return NULL;
    c->why = why;
    sbt_regs_make(&c->husk, c->husk_stack->stack, sizeof c->husk_stack->stack, husk_main, c->regs.tls);
    return sbt_regs_switch(&c->regs, &c->husk, c);
}

void sbt_home_arrived(struct sbt_context *c) {
    __atomic_store_n(&c->away, 0, __ATOMIC_RELAXED);
    sbt_mask_set(&c->mask);
}

void sbt_home_call(struct sbt_context *c) {
    SBT_TSAN_RELEASE(&c->home_call);
    __atomic_store_n(&c->home_call, SBT_HOME_COME, __ATOMIC_RELEASE);
    sbt_futex_wake(&c->home_call, 1); /* contexts are never freed: a late wake-up finds one */
}

static void go_home(struct sbt_context *c) {
    if (c->carrier != NULL)
        sbt_context_leave(c, SBT_LEAVES_FOR_HOME);
}

/* A handler that gives way between this and release comes back to the same kernel thread. */
static void hold(void) {
    sbt_self.held++;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

void sbt_switch_hold_home(void) {
    struct sbt_context *c = sbt_self.context;
    hold();
    if (SBT_LIKELY(c == NULL))
        return;
    c->mask_unsure = 1;          /* it may be in a handler */
    if (sbt_self.in_switch == 0) /* or in one that interrupted this thread in here */
        go_home(c);
}

void sbt_switch_release(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    sbt_self.held--;
}

/* The mask may be that of the handler in which this is called: it goes home with the context. */
static void stay_home(enum sbt_stays stays) {
    struct sbt_context *c = sbt_self.context;
    if (__atomic_load_n(&SBT_SWITCH->decided, __ATOMIC_RELAXED) == 0)
        stays = SBT_STAYS_ITSELF;
    sbt_self.stays_home |= (uint8_t)stays;
    if (c == NULL)
        return;
    c->mask_unsure = 1;
    __atomic_fetch_or(&c->bidden, (uint8_t)stays, __ATOMIC_RELAXED);
    if (sbt_self.in_switch == 0)
        go_home(c);
}

void sbt_switch_stay_home(bool heritably) {
    if (SBT_UNLIKELY(sbt_switch_wanted))
        stay_home(heritably ? SBT_STAYS_HERITABLY : SBT_STAYS_ITSELF);
}

/* A thread that is not known may be one that has yet to begin: it must not have a context then. */
static void keep(pthread_t thread, uint32_t tid) {
    struct sbt_context *c = sbt_pool_find(thread, tid);
    bool is_main = thread != 0 ? thread == SBT_SWITCH->main_thread : tid == SBT_SWITCH->main_tid;
    if (c == NULL && !is_main) {
        __atomic_fetch_or(&SBT_SWITCH->no_more, SBT_SWITCH_NO_MORE, __ATOMIC_RELAXED);
        /* Pairs with thread_begin's: either that sees no_more, or this sees the context. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        c = sbt_pool_find(thread, tid);
    }
    if (c != NULL)
        __atomic_fetch_or(&c->bidden, SBT_STAYS_HERITABLY, __ATOMIC_RELAXED);
}

void sbt_switch_keep_home(uint32_t tid) {
    if (SBT_LIKELY(!sbt_switch_wanted))
        return;
    if (tid == 0 || tid == sbt_thread_tid())
        stay_home(SBT_STAYS_HERITABLY);
    else
        keep(0, tid);
}

void sbt_switch_keep_thread_home(pthread_t thread) {
    if (SBT_LIKELY(!sbt_switch_wanted))
        return;
    if (pthread_equal(thread, pthread_self()))
        stay_home(SBT_STAYS_HERITABLY);
    else
        keep(thread, 0);
}

enum sbt_stays sbt_switch_stays_heritably(void) {
    struct sbt_context *c = sbt_self.context;
    uint8_t stays = sbt_self.stays_home | (c != NULL ? __atomic_load_n(&c->bidden, __ATOMIC_RELAXED) : 0);
    return stays == SBT_STAYS_HERITABLY ? SBT_STAYS_HERITABLY : SBT_STAYS_NOT;
}

static void give_back(struct sbt_context *c) {
    __atomic_store_n(&c->thread, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&c->tid, 0, __ATOMIC_RELAXED);
    sbt_pool_put(c);
}

void sbt_switch_thread_begin(struct sbt_husk *husk) {
    if (sbt_switch_running_load() == 0 || sbt_self.stays_home != SBT_STAYS_NOT)
        return;
    struct sbt_context *c = sbt_pool_get();
    if (c == NULL)
        return;
    c->token = SBT_TOKEN_NONE;
    c->home_call = SBT_HOME_NOTHING;
    c->due = 0;
    c->dozes = c->receives = false;
    c->bidden = SBT_STAYS_NOT;
    __atomic_store_n(&c->away, 0, __ATOMIC_RELAXED); /* in a forked child it is its parent's */
    c->mask_unsure = 1;
    __atomic_store_n(&c->thread, pthread_self(), __ATOMIC_RELAXED);
    __atomic_store_n(&c->tid, sbt_thread_tid(), __ATOMIC_RELAXED);
    c->regs.tls = sbt_tls_base();
    c->carrier = NULL;
    c->homebody = c->homebody_next = 0;
    c->husk_stack = husk;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with keep's */
    if (SBT_UNLIKELY(__atomic_load_n(&SBT_SWITCH->no_more, __ATOMIC_RELAXED) != 0))
        give_back(c);
    else
        sbt_self.context = c;
}

void sbt_switch_thread_end(void) {
    struct sbt_context *c = sbt_self.context;
    if (c == NULL)
        return;
    hold(); /* without a context nobody comes home any more */
    go_home(c);
    sbt_self.context = NULL;
    sbt_switch_release();
    give_back(c);
}

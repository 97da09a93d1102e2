/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is decided after there are contexts: code that the program loads is judged as what it was linked with has been,
 * and switching ends for good where something comes to light, or is about to be done, that does not bear it.
 *
 * Loaded code is judged by the thread that has loaded it, the next time that it looks a function up or loads more: its
 * dlopen was left by a jump, not by a return (abi/load.c). Other threads come to that code by what this one has looked
 * up. Not while it waits: the dynamic linker's lock may be held by who waits for a lock that the thread holds.
 */
#include "switch/inner.h"

#include <string.h>

#include "core/log.h"

#define FETCH_NS 5000000000u
#define FETCH_GAP_NS 100000

/*
 * What the program is known to do: by what it imports, has loaded and looked up, also before there are contexts; kept
 * in forked children. Never taken back, so several threads may add to it at once.
 */
static struct sbt_eligibility known;
static char known_symbol[64];

static void add_means(struct sbt_eligibility *to, const struct sbt_eligibility *from) {
    if (from->main_stays)
        to->main_stays = true;
    if (from->interrupts)
        to->interrupts = true;
    if (from->summons)
        to->summons = true;
    if (from->masks)
        to->masks = true;
    if (from->jumps)
        to->jumps = true;
}

void sbt_switch_allow_for(const struct sbt_eligibility *e) {
    add_means(&known, e);
    if (known.masks && known.jumps)
        sbt_switch_mask_jumps = true;
    if (known.interrupts)
        sbt_switch_interrupts = true;
}

/* Tell all contexts to stay at home, and fetch those that are not there; how many those were. */
static uint32_t call_all(struct sbt_switch_state *s) {
    uint32_t n = __atomic_load_n(&s->pool_used, __ATOMIC_ACQUIRE), n_away = 0;
    sbt_summon_start();
    for (uint32_t i = 0; i < n; i++) {
        struct sbt_context *c = sbt_pool_nth(i);
        __atomic_fetch_or(&c->bidden, SBT_STAYS_ITSELF, __ATOMIC_SEQ_CST); /* pairs with home_leave's fence */
        if (__atomic_load_n(&c->away, __ATOMIC_RELAXED) == 0 || __atomic_load_n(&c->tid, __ATOMIC_RELAXED) == 0)
            continue;
        n_away++;
        if (c != sbt_self.context)
            sbt_summon(c, SBT_SUMMONS_TO_GO_ON, 1);
    }
    return n_away;
}

bool sbt_switch_end(const char *who, const char *what, const char *why) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (sbt_switch_running_load() == 0 || sbt_syscall0(SYS_getpid) != s->process)
        return true; /* the latter: a vfork child, whose credentials are its own */
    if ((__atomic_fetch_or(&s->no_more, SBT_SWITCH_ENDED, __ATOMIC_RELAXED) & SBT_SWITCH_ENDED) == 0)
        sbt_log(1, "waiting adaptively from here on, not by switching: ", who, " uses ", what, ", which ", why, NULL);
    sbt_switch_stay_home(false);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with thread_begin's */
    uint64_t begin = sbt_now_ns();
    while (call_all(s) != 0) {
        if ((sbt_self.context != NULL && sbt_self.in_switch != 0) || sbt_now_ns() - begin > FETCH_NS)
            return false;
        sbt_pause_ns(FETCH_GAP_NS);
    }
    return true;
}

void sbt_switch_recall(struct sbt_eligibility *e) {
    add_means(e, &known);
    if (e->reason != NULL || known.reason == NULL)
        return;
    strcpy(e->object, known.object);
    e->symbol = known_symbol;
    e->reason = known.reason;
}

static void keep_main_home(struct sbt_switch_state *s) {
    struct sbt_context *c = s->main_thread != 0 ? sbt_pool_find(s->main_thread, 0) : NULL;
    if (c == NULL)
        return;
    __atomic_fetch_or(&c->bidden, SBT_STAYS_ITSELF, __ATOMIC_RELAXED);
    if (c == sbt_self.context)
        sbt_switch_stay_home(false);
    else
        sbt_switch_summon(s->main_thread, SBT_SUMMONS_TO_GO_ON);
}

static void set_reason(struct sbt_eligibility *e, const char *symbol, const char *reason) {
    if (e->reason != NULL)
        return;
    strcpy(e->object, "the program");
    e->symbol = symbol;
    e->reason = reason;
}

static void note(struct sbt_eligibility *e) {
    sbt_switch_allow_for(e);
    if (e->reason != NULL && known.reason == NULL) {
        strcpy(known.object, e->object);
        strncpy(known_symbol, e->symbol, sizeof known_symbol - 1);
        known.reason = e->reason;
    }
    if (sbt_switch_running_load() == 0)
        return;
    if (e->main_stays)
        keep_main_home(SBT_SWITCH);
    if (e->summons && !sbt_summon_start())
        set_reason(e, "signals for threads", "needs real-time signals, of which none is left");
    /* Who cannot be fetched in time comes home when it next waits. */
    if (e->reason != NULL && !sbt_switch_insisted)
        sbt_switch_end(e->object, e->symbol, e->reason);
}

void sbt_switch_refuse(const char *what, const char *why) {
    struct sbt_eligibility e;
    memset(&e, 0, sizeof e);
    set_reason(&e, what, why);
    note(&e);
}

void sbt_switch_before_load(void) {
    if (SBT_LIKELY(sbt_switch_running_load() == 0))
        return;
    sbt_switch_after_load();
    sbt_switch_stay_home(false); /* for what the new code does when it is initialised */
    sbt_self.has_loaded = true;
}

void sbt_switch_after_load(void) {
    if (SBT_LIKELY(!sbt_self.has_loaded))
        return;
    sbt_self.has_loaded = false;
    if (sbt_switch_running_load() == 0)
        return;
    struct sbt_eligibility e;
    sbt_switch_judge_new(&e);
    note(&e);
}

void sbt_switch_looked_up(const char *symbol, bool hidden) {
    struct sbt_eligibility e;
    sbt_switch_after_load();
    memset(&e, 0, sizeof e);
    sbt_switch_judge_symbol(&e, "the program", symbol);
    if (hidden)
        set_reason(&e, symbol, "is looked up in the C library itself");
    note(&e);
}

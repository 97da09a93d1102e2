/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Eligibility, judged while there are fibers. Code that the program loads is judged as what it was linked with.
 * Switching ends for good if the program contains, or is about to do, something that switching does not bear.
 *
 * The thread that has loaded code judges it, the next time that this thread looks up a function or loads more. It
 * cannot do so earlier: dlopen was left by a jump, not by a return (abi/kernel_thread/load.c). Other threads reach the
 * code by what this thread has looked up. The code is not judged while the thread waits for a lock: another thread may
 * hold the dynamic linker's lock, and wait for a lock that this thread holds.
 */
#include "switch/eligibility.h"

#include <errno.h>
#include <string.h>

#include "core/eligibility_table.h"
#include "core/log.h"
#include "core/sites.h"
#include "switch/mask.h"
#include "switch/recall.h"
#include "switch/receive.h"
#include "switch/state.h"
#include "switch/tuning.h"

/*
 * What the program does, as far as it is known from its imports, its loaded code and its look-ups, also from before
 * there were fibers. Forked children keep it. It only grows, so several threads may add to it at once.
 */
static struct sbt_eligibility known;
static char known_symbol[64];

static void add_means(struct sbt_eligibility *to, const struct sbt_eligibility *from) {
    if (from->pins_main)
        to->pins_main = true;
    if (from->interrupts)
        to->interrupts = true;
    if (from->recalls)
        to->recalls = true;
    if (from->masks)
        to->masks = true;
    if (from->jumps)
        to->jumps = true;
    if (from->signal_stacks)
        to->signal_stacks = true;
}

void sbt_eligibility_allow_for(const struct sbt_eligibility *e) {
    add_means(&known, e);
    if (known.masks && known.jumps)
        sbt_mask_jumps = true;
    if (known.interrupts)
        sbt_switch_interrupts = true;
}

/* Pin all fibers, and recall those that are away. The result is how many were away. */
static uint32_t recall_all(struct sbt_switch_state *s) {
    uint32_t n = __atomic_load_n(&s->pool_used, __ATOMIC_ACQUIRE), n_away = 0;
    sbt_recall_start();
    for (uint32_t i = 0; i < n; i++) {
        struct sbt_fiber *f = sbt_pool_nth(i);
        __atomic_fetch_or(&f->pinned, SBT_PIN_ITSELF,
                          __ATOMIC_SEQ_CST); /* pairs with the fence of sbt_pin_leave_home */
        if (__atomic_load_n(&f->away, __ATOMIC_RELAXED) == 0 || __atomic_load_n(&f->tid, __ATOMIC_RELAXED) == 0)
            continue;
        n_away++;
        if (f != sbt_self.fiber)
            sbt_recall(f, SBT_RECALL_TO_GO_ON, 1);
    }
    return n_away;
}

void sbt_switch_say(bool no_longer, const char *why) {
    const char *what = no_longer ? ": threads are no longer switched but wait adaptively: "
                                 : ": threads are not switched but wait adaptively: ";
    if (sbt_switch_how != SBT_SWITCH_IF_IT_PAYS || sbt_switch_is_needed)
        sbt_log_in_tree(program_invocation_short_name, what, why);
    else
        sbt_log(2, program_invocation_short_name, what, why, NULL);
}

const char *sbt_eligibility_sentence(char *line, const char *object, const char *what, const char *why) {
    const char *parts[] = {object, " uses ", what, ", which ", why};
    line[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        strncat(line, parts[i], SBT_SENTENCE_SIZE - 1 - strlen(line));
    return line;
}

bool sbt_switch_end(const char *object, const char *what, const char *why) {
    struct sbt_switch_state *s = SBT_SWITCH;
    char line[SBT_SENTENCE_SIZE];
    if (sbt_switch_running_load() == 0 || sbt_syscall0(SYS_getpid) != s->process)
        return true; /* a child of vfork has credentials of its own, and is another process */
    if ((__atomic_fetch_or(&s->no_more, SBT_SWITCH_ENDED, __ATOMIC_RELAXED) & SBT_SWITCH_ENDED) == 0)
        sbt_switch_say(true, sbt_eligibility_sentence(line, object, what, why));
    sbt_sites_spin(true);
    sbt_pin_self(false);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the fence of sbt_switch_thread_begin, and create_carriers */
    uint64_t begin = sbt_now_ns();
    while (recall_all(s) != 0 || __atomic_load_n(&s->creating, __ATOMIC_ACQUIRE) != 0) {
        if ((sbt_self.fiber != NULL && sbt_self.in_switch != 0) || sbt_now_ns() - begin > END_NS)
            return false;
        sbt_pause_ns(END_GAP_NS);
    }
    return true;
}

bool sbt_eligibility_knows_reason(void) {
    return known.reason != NULL;
}

void sbt_eligibility_add_known(struct sbt_eligibility *e) {
    add_means(e, &known);
    if (e->reason != NULL || known.reason == NULL)
        return;
    strcpy(e->object, known.object);
    e->symbol = known_symbol;
    e->reason = known.reason;
}

/* It is at home when this returns, or after RECALL_LOOKS. */
static void pin_main(struct sbt_switch_state *s) {
    struct sbt_fiber *f = s->main_thread != 0 ? sbt_pool_find(s->main_thread, 0) : NULL;
    if (f == NULL)
        return;
    __atomic_fetch_or(&f->pinned, SBT_PIN_ITSELF, __ATOMIC_RELAXED);
    if (f == sbt_self.fiber) {
        sbt_pin_self(false);
        return;
    }
    sbt_recall_thread(s->main_thread, SBT_RECALL_TO_GO_ON);
    for (int i = 0; i < RECALL_LOOKS && __atomic_load_n(&f->away, __ATOMIC_RELAXED) != 0 && sbt_self.in_switch == 0;
         i++)
        sbt_pause_ns(RECALL_GAP_NS);
}

static void set_reason(struct sbt_eligibility *e, const char *symbol, const char *reason) {
    if (e->reason != NULL)
        return;
    strcpy(e->object, "the program");
    e->symbol = symbol;
    e->reason = reason;
}

static void remember(const struct sbt_eligibility *e) {
    sbt_eligibility_allow_for(e);
    if (e->reason == NULL || known.reason != NULL)
        return;
    strcpy(known.object, e->object);
    strncpy(known_symbol, e->symbol, sizeof known_symbol - 1);
    known.reason = e->reason;
}

static void note(struct sbt_eligibility *e) {
    remember(e);
    if (sbt_switch_running_load() == 0)
        return;
    if (e->pins_main)
        pin_main(SBT_SWITCH);
    if (e->recalls && !sbt_recall_start())
        set_reason(e, "signals to its threads", "need a real-time signal, and the program has none left");
    /* A fiber that is not recalled in time comes home at its next wait. */
    if (e->reason != NULL && !sbt_switch_insisted)
        sbt_switch_end(e->object, e->symbol, e->reason);
}

void sbt_switch_handles_signals(void) {
    sbt_receive_begin();
    if (known.pins_main) /* and is, or is about to be */
        return;
    known.pins_main = true;
    if (sbt_switch_running_load() != 0)
        pin_main(SBT_SWITCH);
}

void sbt_switch_refuse(const char *what, const char *why) {
    struct sbt_eligibility e;
    memset(&e, 0, sizeof e);
    set_reason(&e, what, why);
    note(&e);
}

void sbt_switch_filters(bool of_all) {
    struct sbt_eligibility e;
    memset(&e, 0, sizeof e);
    set_reason(&e, "a filter of system calls", "may not allow the calls that switching needs");
    if (of_all || sbt_switch_running_load() == 0) {
        note(&e);
        return;
    }
    remember(&e); /* for forked children, the caller's and those of the threads that it creates */
}

void sbt_eligibility_before_load(void) {
    if (SBT_LIKELY(sbt_switch_running_load() == 0))
        return;
    sbt_eligibility_after_load();
    sbt_pin_self(false); /* the new code may do anything when it is initialised */
    sbt_self.has_loaded = true;
}

void sbt_eligibility_after_load(void) {
    if (SBT_LIKELY(!sbt_self.has_loaded))
        return;
    sbt_self.has_loaded = false;
    if (sbt_switch_running_load() == 0 || __atomic_load_n(&SBT_SWITCH->judged, __ATOMIC_ACQUIRE) == 0)
        return; /* it will be judged with all else */
    struct sbt_eligibility e;
    sbt_eligibility_judge_new(&e);
    note(&e);
}

void sbt_eligibility_looked_up(const char *symbol, bool hidden) {
    struct sbt_eligibility e;
    sbt_eligibility_after_load();
    memset(&e, 0, sizeof e);
    sbt_eligibility_judge_symbol(&e, "the program", symbol);
    if (sbt_eligibility_is_handling(symbol)) /* it may be the C library's own that is found, and called unseen */
        e.pins_main = true;
    if (hidden)
        set_reason(&e, symbol, "it looks up in the C library itself, so that Subutai cannot see its calls");
    note(&e);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See hints.h. */
#include "engine/det/hints.h"

#include <errno.h>
#include <stddef.h>

#include "core/log.h"
#include "decimal.h"
#include "engine/det/lbdr.h"
#include "engine/det/places.h"
#include "os/memory.h"
#include "switch/switch.h"

static bool has_file, has_sfs, has_sts, has_soft_barriers;
static struct lbdr *lbdr; /* NULL: no round has needed it yet */
static struct schedule_hints summary;
static bool counts_turns;                             /* in this round; budgets need that; written with the lock */
static uint64_t n_sections, n_meetings, n_departures; /* of this process's round */
static uint64_t n_keeps;

/* The last turn that was kept; the holder's. */
static struct {
    uint32_t number, n; /* the thread; how often in a row */
    uint64_t end;       /* logical time behind it */
} kept;

/* The program's own hint of this thread, until it has passed the turn. */
static _Thread_local struct det_hint own_hint __attribute__((tls_model("initial-exec")));

static const struct det_hint slowly = {.kind = DET_HINT_NONE}, departure = {.kind = DET_HINT_PCS};

/* ---- begin and end ---- */

int det_hints_start(const struct sbt_options *options) {
    const char *path = options->value[SBT_OPT_HINTS].s;
    has_file = path != NULL;
    has_sfs = options->value[SBT_OPT_SFS].u != 0;
    has_sts = options->value[SBT_OPT_STS].u != 0;
    has_soft_barriers = options->value[SBT_OPT_SOFT_BARRIERS].u != 0;
    int r = has_file ? det_hint_sites_start(path) : 0;
    if (r == 0 && has_file)
        summary = det_hint_sites_summary();
    summary.flags = (has_file ? SCHEDULE_WITH_FILE : 0) | (has_sfs ? SCHEDULE_SFS : 0) | (has_sts ? SCHEDULE_STS : 0) |
                    (has_soft_barriers ? SCHEDULE_SOFT_BARRIERS : 0);
    return r;
}

/* The turns that threads have taken until now do not count. */
static void begin_counting(void) {
    struct det_round *r = det_round;
    if (lbdr == NULL)
        lbdr = sbt_memory_map(sizeof *lbdr);
    else
        sbt_memory_clear(lbdr, sizeof *lbdr);
    if (lbdr == NULL) {
        sbt_log(0, "the engine det has no memory for hints", NULL);
        __builtin_trap();
    }
    sbt_lock_take(&r->lock);
    lbdr_begin(lbdr);
    for (uint32_t i = 0; i < r->turn.n_threads; i++)
        lbdr_create(lbdr, i, r->thread[i].routine);
    counts_turns = true;
    sbt_lock_drop(&r->lock);
    r->is_hinted = r->is_watched = true;
}

const struct schedule_hints *det_hints_begin(void) {
    const uint64_t all = SCHEDULE_SFS | SCHEDULE_STS | SCHEDULE_SOFT_BARRIERS;
    n_sections = n_meetings = n_departures = n_keeps = 0;
    kept.number = DET_NO_NUMBER;
    counts_turns = false;
    det_round->is_hinted = !has_sts;
    if (has_file) {
        det_hint_sites_begin();
        begin_counting();
    }
    return summary.flags == all ? NULL : &summary;
}

bool det_hints_need_sites(void) {
    return has_file;
}

void det_hints_stop(void) {
    char sections[DECIMAL_SIZE], meetings[DECIMAL_SIZE], departures[DECIMAL_SIZE], keeps[DECIMAL_SIZE];
    if (!det_round->is_hinted && n_meetings == 0)
        return;
    sbt_log(2, "hints: the turn was given up ", decimal_of(sections, n_sections), " times, ",
            decimal_of(meetings, n_meetings), " waits at soft barriers, ", decimal_of(departures, n_departures),
            " times outside the order, ", decimal_of(keeps, n_keeps), " turns kept", NULL);
    if (has_file)
        det_hint_sites_stop();
}

void det_hints_create(uint32_t number, uintptr_t routine) {
    det_round->thread[number].routine = routine;
    if (counts_turns)
        lbdr_create(lbdr, number, routine);
}

/* ---- operations ---- */

/* A guest is none of the round's threads, and an operation inside of another one takes no turn. */
static bool counts(void) {
    return !det_self.is_guest && det_self.n_inner == 0;
}

/* With --serial no thread computes without the turn. */
static bool is_on(const struct det_hint *hint) {
    return hint->kind == DET_HINT_KEEP           ? true
           : hint->kind == DET_HINT_SOFT_BARRIER ? has_soft_barriers
                                                 : !det_is_serial && (hint->kind != DET_HINT_GIVE_UP || has_sfs);
}

/* What the operation does when it passes the turn. A section that gives up the order keeps no turn: it may compute for
 * long. */
static void set_hint(const struct det_hint *hint) {
    bool departs = det_self.in_pcs != 0 && is_on(&departure);
    bool counts_here = hint != NULL && is_on(hint) && !(departs && hint->kind == DET_HINT_KEEP);
    det_self.hint = counts_here ? hint : departs ? &departure : has_sts ? NULL : &slowly;
}

unsigned det_hints_need_callers(uintptr_t site) {
    return has_file && site != 0 && det_hint_sites_have_callers() ? det_hint_site_needs(site) : 0;
}

static const struct det_hint *hint_at(uintptr_t site, const uintptr_t *chain, uint32_t *weight) {
    *weight = 1;
    return has_file && site != 0 ? det_hint_at(site, chain, weight) : NULL;
}

static void count(uint32_t number, uint32_t weight) {
    if (!counts_turns)
        return;
    lbdr_end(lbdr, number, det_round->turn.thread[number].reason == TURN_TIMED_OUT);
    lbdr_count(lbdr, number, weight);
}

void det_hints_op(uintptr_t site, const uintptr_t *chain) {
    uint32_t weight;
    if (!counts())
        return;
    const struct det_hint *hint = hint_at(site, chain, &weight);
    count(det_self.number, weight);
    set_hint(hint);
}

bool det_hints_need_turn(uintptr_t site) {
    uint32_t weight;
    const struct det_hint *hint = hint_at(site, NULL, &weight);
    return !has_sts || det_hints_need_callers(site) != 0 || (hint != NULL && is_on(hint));
}

void det_hints_served(uint32_t number, uintptr_t site) {
    uint32_t weight;
    hint_at(site, NULL, &weight);
    count(number, weight);
}

void det_hints_resume(void) {
    if (counts_turns && counts())
        lbdr_count(lbdr, det_self.number, 0);
}

/* ---- passing the turn ---- */

/* The thread computes; the others go on for the length of its budget. */
static void give_up(const struct det_hint *hint) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    uint64_t turns = lbdr_start(lbdr, det_self.number, hint->id, hint->weight, &r->turn);
    if (turns < hint->turns)
        turns = hint->turns;
    if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        det_schedule_section(det_self.number, hint->said, turns);
    turn_give_up(&r->turn, turns);
    uint32_t next = turn_pass(&r->turn);
    sbt_lock_drop(&r->lock);
    n_sections++;
    det_give(next);
    sbt_switch_will_compute(); /* the thread that has the turn now may be a fiber queued behind the caller */
}

/* PARROT's soba_wait: the last thread to come does not wait. */
static void meet(const void *key, uint32_t threads, uint32_t turns) {
    n_meetings++;
    if (det_waiting(key, TURN_EXACT) + 1 >= threads)
        det_wake(key, UINT32_MAX);
    else
        det_block(key, &(struct det_wait){.turns = turns, .tag = TURN_EXACT, .op = DET_SOFT_BARRIER});
}

/* As if the turn went round: it comes back to the only thread that there is. */
static bool pass_alone(void) {
    struct det_round *r = det_round;
    if (!det_is_alone())
        return false;
    sbt_lock_take(&r->lock);
    __atomic_store_n(&r->turn.now, det_after_kept(&r->turn), __ATOMIC_RELAXED);
    __atomic_store_n(&r->turn.holder, det_self.number, __ATOMIC_SEQ_CST);
    sbt_lock_drop(&r->lock);
    det_give(det_self.number);
    return true;
}

/*
 * As if no other thread were runnable. Not for ever: the thread may wait for another one by operations that do not
 * block. If its next operation ends at the time when this turn was over, it has not passed the turn in between. What
 * was kept before may have been kept at another site, with more turns than this one's.
 */
static bool keep(const struct det_hint *hint) {
    struct turn *t = &det_round->turn;
    uint32_t n = kept.number == det_self.number && kept.end == t->now ? kept.n : 0;
    if (n >= hint->turns || !turn_keep(t))
        return false;
    kept.number = det_self.number;
    kept.n = n + 1;
    kept.end = t->now;
    n_keeps++;
    det_call_looker(det_self.number); /* the operation may have woken a thread, and this one may compute for long */
    return true;
}

bool det_hints_pass(void) {
    const struct det_hint *hint = det_self.hint;
    det_self.hint = NULL;
    switch (hint->kind) {
    case DET_HINT_GIVE_UP:
        give_up(hint);
        return true;
    case DET_HINT_KEEP:
        return keep(hint);
    case DET_HINT_SOFT_BARRIER:
        meet(hint->key, hint->threads, hint->turns);
        return false;
    case DET_HINT_PCS:
        n_departures++;
        det_depart();
        return true;
    default:
        return pass_alone();
    }
}

/* ---- hints of the program's own ---- */

int det_give_up_turn(unsigned hint, unsigned weight) {
    if (hint >= DET_OWN_HINTS || weight > HINTS_MAX_WEIGHT)
        return EINVAL;
    det_take(DET_GIVE_UP);
    if (!counts_turns) { /* the first hint of this process */
        begin_counting();
        det_hints_op(0, NULL);
    }
    if (counts()) {
        own_hint = (struct det_hint){.kind = DET_HINT_GIVE_UP,
                                     .id = DET_HINTS + hint,
                                     .weight = weight != 0 ? weight : HINTS_WEIGHT,
                                     .said = 2 * (uint64_t)hint + 1};
        set_hint(&own_hint);
    }
    det_pass();
    return 0;
}

int det_soft_barrier(const void *key, uint32_t *number, uint32_t threads, uint32_t turns) {
    if (threads == 0 || turns == 0)
        return EINVAL;
    det_take(DET_SOFT_BARRIER);
    det_object(number);
    if (has_soft_barriers && det_self.n_inner == 0)
        meet(key, threads, turns);
    det_pass();
    return 0;
}

/* Sections may be in sections. The first operation inside is in the order, and so is the last. */
void det_pcs(bool begins) {
    if (!begins && det_self.in_pcs == 0)
        return;
    det_self.in_pcs += begins ? 1 : -1u;
    if (det_self.in_pcs > (begins ? 1 : 0))
        return;
    det_take(DET_PCS);
    det_round->is_hinted = det_round->is_watched = true; /* operations look at in_pcs */
    if (counts())
        set_hint(NULL);
    det_pass();
}

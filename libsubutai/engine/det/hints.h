/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hints: give the turn up for LBDR's budget, keep it until the next operation, meet at PARROT's soft barriers, leave
 * the order for PARROT's performance-critical sections. They are given by call site (a file) or by the program itself
 * (<subutai/det.h>).
 *
 * A hint acts when the operation at its call site passes the turn (det_pass_slow), so what the engine does without
 * hints costs a test of one more field. The state is that of the turn's holder, which alone calls these functions;
 * lbdr.h has the budgets.
 */
#ifndef SBT_ENGINE_DET_HINTS_H
#define SBT_ENGINE_DET_HINTS_H

#include "engine/det/det.h"
#include "hints_read.h"

/* What is to be done when the operation passes the turn. */
enum det_hint_kind {
    DET_HINT_GIVE_UP,
    DET_HINT_KEEP,
    DET_HINT_SOFT_BARRIER,
    DET_HINT_PCS,
    DET_HINT_NONE /* the turn is passed as if there were no single-threaded sections */
};

/* Hints of the program's own begin behind those of the file. */
enum { DET_HINTS = 1024, DET_OWN_HINTS = 1024 };
_Static_assert((int)HINTS_MAX <= (int)DET_HINTS, "each hint of a file has a number");

struct det_hint {
    enum det_hint_kind kind;
    uint32_t id;      /* of its supplements */
    uint32_t weight;  /* of what follows */
    uint32_t threads; /* SOFT_BARRIER */
    uint32_t turns;   /* SOFT_BARRIER: at most; GIVE_UP: the budget is no less; KEEP: times in a row at most */
    const void *key;  /* SOFT_BARRIER: what its threads wait for */
    uint64_t said;    /* in the log: twice the line, or twice the program's number, plus 1 */
};

/* Once: the hint file that the options ask for, or NULL. 0, ENOMEM, or EINVAL: a line has said what is wrong with it.
 */
int det_hints_start(const struct sbt_options *options);
/* A process's round begins. What the log is to say of the hints; NULL: nothing. */
const struct schedule_hints *det_hints_begin(void);
/* Are call sites looked up? */
bool det_hints_need_sites(void);
/* How many callers hints for that call site have at most. Return addresses; 0: not known. */
unsigned det_hints_need_callers(uintptr_t site);
/* The holder is in an operation, called from there; `chain` has as many callers as are needed. */
void det_hints_op(uintptr_t site, const uintptr_t *chain);
/* Of the holder's offer, with that call site: there is a hint, there may be one by its caller, or the thread does not
 * go on by itself. */
bool det_hints_need_turn(uintptr_t site);
/* As det_hints_op, of the holder's operation, which has no hint and is performed for it. */
void det_hints_served(uint32_t number, uintptr_t site);
/* The holder's wait is over: it has taken another turn. */
void det_hints_resume(void);
/* The program's end: what of the hints has been used. */
void det_hints_stop(void);

/* hint_sites.c: the hint file. As det_hints_start. `text` has HINTS_MAX_BYTES of room or less, and stays. */
int det_hint_sites_start(const char *path);
/* A process's round begins. */
void det_hint_sites_begin(void);
/* The file's hash and number of hints. */
struct schedule_hints det_hint_sites_summary(void);
/* Does one have callers? How many those for that call site have at most. */
bool det_hint_sites_have_callers(void);
unsigned det_hint_site_needs(uintptr_t site);
/* The hint for that call, NULL: none; and the weight of what follows. `chain` NULL: callers are not known. */
const struct det_hint *det_hint_at(uintptr_t site, const uintptr_t *chain, uint32_t *weight);
/* A line for each hint that no operation had. */
void det_hint_sites_stop(void);

#endif

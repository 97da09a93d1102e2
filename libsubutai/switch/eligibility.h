/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Eligibility: may this process be switched? It depends on what the process is linked with (eligibility_static.c), and
 * on what it loads and looks up later (eligibility_dynamic.c). The table of functions is core/eligibility_table.h.
 */
#ifndef SBT_SWITCH_ELIGIBILITY_H
#define SBT_SWITCH_ELIGIBILITY_H

#include <stdbool.h>
#include <stdint.h>

struct sbt_eligibility {
    const char *symbol, *reason; /* why it must not be switched; NULL: it may be */
    char object[256];            /* the file that imports the symbol */
    bool pins_main;              /* the main thread must stay on its home thread */
    bool interrupts;             /* the program makes waits fail with EINTR */
    bool recalls;                /* the program signals or cancels threads */
    bool masks, jumps;           /* the program changes signal masks; it may restore them by a jump */
    bool signal_stacks;          /* the program may have alternate signal stacks */
    uint32_t n, skip;            /* objects seen, and objects at the beginning that are not to be judged */
};

/* Judge everything that is loaded. */
void sbt_eligibility_judge(struct sbt_eligibility *e);

/* Judge what has been loaded since the last judgement. */
void sbt_eligibility_judge_new(struct sbt_eligibility *e);

/* "OBJECT uses WHAT, which WHY", in a line of that size, which is the result. */
#define SBT_SENTENCE_SIZE 512
const char *sbt_eligibility_sentence(char *line, const char *object, const char *what, const char *why);

/* Judge one symbol, and add the result to `e`. */
void sbt_eligibility_judge_symbol(struct sbt_eligibility *e, const char *file, const char *symbol);

/* Take the care that the result asks for, from now on. */
void sbt_eligibility_allow_for(const struct sbt_eligibility *e);

/* Is a reason against switching known already? */
bool sbt_eligibility_knows_reason(void);

/* Add what is known already: looked up before there were fibers, or in the process that this one was forked from. */
void sbt_eligibility_add_known(struct sbt_eligibility *e);

#endif

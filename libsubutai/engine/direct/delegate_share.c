/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/direct/delegate_share.h"

/* Shares in thousandths. */
#define HOT 150u
#define COLD 75u           /* half as much: a share that goes up and down does not change the answer each time */
#define COLD_ROUNDS 2u     /* in a row, after which the mutex is not worth it */
#define QUIET_PER_COLD 10u /* rounds without a sample that count as a cold one: other programs have the CPUs */
#define ROUND_NS 10000000u
#define ROUND_MOST_NS 100000000u     /* and if there is no sample */
#define ROUND_LONGEST_NS 2000000000u /* and if there are few: beside other programs a hot mutex has no more */
#define SAMPLES_FEW 8u               /* less say nothing of a share, but for how long sections are, */
#define SAMPLES_OF_LONG 3u           /* if they are so many: one may have been stopped */
#define HANDED_LEAST 50u /* in thousandths of the progress in windows with delegation: sections handed over */

enum direct_share direct_share_of(const struct direct_share_sums *sums, uint64_t ns, uint32_t n_threads) {
    bool few = sums->n < SAMPLES_FEW;
    if (ns < (few ? ROUND_MOST_NS : ROUND_NS))
        return DIRECT_SHARE_UNKNOWN;
    if (sums->n == 0)
        return DIRECT_SHARE_QUIET;
    if (sums->n >= SAMPLES_OF_LONG && sums->n_long * 2 > sums->n)
        return DIRECT_SHARE_LONG;
    if (few)
        return ns >= ROUND_LONGEST_NS ? DIRECT_SHARE_COLD : DIRECT_SHARE_UNKNOWN;
    double share = 1000.0 * DIRECT_SHARE_EVERY * (double)sums->busy_ns / ((double)ns * n_threads);
    return share >= HOT ? DIRECT_SHARE_HOT : share < COLD ? DIRECT_SHARE_COLD : DIRECT_SHARE_BETWEEN;
}

static bool by_share_alone(struct sbt_pays *p, enum direct_share share, bool not_worth_it) {
    p->phase = share == DIRECT_SHARE_HOT ? SBT_PAYS_SWITCHED : not_worth_it ? SBT_PAYS_REST : p->phase;
    return p->switches = p->phase == SBT_PAYS_SWITCHED;
}

bool direct_share_step(struct direct_share_state *s, enum direct_share share, enum direct_share_how how, bool may_try,
                       struct sbt_pays_seen *seen) {
    if (share != DIRECT_SHARE_UNKNOWN)
        s->cold = share == DIRECT_SHARE_COLD ? s->cold + QUIET_PER_COLD : share == DIRECT_SHARE_QUIET ? s->cold + 1 : 0;
    bool not_worth_it = share == DIRECT_SHARE_LONG || s->cold >= COLD_ROUNDS * QUIET_PER_COLD;
    if (how == DIRECT_SHARE_ANYWAY)
        return by_share_alone(&s->pays, share, not_worth_it);
    seen->often = share == DIRECT_SHARE_HOT;
    seen->costly = not_worth_it;
    seen->by_turns = how == DIRECT_SHARE_BY_TURNS;
    seen->least_part = HANDED_LEAST;
    seen->never_idle = true; /* COLD is the rule for that: one mutex has few waits where the CPUs are many */
    if (!may_try && !seen->costly && !seen->by_turns)
        return s->pays.switches;
    return sbt_pays_step(&s->pays, seen);
}

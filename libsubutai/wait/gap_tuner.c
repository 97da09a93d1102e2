/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/gap_tuner.h"

#include <string.h>

#define FIRST_SAMPLES_MANY 5 /* without a gap, before others are tried */
#define TRIES_MOST 44        /* of a gap in one search, measured or not */
#define REST_FIRST 4096      /* releases after the first search */
#define REST_MOST (1u << 20) /* and at most */
#define BETTER_TENTHS 9      /* a gap is kept if its releases take less than so many tenths */
#define FUTILE_TIMES 2       /* gaps are tried that take at most so many times as long as a release without */

static const uint32_t candidate_ns[SBT_GAP_CANDIDATES] = {0, 1000, 2000, 5000, 10000, 20000, 50000};

uint32_t sbt_gap_class_of(uint32_t n) {
    const uint32_t class = 31 - (uint32_t)__builtin_clz(n | 1);
    return class < SBT_GAP_CLASSES ? class : SBT_GAP_CLASSES - 1;
}

static uint32_t median(const uint32_t *samples, uint32_t n) {
    uint32_t sorted[SBT_GAP_SAMPLES_MOST];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = i;
        for (; k > 0 && sorted[k - 1] > samples[i]; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = samples[i];
    }
    return sorted[n / 2];
}

/* How many candidates to try, now that a release without a gap is known to take so long. The gaps ascend. */
static uint32_t n_worth_trying(uint32_t class, uint32_t took_ns) {
    uint32_t n = 1;
    while (n < SBT_GAP_CANDIDATES && ((uint64_t)candidate_ns[n] << class) <= (uint64_t)took_ns * FUTILE_TIMES)
        n++;
    return n;
}

/* Without a gap releases are tried until they are measured. A gap of which most are not is not worth more. */
static bool is_tried(const struct sbt_gap_class *c, uint32_t k) {
    return c->n_samples[k] == SBT_GAP_SAMPLES_MOST || (k != 0 && c->n_tries[k] >= TRIES_MOST);
}

static bool are_all_tried(const struct sbt_gap_class *c) {
    for (uint32_t k = 0; k < c->n_candidates; k++)
        if (!is_tried(c, k))
            return false;
    return true;
}

uint32_t sbt_gap_next(struct sbt_gap_tuner *t, uint32_t class, bool *measured) {
    struct sbt_gap_class *c = &t->of[class];
    *measured = c->left == 0;
    if (c->left != 0) {
        c->left--;
        return c->best_ns;
    }
    if (c->n_candidates == 0)
        return 0;
    for (uint32_t i = 0; i < c->n_candidates; i++) { /* the next one that is not tried enough */
        const uint32_t k = (c->turn + i) % c->n_candidates;
        if (!is_tried(c, k)) {
            c->turn = k + 1;
            c->n_tries[k]++;
            return candidate_ns[k];
        }
    }
    return 0;
}

static void decide(struct sbt_gap_class *c) {
    uint32_t best = 0, of_best = median(c->took_ns[0], SBT_GAP_SAMPLES_MOST);
    const uint32_t of_none = of_best;
    for (uint32_t k = 1; k < c->n_candidates; k++) {
        if (c->n_samples[k] < SBT_GAP_SAMPLES_MOST)
            continue;
        const uint32_t m = median(c->took_ns[k], SBT_GAP_SAMPLES_MOST);
        if (m < of_best && (uint64_t)m * 10 < (uint64_t)of_none * BETTER_TENTHS) {
            best = k;
            of_best = m;
        }
    }
    c->best_ns = candidate_ns[best];
    c->median_ns[0] = of_none;
    c->median_ns[1] = of_best;
    c->rest = c->rest == 0 ? REST_FIRST : c->rest < REST_MOST ? c->rest * 2 : REST_MOST;
    c->left = c->rest;
    c->n_candidates = c->turn = 0;
    memset(c->n_samples, 0, sizeof c->n_samples);
    memset(c->n_tries, 0, sizeof c->n_tries);
}

bool sbt_gap_learn(struct sbt_gap_tuner *t, uint32_t class, uint32_t gap_ns, uint64_t took_ns) {
    struct sbt_gap_class *c = &t->of[class];
    uint32_t k = 0;
    while (k < SBT_GAP_CANDIDATES && candidate_ns[k] != gap_ns)
        k++;
    if (c->left != 0 || k == SBT_GAP_CANDIDATES)
        return false;
    if (c->n_samples[k] < SBT_GAP_SAMPLES_MOST)
        c->took_ns[k][c->n_samples[k]++] = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX;
    if (c->n_candidates == 0) {
        if (c->n_samples[0] == FIRST_SAMPLES_MANY)
            c->n_candidates = n_worth_trying(class, median(c->took_ns[0], FIRST_SAMPLES_MANY));
        return false;
    }
    if (!are_all_tried(c))
        return false;
    decide(c);
    return true;
}

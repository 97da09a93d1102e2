/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The best gap between two wake-ups of many sleepers, found out while the program runs. The question is that of
 * Rousseau, France-Pillois and Martin, "Accurate Study and Optimization of Synchronization Barriers in a NoC based
 * MPSoC Architecture": sleepers that are woken together fight for the memory, and how far apart is best depends on the
 * machine and on their number.
 *
 * Pure code: the caller measures. All-zero is a valid tuner.
 *  1. The first releases of each class of numbers (2 to 3, 4 to 7, ...) have no gap. Their median bounds the search:
 *     gaps that alone would take longer than twice as long are not tried.
 *  2. Then the gaps take turns, so that what the machine does meanwhile meets all alike.
 *  3. The gap with the smallest median is kept, if it is better than none by a tenth at least; otherwise none is.
 *  4. After many releases the search begins again; after twice as many the next time.
 */
#ifndef SBT_WAIT_GAP_TUNER_H
#define SBT_WAIT_GAP_TUNER_H

#include <stdbool.h>
#include <stdint.h>

enum { SBT_GAP_CANDIDATES = 7, SBT_GAP_CLASSES = 10, SBT_GAP_SAMPLES_MOST = 11 };

struct sbt_gap_tuner {
    struct sbt_gap_class {
        uint32_t best_ns;                       /* gap that is in use */
        uint32_t n_candidates;                  /* that are tried in this search; 0: it has not begun */
        uint32_t turn;                          /* of the candidate that is tried next */
        uint32_t n_tries[SBT_GAP_CANDIDATES];   /* so far, of each candidate: some are not measured */
        uint32_t n_samples[SBT_GAP_CANDIDATES]; /* and that were measured */
        uint32_t took_ns[SBT_GAP_CANDIDATES][SBT_GAP_SAMPLES_MOST];
        uint32_t median_ns[2]; /* of the last search: without a gap, and with the best one */
        uint32_t left;         /* releases until the next search; 0: one is under way */
        uint32_t rest;         /* the number of releases that the last search was followed by */
    } of[SBT_GAP_CLASSES];
};

/* The class of a number of sleepers: of 2^k to 2^(k+1)-1. */
uint32_t sbt_gap_class_of(uint32_t n_sleepers);

/* The gap for the next release of that class; *measured: its length is wanted. */
uint32_t sbt_gap_next(struct sbt_gap_tuner *t, uint32_t class, bool *measured);

/* A release of that class with that gap took so long. True: a search is over, and of[class] says what it found. */
bool sbt_gap_learn(struct sbt_gap_tuner *t, uint32_t class, uint32_t gap_ns, uint64_t took_ns);

#endif

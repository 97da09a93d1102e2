/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Streamcluster between its barriers: what a thread computes before each. The steps are those of the work-alike
 * (bench/parsec/streamcluster.c): a trial has seven parallel steps, of which two are one thread's. The input is
 * PARSEC's `test`: 10 points of one dimension, two to five centres; the work-alike then has 375 barriers. Only
 * arithmetic counts, three cycles for each dimension of a distance and two for each other operation: the thesis does
 * not say what Graphite's cores took.
 */
#ifndef BENCH_ATAC_CLUSTERING_H
#define BENCH_ATAC_CLUSTERING_H

#include "barriers.h"

enum { CLUSTERING_EPISODES = 375 };

barrier_work clustering_work;

#endif

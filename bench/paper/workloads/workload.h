/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The paper's applications as traces: what sections VI to VIII say of their synchronization, and nothing measured.
 *
 * Taken from the paper: the primitives (Table V), how often they are used (Table VI), which thread waits for which
 * (Fig. 9 and its text), the share of critical sections (sections VII and VIII-D). Not given and therefore chosen: how
 * long a phase is, that is one number for all phases of an application and is fitted (docs/paper.md); how much the
 * threads of a phase differ, `spread_permille`, which is not fitted.
 *
 * What Table VI counts: a mutex event is a call of lock or unlock; a condition event is a call of wait, signal or
 * broadcast; a barrier event is a packet, so each wait is two, as the table's note says.
 */
#ifndef WORKLOAD_H
#define WORKLOAD_H

#include "trace.h"

#include <stdint.h>

enum { WORKLOAD_MAX_THREADS = 64, WORKLOAD_N_SIZES = 3 };

struct workload_request {
    const char *application;  /* a name of workload_models */
    uint32_t n_threads;       /* 16, 32 or 64: the columns of Table VI */
    uint64_t phase_ns;        /* what thread 0 does alone, once */
    uint64_t worker_ns;       /* what a thread does in a parallel phase; a row of a frame of x264 */
    uint32_t spread_permille; /* a thread's phase is worker_ns +- this, uniformly; below 1000 */
    uint64_t seed;
};

struct workload_counts {
    uint32_t n_mutexes, n_conditions, n_barriers;            /* Table V */
    uint64_t mutex_events, condition_events, barrier_events; /* Table VI */
    uint64_t n_events;                                       /* of the trace, thread events included */
    uint64_t held_ns;                                        /* work done while holding a mutex, all threads */
};

/* Takes one event of a thread; 0 or an errno value. sbt_trace_append is one behind a cast-free wrapper. */
typedef int workload_append(void *to, uint32_t thread, const struct sbt_trace_event *event);

struct workload;

struct workload_model {
    const char *name;
    const char *what;
    void (*generate)(struct workload *w);
};

extern const struct workload_model workload_models[];
extern const uint32_t workload_n_models;
extern const uint32_t workload_sizes[WORKLOAD_N_SIZES]; /* the legal n_threads */

/* 0, what `append` said, or EINVAL and *why for a request that no model serves. */
int workload_generate(const struct workload_request *request, workload_append *append, void *to,
                      struct workload_counts *counts, const char **why);

#endif

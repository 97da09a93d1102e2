/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The rows in the report of `subutai predict`, and their fields: between the simulations and their table and JSON. */
#ifndef CMD_PREDICT_ROWS_H
#define CMD_PREDICT_ROWS_H

#include "fields.h"
#include "predict.h"

/* The result of one simulation. */
struct run_row {
    const char *machine, *sync, *sched;
    struct predict_chip chip;
    struct sim_bounds bounds; /* path_ns: the critical path; work_ns: the work by the cores */
    uint64_t n_deviations;
    double deviation_share; /* of the recorded events */
    double speedup, mean_end_ns, utilisation, section_share, unfairness;
    struct sim_summary sum;
};

/* Hidden unless there are several; hidden unless asked for. */
enum { COLUMN_MACHINE = 1, COLUMN_UNFAIRNESS = 13 };

/* Which simulation a row is of. */
struct run_names {
    const char *machine, *sync, *sched;
    uint32_t n_cores;
};

/* The calls of one kind in one simulation. */
struct call_row {
    struct run_names run;
    const char *call;
    struct sim_latency latency;
};

/* The packets of one kind in one simulation. */
struct packet_row {
    struct run_names run;
    const char *packets;
    struct sim_packets latency;
};

struct application_row {
    struct sim_application sum;
    double duration_ns, alone_ns;
};

enum { COLUMN_ALONE = 1 }; /* hidden unless unfairness is asked for */

struct thread_row {
    uint32_t number;
    struct sim_thread_result thread;
};

/* The sections of one length: below `below_ns`, a power of two, and not below half of it. */
struct octave_row {
    uint64_t below_ns, n, sum_ns;
};

/* What all runs have in common. */
struct common_row {
    uint64_t slot_ns;
    const char *order;
};

extern const struct field predict_common_fields[], predict_run_fields[], predict_hardware_fields[],
    predict_optical_fields[], predict_call_fields[], predict_packet_fields[], predict_application_fields[],
    predict_section_fields[], predict_octave_fields[], predict_thread_fields[];

struct common_row predict_common_row(const struct predict *p);
struct run_row predict_run_row(const struct predict *p, size_t run);
/* False: the simulation had no such calls. */
bool predict_call_row(const struct predict_run *run, int kind, struct call_row *row);
/* False: none was counted. */
bool predict_packet_row(const struct predict_run *run, int kind, struct packet_row *row);
struct application_row predict_application_row(const struct predict *p, size_t run, uint32_t number);

#endif

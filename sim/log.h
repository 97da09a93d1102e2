/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A request log (emu_hw/request_log.h), replayed: the requests of a live run of the engine ni, fed to the simulator's
 * NIs in the order in which the live NIs served them.
 *
 * What the log fixes is that order, when each core began to hand a request over, and how long packets waited in the
 * network. Everything else has to come out the same:
 *  - the packets that leave each NI, in the same order, each after the same request, at the same time;
 *  - each way takes at least the hand-over and the distance, and the way back to a thread that has waited takes its
 *    time;
 *  - a core hands over one request at a time;
 *  - no request overtakes an earlier one of its thread on the way to an NI;
 *  - with a time scale, no thread makes a request before it can have seen the answer to the one before.
 *
 * What the live engine stepped again, because it had been held, is not in the log: the simulator's own holding and
 * stepping again has to come to the same, to the cycle.
 */
#ifndef SIM_LOG_H
#define SIM_LOG_H

#include "packet.h"
#include "sim.h"

struct sim_log;

/* Read the file. NULL, and *error: it cannot be read, or it is no request log. */
struct sim_log *sim_log_open(const char *path, struct sim_error *error);
void sim_log_close(struct sim_log *log);
uint32_t sim_log_n_processes(const struct sim_log *log);

/* Of the requests of one kind that were answered, or have no answer. In cycles, which are nanoseconds. */
struct sim_log_latency {
    uint64_t n, sum;
    uint64_t network_waits; /* the part of the sum that packets waited for other packets */
};

struct sim_log_result {
    uint32_t process;
    bool child; /* a forked one: its NIs began as copies */
    uint32_t width, height, n_control, n_queue, time_scale;
    uint32_t n_nis; /* that served requests */
    uint64_t n_requests, n_answers, n_grants, n_held;
    struct sim_log_latency latency[HW_N_REQUESTS]; /* by operation */
    bool differs;
    char difference[400]; /* the first one, one line */
};

/* Replay one process. False, and *error: no machine can have such a log. */
bool sim_log_replay(const struct sim_log *log, uint32_t process, struct sim_log_result *result,
                    struct sim_error *error);

/* "lock", "barrier wait" and so on; for answers too: "grant". */
const char *sim_log_op_name(enum hw_op op);

#endif

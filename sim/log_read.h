/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A request log in memory: one array of records for each process, in the order of the process. */
#ifndef SIM_LOG_READ_H
#define SIM_LOG_READ_H

#include "log.h"
#include "request_log.h"

#define SIM_LOG_END SIZE_MAX

struct sim_log_entry {
    struct hw_log_record record;
    uint32_t tile;
    size_t next; /* the next record of the same NI; SIM_LOG_END: none */
};

struct sim_log_begin { /* what an NI of a forked child begins with */
    uint32_t tile;
    struct hw_log_state state;
    uint8_t *bytes;
};

struct sim_log_process {
    struct hw_log_header first;
    struct sim_log_entry *entry;
    size_t n_entries, capacity;
    struct sim_log_begin *begin;
    size_t n_begins;
};

struct sim_log {
    struct sim_log_process *process;
    uint32_t n_processes;
};

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reading a schedule log, event by event, in bounded memory beside the tables of modules and call sites. The file may
 * be longer than what its process has written, and may become shorter meanwhile: then the log is cut there. Nothing
 * that a file may hold makes the reader fail otherwise than by a line with the place.
 */
#ifndef SCHEDULE_SCHEDULE_READ_H
#define SCHEDULE_SCHEDULE_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule_format.h"

enum schedule_event_kind {
    SCHEDULE_EVENT_OP,
    SCHEDULE_EVENT_RESUME,
    SCHEDULE_EVENT_RETURN,
    SCHEDULE_EVENT_STALL,
    SCHEDULE_EVENT_RELEASED,
    SCHEDULE_EVENT_SECTION,
    SCHEDULE_EVENT_DEADLOCK, /* no thread can go on; this is one that waits */
    SCHEDULE_N_EVENTS
};

#define SCHEDULE_NONE UINT32_MAX

struct schedule_event {
    enum schedule_event_kind kind;
    unsigned what;                         /* enum schedule_op, schedule_reason or schedule_return, by the kind; of
                                              DEADLOCK the operation that would take what is waited for */
    uint32_t thread;                       /* its number */
    uint64_t time_ns;                      /* logical */
    uint32_t object;                       /* OP, DEADLOCK: from 1 on; 0: none */
    uint32_t other;                        /* OP: the thread that it is about, or SCHEDULE_NONE; DEADLOCK: that
                                              which has the object, or is joined */
    uint32_t site;                         /* OP, DEADLOCK: from 1 on; 0: not known */
    uint32_t caller[SCHEDULE_MAX_CALLERS]; /* OP, in a log with callers: the call of the function with `site`, and so
                                              on; 0: not known */
    uint64_t hash;                         /* of the schedule up to this event */
    /*
     * SECTION: the thread gives the turn up. Which hint: twice its line in the hint file, or twice the program's own
     * number, plus 1; for how many turns of others.
     */
    uint64_t hint, turns;
    /* OP, RESUME, in a log with times: ns since the first event with a time, and how long the thread waited before. */
    bool has_real;
    uint64_t real_ns, waited_ns;
};

struct schedule_log;

/* NULL: *error has one line, allocated: "'FILE': byte 12: ...". */
struct schedule_log *schedule_open(const char *path, char **error);
void schedule_close(struct schedule_log *log);

const struct schedule_header *schedule_header_of(const struct schedule_log *log);
/* After the first event: what hints the run had; NULL: none, and all of LBDR on. */
const struct schedule_hints *schedule_hints_of(const struct schedule_log *log);
/* The next event. False: there is none; *error is NULL, or has one line, allocated. */
bool schedule_next(struct schedule_log *log, struct schedule_event *event, char **error);
/* From the first event on again. */
void schedule_rewind(struct schedule_log *log);
/* After the last event: what the process has said of itself; NULL: the log is cut there. */
const struct schedule_totals *schedule_totals_of(const struct schedule_log *log);
/* After the last event: the log is cut there because its file could not grow. */
bool schedule_is_full(const struct schedule_log *log);
/* How many bytes of the file have been read, and how many it has. */
uint64_t schedule_place(const struct schedule_log *log);
uint64_t schedule_bytes(const struct schedule_log *log);

/* "MODULE+0xOFFSET" of a call site, allocated, as in a trace; "" for 0. */
char *schedule_site(const struct schedule_log *log, uint32_t site);
/* Are they the same place, in two logs? */
bool schedule_same_site(const struct schedule_log *a, uint32_t site_a, const struct schedule_log *b, uint32_t site_b);

/* "mutex_lock", "woken", "from_call"; the kind of object: "mutex", or NULL. */
const char *schedule_op_name(enum schedule_op op);
const char *schedule_reason_name(enum schedule_reason reason);
const char *schedule_return_name(enum schedule_return how);
const char *schedule_object_name(enum schedule_op op);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Schedule logs beside each other, and their events in words. */
#ifndef CMD_SCHEDULE_DIFF_H
#define CMD_SCHEDULE_DIFF_H

#include "json.h"
#include "schedule_read.h"
#include "symbols.h"

/* Where two schedules differ first. What comes back from outside is not compared, nor is logical time. */
struct schedule_difference {
    bool is_same; /* both ended there */
    uint64_t n;   /* operations and ends of waits that are the same */
    struct {
        bool has_event; /* otherwise the log ends there */
        bool is_cut;
        uint64_t number; /* of the event in its log, from 1 on */
        struct schedule_event event;
    } side[2];
};

/* Refuses a damaged log, in the name of the subcommand. Both logs are read from where they are. */
void schedule_compare(const char *subcommand, struct schedule_log *const logs[2], struct schedule_difference *d);

/* An event as a line, or as the members of an open JSON object. The text is allocated. */
char *schedule_text(const struct schedule_log *log, struct symbols *symbols, uint64_t number,
                    const struct schedule_event *e);
/* The same without the event's number, time and thread. */
char *schedule_what_text(const struct schedule_log *log, struct symbols *symbols, const struct schedule_event *e);
void schedule_json(struct json *j, const struct schedule_log *log, struct symbols *symbols, uint64_t number,
                   const struct schedule_event *e);

/* What a section's hint is called: "line 3", "the program's hint 0". Allocated. */
char *schedule_hint_name(uint64_t hint);

/* The next event; refuses a damaged log. */
bool schedule_read(const char *subcommand, struct schedule_log *log, struct schedule_event *e);
/* Refuses what cannot be opened. */
struct schedule_log *schedule_take(const char *subcommand, const char *path);

#endif

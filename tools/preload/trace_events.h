/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A trace event by event: as text, as JSON, and for the viewer at ui.perfetto.dev. */
#ifndef CMD_TRACE_EVENTS_H
#define CMD_TRACE_EVENTS_H

#include <stdio.h>

#include "command.h"
#include "progress.h"
#include "trace.h"

/* How much of the trace has been read, for a line on stderr. */
struct trace_reading {
    struct progress line;
    uint64_t n_read, n_to_read; /* events */
};

struct trace_request {
    const char *path, *command; /* command: that refuses a damaged trace; NULL: trace */
    bool json;
    uint64_t thread; /* SBT_TRACE_NONE: all */
    FILE *out;
    struct trace_reading *reading; /* NULL: there is no such line */
};

/* What a file may be that is refused. */
#define TRACE_LEGAL "what subutai record or profile of this version has written: record the program again"

/* The next event of a thread; false at the end. Refuses a damaged trace. */
bool trace_next(const struct trace_request *r, struct sbt_trace_cursor *cursor, struct sbt_trace_event *event);

void trace_dump(const struct trace_request *r, const struct sbt_trace *trace);
/* As JSON with r->json, else as protocol buffers (perfetto.c). */
void perfetto_write(const struct trace_request *r, const struct sbt_trace *trace);
void trace_to_perfetto(const struct trace_request *r, const struct sbt_trace *trace);

#endif

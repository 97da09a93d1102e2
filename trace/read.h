/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An open trace, shared by the three files that read it: read.c, names.c, cursor.c. */
#ifndef SBT_TRACE_READ_H
#define SBT_TRACE_READ_H

#include "format.h"
#include "trace.h"

struct trace_module {
    uint64_t start, length, offset; /* of the mapping; the offset is where it begins in the file */
    char *path;
};

struct trace_stack { /* the bytes of its definition, in the mapped file */
    const uint8_t *at;
    uint32_t n_bytes;
};

#define TRACE_NOT_LOOKED_FOR UINT32_MAX /* of a site's module */

/* From the definitions. names.c fills it at its first use. */
struct trace_names {
    bool loaded;
    uint64_t *objects, *sites;   /* addresses by number; 0: not known */
    struct sbt_trace_made *made; /* by object; .site is SBT_TRACE_NONE: not known */
    uint32_t *routines;          /* by thread: the site plus 1; 0: not known */
    uint64_t *queued;            /* by thread: its wait for a core plus 1, ns; 0: not known */
    struct trace_stack *stacks;  /* by number minus 1 */
    size_t n_stacks;
    struct trace_module *modules;
    size_t n_modules;
    uint32_t *site_modules;              /* by site: its module, from 1; 0: none */
    char site_name[TRACE_MAX_TEXT + 32]; /* the name that was asked for last */
};

struct sbt_trace {
    const uint8_t *bytes;
    uint64_t size;
    struct sbt_trace_info info;
    uint64_t *blocks;  /* offsets of blocks of events, thread by thread */
    uint64_t *others;  /* offsets of the other blocks, in the file's order */
    uint64_t *tallies; /* offsets of blocks of tallies, in the file's order */
    size_t n_blocks, n_others, n_tallies;
    bool has_end;
    uint32_t *first; /* [thread]: the thread's first block in `blocks`; [n_threads]: n_blocks */
    char *command, *engine;
    struct trace_names names;
};

static inline struct trace_block trace_block_at(const struct sbt_trace *trace, uint64_t offset) {
    struct trace_block header; /* a trace may be damaged or cut anywhere, so blocks have no alignment */
    memcpy(&header, trace->bytes + offset, sizeof header);
    return header;
}

/* Does the payload have its checksum? The header has been checked. */
bool trace_payload_whole(const struct sbt_trace *trace, uint64_t offset, const struct trace_block *header);

/*
 * Readers have tables by these numbers, so the numbers must be possible in a file of this size. A number comes with an
 * event that uses it first. Events that did not reach the file were in buffers, which had room for less than BUFFERED
 * of them. Each thread has a block of its own, and the header alone has more than MIN_THREAD_BYTES.
 */
static inline bool trace_numbers_are_possible(uint64_t size, uint32_t n_objects, uint32_t n_sites, uint32_t n_threads) {
    enum { BUFFERED = 1 << 20, MIN_THREAD_BYTES = 16 };
    uint64_t most = size + BUFFERED;
    return n_objects <= most && n_sites <= most && n_threads <= most / MIN_THREAD_BYTES;
}

/* These bytes are not needed for a while: they may leave this process's memory, and come back when they are read. The
 * bytes around `next`, where the reader goes on, stay. */
void trace_leave(const struct sbt_trace *trace, uint64_t offset, uint64_t length, uint64_t next);

/* false, with *error filled in. */
bool trace_fail(struct sbt_trace_error *error, uint64_t offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One definition of a block. */
struct trace_defined {
    enum trace_definition what;
    uint64_t number[3];
    const char *text; /* not terminated */
    uint64_t n_text;
};

/* A walk over the definitions of the block at `offset`. */
struct trace_definitions {
    const uint8_t *at, *end;
    uint64_t last_object, last_site;
    unsigned n_known; /* definitions below this are known in the trace's version */
};
void trace_definitions_begin(const struct sbt_trace *trace, uint64_t offset, const struct trace_block *header,
                             struct trace_definitions *walk);
/* 1, 0 at the end, -1 if they make no sense. */
int trace_definitions_next(struct trace_definitions *walk, struct trace_defined *defined);

void trace_names_free(struct sbt_trace *trace);

#endif

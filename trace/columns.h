/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as columns, one array for each member of an event: the interface of libsubutai-trace.so, for languages that
 * call C and want no call for each event. The decoder is the one of trace.h. The structs here are the library's ABI:
 * members are added at their end only.
 */
#ifndef SBT_TRACE_COLUMNS_H
#define SBT_TRACE_COLUMNS_H

#include "trace.h"

/* Arrays of the caller's, each with room for the same number of events. NULL: the caller does not want this column. */
struct sbt_trace_columns {
    uint32_t *thread;
    uint8_t *op, *type;
    uint16_t *result;
    uint32_t *object, *other, *site, *size;
    uint64_t *work_ns, *at_ns, *took_ns, *order, *relock;
    uint32_t *stack;
    /* The arrays hold zeros. Those of `result`, `size`, `relock` and `stack`, of which few events have another value,
     * are then written only there: fresh memory in which there is none is never touched. */
    bool zeroed;
};

/* Where to go on: `thread` and how many of the events before it have been read. All-zero: the beginning, all events. */
struct sbt_trace_reader {
    struct sbt_trace_cursor cursor;
    uint32_t thread;
    bool begun;
    bool selects; /* see sbt_trace_reader_select */
    uint64_t ops, long_ops, least_ns;
    bool ends_early;    /* see sbt_trace_reader_limit */
    uint32_t n_threads; /* if it does: the thread before which it ends */
};

/* For callers that cannot take the size of the struct from this header. NULL: no memory. */
struct sbt_trace_reader *sbt_trace_reader_new(void);
void sbt_trace_reader_free(struct sbt_trace_reader *reader);

/*
 * From here on the reader gives only events of the operations in `ops` (bits, 1 << op), and of these, those of
 * `long_ops` only if they took at least `least_ns`.
 */
void sbt_trace_reader_select(struct sbt_trace_reader *reader, uint64_t ops, uint64_t long_ops, uint64_t least_ns);

/*
 * The reader begins with thread `first` and ends before thread `end`. Readers of one trace may work at the same time,
 * in threads of the caller's, one in each: sbt_trace_read_counts says where in the columns the events of each belong.
 */
void sbt_trace_reader_limit(struct sbt_trace_reader *reader, uint32_t first, uint32_t end);

/*
 * Fills in the next events, at most `room` of them, thread by thread from thread 0. The result is their number; fewer
 * than `room`: that was the end. -1: *error says where the trace is damaged.
 */
int64_t sbt_trace_read_columns(const struct sbt_trace *trace, struct sbt_trace_reader *reader,
                               const struct sbt_trace_columns *columns, uint64_t room, struct sbt_trace_error *error);

/* Arrays for tallies, none of them NULL; the histograms are not among them. */
struct sbt_trace_tally_columns {
    uint32_t *thread;
    uint8_t *op, *type;
    uint32_t *object, *site;
    uint64_t *n, *n_failed, *n_timed, *n_held, *held_ns, *held_max_ns;
};

/* Fills in the trace's tallies, at most `room` of them; info.n_tallies are enough. The result is their number; -1:
 * *error says where the trace is damaged. */
int64_t sbt_trace_read_tallies(const struct sbt_trace *trace, const struct sbt_trace_tally_columns *columns,
                               uint64_t room, struct sbt_trace_error *error);

/* How many events threads 0 to n - 1 have; their sum is info.n_events. */
void sbt_trace_read_counts(const struct sbt_trace *trace, uint64_t *n_events, uint32_t n);
/* The addresses of objects 0 to n - 1, as sbt_trace_object_address has them. */
void sbt_trace_read_addresses(const struct sbt_trace *trace, uint64_t *address, uint32_t n);
/* The start routines of threads 0 to n - 1, as sbt_trace_thread_routine has them. */
void sbt_trace_read_routines(const struct sbt_trace *trace, uint32_t *site, uint32_t n);

#endif

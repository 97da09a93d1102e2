/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * FILE.live: what the threads of a process that records into FILE have not written yet. The recorder keeps the records
 * of its threads there, in shared memory, so that they outlive a process that is killed (docs/trace-format.md). It
 * removes the file when the trace is whole; complete.c reads what a killed process has left.
 *
 * The header takes the first `header_bytes`. Behind it are areas, in pages of their own: records, and in a profile a
 * book for each record with what its thread has counted. A record is a struct of the recorder's own. The header says
 * where the fields of enum trace_live_field lie in it, so that only they are shared. The header names the first record,
 * and each record the next one.
 */
#ifndef SBT_TRACE_LIVE_FORMAT_H
#define SBT_TRACE_LIVE_FORMAT_H

#include "encode.h"

#define TRACE_LIVE_MAGIC "SBTLIVE3"
#define TRACE_LIVE_ANY 7 /* bytes of it that each version has */
#define TRACE_LIVE_ENDING ".live"
#define TRACE_LIVE_MOST (UINT64_C(1) << 32) /* bytes of the file */

/* Bytes of the file that are locked, by its open file descriptions (F_OFD_SETLK). The lock of a process lasts as long
 * as it has the header mapped, whatever descriptors it closes. */
enum trace_live_lock { LIVE_LOCK_PROCESS, LIVE_LOCK_READER };

/* With the size of each; LIVE_BATCH and LIVE_ENCODER are as long as their structs. */
enum trace_live_field {
    LIVE_STATE,     /* 4: enum trace_live_state */
    LIVE_BUSY,      /* 4: not 0: an event is under way */
    LIVE_FLUSHING,  /* 1: the block is being written */
    LIVE_AT_END,    /* 1: no event of the thread's end is to come */
    LIVE_IN_CALL,   /* 1: the operation plus 1 of the call under way that may wait; 0: none */
    LIVE_N_PENDING, /* 4: events that wait outside of the batch */
    LIVE_N_LOST,    /* 4 */
    LIVE_N_BATCH,   /* 4: events in the batch */
    LIVE_N_TAKEN,   /* 4: of these, those that the encoder has taken */
    LIVE_N_APART,   /* 4: n_taken minus the block's events, while no event is being encoded */
    LIVE_END_NS,    /* 8: when the last event ended, or the call under way began */
    LIVE_CPU,       /* 8: the thread's processor time then, ns */
    LIVE_CARRIED,   /* 8: work before calls that were no events, ns */
    LIVE_CALL_WORK, /* 8: work before the call under way, ns */
    LIVE_CALL_AT,   /* 8: its place on the stack */
    LIVE_OUTSIDE,   /* 8: not 0: in a call that may wait for the outside */
    LIVE_OUTSIDE_AT,
    LIVE_WAITS_OBJECT, /* 4 each: of the call under way */
    LIVE_WAITS_OTHER,
    LIVE_WAITS_SITE,
    LIVE_WAITS_TYPE, /* 1 */
    LIVE_NEXT,       /* 8: where the next record is; 0: nowhere */
    LIVE_BOOK,       /* 8: where the thread's book is; 0: nowhere */
    LIVE_BATCH,      /* struct sbt_trace_event[n] */
    LIVE_ENCODER,    /* struct trace_encoder */
    LIVE_N_FIELDS
};

enum trace_live_state { LIVE_FREE, LIVE_LIVE, LIVE_ENDED, LIVE_CLOSING };

struct trace_live_header {
    char magic[8];
    uint32_t header_bytes, record_bytes;
    uint32_t event_bytes, encoder_bytes, n_batch; /* the structs' sizes, and the events of a full batch */
    uint32_t process_id;
    uint64_t process_start; /* field 22 of its /proc/PID/stat; 0: not known */
    uint64_t trace_sum;     /* header_sum of the trace's first block */
    /* The recorder's clock: the processor's counter minus base_ticks, times scale / 2^32; CLOCK_MONOTONIC if scale is
     * 0. start_ns: when the trace began. */
    uint64_t start_ns, scale, base_ticks;
    uint64_t end;                                          /* atomic: where the next area begins */
    uint64_t first;                                        /* atomic: where the first record is; 0: nowhere */
    uint32_t book_bytes, entry_bytes, order_bytes, unused; /* the sizes of the structs below */
    uint32_t ended;    /* the trace is whole, or cannot be written, or has been completed */
    uint64_t added_at; /* complete.c: what is in the trace from there on is not the process's; 0: nothing is */
    uint64_t past_cpu; /* atomic: processor time of threads that have no record, or of which other threads have the
                        * records, ns */
    uint16_t offset[LIVE_N_FIELDS];
};

_Static_assert(sizeof(struct trace_live_header) <= 4096, "a page");

/*
 * The book of a thread of a profile. Its tables are in the file, too. Each store that changes a count, or where a table
 * is, leaves all that a reader needs: the thread may be killed behind any.
 */
enum { LIVE_LOG_MOST = 12 }; /* the binary logarithm of a table's places, at most */
struct trace_live_table {
    uint64_t at;      /* its place in the file, a multiple of 64, plus the binary logarithm of its places; 0: none */
    uint64_t address; /* where the process has it mapped */
};

struct trace_live_book {
    /* The count that becomes a tally, and its holds or 0, by their addresses. The tally is in the block if the block
     * has not put_behind tallies any more. 0: none does. */
    uint64_t putting, putting_held;
    uint32_t put_behind;
    uint32_t unused;
    struct trace_live_table objects, sites, orders;
    struct trace_tally_encoder encoder;
};

/* In a table of objects or of sites: a count, and its timed holds. */
struct trace_live_held {
    uint64_t ns, max_ns;
    uint32_t n_timed, n;
    uint32_t buckets[SBT_TRACE_N_HOLD_BUCKETS]; /* one hold may be in some of these figures, and not in the others */
};

struct trace_live_entry {
    uint64_t object, site; /* site 0: the place is free */
    uint32_t n;            /* calls that are in no tally */
    uint32_t number;       /* of the object, or SBT_TRACE_NONE */
    uint32_t lives;
    uint8_t op;           /* LIVE_FAILS is set: of calls that failed */
    uint8_t type;         /* LIVE_TYPE of it */
    uint16_t site_number; /* LIVE_OTHER_SITE: a larger one */
    struct trace_live_held held;
    uint64_t unused; /* the next one begins a cache line */
};
enum { LIVE_FAILS = 0x80, LIVE_TYPE = 0x7F, LIVE_OTHER_SITE = UINT16_MAX };

struct trace_live_order {
    uint64_t held, taken, held_site, taken_site; /* held 0: the place is free */
    uint32_t stack;
    uint32_t held_number, taken_number;
    uint32_t held_site_number, taken_site_number;
    uint32_t lives;
    uint32_t n; /* that are in no tally */
    uint8_t n_gates;
    uint8_t held_shared, taken_shared;
    struct {
        uint64_t object;
        uint32_t number; /* or SBT_TRACE_NONE */
        uint8_t shared;
    } gate[SBT_TRACE_MOST_GATES];
};

#endif

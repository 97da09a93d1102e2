/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the recorder keeps in memory: of the process, of addresses, of threads, and of a call under way. See record.h.
 */
#ifndef SBT_OBSERVE_STATE_H
#define SBT_OBSERVE_STATE_H

#include "abi/export.h"
#include "abi/names.h"
#include "core/object.h"
#include "core/thread.h"
#include "encode.h"
#include "engine/engine.h"
#include "observe/clock.h"
#include "observe/preempt.h"
#include "observe/work.h"
#include "os/arch.h"
#include "os/real.h"
#include "start/init.h"
#include "trace.h"

/* The observed functions: the entry points of abi/, under their symbols in this library. */
#define REC_DECLARE(name) extern __typeof(name) sbt_##name;
#define REC_DECLARE_REAL(result, name, parameters) REC_DECLARE(name)
SBT_REAL_FUNCTIONS(REC_DECLARE_REAL)
SBT_REAL_COND_FUNCTIONS(REC_DECLARE_REAL)
SBT_REAL_COND_CLOCK_FUNCTIONS(REC_DECLARE_REAL)
SBT_C11_NAMES(REC_DECLARE)

enum { REC_N_PENDING = 8, REC_N_CACHED = 256, REC_N_BATCH = 32 };

/* Types of addresses that are no object's: call sites and threads. A node is never freed while the process lives. */
enum { REC_SITE = SBT_TRACE_N_TYPES, REC_PTHREAD };
/* Or the type of an address where an object was made that has not been used. Only in profiles. `number` is the site,
 * `initial` the size. */
enum { REC_MADE = REC_PTHREAD + 1 };
/* And of a name of a call stack, see stack.c. */
enum { REC_STACK = REC_MADE + 1 };

/* Each node has a cache line: neighbouring objects are often busy on different cores. */
struct rec_node {
    struct rec_node *next; /* the next in its bucket; set before the node is published */
    uintptr_t address;
    uint8_t type; /* enum sbt_trace_type, or one of the above; atomic */
    uint8_t lock; /* of the fields of conditions */
    /*
     * Atomic; 1: a handler has given the number on top of the recorder, which cannot write the definition then. The
     * next look-up that is not such a handler's takes the 1 away and writes it. The exchange in event.c pairs with the
     * release of the type.
     */
    uint8_t undefined;
    uint32_t number; /* the number of the life at that address, of the site or of the thread */
    union {
        uint32_t initial; /* semaphores: the initial value; barriers: the count */
        uint32_t
            flying; /* conditions, futexes: the last 32 signals, bit 0 the last: counted, and perhaps not given yet */
    };
    /*
     * The life before, at the same address; its waits may still be returning. Its number (atomic), and its last signal
     * if that was a broadcast.
     */
    uint32_t before;
    uint64_t before_signals;
    union {
        /* atomic; locks: acquisitions for writing; barriers: arrivals, OpenMP's: generations; semaphores: waits that
         * succeeded */
        uint64_t acquired;
        uint64_t open; /* conditions, futexes: the last 64 signals, bit 0 the last: no wait has been given it yet */
    };
    uint64_t signals;    /* atomic. Conditions, futexes: signals and broadcasts; semaphores: posts */
    uint64_t broadcasts; /* conditions, bits as in `open` */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct rec_node) == 64, "a cache line");

enum rec_state { REC_FREE, REC_LIVE, REC_ENDED, REC_CLOSING };

/* What a call waits for that may wait: numbers, as in an event. */
struct rec_waits_at {
    uint32_t object, other, site;
    uint8_t type;
};

struct rec_thread {
    /* What every event touches, in one cache line. */
    volatile uint32_t busy, n_pending; /* busy: 0, or rec_place where it was set */
    uint32_t generation;               /* the fork generation of the process that it belongs to */
    volatile uint32_t n_batch;
    /* At the end of the last event: wall clock, and CPU time as read, or estimated since. */
    uint64_t end_ns, cpu_ns;
    uint64_t carried_ns;     /* work before calls that were no events after all */
    volatile uint64_t *mark; /* where the thread's preemption mark is; see preempt.h */
    /* a bit for each site: a long time off the core followed its last call, and CPU time had to be read */
    uint64_t long_after;
    uint8_t last_site;  /* the bit of the last event's site */
    uint8_t n_reckoned; /* blocking calls since CPU time was read */
    uint16_t owed_ns;   /* by so much the work before the last event came out below zero */
    volatile bool flushing;
    bool off_core;   /* it has been off its core, perhaps to sleep, since n_sleeps was read */
    uint8_t in_call; /* the operation plus 1 of the innermost call under way that may wait, from end_ns on; 0: none */

    struct rec_stacks *stacks;   /* the last call stacks; NULL: none yet */
    struct rec_profile *profile; /* NULL: not in a profile, or there was no memory */
    struct rec_thread *next;     /* links all records of the process; set before the record is published */
    uint32_t state;              /* enum rec_state; FREE and ENDED are left by compare-and-swap */
    uint32_t number;
    uint32_t tid;                      /* kernel thread id, 0 before it runs */
    volatile uint32_t n_taken, n_lost; /* n_taken: events of the batch that the encoder has taken */
    volatile uint32_t n_apart;         /* n_taken minus the block's events, modulo, while no event is being encoded */
    union {
        void *(*posix)(void *);
        thrd_start_t c11;
    } routine;
    void *argument;
    /* outside.c: where it is in a call that may wait for the outside, NULL: nowhere; how often it has slept */
    const void *outside;
    uintptr_t outside_at;      /* the call's place on the stack */
    uint64_t outside_n_events; /* of the block and the batch, when the call began */
    uint64_t n_sleeps;
    uint64_t call_work_ns;          /* in_call: the work before the call, and before calls that it interrupts */
    uintptr_t call_at;              /* in_call: the call's place on the stack */
    struct rec_waits_at call_waits; /* in_call */
    /* When the thread began; for how long it had no core, plus 1, 0: not known yet (atomic); and before it began. */
    uint64_t begin_ns, queued_ns, queued_before_ns;
    bool attached;  /* made at a call of the thread's own: its end will not be seen */
    uint64_t known; /* atomic: REC_UNKNOWN with its number, or how far process.c has come with it */
    /*
     * Written while busy: an arrival at the end of an OpenMP region, where the thread waits for others, and then for
     * the next region. If the trace, or the thread, ends meanwhile it is an event that ended when the last thread came.
     */
    volatile bool has_arrived;
    struct sbt_trace_event arrival;
    volatile bool at_end;        /* no event of its end is to come: it has not begun, or has had that event */
    bool is_live;                /* see live.h: the record is in the file, or has found no room there */
    bool stands;                 /* atomic: it waits until another thread has ended the trace, in a handler perhaps */
    uint64_t next_at, book_at;   /* where the next record of the file is, and the profile's book; 0: nowhere */
    struct rec_thread *creating; /* the record of the thread that it is creating */
    struct {
        uintptr_t address;
        struct rec_node *node;
    } objects[REC_N_CACHED];
    struct {
        uintptr_t address;
        uint32_t number;
    } sites[REC_N_CACHED];
    /*
     * Events are encoded several at a time: an event of a thread that has just come back to its core should touch
     * little, because little of the recorder is left in that core's caches.
     */
    struct sbt_trace_event batch[REC_N_BATCH];
    struct sbt_trace_event pending[REC_N_PENDING];
    uintptr_t pending_object[REC_N_PENDING], pending_site[REC_N_PENDING]; /* their addresses, or 0 */
    struct trace_encoder encoder;
} __attribute__((aligned(64)));

#define REC_UNKNOWN(number) ((uint64_t)(number) << 2)

_Static_assert(offsetof(struct rec_thread, stacks) == 64, "a cache line");
_Static_assert(sizeof(struct rec_thread) <= 65536, "what a thread may cost");

/* An observed call, on the frame of its observing function. */
struct rec_call {
    struct rec_thread *thread;     /* NULL: not recorded */
    struct rec_node *node, *mutex; /* NULL: no memory. mutex: the mutex of a condition wait */
    bool nested;                   /* it has interrupted the recorder */
    bool ended_long_wait;          /* its call stack is wanted */
    const void *said_to_wait_for;  /* with stacks but without a profile: its hint says so; NULL: no object */
    bool is_over;                  /* the object's memory is not read: the call has been made, and it may be gone */
    /* As in the record: the call that a handler has interrupted to make this one. outer_work_ns, outer_at: if there is
     * one */
    uint8_t outer;
    uint64_t outer_work_ns;
    uintptr_t outer_at;
    struct rec_waits_at outer_waits;
    const void *site;
    uint64_t begin_ns, first_order; /* first_order: of a condition wait, the signals before it */
    uint32_t flying;                /* of a condition wait: `flying` of its node when it began */
    struct sbt_trace_event event;
};

extern struct rec {
    uint32_t state;   /* enum rec_progress */
    uint32_t closing; /* 1: no event begins or ends from here on */
    uint32_t ender;   /* the id of the thread that ends the trace, or has ended it; 0: none */
    uint32_t ended;   /* 1: it has */
    uint32_t overhead_ns,
        reading_ns; /* what an event costs outside of what it measures; what reading the clock costs */
    uint32_t
        cpu_reading_ns; /* CPU time from one reading of the thread's CPU time to the next that these readings are */
    uint64_t start_ns;
    uint32_t generation; /* the fork generation of the process that all this belongs to */
    uint32_t process_id;
    struct rec_thread *threads;
    uint32_t n_objects, n_sites, n_threads, n_stacks;
    uint64_t n_events, n_blocks, n_lost;
    uint64_t n_tallies, n_tally_blocks, n_tallied; /* n_tallied: calls */
    uint64_t n_counted_holds, n_misses;            /* see misses.h; atomic */
    bool profile;                                  /* see profile.h */
    bool counts_misses;
    uint64_t stack_min_ns; /* see stack.h; 0: no stacks */
    /* In which run-time libraries lie: their own calls for mutexes and conditions are not recorded. Length 0: none. */
    uintptr_t apart_from, apart_length;
} rec;

enum rec_progress { REC_UNBORN, REC_STARTING, REC_ON, REC_OFF };

#endif

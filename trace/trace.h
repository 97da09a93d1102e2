/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces of a program's synchronization: what a thread did, in its own order, with the time it worked in between.
 *
 * libsubutai/observe writes them, the simulator and `subutai trace` read them, generators (the paper's workload models)
 * write them too. This is the interface to both sides; the bytes are in docs/trace-format.md and nowhere else known
 * than in this folder. A trace is one file for one process: blocks, each of one thread's events, so that each thread
 * can be read on its own, from its beginning to its end, without the rest in memory.
 *
 * Times are nanoseconds. Objects, threads and call sites are dense numbers from 0 within one trace; thread 0 is the
 * first. An object is a life, not an address: init of an address that was used before begins another one.
 */
#ifndef SBT_TRACE_TRACE_H
#define SBT_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sbt_trace_op {
    SBT_TRACE_THREAD_CREATE, /* other: the new thread */
    SBT_TRACE_THREAD_JOIN,   /* other: the thread joined */
    SBT_TRACE_THREAD_END,    /* the last event of a thread that ended while the trace was whole */
    SBT_TRACE_INIT,          /* of an object; size: of a barrier, its count; of a semaphore, its value */
    SBT_TRACE_DESTROY,
    SBT_TRACE_MUTEX_LOCK, /* timed ones too; result ETIMEDOUT: did not get it */
    SBT_TRACE_MUTEX_TRYLOCK,
    SBT_TRACE_MUTEX_UNLOCK,
    SBT_TRACE_COND_WAIT, /* other: the mutex */
    SBT_TRACE_COND_SIGNAL,
    SBT_TRACE_COND_BROADCAST,
    SBT_TRACE_BARRIER_WAIT,
    SBT_TRACE_RWLOCK_RDLOCK,
    SBT_TRACE_RWLOCK_TRYRDLOCK,
    SBT_TRACE_RWLOCK_WRLOCK,
    SBT_TRACE_RWLOCK_TRYWRLOCK,
    SBT_TRACE_RWLOCK_UNLOCK,
    SBT_TRACE_SEM_WAIT,
    SBT_TRACE_SEM_TRYWAIT,
    SBT_TRACE_SEM_POST,
    SBT_TRACE_SPIN_LOCK,
    SBT_TRACE_SPIN_TRYLOCK,
    SBT_TRACE_SPIN_UNLOCK,
    SBT_TRACE_N_OPS
};

enum sbt_trace_type {
    SBT_TRACE_NO_OBJECT, /* thread events */
    SBT_TRACE_MUTEX,
    SBT_TRACE_COND,
    SBT_TRACE_BARRIER,
    SBT_TRACE_RWLOCK,
    SBT_TRACE_SEM,
    SBT_TRACE_SPIN,
    SBT_TRACE_N_TYPES
};

#define SBT_TRACE_NONE UINT32_MAX /* no object, thread or site */

struct sbt_trace_event {
    uint8_t op;       /* enum sbt_trace_op */
    uint8_t type;     /* enum sbt_trace_type, of `object` */
    uint16_t result;  /* 0 or the errno value that the call returned */
    uint32_t object;  /* SBT_TRACE_NONE: none */
    uint32_t other;   /* a thread or the mutex of a wait, see above; else SBT_TRACE_NONE */
    uint32_t site;    /* call site; SBT_TRACE_NONE: not known */
    uint32_t size;    /* SBT_TRACE_INIT, and the first event of a barrier whose init was not seen; else 0 */
    uint64_t work_ns; /* the thread's own CPU time since its last event ended; host preemption is not in it */
    uint64_t at_ns;   /* wall clock when the call began, since the trace began; 0 in generated traces */
    uint64_t took_ns; /* wall clock until it ended */
    /*
     * Causality, each counted per object from 1; 0: does not apply.
     * A successful lock (mutex, rwlock for writing, spin): its number among the acquisitions of that object; for
     * reading: the number of write acquisitions before it. A signal or broadcast: its number among both of that
     * condition; a wait: the number of the one that ended it, 0 if none did (timeout, spurious, cancelled). A barrier
     * wait: its generation. A post: its number; a successful wait for a semaphore: the number of the post that it
     * consumed, 0 if the initial value allowed it.
     */
    uint64_t order;
    uint64_t relock; /* SBT_TRACE_COND_WAIT: the number of the acquisition of the mutex at its end; 0 unless ours */
};

/* ---- reading ---- */

struct sbt_trace; /* an open file, mapped; any number of cursors, each of one thread at a time */

struct sbt_trace_error {
    uint64_t offset; /* in the file */
    char reason[160];
};

struct sbt_trace_info {
    uint32_t version;
    uint32_t n_threads, n_objects, n_sites; /* upper bounds if the trace is not whole */
    uint64_t n_events;
    uint64_t duration_ns;
    bool whole; /* false: the program was killed, and it ends with the last block that reached the disk */
    bool generated;
    const char *command; /* as recorded; valid while the trace is open */
    const char *engine;  /* that the program ran under, "" if generated */
    uint64_t process_id;
    uint64_t n_lost; /* events that there was no memory for; known of whole traces only */
};

/* NULL and *error if it cannot be opened or is no trace of this version. Memory: small per block, not per event. */
struct sbt_trace *sbt_trace_open(const char *path, struct sbt_trace_error *error);
void sbt_trace_close(struct sbt_trace *trace);
const struct sbt_trace_info *sbt_trace_info(const struct sbt_trace *trace);

/* A place in one thread's events. The caller's memory, no malloc, nothing to close; may be copied to come back to it.
 */
struct sbt_trace_cursor {
    const struct sbt_trace *trace;
    uint32_t thread;
    uint64_t reserved[42]; /* the decoder's */
};

/* Before the thread's first event. A thread number >= n_threads has no events. */
void sbt_trace_cursor_begin(const struct sbt_trace *trace, uint32_t thread, struct sbt_trace_cursor *cursor);

/* 1: *event is the next one; 0: the end; -1: *error says where the file is damaged. Fast: tens of ns. */
int sbt_trace_next(struct sbt_trace_cursor *cursor, struct sbt_trace_event *event, struct sbt_trace_error *error);

/*
 * What an object is called in reports: its address at the time, 0 if not known, and a call site's "module+0xoffset",
 * offset in the file of that path, valid until the next one is asked for; "" if not known. Both read all definitions at
 * their first call, so for one thread of the caller's at a time.
 */
uint64_t sbt_trace_object_address(const struct sbt_trace *trace, uint32_t object);
const char *sbt_trace_site_name(const struct sbt_trace *trace, uint32_t site);
/* The operation's name, as in "mutex_lock", and the type's; NULL beyond the last. */
const char *sbt_trace_op_name(unsigned op);
const char *sbt_trace_type_name(unsigned type);

/* ---- generating: one thread of the caller's writes whole traces; the recorder has a writer of its own ---- */

struct sbt_trace_writer;

/* NULL and errno. */
struct sbt_trace_writer *sbt_trace_create(const char *path, const char *command);
/* Appends to `thread`'s events. object, other, site: any dense numbers of the caller's. 0 or an errno value. */
int sbt_trace_append(struct sbt_trace_writer *writer, uint32_t thread, const struct sbt_trace_event *event);
/* 0 or an errno value, then the file is not whole. Always frees. */
int sbt_trace_finish(struct sbt_trace_writer *writer);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Traces of a program's synchronization: what a thread did, in its own order, with the time it worked in between.
 *
 * The recorder (libsubutai/observe) and generators (the paper's workload models) write traces; the simulator and
 * `subutai trace` read them. This is the interface to both sides. The bytes are in docs/trace-format.md, and only the
 * code of this folder knows them. A trace is one file for one process. It consists of blocks, each with events of one
 * thread, so that a reader can follow each thread from its beginning to its end without the rest in memory.
 *
 * Times are nanoseconds. Objects, threads and call sites are dense numbers from 0 within one trace; thread 0 is the
 * first thread. An object is one life of an address: an init of an address that was used before begins another object.
 */
#ifndef SBT_TRACE_TRACE_H
#define SBT_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sbt_trace_op {
    SBT_TRACE_THREAD_CREATE, /* other: the new thread */
    SBT_TRACE_THREAD_JOIN,   /* other: the thread joined */
    SBT_TRACE_THREAD_END,    /* a thread's last event; size: did it end? See sbt_trace_still_runs */
    SBT_TRACE_INIT,          /* of an object; size: of a barrier, its count; of a semaphore, its value */
    SBT_TRACE_DESTROY,
    /* Timed locks, too; result ETIMEDOUT: the thread did not get the mutex. Then, in a profile, other: the thread that
     * had it, or SBT_TRACE_NONE. So of read-write locks, and of semaphores that threads use as locks. */
    SBT_TRACE_MUTEX_LOCK,
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
    SBT_TRACE_FUTEX_WAIT, /* size: the value that the word was to have; result EAGAIN: it had another */
    SBT_TRACE_FUTEX_WAKE, /* a requeue, too; size: how many threads it woke, and moved */
    /* Of no object: the thread slept in a call that waits for other processes, for devices or for time. took_ns is the
     * time without a core, and the call's own time is work. */
    SBT_TRACE_OUTSIDE_WAIT,
    SBT_TRACE_N_OPS
};

enum sbt_trace_type {
    SBT_TRACE_NO_OBJECT, /* thread events, waits for the outside */
    SBT_TRACE_MUTEX,
    SBT_TRACE_COND,
    SBT_TRACE_BARRIER,
    SBT_TRACE_RWLOCK,
    SBT_TRACE_SEM,
    SBT_TRACE_SPIN,
    SBT_TRACE_FUTEX, /* a word, by its address */
    SBT_TRACE_N_TYPES
};

#define SBT_TRACE_NONE UINT32_MAX /* no object, thread or site */

struct sbt_trace_event {
    uint8_t op;       /* enum sbt_trace_op */
    uint8_t type;     /* enum sbt_trace_type, of `object` */
    uint16_t result;  /* 0 or the errno value that the call returned */
    uint32_t object;  /* SBT_TRACE_NONE: none */
    uint32_t other;   /* a thread, or the mutex of a wait: see above; else SBT_TRACE_NONE */
    uint32_t site;    /* call site; SBT_TRACE_NONE: not known */
    uint32_t size;    /* SBT_TRACE_INIT, SBT_TRACE_THREAD_END, the first event of a barrier if its init was not seen,
                       * futexes; else 0 */
    uint32_t stack;   /* the call stack's number, from 1; 0: it was not taken */
    uint64_t work_ns; /* the thread's own CPU time since its last event ended; host preemption is not in it */
    uint64_t at_ns;   /* wall clock when the call began, since the trace began; 0 in generated traces */
    uint64_t took_ns; /* wall clock until it ended */
    /*
     * What came before what. All these numbers are counted for each object from 1; 0: does not apply.
     *   a successful lock (mutex, rwlock for writing, spin)  its number among the acquisitions of the object
     *   a successful lock of an rwlock for reading           the number of acquisitions for writing before it
     *   a signal or broadcast                                its number among both of the condition
     *   a condition wait                                     the number of the signal or broadcast that ended it; 0:
     *                                                        none did (timeout, spurious, cancelled)
     *   a barrier wait                                       the generation
     *   a post                                               its number
     *   a successful wait for a semaphore                    the number of the post that it consumed; 0: the initial
     *                                                        value allowed it
     *   a wake-up of a futex                                 its number among those of the word
     *   a wait for a futex                                   the number of the wake-up that ended it; EAGAIN: of the
     *                                                        last one before its end; 0: there was none
     * In a profile (info.profile) not every acquisition has a number. There it is, for mutexes, rwlocks and spins:
     *   an unlock                                            its number among the object's unlocks that are events:
     *                                                        those with a thread that waited
     *   a successful lock, for reading too                   the number of the last such unlock before it, the one that
     *                                                        ended the wait; 0: none was seen
     */
    uint64_t order;
    /* A condition wait: the number of the acquisition of its mutex at the end; 0: glibc's mutex. In a profile: of the
     * last unlock of the mutex before that which is an event. If threads wait for the mutex that a condition wait gives
     * up, an unlock of its own is an event before the wait. */
    uint64_t relock;
};

/*
 * SBT_TRACE_THREAD_END with another size than 0: the thread still ran when the trace ended. SBT_TRACE_RUNS: it was in
 * no call that waits, at_ns is the trace's end. SBT_TRACE_WAITS plus an operation: it was in such a call, from at_ns
 * on, for took_ns; object, site and the thread to be joined are the call's, if they are known. Older traces have no
 * object there, or no event of such a thread's end.
 */
enum { SBT_TRACE_RUNS = 1, SBT_TRACE_WAITS = 2 };
static inline bool sbt_trace_still_runs(const struct sbt_trace_event *e) {
    return e->op == SBT_TRACE_THREAD_END && e->size != 0;
}
/* The operation of the call that it was in; SBT_TRACE_N_OPS: none. */
static inline unsigned sbt_trace_waits_in(const struct sbt_trace_event *e) {
    bool waits = sbt_trace_still_runs(e) && e->size >= SBT_TRACE_WAITS && e->size < SBT_TRACE_WAITS + SBT_TRACE_N_OPS;
    return waits ? e->size - SBT_TRACE_WAITS : SBT_TRACE_N_OPS;
}

/* ---- reading ---- */

struct sbt_trace; /* an open file, mapped, for any number of cursors; a cursor is used by one thread at a time */

struct sbt_trace_error {
    uint64_t offset; /* in the file */
    char reason[160];
};

struct sbt_trace_info {
    uint32_t version;
    uint32_t n_threads, n_objects, n_sites; /* upper bounds if the trace is not whole */
    uint64_t n_events;
    uint64_t duration_ns;
    bool whole; /* false: the program was killed; see `completed`. Or its disk was full: the trace ends with the last
                 * block that reached the disk */
    bool generated;
    const char *command; /* as recorded; valid while the trace is open */
    const char *engine;  /* the engine that the program ran under; "": generated */
    uint64_t process_id;
    uint64_t n_lost; /* events for which there was no memory; known of whole traces only */
    /* A profile: only calls that waited, and those that ended a wait, are events. The other calls are in the tallies.
     */
    bool profile;
    uint32_t hold_one_in;  /* a profile: of a busy lock's holds, one in so many is timed; of other locks', all */
    uint64_t stack_min_ns; /* events of waits this long, and of what ended them, have stacks; 0: no event has one */
    uint64_t n_tallies;    /* records, not calls; of orders of locks too */
    /* Of timed holds, each as often as there are holds that it stands for: those in which the processor's cache misses
     * were counted, and these, in user code. False: there was no counter, or the trace is not whole. */
    bool counts_misses;
    uint64_t n_counted_holds, n_misses;
    /* Not whole, but all that the program's threads knew is there, with an end of each thread. A profile lacks what
     * they had counted since they wrote it last. end_is_known: duration_ns is until the program ended; false: until its
     * threads did their last, and waits that had not ended were longer. */
    bool completed, end_is_known;
    /* False: not whole, and the processor time of threads since their last calls is not known: that time is in no
     * work. True and completed: of all threads together it is known, and each has its share by how long that was. */
    bool cpu_is_known;
};

/* NULL and *error: it cannot be opened, or is no trace of this version. Needs memory for each block, and none for
 * events. */
struct sbt_trace *sbt_trace_open(const char *path, struct sbt_trace_error *error);
/*
 * The program that has recorded into the file was killed, and left FILE.live: what its threads had not written is added
 * to the file. Nothing happens if there is no FILE.live, the process lives, or the file cannot be written to.
 * sbt_trace_open does this first. `just_ended`: this process has ended just now, so the caller knows when; 0: none.
 * `cpu_ns`: the processor time that its threads had, without its children's; 0: not known.
 */
void sbt_trace_complete(const char *path, uint32_t just_ended, uint64_t cpu_ns);
/* The process that still writes the trace at that path; 0: none is known to. */
uint32_t sbt_trace_writer(const char *path);
void sbt_trace_close(struct sbt_trace *trace);
const struct sbt_trace_info *sbt_trace_info(const struct sbt_trace *trace);

/* A place in one thread's events, in the caller's memory. It needs no malloc and no close. A copy keeps the place. */
struct sbt_trace_cursor {
    const struct sbt_trace *trace;
    uint32_t thread;
    uint64_t reserved[42]; /* the decoder's state: cursor.c checks the size */
};

/* The cursor stands before the thread's first event. A thread number >= n_threads has no events. */
void sbt_trace_cursor_begin(const struct sbt_trace *trace, uint32_t thread, struct sbt_trace_cursor *cursor);

/* How many events the thread has, from the headers of its blocks. */
uint64_t sbt_trace_thread_events(const struct sbt_trace *trace, uint32_t thread);

/* 1: *event is the next one; 0: the end; -1: *error says where the file is damaged. Fast: tens of ns. */
int sbt_trace_next(struct sbt_trace_cursor *cursor, struct sbt_trace_event *event, struct sbt_trace_error *error);

/*
 * Calls that did not wait, added up: those of one operation by one thread at one call site on one object. All records
 * with the same five keys add up to one sum; the recorder writes what is new since its last record.
 *   locks of all kinds, try-locks too   n calls that did not wait, of which n_failed failed (EBUSY and the like). The
 *                                       holds are those of locks that waited, too, which are events as well.
 *   condition waits, of type mutex      n times the mutex was held again behind the wait, with holds. (The waits
 *                                       themselves are events.)
 *   all other operations                n calls that neither waited nor ended a wait, of which n_failed failed
 *   futex waits, with holds             OpenMP tasks, by a site in their function: n_held times one was run, each alone
 *                                       timed, without what its thread did meanwhile of other tasks and waits for them
 * An unlock that ended no wait is in no tally: there are as many unlocks as acquisitions.
 *
 * A hold lasts from the acquisition to the unlock, or to the wait for a condition. Not all are timed: of a lock that is
 * taken often, one in up to info.hold_one_in, at random. Each timed hold stands for all since the one before. But where
 * the kernel tells that a thread was off its core, each such hold stands for itself alone. So held_ns / n_held is the
 * mean hold, and that times the number of acquisitions the time in critical sections.
 */
enum { SBT_TRACE_N_HOLD_BUCKETS = 32 };
struct sbt_trace_tally {
    uint32_t thread;
    uint32_t object; /* SBT_TRACE_NONE: of all objects for which there was no room; also of every init and destroy */
    uint32_t site;   /* SBT_TRACE_NONE: not known */
    uint8_t op, type;
    uint64_t n, n_failed;
    uint64_t n_timed;     /* holds that were timed. A hold may end after the record that its call is in. */
    uint64_t n_held;      /* for so many holds they stand */
    uint64_t held_ns;     /* the sum of the timed holds, each as often as there are holds that it stands for */
    uint64_t held_max_ns; /* the longest timed one */
    /* n_held by length: bucket b has holds of 2^b ns to less than 2^(b+1); the first also has 0 ns, the last all that
     * are longer. */
    uint64_t held[SBT_TRACE_N_HOLD_BUCKETS];
    uint64_t until_ns; /* since the trace began: the record was written then, and has nothing that came later */
};

/*
 * Also in a profile: a thread took a lock, not by a try-lock, while it held another one. Records with the same three
 * keys (thread, held, taken) add up; the gates of the sum are those that all of them have.
 */
enum { SBT_TRACE_MOST_GATES = 4 };
struct sbt_trace_order {
    uint32_t thread;
    uint32_t held, taken;           /* objects; neither is SBT_TRACE_NONE */
    uint32_t held_site, taken_site; /* of the first time; SBT_TRACE_NONE: not known */
    uint64_t n;                     /* times; at least 1 */
    uint32_t stack;                 /* of the first time that the lock was taken; 0: it was not taken */
    bool held_shared, taken_shared; /* for reading, at all of these times */
    uint32_t n_gates;
    uint32_t gate[SBT_TRACE_MOST_GATES];    /* other locks that were held at all of these times */
    bool gate_shared[SBT_TRACE_MOST_GATES]; /* for reading, at some of them */
};

/* A place in the tallies of all threads, in the caller's memory; as with events there is nothing to close. */
struct sbt_trace_tally_cursor {
    const struct sbt_trace *trace;
    uint64_t reserved[8];
};
void sbt_trace_tally_begin(const struct sbt_trace *trace, struct sbt_trace_tally_cursor *cursor);
/* 1: *tally is the next one; 0: the end; -1: *error says where the file is damaged. */
int sbt_trace_tally_next(struct sbt_trace_tally_cursor *cursor, struct sbt_trace_tally *tally,
                         struct sbt_trace_error *error);
/* The same for orders of locks. A cursor is used for tallies or for orders, and passes the others over. */
int sbt_trace_order_next(struct sbt_trace_tally_cursor *cursor, struct sbt_trace_order *order,
                         struct sbt_trace_error *error);

/*
 * The call stack with this number: call sites, from the innermost outwards; the first is the event's own site, or the
 * caller of a function that the compiler has put into it. The result is how many there are, of which at most `max` are
 * put into `sites`; 0: there is no such stack, or the block that defines it was not written. Reads all definitions at
 * the first call, as the names below.
 */
uint32_t sbt_trace_stack(const struct sbt_trace *trace, uint32_t stack, uint32_t *sites, uint32_t max);

/* Of a profile, which has no events of inits: the site at which the object was made, and the init's size. False: its
 * init was not seen. Reads all definitions at the first call. */
struct sbt_trace_made {
    uint32_t site, size;
};
bool sbt_trace_object_made(const struct sbt_trace *trace, uint32_t object, struct sbt_trace_made *made);

/* A thread's start routine, as a site for sbt_trace_site_name; SBT_TRACE_NONE: not known, as of the first thread. */
uint32_t sbt_trace_thread_routine(const struct sbt_trace *trace, uint32_t thread);
/*
 * For how long the thread could have run in its life and had no core, between calls and in them, as the kernel has
 * counted it. False: not known, as of a thread that lived for less than a millisecond, or was killed.
 */
bool sbt_trace_thread_queued(const struct sbt_trace *trace, uint32_t thread, uint64_t *ns);

/*
 * Names for reports: an object's address at the time, 0: not known; and a call site's "module+0xoffset", with the
 * offset in the file of that path, valid until the next call, "": not known. Both functions read all definitions at
 * their first call, so one thread of the caller's may use them at a time.
 */
uint64_t sbt_trace_object_address(const struct sbt_trace *trace, uint32_t object);
const char *sbt_trace_site_name(const struct sbt_trace *trace, uint32_t site);
/* The files that the program's code was loaded from, as they lay in memory; `offset`: where `start` is in the file.
 * False: there is none with that number, from 0. Reads all definitions at the first call. */
struct sbt_trace_module {
    const char *path; /* valid while the trace is open */
    uint64_t start, length, offset;
};
bool sbt_trace_module(const struct sbt_trace *trace, uint32_t number, struct sbt_trace_module *module);
/* The name of an operation, such as "mutex_lock", and of a type. NULL: there is none with that number. */
const char *sbt_trace_op_name(unsigned op);
const char *sbt_trace_type_name(unsigned type);

/* ---- generating whole traces, by one thread of the caller's; the recorder has a writer of its own ---- */

struct sbt_trace_writer;

/* NULL and errno: the file cannot be written, or there is no memory. */
struct sbt_trace_writer *sbt_trace_create(const char *path, const char *command);
/*
 * The same, as if it were recorded: events keep their at_ns, which must not be before the thread's last event ended.
 * For tests of what reads times of day.
 */
struct sbt_trace_writer *sbt_trace_create_timed(const char *path, const char *command, const char *engine);
/* Appends to `thread`'s events. object, other, site: any dense numbers of the caller's. 0 or an errno value. */
int sbt_trace_append(struct sbt_trace_writer *writer, uint32_t thread, const struct sbt_trace_event *event);
/* Writes the rest, and frees the writer. 0 or an errno value: then the file is not whole. */
int sbt_trace_finish(struct sbt_trace_writer *writer);

#endif

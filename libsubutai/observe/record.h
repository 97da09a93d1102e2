/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder: a layer of its own over abi/, in a library of its own, libsubutai-record.so. There the exported names
 * are the observing functions of this folder, and what the plain library exports is called sbt_pthread_mutex_lock and
 * so on; so the plain library pays nothing, every call is seen once, whoever's its object is, and the engine's own use
 * of objects is not seen at all.
 *
 * record.c the process's trace: its file, its beginning and end · table.c objects and call sites by address ·
 * thread.c records of threads · event.c times, and what an event is · stay.c whether a thread was off its core ·
 * modules.c what addresses lie in ·
 * mutex.c cond.c rwlock.c sem.c barrier.c spin.c c11.c threads.c process.c the observing functions
 *
 * What must hold, since the program may call from anywhere:
 * - No malloc, no lock of libc's and none of our own: memory is mapped, tables are lock-free, errno is left alone.
 * - A handler that interrupts the recorder in its own thread finds `busy` set; its event waits in `pending`.
 * - A forked child begins a trace of its own at its first event, whichever way it was made.
 * - Whatever goes wrong ends the recording, with one line, and not the program.
 */
#ifndef SBT_OBSERVE_RECORD_H
#define SBT_OBSERVE_RECORD_H

#include "abi/abi.h"
#include "encode.h"
#include "observe/clock.h"
#include "observe/stay.h"
#include "trace.h"

enum { REC_N_PENDING = 8, REC_N_CACHED = 64, REC_N_BATCH = 32 };

/* An address: an object, or, with the types below, what else has one. Never freed while the process lives. */
enum { REC_SITE = SBT_TRACE_N_TYPES, REC_PTHREAD };

/* A cache line, since two cores are seldom busy with neighbouring objects for the same reason. */
struct rec_node {
    struct rec_node *next; /* in its bucket; set before it is published */
    uintptr_t address;
    uint8_t type;    /* enum sbt_trace_type, or one of the above; atomic */
    uint8_t guard;   /* of the fields of conditions */
    uint32_t number; /* of the life at that address, or of the site or thread */
    union {
        uint32_t initial; /* semaphores: the value; barriers: the count */
        uint32_t flying;  /* conditions: of the last 32 signals, bit 0 the last: counted, and perhaps not given yet */
    };
    /* The life before, whose waits may still be on their way out: its number, its last signal if that was a broadcast.
     */
    uint32_t before;
    uint64_t before_signals;
    union {
        uint64_t acquired; /* atomic. Locks: for writing; barriers: arrivals; semaphores: waits that succeeded */
        uint64_t open;     /* conditions, of the last 64 signals, bit 0 the last: no wait has it yet */
    };
    uint64_t signals;    /* atomic. Conditions: signals and broadcasts; semaphores: posts */
    uint64_t broadcasts; /* conditions, bits as in `open` */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct rec_node) == 64, "a cache line");

enum rec_state { REC_FREE, REC_LIVE, REC_ENDED, REC_CLOSING };

struct rec_thread {
    /* What every event touches, in one cache line. */
    volatile uint32_t busy, n_pending;
    uint32_t generation; /* of the process that it belongs to */
    volatile uint32_t n_batch;
    /* At the last event's end: wall clock, and CPU time as read or as reckoned since. */
    uint64_t end_ns, cpu_ns;
    uint64_t carried_ns;     /* work before calls that turned out to be no events */
    volatile uint64_t *stay; /* the thread's place for the mark; see stay.h */
    uint64_t long_after; /* a bit for each site: what followed its last call was long, and CPU time had to be read */
    uint8_t last_site;   /* its bit, of the last event */
    uint8_t n_reckoned;  /* calls that blocked since CPU time was read */
    volatile bool flushing;

    struct rec_thread *next; /* all records of the process; set before it is published */
    uint32_t state;          /* enum rec_state; FREE and ENDED are left by compare-and-swap */
    uint32_t number;
    uint32_t tid;                      /* kernel thread id, 0 before it runs */
    volatile uint32_t n_taken, n_lost; /* n_taken: of the batch, by the encoder */
    volatile uint32_t n_apart;         /* n_taken less the block's events, modulo, while no event is being encoded */
    union {
        void *(*posix)(void *);
        thrd_start_t c11;
    } routine;
    void *argument;
    bool attached;  /* at a call of its own: nothing says when it ends */
    uint64_t known; /* atomic: REC_UNKNOWN of its number, and how far process.c is with that */
    struct {
        uintptr_t address;
        struct rec_node *node;
    } objects[REC_N_CACHED];
    struct {
        uintptr_t address;
        uint32_t number;
    } sites[REC_N_CACHED];
    /*
     * Events are encoded some at a time: an event of a thread that has just come back to its core, where little of it
     * is left in the caches, should touch little.
     */
    struct sbt_trace_event batch[REC_N_BATCH];
    struct sbt_trace_event pending[REC_N_PENDING];
    struct trace_encoder encoder;
} __attribute__((aligned(64)));

#define REC_UNKNOWN(number) ((uint64_t)(number) << 2)

_Static_assert(offsetof(struct rec_thread, next) == 64, "a cache line");
_Static_assert(sizeof(struct rec_thread) <= 65536, "what a thread may cost");

/* A call that is being observed: on its own frame. */
struct rec_call {
    struct rec_thread *thread;      /* NULL: not recorded */
    struct rec_node *node, *mutex;  /* NULL: no memory. mutex: of a condition wait */
    bool nested;                    /* interrupted the recorder */
    uint64_t begin_ns, first_order; /* first_order: of a condition wait, signals before it */
    uint32_t flying;                /* of a condition wait: as in its node when it began */
    struct sbt_trace_event event;
};

extern struct rec {
    uint32_t state;   /* enum rec_progress */
    uint32_t closing; /* no event begins or ends any more */
    uint32_t overhead_ns;
    uint64_t start_ns;
    uint32_t generation; /* of the process that all this belongs to */
    uint32_t process_id;
    struct rec_thread *threads;
    uint32_t n_objects, n_sites, n_threads;
    uint64_t n_events, n_blocks, n_lost;
} rec;

enum rec_progress { REC_UNBORN, REC_STARTING, REC_ON, REC_OFF };

/* record.c. False: this process does not record (any more). */
bool rec_start(void);
/* Around whatever writes, and whatever others wait for. */
uint64_t rec_block_signals(void);
void rec_unblock_signals(uint64_t before);
/* A block to the file, which is made at the first one. False: it failed, the recording has ended. */
bool rec_write(const struct trace_block *header, const void *a, size_t n_a, const void *b, size_t n_b, const void *c,
               size_t n_c);
/* The trace gets its last block. `self`: its last event is its thread's end. Once; later calls do nothing. */
void rec_finish(void);
extern _Thread_local struct rec_thread *rec_self __attribute__((tls_model("initial-exec")));

/* table.c */
bool rec_table_start(void);
void rec_table_forget(void); /* in a forked child */
/* The node of the address, made if need be; NULL if there is no memory. */
struct rec_node *rec_node_at(uintptr_t address);
/* A life of that type begins at the node's address, whatever was there. Returns its number. */
uint32_t rec_node_begin(struct rec_node *node, uint8_t type);
/*
 * Is it of that type? If not, it is numbered anew from *numbers and the caller, who is told so by `true`, fills in what
 * it knows of it before it says `claimed`. Others that want it wait for that; signals are blocked between the two.
 */
bool rec_node_claim(struct rec_node *node, uint8_t type, uint32_t *numbers, uint64_t *signals);
void rec_node_claimed(struct rec_node *node, uint8_t type, uint64_t signals);
void rec_wait_a_moment(unsigned tried);
/* Around a condition's fields. Held for some instructions; given up on if its holder was killed there. */
void rec_guard(struct rec_node *node);
void rec_unguard(struct rec_node *node);
/* Zeroed memory from the kernel, or NULL. */
void *rec_map(size_t bytes);

/* thread.c */
struct rec_thread *rec_thread_new(void);    /* with the next number; NULL if there is no memory */
struct rec_thread *rec_thread_attach(void); /* the caller's, made if need be; NULL: not recorded */
void rec_thread_run(struct rec_thread *t);  /* the caller is that thread now */
void rec_thread_ended(void);
void rec_thread_joined(uint32_t number);
void rec_threads_forget(void); /* in a forked child, which has one thread */
void rec_thread_close(struct rec_thread *t);
bool rec_thread_is_gone(const struct rec_thread *t);
/* Its events that are not in the trace, if nothing more is written. */
uint64_t rec_thread_lost(const struct rec_thread *t);
/* An event that is complete. There is room for one when nobody is encoding. */
void rec_put(struct rec_thread *t, const struct sbt_trace_event *event);
/* The batch into the block, which is written when it is full. */
void rec_encode(struct rec_thread *t);
/* Everything into the file. */
void rec_flush(struct rec_thread *t);
/* The same of a thread that was interrupted anywhere, for good: what it was encoding is lost. */
void rec_flush_interrupted(struct rec_thread *t);

/* Events that will not be in the trace; also in handlers. */
static inline void rec_lost(struct rec_thread *t, uint32_t n) {
    __atomic_fetch_add(&t->n_lost, n, __ATOMIC_RELAXED);
}

/* event.c */
uint64_t rec_cpu_ns(void);
/*
 * Before a call and after it. `enter` is false if nothing is to be recorded, then the others need not be called;
 * `leave` makes it an event, with c->event's result, order and so on as set meanwhile; `drop` none.
 */
bool rec_enter(struct rec_call *c, unsigned op, unsigned type, const void *object, const void *site);
bool rec_enter_wait(struct rec_call *c, const void *cond, const void *mutex, const void *site);
/* An event without a call or an object. */
void rec_note(struct rec_thread *t, unsigned op, uint32_t other);
void rec_leave(struct rec_call *c, int result);
void rec_drop(struct rec_call *c);
/* A life begins: the event of an initialisation that has succeeded. */
void rec_init(unsigned type, const void *object, uint32_t size, const void *site);
void rec_calibrate(void);

/* modules.c: name what is mapped where, if `address` is in nothing that is known. */
void rec_module_of(uintptr_t address);
void rec_modules_forget(void);

#define REC_SITE_HERE __builtin_return_address(0)
#define REC_COUNT(counter) (__atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED) + 1)

/* The number of the acquisition by which the caller holds the lock: the lock itself orders those who count. */
static inline uint64_t rec_acquired(struct rec_node *node) {
    if (node == NULL)
        return 0;
    uint64_t n = __atomic_load_n(&node->acquired, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&node->acquired, n, __ATOMIC_RELAXED);
    return n;
}

#endif

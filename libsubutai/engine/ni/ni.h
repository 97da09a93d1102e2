/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The emulated hardware as an engine: what its files know of each other.
 *
 *   machine.c  the tiles, their memory, model time; start
 *   thread.c   which thread sits on which tile; the records answers are delivered to
 *   mailbox.c  a thread hands a request to its core's mailbox, and waits for the answer
 *   serve.c    whoever serves a network interface: requests in, over the mesh or to the state machine
 *   step.c     one step of it: packets out, answers, requests that are held
 *   service.c  the NI service threads
 *   ids.c      primitives are allocated on first use, evicted when the hardware is full, allocated anew
 *   mutex.c cond.c barrier.c   the POSIX objects, in requests
 *   fork.c     a child has network interfaces of its own, copies of its parent's
 *   stats.c    what is counted, and the report at exit
 *   requests.c what reaches the NIs and leaves them, for --requests
 *   wfqueue.h  liburcu's queue, as ThreadSanitizer has to see it
 *
 * A call becomes a request of three flits in its core's mailbox. Whoever serves that core's NI takes it from there: a
 * service thread, or, with inline service and wherever there is no service thread (before the first thread is created,
 * in a forked child), the calling thread itself. A request for a primitive of the same tile is stepped at once; one for
 * another tile crosses the mesh into the queue of the NI there. One thread at a time serves an NI: whoever gets its
 * lock serves everybody's requests, and looks again after it has let go, so a request is never left lying because its
 * lock was taken.
 *
 * Lock order: a tile's guard, a tile's lock, the mesh's. Nobody waits for an answer with one of them held.
 */
#ifndef SBT_ENGINE_NI_H
#define SBT_ENGINE_NI_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/arch.h"
#include "core/clock.h"
#include "core/handlers.h"
#include "core/object.h"
#include "engine/engine.h"
#include "engine/ni/requests.h"
#include "engine/ni/wfqueue.h"
#include "fsm.h"
#include "mesh.h"
#include "wait/adapt.h"

/* ---- requests ---- */

enum ni_slot { NI_SLOT_FREE, NI_SLOT_FULL, NI_SLOT_MOVING };

/*
 * A request, from its mailbox slot to the step that serves it. `state` is atomic: the core's thread makes a free slot
 * full (release), the server makes it free again (release) when the request has been stepped or set aside. All else
 * belongs to whoever the state says.
 */
struct ni_request {
    struct hw_packet packet;
    uint32_t state;
    uint64_t issued_cycles;
    uint64_t at_cycles; /* its header is at its home NI */
    const void *object; /* not on the wire: where the ID was read, see ni_tile.objects; NULL: from nowhere */
    struct cds_wfcq_node node;
    struct ni_request *next; /* in the list of held requests, or of those whose time has not come */
} __attribute__((aligned(64)));

#define NI_RING 16 /* requests a mailbox holds: the paper's NI buffers have as many places */

/* ---- waiting awake ---- */

/*
 * Is it worth looking again and again for a microsecond or two? With cores to spare always. Without, the other side may
 * not even be running, or it may: the count of runnable threads errs towards too many. What it brought so far decides.
 * All-zero is the beginning; one thread's own.
 */
struct ni_eager {
    int8_t credit;
    uint8_t n_skipped;
};

bool ni_eager_pays(struct ni_eager *e);
void ni_eager_done(struct ni_eager *e, bool paid);

/* ---- threads ---- */

/*
 * An answer as it arrived. Two per thread, because a WITHDRAW is answered beside the request it withdraws, in either
 * order.
 */
struct ni_answer {
    struct hw_packet packet;
    uint64_t at_cycles; /* the core sees it */
};

enum { NI_ANSWER_MAIN, NI_ANSWER_WITHDRAW, NI_N_ANSWERS };

#define NI_ANSWERED(which) (1u << (which))
#define NI_PARKED 4u
#define NI_ASLEEP 1u /* of an epoch */

enum ni_use { NI_UNUSED, NI_USED, NI_NESTED, NI_LOST };

/* One for each thread id there can be; never unmapped, so a late wake-up finds one. */
struct ni_thread {
    uint32_t state;      /* atomic, futex: NI_ANSWERED bits, NI_PARKED */
    uint32_t *wake_word; /* by what it is woken, NULL: `state` (sbt_park_own); atomic */
    uint16_t id, tile;
    uint32_t tid; /* kernel thread id, to find out whether it is still there */
    uint32_t use; /* enum ni_use; atomic */
    struct ni_answer answer[NI_N_ANSWERS];
    volatile uint32_t busy;                /* inside an operation: one that comes now is a signal handler's */
    volatile uint32_t inside;              /* holding a guard or an NI: a handler must not come near them */
    volatile uint8_t posted[NI_N_ANSWERS]; /* enum hw_op: asked, and no answer taken yet; 0: nothing */
    volatile uint32_t put_off;             /* a handler has left something to do */
    struct ni_thread *outer;               /* of a handler's record: the interrupted one */
    struct ni_request *last;               /* the slot of its last request, NULL: none yet */
    struct ni_eager eager;
    struct sbt_adapt barriers, conditions; /* how long they last; not in the objects, which a waiter may not touch */
    /* The request whose answer is awaited, for the statistics: written by the server of its home. */
    uint64_t asked_cycles;
    uint64_t network_cycles, fsm_cycles;
    uint8_t asked; /* enum hw_op */
    bool asked_locally;
    bool woken;             /* its last condition wait found no queue element; its own */
    struct ni_request held; /* set aside for want of a queue element */
} __attribute__((aligned(64)));

#define NI_MAX_THREADS 65535 /* 16 bits in a packet; the last is nobody's */
#define NI_NOBODY 65535

/*
 * The calling thread's record for one operation, from ni_enter to ni_leave. `may_wait`: the operation cannot be put
 * off. Never NULL if it may not be put off; else NULL means that the caller is a signal handler that has interrupted
 * its thread inside the engine: ni_put_off does the request as soon as the thread is out.
 */
struct ni_thread *ni_enter(bool may_wait);
void ni_leave(struct ni_thread *t);
void ni_abandon(struct ni_thread *t); /* as ni_leave, but an answer is outstanding: nobody gets the record again */
void ni_put_off(enum hw_op op, uint32_t id);
void ni_run_put_off(struct ni_thread *t);

/* Around what holds a guard or an NI: the program's handlers come later, and those that come must keep out. */
static inline void ni_go_inside(struct ni_thread *t) {
    sbt_handlers_hold();
    t->inside = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void ni_leave_inside(struct ni_thread *t) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->inside = 0;
    if (SBT_UNLIKELY(t->put_off != 0))
        ni_run_put_off(t);
    sbt_handlers_release();
}

void ni_thread_start(void);
void ni_thread_enter(void);
void ni_thread_exit(void);
void ni_thread_fork_child(void);

/* ---- tiles ---- */

struct ni_mailbox {
    uint32_t guard __attribute__((aligned(64))); /* a core runs one thread at a time: whose turn it is */
    uint32_t tail;                               /* under the guard */
    uint64_t n_pushed;                           /* under the guard; atomic, read by the report */
    uint32_t head __attribute__((aligned(64)));  /* under the tile's lock; atomic, others look */
    struct ni_request ring[NI_RING];
};

struct ni_latency; /* stats.c */

struct ni_tile {
    struct ni_mailbox mailbox;
    struct cds_wfcq_tail queue_tail __attribute__((aligned(64))); /* requests that have come over the network */
    struct __cds_wfcq_head queue_head __attribute__((aligned(64)));
    uint32_t lock;        /* whoever has it serves this NI; everything from here on is under it */
    uint32_t n_used;      /* control elements; atomic, read without the lock as a hint */
    uint64_t free_cycles; /* the state machine is busy until then */
    uint64_t n_direct;    /* requests that were never in a mailbox: their thread served them at once */
    uint64_t n_stepped, n_withdrawn_held;
    struct ni_request *held, *held_last; /* in the order they came */
    struct ni_request *pending;          /* delayed service: by arrival time */
    uint64_t next_cycles;                /* of the first of them, UINT64_MAX: none; atomic, read without the lock */
    uint32_t hand;                       /* where the search for something to evict goes on */
    uint64_t n_evicted;                  /* to make room; atomic */
    struct hw_ni ni;
    uint32_t
        *epochs; /* for each control element: steps when a barrier opens, NI_ASLEEP: somebody sleeps on it; atomic */
    struct hw_output *outputs;
    /*
     * For each control element the address of the word that holds its ID. An object that was not used while its element
     * was dealt out as often as the ID can count may hold what is another's ID by now; its address tells.
     */
    const void **objects;
    struct ni_latency *latency;         /* NULL: no statistics */
    struct ni_requests_block *requests; /* NULL: not to be written */
};

struct ni_machine {
    struct hw_config config;
    struct hw_layout layout;
    uint32_t n_tiles;
    struct ni_tile *tiles;
    struct ni_thread *threads; /* NI_MAX_THREADS of them */
    struct hw_mesh mesh;       /* under mesh_lock */
    uint32_t mesh_lock;
    uint32_t time_scale;
    uint64_t start_ns;  /* time_scale > 0: model time 0 */
    uint64_t tick_mult; /* time_scale 0: cycles for 2^32 ticks of the CPU's counter */
    bool evict;         /* when the control elements are full */
    bool stats;
    bool timed;          /* somebody sees model time: a time scale or statistics. Otherwise it stands still */
    uint32_t next_ni;    /* the incremental counter; atomic */
    uint32_t generation; /* of processes */
    uint32_t n_threads;  /* the program's, by thread_enter and thread_exit; atomic */
    /* Counted: objects that went to software for ever, waits served in software, objects evicted or moved; atomic. */
    uint64_t n_software, n_software_waits, n_stale;
};

extern struct ni_machine ni_machine;

int ni_machine_start(const struct sbt_options *options);
void *ni_get_memory(size_t bytes); /* zeroed, for good; NULL */

/* Tile of the n-th thread. */
uint32_t ni_map(uint32_t n);

static inline uint64_t ni_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#endif
}

/* Model time. */
uint64_t ni_scaled_cycles(void);

static inline uint64_t ni_now_cycles(void) {
    if (!ni_machine.timed)
        return 0;
    if (SBT_UNLIKELY(ni_machine.time_scale != 0))
        return ni_scaled_cycles();
    return (uint64_t)(((unsigned __int128)ni_ticks() * ni_machine.tick_mult) >> 32);
}

/* Wait until it is that late; only with a time scale. Blocks, no cancellation point. */
void ni_wait_until(uint64_t cycles);

static inline struct ni_tile *ni_home(uint32_t id) {
    return &ni_machine.tiles[hw_id_ni(&ni_machine.layout, id)];
}

/* Between a store and a load of something else; an atomic exchange stands beside it, which is enough on x86-64. */
#if defined(__x86_64__)
#define NI_BARRIER() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#else
#define NI_BARRIER() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

/* A lock that is held for well under a microsecond. */
static inline bool ni_try(uint32_t *lock) {
    return __atomic_load_n(lock, __ATOMIC_RELAXED) == 0 && __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) == 0;
}
void ni_take(uint32_t *lock);
static inline void ni_release(uint32_t *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* ---- handing in and waiting ---- */

/* Hand in a request that has no answer, or the answer to which ni_await takes. `object`: ni_request. */
void ni_post(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object);
void ni_post_alloc(struct ni_thread *t, enum hw_op op, uint32_t ni, uint32_t flit1, const void *object);

/*
 * Wait for an answer. `memory` is what is known of such waits; NULL: it comes soon. ETIMEDOUT or, if cancelable, a
 * cancellation leave it outstanding. On 0 the answer is in *message. ni_await_barrier sleeps where all who wait at a
 * barrier do.
 */
void ni_await_barrier(struct ni_thread *t, uint32_t id, struct hw_message *message);
int ni_await(struct ni_thread *t, int which, const struct sbt_deadline *deadline, struct sbt_adapt *memory,
             bool cancelable, struct hw_message *message);

/* A request that is answered soon, and its answer. */
struct hw_message ni_ask(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object);

/*
 * Take back the request that waits with `id`. True: the thread waits no more. False: *message is the answer, which had
 * been on its way.
 */
bool ni_withdraw(struct ni_thread *t, uint32_t id, struct hw_message *message);

static inline bool ni_has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

static inline bool ni_refused(const struct hw_message *m, enum hw_reason reason) {
    return m->op == HW_OP_NACK && hw_nack_reason(m->argument) == reason;
}

/* Has anything been handed in at a tile that has not been served? And wait until what there is now has been. */
bool ni_outstanding(uint32_t tile);
void ni_fence(struct ni_thread *t, uint32_t tile);

/* ---- serving ---- */

/* Serve this NI and all that its requests reach, unless somebody else does, who then will have seen what is there now.
 */
void ni_serve(struct ni_tile *tile);

/*
 * Inline service: serve this request of the caller's, after all that has come before it. False, and nothing done, if
 * somebody else serves its home just now. Only while the caller's core has nothing in its mailbox that is the caller's.
 */
bool ni_serve_own(struct ni_thread *t, const struct hw_packet *packet, const void *object);

/*
 * From a thread that is no program's (a carrier, switch/) and has nothing else to do: serve what has been handed in
 * anywhere. True: there was something.
 */
bool ni_serve_idly(void);

/* Has something come that no server has seen; or that, or is something waiting for its time? */
bool ni_has_arrivals(struct ni_tile *tile);
bool ni_has_work(struct ni_tile *tile);

/* Are there service threads? Otherwise a thread serves itself. */
bool ni_service_runs(void);
void ni_service_start(const struct sbt_options *options);
void ni_service_begin(void); /* the process has a second thread */
void ni_service_end(void);   /* its last one is ending */
void ni_service_wake(const struct ni_tile *tile);
void ni_service_occupy(uint32_t tile); /* a thread sits there now */
/* The server of `from` has sent `to` something. False: let the same thread serve that too. */
bool ni_service_hand_over(const struct ni_tile *from, const struct ni_tile *to);
void ni_service_fork_child(void);

/* ---- IDs ---- */

#define NI_SOFTWARE 1u /* in place of an ID: this object is the software engine's for the rest of its life */

static inline bool ni_is_id(uint32_t word) {
    return (word & HW_ID_IN_USE) != 0;
}

/* The words in the objects. */
uint32_t *ni_mutex_word(pthread_mutex_t *m);
uint32_t *ni_cond_word(pthread_cond_t *c);
uint32_t *ni_barrier_word(pthread_barrier_t *b);

/*
 * Give the object whose word was `seen` a new primitive. Returns the word now, another thread's if that was quicker: an
 * ID or NI_SOFTWARE.
 */
uint32_t ni_obtain(struct ni_thread *t, uint32_t *word, uint32_t seen, enum hw_op op, uint32_t flit1);

/* An ID of a condition that lives with this mutex; 0: none to be had, serve this wait in software. */
uint32_t ni_obtain_condition(struct ni_thread *t, uint32_t *word, uint32_t mutex);

/* ---- statistics ---- */

enum ni_class {
    NI_LOCK_EMPTY,
    NI_LOCK_QUEUED,
    NI_TRYLOCK,
    NI_UNLOCK,
    NI_BARRIER,
    NI_COND_WAIT,
    NI_SIGNAL,
    NI_BROADCAST,
    NI_ALLOCATE,
    NI_DEALLOCATE,
    NI_WITHDRAW,
    NI_EVICT,
    NI_REFUSED,
    NI_N_CLASSES
};

struct ni_sample {
    uint64_t handover, network, fsm, resume, waited; /* cycles; waited: for other threads, not for the hardware */
    bool local;
};

void ni_stats_start(const struct sbt_options *options);
size_t ni_stats_bytes(void); /* of struct ni_latency, for one tile */
void ni_stats_add(struct ni_tile *tile, enum ni_class class, const struct ni_sample *sample);
bool ni_stats_wanted(void);
void ni_stats_report(void);
void ni_stats_fork_child(void); /* a child counts its own */

/* ---- requests ---- */
int ni_requests_start(const struct sbt_options *options);
/* Under the tile's lock; only if tile->requests is not NULL. */
void ni_requests_note(struct ni_tile *tile, enum ni_requests_kind kind, const struct hw_packet *packet);
void ni_requests_end(bool locked); /* locked: nobody serves meanwhile; else what is in the blocks is lost */
void ni_requests_fork_child(void);

/* ---- fork ---- */
void ni_fork_prepare(void);
void ni_fork_child(void);
void ni_child_begins(void); /* what ni_fork_child does; also after _Fork, at the first operation */

/* ---- objects ---- */
int ni_mutex_destroy(pthread_mutex_t *m);
int ni_mutex_lock(pthread_mutex_t *m);
int ni_mutex_trylock(pthread_mutex_t *m);
int ni_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline);
int ni_mutex_unlock(pthread_mutex_t *m);
/* It has just been granted to the caller: always 0. */
int ni_mutex_own(const struct ni_thread *t, pthread_mutex_t *m);
/* ni_mutex_timedlock within an operation. */
int ni_mutex_take(struct ni_thread *t, pthread_mutex_t *m, const struct sbt_deadline *deadline);

int ni_cond_destroy(pthread_cond_t *c);
int ni_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                 const struct sbt_deadline *deadline);
int ni_cond_signal(pthread_cond_t *c);
int ni_cond_broadcast(pthread_cond_t *c);

int ni_barrier_init(pthread_barrier_t *b, unsigned count);
int ni_barrier_destroy(pthread_barrier_t *b);
int ni_barrier_wait(pthread_barrier_t *b);

#endif

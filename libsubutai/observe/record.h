/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The recorder: a layer above abi/, in its own library, libsubutai-record.so. In that library the exported names are
 * the observing functions of this folder. What the plain library exports is called sbt_pthread_mutex_lock and so on
 * there. Three things follow: the plain library pays nothing; every call is seen once, whether its object is an
 * engine's or glibc's; and the engine's own use of objects is not seen at all.
 *
 * The files:
 *  - record.c: the process's trace: its beginning and end; file.c: its file
 *  - table.c: objects and call sites by address
 *  - thread.c: records of threads
 *  - running.c: the end of threads that run when the trace ends
 *  - event.c: times, and what an event is; overhead.c: what an event costs; arrival.c: ends of OpenMP regions
 *  - clock.c: the wall clock of events; work.h: the work between two of them
 *  - preempt.c: whether a thread was off its core
 *  - modules.c: the loaded files that addresses lie in
 *  - state.h: what they keep; stack.h: call stacks
 *  - profile.h: profiles, in which calls that did not wait are counted: profile.c and profile_*.c
 *  - outside.c: waits for the outside
 *  - mutex.c cond.c locks.c sem.c futex.c process.c openmp*.c: the observing functions. locks.c has read-write locks,
 * spinlocks and barriers; errors.c: dlerror, which the recorder's questions must not change; process.c has threads,
 * once and the end of the process. C11's functions are next to their POSIX ones. signals.c: which signal ended a wait.
 *
 * record.c, table.c, thread.c, event.c, overhead.c and modules.c are a group of files that use each other: an event
 * needs its thread's record, a record the trace's file, the file's end all records, and a new call site the modules.
 * The observing functions use the group; the group does not know them.
 *
 * The program may call from anywhere, so this must hold:
 *  - No malloc, no lock of libc's and none of our own: memory is mapped, tables are lock-free, errno is left alone.
 *  - A handler that interrupts the recorder in its own thread finds `busy` set; its event waits in `pending`.
 *  - A forked child, however it was made, begins its own trace at its first event.
 *  - A failure ends the recording, with one line, and never the program.
 */
#ifndef SBT_OBSERVE_RECORD_H
#define SBT_OBSERVE_RECORD_H

#include "observe/state.h"

/* record.c. False: this process does not record, or no longer does. */
bool rec_start(void);
/* Write a block to the file; the first block makes the file. False: that failed, and the recording has ended. */
bool rec_write(const struct trace_block *header, const void *a, size_t n_a, const void *b, size_t n_b, const void *c,
               size_t n_c);
/* Write the last block of the trace. The last event of `self` is its thread's end. Once; later calls do nothing. */
void rec_finish(void);
extern _Thread_local struct rec_thread *rec_self __attribute__((tls_model("initial-exec")));

/*
 * What a node says of the life at its address. Relaxed: that life may be over, and its memory another object's already,
 * while the last calls for it still return. What is read then is of the one or of the other life.
 */
static inline uint32_t rec_life_of(const struct rec_node *node) {
    return __atomic_load_n(&node->number, __ATOMIC_RELAXED);
}

static inline uint32_t rec_initial_of(const struct rec_node *node) {
    return __atomic_load_n(&node->initial, __ATOMIC_RELAXED);
}

/* table.c */
bool rec_table_start(void);
void rec_table_forget(void); /* in a forked child */
/* The node of the address, made if need be; NULL: there is no memory. */
struct rec_node *rec_node_at(uintptr_t address);
/* NULL: the address has no node. */
struct rec_node *rec_node_find(uintptr_t address);
/* How many nodes there are, and could be without more memory. */
uint64_t rec_node_count(void);
/* A life of that type begins at the node's address, whatever was there. The result is its number. */
uint32_t rec_node_begin(struct rec_node *node, uint8_t type);
/*
 * Is the node of that type? If not, the node gets a new number from *numbers, and the result is true: the caller fills
 * in what it knows of the object, and then calls rec_node_claimed. Other threads that use the node wait for that;
 * signals are blocked between the two calls.
 */
bool rec_node_claim(struct rec_node *node, uint8_t type, uint32_t *numbers, uint64_t *signals);
void rec_node_claimed(struct rec_node *node, uint8_t type, uint64_t signals);
/*
 * The same in a profile for a lock of which the init was seen (REC_MADE), by one exchange and without system calls: the
 * fields of its life are those of no other use. It gets `number`; `undefined` as in the node. False: nothing was
 * changed, the caller uses rec_node_claim.
 */
bool rec_node_claim_made(struct rec_node *node, uint8_t type, uint32_t number, bool undefined);
void rec_wait_a_moment(unsigned tried);
/*
 * Around a condition's fields, for a few instructions. This is not the internal lock of os/: a thread may be killed, or
 * interrupted for good, between the two calls, and a recorder must not hang a program. So a thread that has looked 5000
 * times goes on without the lock.
 */
void rec_node_lock(struct rec_node *node);
void rec_node_unlock(struct rec_node *node);
/* Zeroed memory from the kernel; NULL: there is none. */
void *rec_map(size_t bytes);

/* thread.c */
struct rec_thread *rec_thread_new(void);    /* a record with the next number; NULL: there is no memory */
struct rec_thread *rec_thread_attach(void); /* the caller's record, made if need be; NULL: the caller is not recorded */
/*
 * The caller's record; NULL: it has none, or it is a child of vfork, which has its parent's memory and is not recorded.
 * While there may be such a child its parent's thread has no record (rec_self), and this gives it back.
 */
struct rec_thread *rec_thread_self(void);
bool rec_thread_is_vforked(void);          /* the caller may be such a child */
void rec_thread_run(struct rec_thread *t); /* from now on the caller is that thread */
void rec_thread_ended(void);
void rec_thread_joined(uint32_t number);
void rec_threads_forget(void); /* in a forked child, which has one thread */
void rec_thread_close(struct rec_thread *t);
bool rec_thread_is_gone(const struct rec_thread *t);
/* The thread is about to end, or the trace: for how long has it had no core? And: say so in its block. */
void rec_thread_read_queued(struct rec_thread *t, uint64_t now_ns);
void rec_thread_put_queued(struct rec_thread *t);
/* How many of the thread's events would be missing in the trace if no more were written. */
uint64_t rec_thread_lost(const struct rec_thread *t);
/* running.c, when the trace ends: the thread, which has begun and has no event under way, still runs. Put its end. */
void rec_put_running(struct rec_thread *t, uint64_t now_ns);
/* Put a complete event into the batch. There is room for it unless the batch is being encoded. */
void rec_put(struct rec_thread *t, const struct sbt_trace_event *event);
/* Encode the batch into the block, which is written when it is full. */
void rec_encode(struct rec_thread *t);
static inline void rec_encode_full(struct rec_thread *t) {
    if (SBT_UNLIKELY(t->n_batch >= REC_N_BATCH))
        rec_encode(t);
}
/* Write everything to the file. */
void rec_flush(struct rec_thread *t);
/* The same for a thread that was interrupted anywhere, for good: what it was encoding is lost. */
void rec_flush_interrupted(struct rec_thread *t);

/*
 * Count events that will be missing in the trace; also in handlers. Relaxed: read when the trace ends, ordered by
 * rec_finish.
 */
static inline void rec_lost(struct rec_thread *t, uint32_t n) {
    __atomic_fetch_add(&t->n_lost, n, __ATOMIC_RELAXED);
}

/* The caches of a thread, by address. */
#define REC_CACHE_PLACE(address) ((uint64_t)(address)*UINT64_C(0x9E3779B97F4A7C15) >> 56)
_Static_assert(REC_N_CACHED == 256, "eight bits");

/*
 * A place in a cache is changed in this order, because a handler may come in between. A handler changes no place: it
 * may have interrupted a change.
 */
#define REC_CACHE(place, key, field, value)                                                                            \
    do {                                                                                                               \
        (place)->address = 0;                                                                                          \
        __atomic_signal_fence(__ATOMIC_RELEASE);                                                                       \
        (place)->field = (value);                                                                                      \
        __atomic_signal_fence(__ATOMIC_RELEASE);                                                                       \
        (place)->address = (key);                                                                                      \
    } while (0)

/* event.c */
uint64_t rec_cpu_ns(void);
/*
 * Before a call and after it. rec_enter is false if the call is not recorded: then c->thread, c->node and c->mutex are
 * NULL, and the other two do nothing. rec_leave makes the call an event, with the result, order and so on that c->event
 * has by then; rec_drop makes none.
 */
bool rec_enter(struct rec_call *c, unsigned op, unsigned type, const void *object, const void *site);
/* As rec_enter; what is at the object's address is not of the type. */
bool rec_enter_unread(struct rec_call *c, unsigned op, unsigned type, const void *object, const void *site);
bool rec_enter_wait(struct rec_call *c, const void *cond, const void *mutex, const void *site);
/* An event without a call and without an object. */
void rec_note(struct rec_thread *t, unsigned op, uint32_t other);
void rec_leave(struct rec_call *c, int result);
void rec_drop(struct rec_call *c);
/* handler.c, for the interrupted code: put what handlers have left in `pending`. The thread is busy. */
void rec_drain(struct rec_thread *t);
/* For a handler: the call was made while the recorder was at work. */
void rec_leave_nested(struct rec_call *c);
/*
 * The call is made while another one, which may wait, is under way: by a handler, which goes back to it. Or a handler
 * has left that one by siglongjmp, and it is over: the work before it is this call's.
 */
void rec_interrupts(struct rec_call *c);
/* What rec_leave does when the event is in the batch. The thread is busy, and is not so afterwards. */
void rec_left(struct rec_call *c, uint64_t took, uint64_t now);
/* Read CPU time. The result is now; the time that this takes counts neither for a call nor for work. */
uint64_t rec_read_cpu(struct rec_thread *t);
/* The time since the end of the last event was the recorder's own. The thread is busy. */
void rec_no_work(struct rec_thread *t);
/* A life begins: the event of a successful initialisation. */
void rec_init(unsigned type, const void *object, uint32_t size, const void *site);

/*
 * outside.c: the thread has been off its core since t->end_ns, in a call that may wait for the outside; it is busy. If
 * it slept that is an event. Its work until now is in t->carried_ns, and its next work begins at t->end_ns.
 */
void rec_outside_waited(struct rec_thread *t, const void *site, uint64_t now_ns);
/*
 * The caller, which has its frame there, begins an event, and the thread has been off its core. Was that in such a
 * call, which a handler has interrupted? Then this does the same for its site.
 */
bool rec_outside_is_cut(struct rec_thread *t, uint64_t now_ns);

/* arrival.c: the call has arrived at the end of an OpenMP region. The last thread came to that generation at that time.
 */
void rec_arrived(struct rec_call *c);
void rec_all_arrived(uint32_t object, uint64_t generation, uint64_t ns);
/*
 * As rec_leave: the call was over when the last thread came, and the rest of the time is the event `then`. If it is not
 * known when that was, `then` has all of the time. Its at_ns says when its signal was over: a run-time library may give
 * a thread that another team has just left to a region that was begun before, and then no signal ended that wait.
 */
void rec_leave_then(struct rec_call *c, const struct sbt_trace_event *then);
/*
 * The thread has waited in the call until now, and does the program's work again before the call is over: the event
 * `as`, of the object at that address, unless that was short. rec_resume: it waits in the call again, which begins now.
 */
void rec_interrupt(struct rec_call *c, struct sbt_trace_event *as, const void *object);
void rec_resume(struct rec_call *c);
/* Put the arrival, if there is one, and the last thread has come. For a thread that does not run. */
void rec_put_arrival(struct rec_thread *t);
/* The same, by the thread itself when it ends. */
void rec_end_arrival(struct rec_thread *t);

/* number.c */
/* The numbers of an object and of a call site, by a thread that is busy; SBT_TRACE_NONE: there is no memory. */
uint32_t rec_number_of(struct rec_thread *t, uint8_t type, uintptr_t object);
uint32_t rec_site_of(struct rec_thread *t, uintptr_t site);
/* By a busy thread: the definition of the object that had the number, if a handler could not write it. The object's
 * memory is not read. */
void rec_define_late(struct rec_thread *t, uintptr_t object, uint32_t number);
/* The thread that the caller has created has this routine. */
void rec_routine(uint32_t thread, const void *routine);

/* overhead.c: what an event costs outside of what it measures itself; at start-up, before there are events. */
void rec_calibrate(void);

/* Where the stack ends now. */
static inline uintptr_t rec_here(void) {
    uintptr_t at;
#if defined(__x86_64__)
    __asm__ volatile("mov %%rsp, %0" : "=r"(at));
#elif defined(__aarch64__)
    __asm__ volatile("mov %0, sp" : "=r"(at));
#else
    at = (uintptr_t)__builtin_frame_address(0);
#endif
    return at;
}

/* That modulo 4 GiB; never 0. */
static inline uint32_t rec_place(uintptr_t here) {
    return (uint32_t)here | 1;
}

/*
 * A handler's frames are below what it has interrupted on the same stack, at least by the context that the kernel saves
 * there.
 */
#define REC_SIGNAL_FRAME ((uintptr_t)sizeof(ucontext_t))

/*
 * Around what touches the thread's record outside of an event. False: the trace is being ended, and nothing of the
 * thread's may be touched. Relaxed: the membarrier of rec_finish orders it.
 */
static inline bool rec_busy_begin(struct rec_thread *t) {
    __atomic_store_n(&t->busy, rec_place(rec_here()), __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_LIKELY(__atomic_load_n(&rec.closing, __ATOMIC_RELAXED) == 0))
        return true;
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
    return false;
}
void rec_busy_end(struct rec_thread *t);
/*
 * thread.c: the thread is busy, although the caller is about to begin something. True: a handler that had interrupted
 * the recorder has left it by siglongjmp, and the thread is busy no more.
 */
bool rec_busy_left(struct rec_thread *t, uintptr_t here);
/* thread.c: a call at that place of the stack is over, since the caller's, `here`, is not below it. False if that
 * cannot be told. */
bool rec_is_left(const struct rec_thread *t, uintptr_t at, uintptr_t here);

static inline bool rec_is_busy(struct rec_thread *t) {
    return SBT_UNLIKELY(t->busy != 0) && !rec_busy_left(t, rec_here());
}

#define REC_SHORT_NS 50000 /* shorter than a time slice; used if the kernel does not show preemptions */

static inline uint64_t rec_above_zero(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* Has the thread been on its core since the mark was set, `ns` ago? */
static inline bool rec_stayed(const struct rec_thread *t, uint64_t ns) {
    return SBT_LIKELY(rec_unpreempted(t->mark)) || (t->mark == &rec_preempt_nowhere && ns <= REC_SHORT_NS);
}

/* modules.c: if `address` is in no known module, name what is mapped where. */
void rec_module_of(uintptr_t address);
void rec_modules_forget(void);

/* Is it in a run-time library that has regions, one of those that have been found? */
bool rec_openmp_is_library(const void *site);

/* Is it the place of a run-time library's own call? The length is read behind: see keep_apart. */
static inline bool rec_is_apart(uintptr_t site) {
    uintptr_t from = __atomic_load_n(&rec.apart_from, __ATOMIC_ACQUIRE);
    return SBT_UNLIKELY(site - from < __atomic_load_n(&rec.apart_length, __ATOMIC_RELAXED)) &&
           rec_openmp_is_library((const void *)site);
}

static inline bool rec_is_lock(uint8_t type) {
    return type == SBT_TRACE_MUTEX || type == SBT_TRACE_RWLOCK || type == SBT_TRACE_SPIN;
}

#define REC_SITE_HERE __builtin_return_address(0)
/* Relaxed: it only gives a number. The object itself orders what is numbered. */
#define REC_COUNT(counter) (__atomic_fetch_add(&(counter), 1, __ATOMIC_RELAXED) + 1)

/* The number of the acquisition by which the caller holds the lock. Relaxed: the lock orders the threads that count. */
static inline uint64_t rec_acquired(struct rec_node *node) {
    if (node == NULL)
        return 0;
    uint64_t n = __atomic_load_n(&node->acquired, __ATOMIC_RELAXED) + 1;
    __atomic_store_n(&node->acquired, n, __ATOMIC_RELAXED);
    return n;
}

#endif

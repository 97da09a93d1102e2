/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records of threads. A record belongs to a thread from the thread's creation until the thread is gone. That is later
 * than the end of its root function: destructors of its thread-specific data may still lock. So the record is closed by
 * one of these:
 *  - the thread that joins it;
 *  - a thread that needs a record, and finds that the kernel no longer knows the ended thread;
 *  - the end of the trace.
 *
 * The record of a thread that was not seen to be created is closed by one of the last two.
 */
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "abi/outside.h"
#include "observe/errors.h"
#include "observe/live.h"
#include "observe/profile.h"
#include "observe/stack.h"
#include "os/fence.h"
#include "os/initial.h"
#include "os/proc.h"
#include "os/signals.h"

_Thread_local struct rec_thread *rec_self __attribute__((tls_model("initial-exec")));

static bool leave_state(struct rec_thread *t, uint32_t from, uint32_t to) {
    return __atomic_compare_exchange_n(&t->state, &from, to, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/*
 * If it is, the caller sees all that it has done to its record: the acquires pair with the ends of its last event and
 * of its last change of its profile.
 */
bool rec_thread_is_gone(const struct rec_thread *t) {
    uint32_t tid = __atomic_load_n(&t->tid, __ATOMIC_RELAXED); /* it may begin at this moment, and then is not gone */
    if (sbt_syscall3(SYS_tgkill, rec.process_id, tid, 0) != -ESRCH)
        return false;
    (void)__atomic_load_n(&t->busy, __ATOMIC_ACQUIRE);
    if (t->profile != NULL)
        (void)__atomic_load_n(&t->profile->busy, __ATOMIC_ACQUIRE);
    return true;
}

/* Relaxed: close_gone looks again when the record is its own. */
static bool is_attached(const struct rec_thread *t) {
    return __atomic_load_n(&t->attached, __ATOMIC_RELAXED);
}

static void renew(struct rec_thread *t, uint32_t number) {
    t->at_end = true;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    memset(&t->encoder, 0, offsetof(struct trace_encoder, templates));
    memset(t->objects, 0, sizeof t->objects);
    memset(t->sites, 0, sizeof t->sites);
    t->encoder.thread = number;
    __atomic_store_n(&t->number, number,
                     __ATOMIC_RELAXED); /* pairs with rec_thread_joined, which looks through all records */
    t->encoder.overhead_ns = rec.overhead_ns;
    t->encoder.slip_min_ns = 1000;
    t->generation = rec.generation;
    __atomic_store_n(&t->known, REC_UNKNOWN(number),
                     __ATOMIC_RELAXED); /* the creator of the thread before may still look */
    __atomic_store_n(&t->tid, 0, __ATOMIC_RELAXED);
    t->busy = t->n_pending = t->n_batch = t->n_taken = t->n_lost = t->n_apart = 0;
    t->flushing = t->has_arrived = t->stands = false;
    t->carried_ns = t->long_after = t->end_ns = t->queued_ns = t->queued_before_ns = 0;
    t->in_call = 0;
    t->creating = NULL;
    t->owed_ns = 0;
    t->last_site = t->n_reckoned = 0;
    t->outside = NULL;
    t->off_core = true;
    t->mark = &rec_preempt_nowhere;
    rec_stack_forget(t);
    if (rec.profile)
        rec_profile_begin(t);
}

/*
 * An event that is being encoded: it has been taken from the batch and is not in the block yet. While the batch is
 * being forgotten the counts do not fit each other, and no event is halfway.
 */
static uint32_t n_halfway(const struct rec_thread *t) {
    return t->n_batch != 0 && t->n_taken - t->encoder.n_events != t->n_apart;
}

/*
 * What is in the block is read first (acquire). Another thread may move it from there to `n_lost` meanwhile, and it
 * must not be missed in both places. The thread may have forgotten its batch and not yet how much of the batch it had
 * taken: then the batch is empty.
 */
uint64_t rec_thread_lost(const struct rec_thread *t) {
    uint64_t n = __atomic_load_n(&t->encoder.n_events, __ATOMIC_ACQUIRE);
    uint32_t n_taken = t->n_taken, n_batch = t->n_batch;
    n += n_batch > n_taken ? n_batch - n_taken : 0;
    return n + n_halfway(t) + t->n_pending + rec_profile_lost(t) + __atomic_load_n(&t->n_lost, __ATOMIC_RELAXED);
}

/* What the kernel has counted since the thread was made: how long it could run and had no core. */
static bool read_queued(uint32_t tid, uint64_t *queued_ns) {
    uint64_t cpu_ns;
    return !sbt_fence_is_forbidden() && sbt_proc_used(tid, &cpu_ns, queued_ns);
}

/*
 * Reading that takes three system calls, once in a thread's life: of a thread that lives for less than a millisecond it
 * is left out. Relaxed: if the thread ends as the trace does, both its own thread and the one that ends the trace may
 * read it, and either is right.
 */
void rec_thread_read_queued(struct rec_thread *t, uint64_t now_ns) {
    enum { LEAST_LIFE_NS = 1000000 };
    uint64_t queued_ns;
    if (rec_above_zero(now_ns, t->begin_ns) >= LEAST_LIFE_NS && read_queued(t->tid, &queued_ns))
        __atomic_store_n(&t->queued_ns, rec_above_zero(queued_ns, t->queued_before_ns) + 1, __ATOMIC_RELAXED);
}

void rec_thread_put_queued(struct rec_thread *t) {
    rec_encode(t); /* which leaves room for a definition */
    uint64_t queued_ns = __atomic_load_n(&t->queued_ns, __ATOMIC_RELAXED);
    if (queued_ns != 0 && !t->flushing)
        trace_define_queued(&t->encoder, t->number, queued_ns - 1);
}

/*
 * The caller has made the record REC_CLOSING and has blocked signals: a handler that ends the process would wait for
 * that state to end. The thread itself is gone. It may have been cancelled asynchronously in the middle of the
 * recorder: then its block is whole, and what it was about to do to the block is not done.
 */
void rec_thread_close(struct rec_thread *t) {
    rec_profile_write(t, false);
    t->at_end = true;
    if (t->busy == 0) {
        struct sbt_trace_event end = {.op = SBT_TRACE_THREAD_END,
                                      .object = SBT_TRACE_NONE,
                                      .other = SBT_TRACE_NONE,
                                      .site = SBT_TRACE_NONE,
                                      .work_ns = t->carried_ns,
                                      .at_ns = t->end_ns - rec.start_ns};
        rec_put_arrival(t);
        rec_put(t, &end);
        rec_thread_put_queued(t);
        rec_flush(t);
    } else {
        rec_flush_interrupted(t);
    }
    __atomic_fetch_add(&rec.n_lost, rec_thread_lost(t), __ATOMIC_RELAXED);
    __atomic_store_n(&t->attached, false, __ATOMIC_RELAXED); /* before the record becomes another thread's */
    __atomic_store_n(&t->state, REC_FREE, __ATOMIC_RELEASE);
}

/*
 * Close the record of a thread that is gone; `state` is the state in which it was seen, which may be out of date.
 * `number`: of a thread that was joined, which the kernel may know for a moment longer.
 *
 * The end of the trace closes records too:
 *  1. The thread that ends the trace sets `closing`, and has the kernel order all threads (membarrier).
 *  2. It waits for the records that it finds REC_CLOSING.
 *  3. A thread that makes a record REC_CLOSING after that sees `closing`, and leaves the record to the end of the
 *     trace.
 */
static void close_gone(struct rec_thread *t, uint32_t state, uint32_t number) {
    uint32_t closing = REC_CLOSING;
    uint64_t signals = sbt_signals_block();
    if (leave_state(t, state, REC_CLOSING)) {
        bool gone = number != SBT_TRACE_NONE ? t->number == number
                                             : (state == REC_ENDED || is_attached(t)) && rec_thread_is_gone(t);
        if (gone && t->profile != NULL)
            rec_misses_end(&t->profile->misses);
        if (gone && __atomic_load_n(&rec.closing, __ATOMIC_RELAXED) == 0)
            rec_thread_close(t);
        else /* unless the trace has ended meanwhile */
            __atomic_compare_exchange_n(&t->state, &closing, state, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    sbt_signals_restore(signals);
}

struct rec_thread *rec_thread_new(void) {
    struct rec_thread *t = __atomic_load_n(&rec.threads, __ATOMIC_ACQUIRE); /* pairs with the exchange below */
    for (; t != NULL; t = t->next) {
        uint32_t state = __atomic_load_n(&t->state, __ATOMIC_RELAXED);
        if (state == REC_FREE && leave_state(t, REC_FREE, REC_LIVE))
            break;
        if ((state == REC_ENDED || (state == REC_LIVE && is_attached(t))) && rec_thread_is_gone(t)) {
            close_gone(t, state, SBT_TRACE_NONE);
            if (leave_state(t, REC_FREE, REC_LIVE))
                break;
        }
    }
    bool fresh = t == NULL;
    if (fresh && (t = rec_live_new()) == NULL && (t = rec_map(sizeof *t)) == NULL)
        return NULL;
    if (!fresh) {
        rec_live_past(t->cpu_ns);
        t->cpu_ns = 0;
    }
    renew(t, __atomic_fetch_add(&rec.n_threads, 1, __ATOMIC_RELAXED));
    __atomic_store_n(&t->state, REC_LIVE, __ATOMIC_RELAXED);
    if (fresh) {
        t->next = __atomic_load_n(&rec.threads, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&rec.threads, &t->next, t, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            ;
    }
    return t;
}

void rec_thread_run(struct rec_thread *t) {
    __atomic_store_n(&t->tid, (uint32_t)sbt_syscall0(SYS_gettid), __ATOMIC_RELAXED); /* pairs with rec_thread_is_gone */
    if (t->profile != NULL)
        rec_misses_begin(&t->profile->misses);
    t->mark = rec_preempt_place();
    if (t->profile != NULL && t->mark != &rec_preempt_nowhere)
        t->profile->mark = t->mark;
    t->cpu_ns = rec_cpu_ns();
    rec_preempt_arm(t->mark);
    uint64_t now = rec_now_ns();
    t->encoder.first_clock_ns = t->encoder.clock_ns = now > rec.start_ns ? now - rec.start_ns : 0;
    t->begin_ns = now;
    __atomic_store_n(&t->end_ns, now, __ATOMIC_RELEASE); /* the thread has begun; pairs with write_live */
    __atomic_signal_fence(__ATOMIC_RELEASE);
    t->at_end = false;
    rec_profile_self = t->profile;
    rec_self = t;
}

/* The thread that has called vfork, while its record is put aside. A child of vfork has the same thread-local data. */
static _Thread_local struct {
    struct rec_thread *record;
    uint32_t generation; /* fork generation */
    long tid;            /* 0: there is none */
} vforks __attribute__((tls_model("initial-exec")));

/* A forked child has memory of its own, whatever its parent was about to do. */
static bool is_of_vfork(void) {
    return vforks.tid != 0 && vforks.generation == sbt_fork_generation() && sbt_syscall0(SYS_gettid) != vforks.tid;
}

SBT_NOINLINE struct rec_thread *rec_thread_self(void) {
    if (vforks.tid != 0 && !is_of_vfork()) {
        vforks.tid = 0;
        if (rec_self == NULL) {
            rec_profile_self = vforks.record != NULL ? vforks.record->profile : NULL;
            rec_self = vforks.record;
        }
    }
    return rec_self;
}

bool rec_thread_is_vforked(void) {
    (void)rec_thread_self();
    return vforks.tid != 0;
}

static void vfork_begins(void) {
    struct rec_thread *t = rec_thread_self();
    if (vforks.tid != 0) /* in such a child */
        return;
    vforks.record = t;
    vforks.generation = sbt_fork_generation();
    rec_self = NULL;
    rec_profile_self = NULL;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    vforks.tid = sbt_syscall0(SYS_gettid);
}

__attribute__((constructor)) static void observe_vfork(void) {
    abi_vfork_begins = vfork_begins;
}

SBT_NOINLINE struct rec_thread *rec_thread_attach(void) {
    (void)rec_thread_self();
    if (vforks.tid != 0 || !rec_start())
        return NULL;
    struct rec_thread *t = rec_self;
    if (t != NULL && t->generation == rec.generation)
        return t;
    if (t != NULL) { /* the first record of a forked child: rec_start has forgotten all other records */
        renew(t, __atomic_fetch_add(&rec.n_threads, 1, __ATOMIC_RELAXED));
        t->state = REC_LIVE;
        t->next = rec.threads;
        rec.threads = t;
    } else {
        t = rec_thread_new();
    }
    if (t != NULL) {
        /* It is older than its record: it was another program before an exec, or has computed in a forked child. */
        (void)read_queued((uint32_t)sbt_syscall0(SYS_gettid), &t->queued_before_ns);
        rec_thread_run(t);
        __atomic_store_n(&t->attached, true, __ATOMIC_RELAXED);
    }
    return t;
}

void rec_thread_ended(void) {
    struct rec_thread *t = rec_thread_self();
    struct rec_call c;
    if (t == NULL || t->generation != sbt_fork_generation())
        return;
    rec_end_arrival(t);
    rec_errors_end();
    if (rec_enter(&c, SBT_TRACE_THREAD_END, SBT_TRACE_NO_OBJECT, NULL, NULL))
        rec_drop(&c); /* for the time: what the thread has worked */
    rec_thread_read_queued(t, t->end_ns);
    __atomic_store_n(&t->state, REC_ENDED, __ATOMIC_RELEASE);
}

void rec_thread_joined(uint32_t number) {
    struct rec_thread *t = __atomic_load_n(&rec.threads, __ATOMIC_ACQUIRE);
    while (t != NULL && __atomic_load_n(&t->number, __ATOMIC_RELAXED) != number)
        t = t->next;
    if (t != NULL)
        close_gone(t, REC_ENDED, number);
}

/*
 * Not the record of a thread that has not begun: a handler may have forked on its way to its routine, which is in the
 * record. The child keeps such records for ever, and they are few.
 */
void rec_threads_forget(void) {
    struct rec_thread *t = rec.threads;
    rec.threads = NULL;
    while (t != NULL) {
        struct rec_thread *next = t->next;
        if (t != rec_self && t->tid != 0) {
            if (t->profile != NULL)
                rec_profile_forget(t->profile);
            rec_stack_forget(t);
            sbt_syscall3(SYS_munmap, t, sizeof *t, 0);
        }
        t = next;
    }
}

static void write_block(struct rec_thread *t) {
    struct trace_encoder *e = &t->encoder;
    struct trace_block header;
    if ((e->n_events == 0 && e->n_definition_bytes == 0) || t->flushing)
        return;
    uint64_t signals = sbt_signals_block();
    t->flushing = true;
    trace_encoder_header(e, &header);
    /* In a child that a handler has forked, and that goes on here, the block is its parent's, and so is the file. */
    if (t->generation == sbt_fork_generation() &&
        !rec_write(&header, e->events, e->n_event_bytes, e->templates, e->n_templates * sizeof e->templates[0],
                   e->definitions, e->n_definition_bytes))
        rec_lost(t, e->n_events); /* the trace has ended meanwhile; if writing has failed, no reader needs the count */
    trace_encoder_next(e);
    t->n_apart = t->n_taken;
    e->overhead_ns =
        rec.overhead_ns; /* the first block has another overhead, from constructors that ran before it was measured */
    t->flushing = false;
    sbt_signals_restore(signals);
}

void rec_encode(struct rec_thread *t) {
    if (t->flushing)
        return;
    while (t->n_taken < t->n_batch) {
        const struct sbt_trace_event *event = &t->batch[t->n_taken++];
        __atomic_signal_fence(
            /* if interrupted for good here, the event is lost and counted, and not in the trace twice */
            __ATOMIC_SEQ_CST);
        trace_encode(&t->encoder, event);
        if (SBT_UNLIKELY(!trace_encoder_has_room(&t->encoder)))
            write_block(t);
    }
    t->n_batch = 0;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    t->n_apart -= t->n_taken;
    t->n_taken = 0;
}

void rec_flush(struct rec_thread *t) {
    rec_encode(t);
    write_block(t);
}

/* What the interrupted encoder was about to do to its block would not fit what comes now, so a new block begins. */
void rec_flush_interrupted(struct rec_thread *t) {
    rec_lost(t, n_halfway(t));
    t->n_apart = t->n_taken - t->encoder.n_events;
    if (t->encoder.n_events == 0 && t->encoder.n_definition_bytes == 0)
        trace_encoder_again(&t->encoder);
    else
        write_block(t);
    rec_flush(t);
}

enum { OWN_STACK = 8 << 20 }; /* bytes, from its end on */

/* The stack of a thread ends below its control block, and the first thread's below what the kernel has given the
 * process. */
static bool is_on_own_stack(const struct rec_thread *t, uintptr_t at) {
    uintptr_t end = t->tid == rec.process_id ? sbt_auxiliary(AT_RANDOM, 0) : (uintptr_t)__builtin_thread_pointer();
    return end - at < OWN_STACK;
}

/*
 * A place on another stack says nothing: a handler may have a stack of its own, above what it interrupts, or go on with
 * another coroutine. SS_ONSTACK does not tell: with SS_AUTODISARM it is not set in the handler.
 */
bool rec_is_left(const struct rec_thread *t, uintptr_t at, uintptr_t here) {
    return here + REC_SIGNAL_FRAME > at && is_on_own_stack(t, at) && is_on_own_stack(t, here);
}

/*
 * Not judged are: a handler with a stack of its own; a profile, of which the tables may be halfway; and a program that
 * restricts its system calls. There the event is a handler's, as it is if it is far below what was interrupted.
 */
SBT_NOINLINE bool rec_busy_left(struct rec_thread *t, uintptr_t here) {
    stack_t own = {.ss_flags = SS_ONSTACK};
    uintptr_t at = here + (uintptr_t)(intptr_t)(int32_t)(t->busy - rec_place(here));
    if (!rec_is_left(t, at, here) || rec.profile || sbt_fence_is_forbidden() ||
        sbt_syscall3(SYS_sigaltstack, 0, &own, 0) != 0 || (own.ss_flags & SS_ONSTACK) != 0)
        return false;
    t->busy =
        rec_place(here); /* never 0 in between: the thread that closes the trace would take the record for whole */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    rec_flush_interrupted(t);
    rec_busy_end(t);
    return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The trace of this process: when it begins, and what ends it. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "observe/file.h"
#include "observe/live.h"
#include "observe/profile.h"
#include "observe/stack.h"
#include "os/futex.h"
#include "os/proc.h"
#include "os/signals.h"

struct rec rec;

static void begin_process(void) {
    rec.generation = sbt_fork_generation();
    rec.process_id = (uint32_t)sbt_syscall0(SYS_getpid);
    rec.start_ns = rec_now_ns();
}

/* In a forked child, at its first event: forget the parent's trace. */
static void begin_child(void) {
    rec_live_forget(); /* before anything is written to a record */
    rec_file_forget();
    rec_threads_forget();
    rec_table_forget();
    rec_modules_forget();
    rec.n_objects = rec.n_sites = rec.n_threads = rec.n_stacks = 0;
    rec.n_events = rec.n_blocks = rec.n_lost = 0;
    rec.n_tallies = rec.n_tally_blocks = rec.n_tallied = 0;
    rec.n_counted_holds = rec.n_misses = 0;
    rec_profile_forget_signals();
    memset(rec_hints, 0, sizeof rec_hints); /* the waiting threads are the parent's */
    rec.closing = rec_file_has_failed();
    rec.ender = rec.ended = 0;
    begin_process();
}

enum { UNMEASURED_OVERHEAD_NS = 60 }; /* the approximate cost of an event, for constructors that run before ours */

static SBT_NOINLINE bool start(void) {
    uint32_t seen = REC_UNBORN;
    if (!__atomic_compare_exchange_n(&rec.state, &seen, REC_STARTING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
        return seen == REC_ON; /* while another thread decides, nothing is recorded */
    sbt_init();
    const char *path = sbt_options.value[SBT_OPT_RECORD].s;
    bool on = path != NULL && path[0] != '\0' && rec_table_start();
    if (on) {
        rec_file_name(path);
        rec.profile = sbt_options.value[SBT_OPT_RECORD_CALLS].u == SBT_RECORD_WAITS;
        rec.overhead_ns = UNMEASURED_OVERHEAD_NS;
        rec_clock_start();
        rec_preempt_start();
        rec.counts_misses = rec.profile && rec_misses_start();
        sbt_syscall3(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
        begin_process();
    }
    __atomic_store_n(&rec.state, on ? REC_ON : REC_OFF, __ATOMIC_RELEASE);
    return on;
}

bool rec_start(void) {
    uint32_t state = __atomic_load_n(&rec.state, __ATOMIC_ACQUIRE);
    if (SBT_UNLIKELY(state == REC_UNBORN))
        return start();
    if (state != REC_ON)
        return false;
    if (SBT_UNLIKELY(rec.generation != sbt_fork_generation())) {
        uint64_t signals = sbt_signals_block();
        if (rec.generation != sbt_fork_generation()) /* a handler may have begun it meanwhile */
            begin_child();
        sbt_signals_restore(signals);
    }
    return rec.closing == 0;
}

enum { PATIENCE_NS = 1000000000 }; /* enough on a busy machine; a thread that is held in a handler never comes */

/* Acquire: pairs with the ends of events and of changes of a profile. */
static bool is_busy(const struct rec_thread *t) {
    return __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE) != 0 ||
           (t->profile != NULL && __atomic_load_n(&t->profile->busy, __ATOMIC_ACQUIRE) != 0);
}

/* Nothing of its record changes any more. Acquire: pairs with await_end. */
static bool stands(const struct rec_thread *t) {
    return t == rec_self || __atomic_load_n(&t->stands, __ATOMIC_ACQUIRE);
}

/*
 * Has the thread no event and no change of its profile under way, and is no thread closing its record? If a thread is
 * off its core in the middle of that, this waits, until `until_ns`, which counts for all threads together. If the
 * caller is in a handler, its own interrupted event or change stands still, and what is in its blocks is whole. So does
 * that of a thread of which a handler waits for the end of the trace.
 */
static bool is_quiet(const struct rec_thread *t, uint64_t until_ns) {
    for (;;) {
        bool closing = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == REC_CLOSING;
        if (!closing && (stands(t) || !is_busy(t)))
            return true;
        if (!closing && t->tid != 0 && rec_thread_is_gone(t))
            return true;
        if (rec_now_ns() >= until_ns)
            return false;
        sbt_pause_ns(LOOK_PAUSE_NS);
    }
}

/* Has the first thread called pthread_exit? The kernel knows it until the process ends. */
static bool is_dead_leader(const struct rec_thread *t) {
    return t->tid == rec.process_id && sbt_proc_state(t->tid) == 'Z';
}

static void write_live(struct rec_thread *t, uint64_t end_ns) {
    bool has_begun = __atomic_load_n(&t->end_ns, __ATOMIC_ACQUIRE) != 0; /* pairs with rec_thread_run */
    rec_profile_write(t, !stands(t) && !rec_thread_is_gone(t));
    if (t->busy == 0) {
        if (t != rec_self && has_begun)
            rec_put_running(t, end_ns);
        else
            rec_put_arrival(t);
        rec_thread_read_queued(t, end_ns);
        rec_thread_put_queued(t);
        rec_flush(t);
    } else {
        rec_flush_interrupted(t);
    }
}

/* `end_ns`: when the process ended its work, by which the threads that still run are measured. */
static void finish_threads(uint64_t end_ns) {
    uint64_t until_ns = rec_now_ns() + PATIENCE_NS;
    for (struct rec_thread *t = __atomic_load_n(&rec.threads, __ATOMIC_ACQUIRE); t != NULL; t = t->next) {
        uint32_t ended = REC_ENDED;
        if (!is_quiet(t, until_ns)) {
            if (t->profile != NULL) /* it may go on at any moment, so its table cannot be read and says no number */
                rec_lost(t, 1);
            continue;
        }
        if (t->state == REC_LIVE && t->attached && t != rec_self && (rec_thread_is_gone(t) || is_dead_leader(t)))
            ended = REC_LIVE;
        if (__atomic_compare_exchange_n(&t->state, &ended, REC_CLOSING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            rec_thread_close(t);
        else if (t->state == REC_LIVE)
            write_live(t, end_ns);
    }
}

/*
 * After this only the last block is written. False: a block has been under way for too long, so there can be no last
 * block. A thread that was waited for in vain has events that will be missing in the trace.
 */
static bool stop_writing(void) {
    if (!rec_file_end(rec_now_ns() + PATIENCE_NS))
        return false;
    for (struct rec_thread *t = __atomic_load_n(&rec.threads, __ATOMIC_ACQUIRE); t != NULL; t = t->next)
        if (t->state != REC_FREE)
            rec.n_lost += rec_thread_lost(t);
    return true;
}

static void write_end(void) {
    uint8_t definitions[128], *at = definitions;
    struct trace_block header;
    *at++ = TRACE_DEFINE_TOTALS;
    at = trace_put(trace_put(trace_put(at, rec.n_events), rec.n_blocks), rec.n_lost);
    *at++ = TRACE_DEFINE_TALLIED;
    at = trace_put(trace_put(trace_put(at, rec.n_tallies), rec.n_tally_blocks), rec.n_tallied);
    if (rec.counts_misses) {
        *at++ = TRACE_DEFINE_MISSES;
        at = trace_put(trace_put(trace_put(at, rec.n_counted_holds), rec.n_misses), 0);
    }
    trace_definitions_header(&header, TRACE_BLOCK_END, definitions, (uint32_t)(at - definitions));
    header.clock_ns = rec_now_ns() - rec.start_ns;
    header.n_objects = rec.n_objects;
    header.n_sites = rec.n_sites;
    header.n_threads = rec.n_threads;
    header.header_sum = trace_header_sum(&header);
    rec_write(&header, definitions, (size_t)(at - definitions), NULL, 0, NULL, 0);
}

/* Has nothing happened but the beginning? */
static bool is_idle(void) {
    struct rec_thread *t = rec.threads;
    return !rec_file_is_begun() &&
           (t == NULL || (t->next == NULL && t->encoder.n_events == 0 && t->n_batch == 0 && !rec_profile_has_any(t)));
}

/* Is there anything to write? If nothing has happened, there is no trace. */
static bool anything_to_end(void) {
    return !is_idle() || rec_file_begin();
}

static void finish(void) {
    uint64_t end_ns = rec_now_ns();
    if (rec_self != NULL && rec_self->state == REC_LIVE && rec_self->generation == rec.generation) {
        rec_self->at_end = true;
        rec_note(rec_self, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
    }
    if (__atomic_exchange_n(&rec.closing, 1, __ATOMIC_SEQ_CST) != 0)
        return;
    /* Pairs with rec_busy_begin and rec_profile_begin_change. */
    sbt_syscall3(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    finish_threads(end_ns);
    if (stop_writing()) {
        write_end();
        rec_live_end();
    }
}

/*
 * Another thread ends the trace, and this one is about to end the process: not before the trace is written, or the
 * other has found that there is none. Each wait in there has its patience. The ender itself comes here when it calls
 * _exit after the destructor.
 */
static void await_end(uint32_t ender) {
    if (rec_self != NULL)
        __atomic_store_n(&rec_self->stands, true, __ATOMIC_RELEASE); /* pairs with stands */
    while (ender != (uint32_t)sbt_syscall0(SYS_gettid) && __atomic_load_n(&rec.ended, __ATOMIC_ACQUIRE) == 0 &&
           __atomic_load_n(&rec.ender, __ATOMIC_RELAXED) == ender &&
           sbt_syscall3(SYS_tgkill, rec.process_id, ender, 0) != -ESRCH)
        sbt_pause_ns(LOOK_PAUSE_NS);
    if (rec_self != NULL) /* the ender is not at work any more */
        __atomic_store_n(&rec_self->stands, false, __ATOMIC_RELAXED);
}

static void finish_once(void) {
    uint32_t ender = 0;
    if (!__atomic_compare_exchange_n(&rec.ender, &ender, (uint32_t)sbt_syscall0(SYS_gettid), false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED)) {
        await_end(ender);
    } else if (anything_to_end()) {
        finish();
        __atomic_store_n(&rec.ended, 1, __ATOMIC_RELEASE); /* pairs with await_end */
    } else {
        __atomic_store_n(&rec.ender, 0, __ATOMIC_RELEASE); /* pairs with the exchange above: the next one looks again */
    }
}

void rec_finish(void) {
    if (rec.state != REC_ON || rec.generation != sbt_fork_generation() ||
        rec.process_id != (uint32_t)sbt_syscall0(SYS_getpid)) /* a vfork child has its parent's memory */
        return;
    (void)rec_thread_self();
    uint64_t signals = sbt_signals_block();
    finish_once();
    sbt_signals_restore(signals);
}

__attribute__((destructor)) static void destruct(void) {
    rec_finish();
}

__attribute__((constructor)) static void construct(void) {
    if (!rec_start())
        return;
    rec_calibrate();
    rec_stack_start();
    at_quick_exit(rec_finish);
    pthread_atfork(NULL, NULL, rec_live_forget);
    struct rec_thread *t = rec_thread_attach();
    if (t != NULL && t->encoder.n_events == 0) /* all times of a block are encoded relative to one value */
        t->encoder.overhead_ns = rec.overhead_ns;
}

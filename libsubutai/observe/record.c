/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The trace of this process: when it begins, where its file is, what ends it.
 *
 * The file (os/own_file.h) is made when there is something to write: a program that only starts another program leaves
 * its name to that. A program may close descriptors that it did not open, and get the same number for a file of its
 * own. So the descriptor is compared with the file before each block.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/log.h"
#include "observe/profile.h"
#include "observe/stack.h"
#include "os/futex.h"
#include "os/own_file.h"
#include "os/proc.h"
#include "os/signals.h"
#include "words.h"

/* HIGH_FD: few programs have so many descriptors, and the limit is seldom lower. */
enum { HIGH_FD = 500, NO_FD = -1, OPENING = -2 };

struct rec rec;

static struct {
    int fd; /* NO_FD, OPENING, or open; atomic */
    struct sbt_own_file own;
    bool failed;
    /*
     * Atomic, sequentially consistent. A writer counts itself and then looks for `ended`. The thread that ends the
     * trace sets `ended` and then looks for writers. At least one of the two sees the other.
     */
    bool ended; /* only the last block is still to be written */
    uint32_t n_writing;
} file = {.fd = NO_FD};

/*
 * Say once what keeps the trace from being written; the program goes on without. Relaxed: an event sooner or later
 * makes no difference.
 */
static void fail(long error) {
    const char *why = strerrordesc_np((int)-error);
    __atomic_store_n(&rec.closing, 1, __ATOMIC_RELAXED);
    if (!__atomic_exchange_n(&file.failed, true, __ATOMIC_RELAXED))
        sbt_log(1, "recording ends, the program goes on: '", file.own.path[0] != '\0' ? file.own.path : file.own.wanted,
                "': ", why != NULL ? why : "unknown error", NULL);
}

/* The command line as a shell would read it, for `subutai report --try`; no more of its words than fit. */
static uint8_t *define_process(uint8_t *at) {
    char words[2048], command[2048];
    const char *engine = sbt_engine.name;
    long fd = sbt_syscall6(SYS_openat, AT_FDCWD, (long)"/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0, 0, 0), n = 0;
    if (fd >= 0) {
        n = sbt_syscall3(SYS_read, fd, words, sizeof words);
        sbt_syscall3(SYS_close, fd, 0, 0);
    }
    n = (long)words_quote(command, sizeof command, words, n > 0 ? (size_t)n : 0);
    *at++ = TRACE_DEFINE_COMMAND;
    at = trace_put(at, (uint64_t)n);
    memcpy(at, command, (size_t)n);
    at += n;
    *at++ = TRACE_DEFINE_ENGINE;
    at = trace_put(at, strlen(engine));
    memcpy(at, engine, strlen(engine));
    at += strlen(engine);
    struct timespec now;
    sbt_clock_read(CLOCK_REALTIME, &now);
    *at++ = TRACE_DEFINE_PROCESS;
    at = trace_put(at, rec.process_id);
    at = trace_put(at, (uint64_t)sbt_syscall0(SYS_getppid));
    at = trace_put(at, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    *at++ = TRACE_DEFINE_PROFILE;
    return trace_put(trace_put(trace_put(at, rec.profile ? PROFILE_MAX_INTERVAL : 1), rec.stack_min_ns), 0);
}

/* Move a descriptor to where programs do not expect their own; it stays if that fails. */
static int out_of_the_way(long fd) {
    long high = sbt_syscall3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (high < 0)
        return (int)fd;
    sbt_syscall3(SYS_close, fd, 0, 0);
    return (int)high;
}

static long write_parts(int fd, const struct iovec *parts, int n_parts) {
    size_t wanted = 0;
    for (int i = 0; i < n_parts; i++)
        wanted += parts[i].iov_len;
    long n = sbt_syscall3(SYS_writev, fd, parts, n_parts);
    if (n > 0 && (size_t)n < wanted) { /* no more room, or a limit on one write: the next byte gives the reason */
        static const char nothing[1];
        n = sbt_syscall3(SYS_write, fd, nothing, 1);
        n = n < 0 ? n : -ENOSPC;
    }
    if (n == -EFBIG)
        sbt_own_file_take_limit();
    return n < 0 ? n : 0;
}

static long begin_file(long fd) {
    struct trace_preamble preamble = TRACE_PREAMBLE(rec.profile ? TRACE_PROFILE : 0);
    struct trace_block header;
    uint8_t definitions[4096], *end = define_process(definitions);
    trace_definitions_header(&header, TRACE_BLOCK_BEGIN, definitions, (uint32_t)(end - definitions));
    struct iovec parts[] = {
        {&preamble, sizeof preamble}, {&header, sizeof header}, {definitions, (size_t)(end - definitions)}};
    return write_parts((int)fd, parts, 3);
}

/* `only_free`: open FILE if it is still free, and no other file. */
static long open_file(bool only_free) {
    long fd = sbt_own_file_create(&file.own, O_WRONLY | O_APPEND, only_free ? 1 : SBT_OWN_FILE_NAMES);
    if (fd < 0)
        return fd;
    fd = out_of_the_way(fd);
    long r = begin_file(fd);
    if (r < 0)
        sbt_syscall3(SYS_close, fd, 0, 0);
    return r < 0 ? r : fd;
}

/* The descriptor to write to; or a negated errno value. */
static long descriptor(bool only_free) {
    int fd = __atomic_load_n(&file.fd, __ATOMIC_ACQUIRE);
    if (fd >= 0 && sbt_own_file_is(&file.own, fd))
        return fd;
    if (fd >= 0) { /* the program has closed it */
        long again = sbt_own_file_open(&file.own, O_WRONLY | O_APPEND);
        if (again < 0)
            return again;
        again = out_of_the_way(again);
        __atomic_store_n(&file.fd, (int)again, __ATOMIC_RELEASE);
        return again;
    }
    int none = NO_FD;
    if (__atomic_compare_exchange_n(&file.fd, &none, OPENING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        long opened = open_file(only_free);
        __atomic_store_n(&file.fd, opened < 0 ? NO_FD : (int)opened, __ATOMIC_RELEASE);
        return opened;
    }
    for (unsigned i = 0; (fd = __atomic_load_n(&file.fd, __ATOMIC_ACQUIRE)) == OPENING; i++)
        rec_wait_a_moment(i);
    return fd >= 0 ? fd : -EIO;
}

/* Count a block for what the last block says of the others. Relaxed: the last block waits for this writer. */
static bool write_counted(const struct trace_block *header, const struct iovec *parts) {
    if (__atomic_load_n(&file.failed, __ATOMIC_RELAXED))
        return false;
    long r = descriptor(false);
    r = r < 0 ? r : write_parts((int)r, parts, 4);
    if (r < 0)
        fail(r);
    if (r >= 0 && header->kind == TRACE_BLOCK_TALLIES) {
        __atomic_fetch_add(&rec.n_tallies, header->n_events, __ATOMIC_RELAXED);
        __atomic_fetch_add(&rec.n_tally_blocks, 1, __ATOMIC_RELAXED);
    }
    if (r >= 0 && header->kind == TRACE_BLOCK_EVENTS) {
        __atomic_fetch_add(&rec.n_events, header->n_events, __ATOMIC_RELAXED);
        __atomic_fetch_add(&rec.n_blocks, 1, __ATOMIC_RELAXED);
    }
    return r >= 0;
}

bool rec_write(const struct trace_block *header, const void *a, size_t n_a, const void *b, size_t n_b, const void *c,
               size_t n_c) {
    struct iovec parts[] = {{(void *)(uintptr_t)header, sizeof *header},
                            {(void *)(uintptr_t)a, n_a},
                            {(void *)(uintptr_t)b, n_b},
                            {(void *)(uintptr_t)c, n_c}};
    __atomic_fetch_add(&file.n_writing, 1, __ATOMIC_SEQ_CST);
    bool written = (header->kind == TRACE_BLOCK_END || !__atomic_load_n(&file.ended, __ATOMIC_SEQ_CST)) &&
                   write_counted(header, parts);
    __atomic_fetch_sub(&file.n_writing, 1, __ATOMIC_SEQ_CST);
    return written;
}

static void begin_process(void) {
    rec.generation = sbt_fork_generation();
    rec.process_id = (uint32_t)sbt_syscall0(SYS_getpid);
    rec.start_ns = rec_now_ns();
}

/* In a forked child, at its first event: forget the parent's trace. */
static void begin_child(void) {
    if (file.fd >= 0 && sbt_own_file_is(&file.own, file.fd))
        sbt_syscall3(SYS_close, file.fd, 0, 0);
    file.fd = NO_FD;
    file.own.is_child = true;
    file.own.path[0] = '\0';
    rec_threads_forget();
    rec_table_forget();
    rec_modules_forget();
    rec.n_objects = rec.n_sites = rec.n_threads = rec.n_stacks = 0;
    rec.n_events = rec.n_blocks = rec.n_lost = 0;
    rec.n_tallies = rec.n_tally_blocks = rec.n_tallied = 0;
    rec.n_counted_holds = rec.n_misses = 0;
    memset(rec_hints, 0, sizeof rec_hints);
    rec_profile_forget_signals();
    memset(rec_waiting, 0, sizeof rec_waiting); /* the waiting threads are the parent's */
    rec.closing = file.failed;
    file.ended = false;
    file.n_writing = 0; /* the copy may have caught other threads of the parent there */
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
        sbt_own_file_name(&file.own, path, ".sbt");
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

enum { LOOK_PAUSE_NS = 100000 };   /* between two looks at the end of the trace: longer than an event */
enum { PATIENCE_NS = 1000000000 }; /* enough on a busy machine; a thread that is held in a handler never comes */

/* Acquire: pairs with the ends of events and of changes of a profile. */
static bool is_busy(const struct rec_thread *t) {
    return __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE) != 0 ||
           (t->profile != NULL && __atomic_load_n(&t->profile->busy, __ATOMIC_ACQUIRE) != 0);
}

/*
 * Has the thread no event and no change of its profile under way, and is no thread closing its record? If a thread is
 * off its core in the middle of that, this waits, until `until_ns`, which counts for all threads together. If the
 * caller is in a handler, its own interrupted event or change stands still, and what is in its blocks is whole.
 */
static bool is_quiet(const struct rec_thread *t, uint64_t until_ns) {
    for (;;) {
        bool closing = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE) == REC_CLOSING;
        if (!closing && (t == rec_self || !is_busy(t)))
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
    rec_profile_write(t, t != rec_self && !rec_thread_is_gone(t));
    if (t->busy == 0) {
        if (t != rec_self && has_begun)
            rec_put_running(t, end_ns);
        else
            rec_put_arrival(t);
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
    uint64_t until_ns = rec_now_ns() + PATIENCE_NS;
    __atomic_store_n(&file.ended, true, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&file.n_writing, __ATOMIC_SEQ_CST) != 0) {
        if (rec_now_ns() >= until_ns)
            return false;
        sbt_pause_ns(LOOK_PAUSE_NS);
    }
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
    return file.fd == NO_FD &&
           (t == NULL || (t->next == NULL && t->encoder.n_events == 0 && t->n_batch == 0 && !rec_profile_has_any(t)));
}

/* Is there anything to write? If nothing has happened, there is no trace. */
static bool anything_to_end(void) {
    if (!is_idle())
        return true;
    long fd = file.own.is_child ? -EEXIST : descriptor(true);
    if (fd < 0 && fd != -EEXIST)
        fail(fd);
    return fd >= 0;
}

static void finish(void) {
    if (!anything_to_end())
        return;
    uint64_t end_ns = rec_now_ns();
    if (rec_self != NULL && rec_self->state == REC_LIVE && rec_self->generation == rec.generation)
        rec_note(rec_self, SBT_TRACE_THREAD_END, SBT_TRACE_NONE);
    if (__atomic_exchange_n(&rec.closing, 1, __ATOMIC_SEQ_CST) != 0)
        return;
    /* Pairs with rec_busy_begin and rec_profile_begin_change. */
    sbt_syscall3(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
    finish_threads(end_ns);
    if (stop_writing())
        write_end();
}

void rec_finish(void) {
    if (rec.state != REC_ON || rec.generation != sbt_fork_generation() ||
        rec.process_id != (uint32_t)sbt_syscall0(SYS_getpid)) /* a vfork child has its parent's memory */
        return;
    (void)rec_thread_self();
    uint64_t signals = sbt_signals_block();
    finish();
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
    struct rec_thread *t = rec_thread_attach();
    if (t != NULL && t->encoder.n_events == 0) /* all times of a block are encoded relative to one value */
        t->encoder.overhead_ns = rec.overhead_ns;
}

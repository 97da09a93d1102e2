/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From calls to events.
 *
 * A thread's work between two calls is measured in one of these ways:
 *  - If the thread has stayed on its core (preempt.h), its work is the wall clock's time. The same holds if the kernel
 *    does not show that and the time is short.
 *  - Otherwise the kernel's count of the thread's CPU time decides, which costs a system call.
 *
 * Between two readings of CPU time it is estimated (cpu_ns): from the wall clock while the thread stays on its core,
 * and as BLOCKED_CPU_NS for a call in which it did not stay. (Not at a spin lock: a thread computes as it waits there,
 * which would count for the work behind the call.) A new reading corrects the estimate in three cases: the
 * thread has been off its core between two calls; or the call blocks, and a long time off the core has followed this
 * call site before; or CPU time has been estimated for too many calls. What the recorder itself takes between the end
 * of a call and the beginning of the next is measured at start-up and subtracted.
 *
 * The preemption mark is set before the clock is read, and looked at after the clock is read again. So a thread that is
 * preempted in between counts as off its core, which costs a system call and no precision.
 *
 * What is subtracted must be what was added. So rec_settle stands where the program's code ends and where a call does:
 * without it the processor reads its counter while the program's last instructions are still under way, and the
 * recorder's own run beside them. At the end of an event there is none: the program's next instructions may run beside
 * the recorder's last, as they run beside a lock's in the program that is not recorded. Work that the recorder does
 * seldom, as a new object, is measured each time (rec_apart_begin).
 *
 * An event and the end of the trace exclude each other:
 *  1. A thread stores `busy` and then loads `closing`.
 *  2. The thread that ends the trace stores `closing` and then loads `busy`. Between the two it has the kernel order
 *     both sides (membarrier), so that an event costs no fence.
 *
 * At least one side sees the other.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "observe/number.h"
#include "observe/stack.h"

/* BLOCKED_CPU_NS: what a call that sleeps costs its thread. MAX_RECKONED: calls. */
enum { BLOCKED_CPU_NS = 4000, MAX_RECKONED = 32 };

uint64_t rec_cpu_ns(void) {
    struct timespec t;
    sbt_clock_read(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A profile has to see that the mark was cleared. */
static void arm(struct rec_thread *t) {
    if (t->profile != NULL && t->mark != &rec_preempt_nowhere)
        rec_profile_look(t->profile);
    rec_preempt_arm(t->mark);
}

SBT_NOINLINE uint64_t rec_read_cpu(struct rec_thread *t) {
    t->cpu_ns = rec_cpu_ns();
    t->n_reckoned = 0;
    t->off_core = true;
    arm(t);
    return rec_now_ns();
}

SBT_NOINLINE void rec_no_work(struct rec_thread *t) {
    uint64_t now = rec_now_ns(), ns = rec_above_zero(now, t->end_ns);
    if (rec_stayed(t, ns))
        t->cpu_ns += ns;
    else
        now = rec_read_cpu(t);
    t->end_ns = now;
}

static inline void busy_end(struct rec_thread *t) {
    if (SBT_UNLIKELY(t->n_pending != 0))
        rec_drain(t);
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE); /* pairs with rec_finish */
}

void rec_busy_end(struct rec_thread *t) {
    busy_end(t);
}

/* The call begins now; the time since the last event was work. */
static inline void begin(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    uint64_t now = rec_now_ns(), gap = rec_above_zero(now, t->end_ns), work = gap, site = UINT64_C(1) << t->last_site;
    if (SBT_LIKELY(rec_stayed(t, gap))) {
        t->cpu_ns += gap;
        t->long_after &= ~site;
    } else if (t->outside != NULL && rec_outside_is_cut(t, now)) { /* a handler has interrupted a call that waits */
        now = t->end_ns;
        work = 0;
    } else {
        uint64_t before = t->cpu_ns;
        now = rec_read_cpu(t);
        work = rec_used_between(before, t->cpu_ns, rec.cpu_reading_ns);
        work = work < gap ? work : gap;
        t->long_after = gap > REC_SHORT_NS ? t->long_after | site : t->long_after & ~site;
    }
    c->event.work_ns = rec_work_of(work + t->carried_ns, rec.overhead_ns, &t->owed_ns);
    t->carried_ns = 0;
    t->end_ns = c->begin_ns = now;
}

static inline bool enter(struct rec_call *c, unsigned op, unsigned type) {
    rec_settle();
    struct rec_thread *t = rec_self;
    if (SBT_UNLIKELY(t == NULL || t->generation != sbt_fork_generation()))
        t = rec_thread_attach();
    c->thread = t;
    c->node = c->mutex = NULL;
    c->site = c->said_to_wait_for = NULL;
    c->ended_long_wait = c->is_over = false;
    if (SBT_UNLIKELY(t == NULL))
        return false;
    c->nested = rec_is_busy(t);
    c->event = (struct sbt_trace_event){.op = (uint8_t)op,
                                        .type = (uint8_t)type,
                                        .object = SBT_TRACE_NONE,
                                        .other = SBT_TRACE_NONE,
                                        .site = SBT_TRACE_NONE};
    if (SBT_UNLIKELY(!c->nested && !rec_busy_begin(t))) {
        c->thread = NULL;
        return false;
    }
    return true;
}

/* Calls of this kind mostly sleep, and count as if they all did. */
static inline bool sleeps(unsigned op) {
    return op == SBT_TRACE_COND_WAIT || op == SBT_TRACE_BARRIER_WAIT || op == SBT_TRACE_THREAD_JOIN ||
           op == SBT_TRACE_FUTEX_WAIT;
}

/* Operations that may wait. */
static const uint64_t waits = UINT64_C(1) << SBT_TRACE_THREAD_JOIN | UINT64_C(1) << SBT_TRACE_MUTEX_LOCK |
                              UINT64_C(1) << SBT_TRACE_COND_WAIT | UINT64_C(1) << SBT_TRACE_BARRIER_WAIT |
                              UINT64_C(1) << SBT_TRACE_RWLOCK_RDLOCK | UINT64_C(1) << SBT_TRACE_RWLOCK_WRLOCK |
                              UINT64_C(1) << SBT_TRACE_SEM_WAIT | UINT64_C(1) << SBT_TRACE_SPIN_LOCK |
                              UINT64_C(1) << SBT_TRACE_FUTEX_WAIT;

/* Operations that may end another thread's wait. */
static const uint64_t releases = UINT64_C(1) << SBT_TRACE_MUTEX_UNLOCK | UINT64_C(1) << SBT_TRACE_COND_SIGNAL |
                                 UINT64_C(1) << SBT_TRACE_COND_BROADCAST | UINT64_C(1) << SBT_TRACE_BARRIER_WAIT |
                                 UINT64_C(1) << SBT_TRACE_RWLOCK_UNLOCK | UINT64_C(1) << SBT_TRACE_SEM_POST |
                                 UINT64_C(1) << SBT_TRACE_SPIN_UNLOCK | UINT64_C(1) << SBT_TRACE_FUTEX_WAKE;

/*
 * A record of all calls, with stacks: a call that may wait says so in the hint of its object, as waits in a profile do,
 * and a call that may end waits looks there.
 */
static SBT_NOINLINE void hint(struct rec_call *c) {
    if (c->node == NULL)
        return;
    const void *object = (const void *)c->node->address;
    if ((releases >> c->event.op & 1) != 0)
        rec_ends_wait(c, object);
    if ((waits >> c->event.op & 1) != 0) {
        rec_profile_begin_wait(object, c->begin_ns);
        c->said_to_wait_for = object;
    }
}

static inline void waited(struct rec_call *c) {
    if (SBT_UNLIKELY(c->said_to_wait_for != NULL))
        rec_profile_end_wait(c->said_to_wait_for);
    c->said_to_wait_for = NULL;
}

static inline void begin_wait(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    t->in_call = (uint8_t)(c->event.op + 1);
    t->call_work_ns = c->event.work_ns;
    t->call_at = rec_here();
    t->call_waits = (struct rec_waits_at){c->event.object, c->event.other, c->event.site, c->event.type};
    if (SBT_UNLIKELY(c->outer != 0))
        t->call_work_ns += c->outer_work_ns;
}

static inline void end_wait(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    t->in_call = c->outer;
    if (SBT_LIKELY(c->outer == 0))
        return;
    t->call_work_ns = c->outer_work_ns;
    t->call_at = c->outer_at;
    t->call_waits = c->outer_waits;
}

static inline bool may_wait(const struct rec_call *c) {
    return (waits >> c->event.op & 1) != 0;
}

static inline void enter_profile(struct rec_call *c) {
    rec_profile_write_if_due(c->thread, c->begin_ns);
    if (SBT_UNLIKELY(rec.stack_min_ns != 0) && may_wait(c) && c->site != NULL)
        c->event.stack = rec_stack_known(c->thread, c, c->site);
}

static inline void entered(struct rec_call *c) {
    c->outer = 0;
    if (SBT_UNLIKELY(c->nested)) {
        c->begin_ns = rec_now_ns();
        return;
    }
    begin(c);
    if (SBT_UNLIKELY(rec.profile))
        enter_profile(c);
    else if (SBT_UNLIKELY(rec.stack_min_ns != 0))
        hint(c);
    if (sleeps(c->event.op))
        rec_preempt_disarm(c->thread->mark);
    if (SBT_UNLIKELY(c->thread->in_call != 0))
        rec_interrupts(c);
    if (may_wait(c))
        begin_wait(c);
    __builtin_prefetch(&c->thread->batch[c->thread->n_batch], 1);
    busy_end(c->thread);
}

static inline bool is_apart(struct rec_call *c, unsigned type, const void *site) {
    if (!rec_is_apart((uintptr_t)site) || (type != SBT_TRACE_MUTEX && type != SBT_TRACE_COND))
        return false;
    c->thread = NULL;
    c->node = c->mutex = NULL;
    c->said_to_wait_for = NULL;
    return true;
}

static inline bool enter_object(struct rec_call *c, unsigned op, unsigned type, const void *object, const void *site,
                                bool is_read) {
    if (is_apart(c, type, site) || !enter(c, op, type))
        return false;
    c->is_over = !is_read;
    if (object != NULL)
        c->event.object = rec_object_number(c, &c->node, (uint8_t)type, object);
    c->site = site;
    if (site != NULL)
        c->event.site = rec_site_number(c, site);
    entered(c);
    return true;
}

bool rec_enter(struct rec_call *c, unsigned op, unsigned type, const void *object, const void *site) {
    return enter_object(c, op, type, object, site, true);
}

bool rec_enter_unread(struct rec_call *c, unsigned op, unsigned type, const void *object, const void *site) {
    return enter_object(c, op, type, object, site, false);
}

bool rec_enter_wait(struct rec_call *c, const void *cond, const void *mutex, const void *site) {
    if (is_apart(c, SBT_TRACE_COND, site) || !enter(c, SBT_TRACE_COND_WAIT, SBT_TRACE_COND))
        return false;
    c->event.object = rec_object_number(c, &c->node, SBT_TRACE_COND, cond);
    c->event.other = rec_object_number(c, &c->mutex, SBT_TRACE_MUTEX, mutex);
    c->site = site;
    c->event.site = rec_site_number(c, site);
    entered(c);
    return true;
}

/*
 * Copied field by field: a wide load of what was just stored in parts would wait until all of it has reached the cache.
 */
static inline void put(struct rec_thread *t, const struct sbt_trace_event *from) {
    struct sbt_trace_event *to = &t->batch[t->n_batch];
    if (SBT_UNLIKELY(t->n_batch >= REC_N_BATCH)) { /* it could not be encoded */
        rec_lost(t, 1);
        return;
    }
    to->op = from->op;
    to->type = from->type;
    to->result = from->result;
    to->object = from->object;
    to->other = from->other;
    to->site = from->site;
    to->size = from->size;
    to->stack = from->stack;
    to->work_ns = from->work_ns;
    to->at_ns = from->at_ns;
    to->took_ns = from->took_ns;
    to->order = from->order;
    to->relock = from->relock;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    t->n_batch++;
}

void rec_put(struct rec_thread *t, const struct sbt_trace_event *event) {
    put(t, event);
}

static inline bool wants_stack(const struct rec_call *c, uint64_t took_ns) {
    return SBT_UNLIKELY(rec.stack_min_ns != 0) &&
           (c->ended_long_wait || (took_ns >= rec.stack_min_ns && (waits >> c->event.op & 1) != 0));
}

/*
 * The thread has slept in the call, or has been preempted. The result is the end of the call, after this has been
 * accounted for.
 */
static SBT_NOINLINE uint64_t end_of_blocked(struct rec_thread *t, uint64_t took_ns) {
    if ((t->long_after >> t->last_site & 1) != 0 || t->n_reckoned == MAX_RECKONED)
        return rec_read_cpu(t);
    t->cpu_ns += took_ns < BLOCKED_CPU_NS ? took_ns : BLOCKED_CPU_NS;
    t->n_reckoned++;
    t->off_core = true;
    arm(t);
    return rec_now_ns();
}

/* The rest of a call that is over: the thread's times, and its batch. The thread is busy. */
static inline void leave(struct rec_call *c, uint64_t took, uint64_t now, bool stack) {
    struct rec_thread *t = c->thread;
    t->last_site = c->event.site % 64;
    if (may_wait(c))
        end_wait(c);
    /* A handler's event in between has set the mark anew. */
    if (SBT_LIKELY(t->end_ns == c->begin_ns && rec_stayed(t, took)))
        t->cpu_ns += took;
    else
        now = c->event.type == SBT_TRACE_SPIN ? rec_read_cpu(t) : end_of_blocked(t, took);
    t->end_ns = now;
    rec_encode_full(t);
    if (SBT_UNLIKELY(t->n_batch == 0 || stack))
        rec_no_work(t);
    busy_end(t);
}

void rec_leave(struct rec_call *c, int result) {
    struct rec_thread *t = c->thread;
    if (SBT_UNLIKELY(t == NULL))
        return;
    waited(c);
    c->event.result = (uint16_t)result;
    c->event.at_ns = rec_above_zero(c->begin_ns, rec.start_ns);
    if (SBT_UNLIKELY(c->nested)) {
        rec_leave_nested(c);
        return;
    }
    if (SBT_UNLIKELY(!rec_busy_begin(t)))
        return;
    rec_settle();
    uint64_t now = rec_now_ns();
    /* Events of handlers that came during the call are in the trace already, although this call began before them. */
    uint64_t took = rec_above_zero(now, c->begin_ns);
    c->event.took_ns = took;
    bool wanted = wants_stack(c, took), stack = wanted && c->event.stack == 0;
    if (!wanted)
        c->event.stack = 0;
    else if (stack)
        c->event.stack = rec_stack_take(t, c, c->site);
    put(t, &c->event);
    leave(c, took, now, stack);
}

void rec_left(struct rec_call *c, uint64_t took, uint64_t now) {
    waited(c);
    leave(c, took, now, false);
}

void rec_resume(struct rec_call *c) {
    if (c->thread == NULL || c->nested || !rec_busy_begin(c->thread))
        return;
    rec_settle();
    entered(c);
}

void rec_drop(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    waited(c);
    if (t == NULL || c->nested || !rec_busy_begin(t)) /* the end of the trace reads what changes here */
        return;
    if (may_wait(c))
        end_wait(c);
    t->carried_ns += c->event.work_ns;
    busy_end(t);
}

void rec_init(unsigned type, const void *object, uint32_t size, const void *site) {
    struct rec_key key = {(uintptr_t)object, (uintptr_t)site, SBT_TRACE_INIT, (uint8_t)type, false, 0};
    struct rec_call c;
    if (rec_profiles()) {
        rec_profile_life(&key, true, size);
        return;
    }
    if (!enter(&c, SBT_TRACE_INIT, type))
        return;
    c.node = rec_node_of(&c, (uintptr_t)object);
    if (c.node != NULL) {
        uint64_t worked = rec_apart_begin(&c);
        c.event.object = rec_node_begin(c.node, (uint8_t)type);
        __atomic_store_n(&c.node->initial, size, __ATOMIC_RELAXED); /* as in begin_life */
        if (rec_may_define(&c, c.node))
            rec_define(c.thread, TRACE_DEFINE_OBJECT, c.event.object, (uintptr_t)object);
        rec_apart_end(&c, worked);
    }
    c.event.size = size;
    c.site = site;
    c.event.site = rec_site_number(&c, site);
    entered(&c);
    rec_leave(&c, 0);
}

void rec_note(struct rec_thread *t, unsigned op, uint32_t other) {
    struct rec_call c = {
        .thread = t, .event = {.op = (uint8_t)op, .object = SBT_TRACE_NONE, .other = other, .site = SBT_TRACE_NONE}};
    if (rec_is_busy(t) || !rec_busy_begin(t))
        return;
    entered(&c);
    rec_leave(&c, 0);
}

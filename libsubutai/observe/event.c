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
 * seldom, as a new object, is measured each time (apart_begin).
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

#include "observe/profile.h"
#include "observe/stack.h"

/*
 * SHORT_NS: shorter than a time slice; used if the kernel does not show preemptions. BLOCKED_CPU_NS: what a call that
 * sleeps costs its thread. MAX_RECKONED: calls.
 */
enum { SHORT_NS = 50000, BLOCKED_CPU_NS = 4000, MAX_RECKONED = 32 };

uint64_t rec_cpu_ns(void) {
    struct timespec t;
    sbt_clock_read(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t above_zero(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* Has the thread been on its core since the mark was set, `ns` ago? */
static inline bool stayed(const struct rec_thread *t, uint64_t ns) {
    return SBT_LIKELY(rec_unpreempted(t->mark)) || (t->mark == &rec_preempt_nowhere && ns <= SHORT_NS);
}

/* Read CPU time. The time that this takes counts neither for a call nor for work. */
static SBT_NOINLINE uint64_t read_cpu(struct rec_thread *t) {
    t->cpu_ns = rec_cpu_ns();
    t->n_reckoned = 0;
    rec_preempt_arm(t->mark);
    return rec_now_ns();
}

/* The time since the end of the last event was the recorder's own. */
static SBT_NOINLINE void no_work(struct rec_thread *t) {
    uint64_t now = rec_now_ns(), ns = above_zero(now, t->end_ns);
    if (stayed(t, ns))
        t->cpu_ns += ns;
    else
        now = read_cpu(t);
    t->end_ns = now;
}

static void define_pending(struct rec_thread *t, uint32_t i);

/*
 * Record the events of handlers that came while the recorder was at work. More may come at any time. Relaxed: the
 * handlers are this thread's own.
 */
static SBT_NOINLINE void drain(struct rec_thread *t) {
    for (uint32_t i = 0;;) {
        uint32_t n = t->n_pending;
        for (; i < n; i++) {
            define_pending(t, i);
            rec_put(t, &t->pending[i]);
            rec_encode(t);
        }
        if (__atomic_compare_exchange_n(&t->n_pending, &n, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
    }
    no_work(t);
}

static inline void busy_end(struct rec_thread *t) {
    if (SBT_UNLIKELY(t->n_pending != 0))
        drain(t);
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE); /* pairs with rec_finish */
}

void rec_busy_end(struct rec_thread *t) {
    busy_end(t);
}

/*
 * Around a look-up that is not in the thread's cache, before the call has begun: it takes 20 ns, or a page fault if the
 * object is new. That time counts neither for the call nor for work. The result of apart_begin is how long the thread
 * has worked so far; it is that again after apart_end.
 */
static inline uint64_t apart_begin(const struct rec_call *c) {
    return c->nested ? 0 : above_zero(rec_now_ns(), c->thread->end_ns);
}

static inline void apart_end(const struct rec_call *c, uint64_t worked) {
    struct rec_thread *t = c->thread;
    if (c->nested)
        return;
    rec_settle();
    uint64_t end = rec_now_ns() - above_zero(worked, rec.reading_ns), ns = above_zero(end, t->end_ns);
    if (stayed(t, ns)) {
        t->cpu_ns += ns;
        t->end_ns += ns;
    }
}

static SBT_NOINLINE struct rec_node *find_node(struct rec_call *c, uintptr_t address) {
    __typeof(&c->thread->objects[0]) cached = &c->thread->objects[REC_CACHE_PLACE(address)];
    uint64_t worked = apart_begin(c);
    struct rec_node *node = rec_node_at(address);
    if (!c->nested && node != NULL)
        REC_CACHE(cached, address, node, node);
    apart_end(c, worked);
    return node;
}

static inline struct rec_node *node_of(struct rec_call *c, uintptr_t address) {
    __typeof(&c->thread->objects[0]) cached = &c->thread->objects[REC_CACHE_PLACE(address)];
    return SBT_LIKELY(cached->address == address) ? cached->node : find_node(c, address);
}

/*
 * Write down the address behind a number. The block always has room for one. The time that a flush takes counts neither
 * as work nor as waiting.
 */
static void defined(struct rec_thread *t) {
    if (SBT_UNLIKELY(!trace_encoder_has_room(&t->encoder))) {
        uint64_t wall_ns = rec_now_ns(), cpu_ns = rec_cpu_ns();
        rec_flush(t);
        t->cpu_ns += rec_cpu_ns() - cpu_ns;
        t->end_ns += rec_now_ns() - wall_ns;
    }
}

static void define(struct rec_thread *t, enum trace_definition what, uint32_t number, uintptr_t address) {
    trace_define(&t->encoder, what, number, address);
    defined(t);
}

static void define_made(struct rec_thread *t, uint32_t object, uint32_t site, uint32_t size) {
    trace_define_made(&t->encoder, object, site, size);
    defined(t);
}

/*
 * Write down what is known of an object if its init was not seen: it was made by a parent process, or is in static
 * storage.
 */
static SBT_NOINLINE void seen_first(struct rec_call *c, struct rec_node *node, uint8_t type, const void *object) {
    int value = 0;
    if (type == SBT_TRACE_BARRIER) /* glibc and our engines have the count in the same place */
        node->initial = c->event.size = ((const struct sbt_barrier *)object)->count;
    if (type == SBT_TRACE_SEM && sbt_sem_getvalue((sem_t *)(uintptr_t)object, &value) == 0)
        node->initial = (uint32_t)(value > 0 ? value : 0);
}

/*
 * The number is given: its definition is written now, or, in a handler on top of the recorder, by the next look-up that
 * is not one's.
 */
static bool may_define(const struct rec_call *c, struct rec_node *node) {
    if (c->nested)
        __atomic_store_n(&node->undefined, 1, __ATOMIC_RELAXED);
    return !c->nested;
}

/* Is there a definition to be written, and by the caller? */
static inline bool takes_definition(const struct rec_call *c, struct rec_node *node) {
    return SBT_UNLIKELY(__atomic_load_n(&node->undefined, __ATOMIC_RELAXED) != 0) && !c->nested &&
           __atomic_exchange_n(&node->undefined, 0, __ATOMIC_RELAXED) != 0;
}

static void define_life(const struct rec_call *c, uint32_t number, const void *object, bool made, uint32_t site,
                        uint32_t size) {
    define(c->thread, TRACE_DEFINE_OBJECT, number, (uintptr_t)object);
    if (made)
        define_made(c->thread, number, site, size);
}

/* In a profile, of a lock of which the init was seen. If another thread is quicker a number is lost. */
static bool claim_lock(const struct rec_call *c, struct rec_node *node, uint8_t type, const void *object,
                       uint32_t site) {
    if (!rec_is_lock(type) || !rec.profile)
        return false;
    uint32_t number = __atomic_fetch_add(&rec.n_objects, 1, __ATOMIC_RELAXED); /* it only has to be unique */
    if (!rec_node_claim_made(node, type, number, c->nested))
        return false;
    if (!c->nested)
        define_life(c, number, object, true, site, 0);
    return true;
}

/* The node is of another type: a life begins there, if no other thread is quicker. */
static SBT_NOINLINE void claim(struct rec_call *c, struct rec_node *node, uint8_t type, const void *object) {
    uint64_t worked = apart_begin(c), signals;
    bool made = __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) == REC_MADE;
    uint32_t site = node->number, size = node->initial;
    if (made && claim_lock(c, node, type, object, site)) {
        apart_end(c, worked);
        return;
    }
    if (rec_node_claim(node, type, &rec.n_objects, &signals)) {
        if (made) /* its number was a site's */
            node->before = SBT_TRACE_NONE;
        if (!c->is_over)
            seen_first(c, node, type, object);
        bool defines = may_define(c, node);
        rec_node_claimed(node, type, signals);
        if (defines)
            define_life(c, node->number, object, made, site, size);
    }
    apart_end(c, worked);
}

/* The number of the object at that address. No memory: SBT_TRACE_NONE, and *node is NULL. */
static inline uint32_t object_number(struct rec_call *c, struct rec_node **node, uint8_t type, const void *object) {
    *node = node_of(c, (uintptr_t)object);
    if (SBT_UNLIKELY(*node == NULL))
        return SBT_TRACE_NONE;
    if (SBT_UNLIKELY(__atomic_load_n(&(*node)->type, __ATOMIC_ACQUIRE) != type))
        claim(c, *node, type, object);
    if (takes_definition(c, *node))
        define(c->thread, TRACE_DEFINE_OBJECT, (*node)->number, (uintptr_t)object);
    return (*node)->number;
}

/* A call site that no thread has used yet. The time that this takes counts neither as work nor as waiting. */
static SBT_NOINLINE void new_site(struct rec_thread *t, struct rec_node *node, uintptr_t address) {
    uint64_t wall_ns = rec_now_ns(), cpu_ns = rec_cpu_ns();
    rec_module_of(address);
    t->cpu_ns += rec_cpu_ns() - cpu_ns;
    t->end_ns += rec_now_ns() - wall_ns;
    define(t, TRACE_DEFINE_SITE, node->number, address);
}

static SBT_NOINLINE uint32_t find_site(struct rec_call *c, uintptr_t address) {
    struct rec_thread *t = c->thread;
    uint64_t worked = apart_begin(c), signals;
    struct rec_node *node = rec_node_at(address);
    if (node == NULL)
        return SBT_TRACE_NONE;
    if (__atomic_load_n(&node->type, __ATOMIC_ACQUIRE) != REC_SITE &&
        rec_node_claim(node, REC_SITE, &rec.n_sites, &signals)) {
        bool defines = may_define(c, node);
        rec_node_claimed(node, REC_SITE, signals);
        if (defines)
            new_site(t, node, address);
    }
    if (takes_definition(c, node))
        new_site(t, node, address);
    if (!c->nested)
        REC_CACHE(&t->sites[REC_CACHE_PLACE(address)], address, number, node->number);
    apart_end(c, worked);
    return node->number;
}

static inline uint32_t site_number(struct rec_call *c, const void *site) {
    __typeof(&c->thread->sites[0]) cached = &c->thread->sites[REC_CACHE_PLACE((uintptr_t)site)];
    return SBT_LIKELY(cached->address == (uintptr_t)site) ? cached->number : find_site(c, (uintptr_t)site);
}

uint32_t rec_number_of(struct rec_thread *t, uint8_t type, uintptr_t object) {
    struct rec_call c = {.thread = t, .is_over = true};
    return object_number(&c, &c.node, type, (const void *)object);
}

uint32_t rec_site_of(struct rec_thread *t, uintptr_t site) {
    struct rec_call c = {.thread = t};
    return site_number(&c, (const void *)site);
}

void rec_define_late(struct rec_thread *t, uintptr_t object, uint32_t number) {
    struct rec_call c = {.thread = t};
    struct rec_node *node = rec_node_find(object);
    if (node != NULL && takes_definition(&c, node))
        define(t, TRACE_DEFINE_OBJECT, number, object);
}

/* What a handler's event names, and the handler could not define. */
static void define_pending(struct rec_thread *t, uint32_t i) {
    if (t->pending_object[i] != 0)
        rec_define_late(t, t->pending_object[i], t->pending[i].object);
    if (t->pending_site[i] != 0)
        (void)rec_site_of(t, t->pending_site[i]);
}

/* The site of a routine is behind its first byte, as a return address is behind its call. */
void rec_routine(uint32_t thread, const void *routine) {
    struct rec_thread *t = rec_self;
    if (t == NULL || t->generation != sbt_fork_generation() || t->busy != 0 || !rec_busy_begin(t))
        return;
    uint32_t site = rec_site_of(t, (uintptr_t)routine + 1);
    if (site != SBT_TRACE_NONE) {
        trace_define_routine(&t->encoder, thread, site);
        defined(t);
    }
    busy_end(t);
}

/* The call begins now; the time since the last event was work. */
static inline void begin(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    uint64_t now = rec_now_ns(), gap = above_zero(now, t->end_ns), work = gap, site = UINT64_C(1) << t->last_site;
    if (SBT_LIKELY(stayed(t, gap))) {
        t->cpu_ns += gap;
        t->long_after &= ~site;
    } else {
        uint64_t before = t->cpu_ns;
        now = read_cpu(t);
        work = above_zero(t->cpu_ns, before);
        work = work < gap ? work : gap;
        t->long_after = gap > SHORT_NS ? t->long_after | site : t->long_after & ~site;
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
    c->nested = t->busy != 0;
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

static inline void entered(struct rec_call *c) {
    if (SBT_UNLIKELY(c->nested)) {
        c->begin_ns = rec_now_ns();
        return;
    }
    begin(c);
    if (SBT_UNLIKELY(rec.profile))
        rec_profile_write_if_due(c->thread, c->begin_ns);
    else if (SBT_UNLIKELY(rec.stack_min_ns != 0))
        hint(c);
    if (sleeps(c->event.op))
        rec_preempt_disarm(c->thread->mark);
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
        c->event.object = object_number(c, &c->node, (uint8_t)type, object);
    c->site = site;
    if (site != NULL)
        c->event.site = site_number(c, site);
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
    c->event.object = object_number(c, &c->node, SBT_TRACE_COND, cond);
    c->event.other = object_number(c, &c->mutex, SBT_TRACE_MUTEX, mutex);
    c->site = site;
    c->event.site = site_number(c, site);
    entered(c);
    return true;
}

static SBT_NOINLINE void leave_nested(struct rec_call *c) {
    struct rec_thread *t = c->thread;
    uint32_t i = t->n_pending;
    c->event.took_ns = rec_now_ns() - c->begin_ns;
    do {
        if (i == REC_N_PENDING) {
            rec_lost(t, 1);
            return;
        }
    } while (!__atomic_compare_exchange_n(&t->n_pending, &i, i + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    t->pending[i] = c->event; /* the interrupted code reads it, and goes on after this handler */
    t->pending_object[i] = c->node != NULL ? c->node->address : 0;
    t->pending_site[i] = (uintptr_t)c->site;
}

/*
 * Copied field by field: a wide load of what was just stored in parts would wait until all of it has reached the cache.
 */
static inline void put(struct rec_thread *t, const struct sbt_trace_event *from) {
    struct sbt_trace_event *to = &t->batch[t->n_batch];
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
        return read_cpu(t);
    t->cpu_ns += took_ns < BLOCKED_CPU_NS ? took_ns : BLOCKED_CPU_NS;
    t->n_reckoned++;
    rec_preempt_arm(t->mark);
    return rec_now_ns();
}

/* The rest of a call that is over: the thread's times, and its batch. The thread is busy. */
static inline void leave(struct rec_call *c, uint64_t took, uint64_t now, bool stack) {
    struct rec_thread *t = c->thread;
    t->last_site = c->event.site % 64;
    /* A handler's event in between has set the mark anew. */
    if (SBT_LIKELY(t->end_ns == c->begin_ns && stayed(t, took)))
        t->cpu_ns += took;
    else
        now = c->event.type == SBT_TRACE_SPIN ? read_cpu(t) : end_of_blocked(t, took);
    t->end_ns = now;
    if (SBT_UNLIKELY(t->n_batch == REC_N_BATCH))
        rec_encode(t);
    if (SBT_UNLIKELY(t->n_batch == 0 || stack))
        no_work(t);
    busy_end(t);
}

void rec_leave(struct rec_call *c, int result) {
    struct rec_thread *t = c->thread;
    if (SBT_UNLIKELY(t == NULL))
        return;
    waited(c);
    c->event.result = (uint16_t)result;
    c->event.at_ns = above_zero(c->begin_ns, rec.start_ns);
    if (SBT_UNLIKELY(c->nested)) {
        leave_nested(c);
        return;
    }
    if (SBT_UNLIKELY(!rec_busy_begin(t)))
        return;
    rec_settle();
    uint64_t now = rec_now_ns();
    /* Events of handlers that came during the call are in the trace already, although this call began before them. */
    uint64_t took = above_zero(now, c->begin_ns);
    c->event.took_ns = took;
    bool stack = wants_stack(c, took);
    if (stack)
        c->event.stack = rec_stack_take(t, c->site);
    put(t, &c->event);
    leave(c, took, now, stack);
}

void rec_left(struct rec_call *c, uint64_t took, uint64_t now) {
    waited(c);
    leave(c, took, now, false);
}

void rec_drop(struct rec_call *c) {
    waited(c);
    if (c->thread != NULL && !c->nested)
        c->thread->carried_ns += c->event.work_ns;
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
    c.node = node_of(&c, (uintptr_t)object);
    if (c.node != NULL) {
        uint64_t worked = apart_begin(&c);
        c.event.object = rec_node_begin(c.node, (uint8_t)type);
        c.node->initial = size;
        if (may_define(&c, c.node))
            define(c.thread, TRACE_DEFINE_OBJECT, c.event.object, (uintptr_t)object);
        apart_end(&c, worked);
    }
    c.event.size = size;
    c.site = site;
    c.event.site = site_number(&c, site);
    entered(&c);
    rec_leave(&c, 0);
}

void rec_note(struct rec_thread *t, unsigned op, uint32_t other) {
    struct rec_call c = {
        .thread = t, .event = {.op = (uint8_t)op, .object = SBT_TRACE_NONE, .other = other, .site = SBT_TRACE_NONE}};
    if (t->busy != 0 || !rec_busy_begin(t))
        return;
    entered(&c);
    rec_leave(&c, 0);
}

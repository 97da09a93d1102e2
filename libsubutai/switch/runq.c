/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Run queues: each carrier has a FIFO queue of runnable fibers, as in Go's scheduler. A woken fiber is queued where its
 * waker runs: it will want what the waker has in its cache, and the waker often waits itself in a moment. A carrier
 * with nothing to run takes half of another carrier's queue.
 *
 * Should an idle carrier be woken for a fiber? If the waker goes on computing, yes. If the waker waits the next moment,
 * it costs a system call and a core for nothing. So a carrier measures how much CPU time it spends between a wake-up of
 * an idle carrier and its next switch. If that was less than SOON_NS, it skips twice as many occasions as the time
 * before, until a wake-up, or the monitor, shows that another carrier was needed. CPU time is measured and not the
 * clock, because the woken carrier may be given the very core of the waker.
 *
 * Everything here is a relaxed hint, except what a run queue's lock protects, and the idle mask. The order of the idle
 * mask and a queue's length is argued in push.
 */
#include "switch/runq.h"

#include "os/fence.h"
#include "switch/pin.h"
#include "switch/runq_pop.h"
#include "switch/serve.h"
#include "switch/state.h"
#include "switch/tuning.h"

/* CPU time of the kernel thread. */
static uint64_t cpu_time_ns(void) {
    struct timespec t;
    sbt_syscall3(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- waking an idle carrier ---- */
static void wake_carrier(struct sbt_switch_state *s, uint32_t i) {
    struct sbt_carrier *x = &s->carrier[i];
    __atomic_store_n(&x->asleep, 0, __ATOMIC_RELEASE);
    sbt_futex_wake(&x->asleep, 1);
}

/* Wake a sleeping carrier: `wish` if that sleeps, otherwise any. False: none sleeps. */
static bool wake_idle(struct sbt_switch_state *s, uint32_t wish) {
    uint64_t idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
    while (idle != 0) {
        uint32_t i = (idle >> wish & 1) != 0 ? wish : (uint32_t)__builtin_ctzll(idle);
        if ((__atomic_fetch_and(&s->idle, ~((uint64_t)1 << i), __ATOMIC_ACQ_REL) >> i & 1) != 0) {
            wake_carrier(s, i);
            return true;
        }
        idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
    }
    return false;
}

/* A carrier has made a fiber runnable in its own queue: wake an idle carrier, unless that was of no use recently. */
static void wake_to_help(struct sbt_switch_state *s, struct sbt_carrier *self) {
    uint32_t left = __atomic_load_n(&self->skip_left, __ATOMIC_RELAXED);
    if (left > 0) {
        __atomic_store_n(&self->skip_left, left - 1, __ATOMIC_RELAXED);
        return;
    }
    if (wake_idle(s, 0)) {
        self->woke = true;
        self->woke_at_ns = cpu_time_ns();
    }
}

/* A fiber was made runnable in x's queue, by the carrier `self`; NULL: by a thread on no carrier. */
static SBT_NOINLINE void wake_for(struct sbt_switch_state *s, const struct sbt_carrier *x, struct sbt_carrier *self,
                                  uint64_t idle) {
    if (self == NULL && (idle >> (x - s->carrier) & 1) != 0)
        wake_idle(s, (uint32_t)(x - s->carrier));
    else if (__atomic_load_n(&s->searching, __ATOMIC_RELAXED) != 0)
        return; /* a searching carrier will find it */
    else if (self == NULL)
        wake_idle(s, 0);
    else
        wake_to_help(s, self);
}

void sbt_runq_call_help(struct sbt_carrier *x) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (__atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0 || __atomic_load_n(&s->searching, __ATOMIC_RELAXED) != 0)
        return;
    sbt_handlers_hold(); /* no other thread wakes an idle carrier after this clears its bit */
    wake_idle(s, 0);
    sbt_handlers_release();
}

static inline void wake_monitor(struct sbt_switch_state *s) {
    if (SBT_UNLIKELY(__atomic_load_n(&s->monitor_sleeps, __ATOMIC_RELAXED) != 0) &&
        __atomic_exchange_n(&s->monitor_sleeps, 0, __ATOMIC_RELAXED) != 0)
        sbt_futex_wake(&s->monitor_sleeps, 1);
}

void sbt_runq_wake_monitor(void) {
    sbt_fence_light(); /* pairs with the heavy fence of the monitor that goes to sleep */
    wake_monitor(SBT_SWITCH);
}

void sbt_runq_tell_monitor_alone(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t asleep = SBT_MONITOR_SLEEPS_UNTIL_ALONE;
    sbt_fence_light(); /* as above */
    if (SBT_UNLIKELY(__atomic_load_n(&s->monitor_sleeps, __ATOMIC_RELAXED) == asleep) &&
        __atomic_compare_exchange_n(&s->monitor_sleeps, &asleep, SBT_MONITOR_AWAKE, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        sbt_futex_wake(&s->monitor_sleeps, 1);
}

/* ---- queueing ---- */
static uint32_t this_cpu(void) {
    unsigned cpu = 0;
    sbt_syscall3(SYS_getcpu, &cpu, NULL, NULL);
    return cpu;
}

void sbt_runq_note_cpu(struct sbt_carrier *x) {
    __atomic_store_n(&x->cpu, this_cpu(), __ATOMIC_RELAXED);
}

/*
 * Choose a carrier from a set that is not empty. A parked home thread is about to leave its core, so it chooses the
 * carrier that last slept on that core: the kernel will let it run there. Another carrier might find its own core
 * taken, and the core that is left stays idle for many ms (streamcluster, 2 threads: 25 of 90).
 */
static uint32_t choose(const struct sbt_switch_state *s, uint64_t of, bool by_home_thread) {
    uint32_t first = (uint32_t)__builtin_ctzll(of), here = by_home_thread && (of & (of - 1)) != 0 ? this_cpu() : 0;
    for (; by_home_thread && of != 0; of &= of - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(of);
        if (__atomic_load_n(&s->carrier[i].cpu, __ATOMIC_RELAXED) == here)
            return i;
    }
    return first;
}

/*
 * For a thread on no carrier, or on a server: a carrier that searches, else a carrier that sleeps, else the next in
 * rotation. No server.
 */
static struct sbt_carrier *choose_carrier(struct sbt_switch_state *s, bool by_home_thread) {
    uint64_t idle = __atomic_load_n(&s->searching, __ATOMIC_RELAXED);
    if (idle == 0)
        idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
    uint32_t n_active = __atomic_load_n(&s->n_active, __ATOMIC_RELAXED);
    if (SBT_UNLIKELY(n_active == 0)) /* a handler has forked; this is the child, which has no carriers */
        return NULL;
    uint32_t i = idle != 0 ? choose(s, idle, by_home_thread)
                           : sbt_switch_servers + __atomic_fetch_add(&s->next_carrier, 1, __ATOMIC_RELAXED) %
                                                      (n_active - sbt_switch_servers);
    return &s->carrier[i];
}

/* The caller has the run queue's lock. */
static void put_first(struct sbt_carrier *x, struct sbt_fiber *f) {
    struct sbt_runq *q = &x->queue[SBT_WOKEN];
    f->next = q->head;
    q->head = f;
    if (q->tail == NULL)
        q->tail = f;
    __atomic_store_n(&x->n, x->n + 1, __ATOMIC_RELAXED);
}

/* The caller has the run queue's lock, and `last` is the end of the list. */
static inline void put_last(struct sbt_carrier *x, struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n,
                            enum sbt_runq_of which) {
    struct sbt_runq *q = &x->queue[which];
    last->next = NULL;
    if (q->tail != NULL)
        q->tail->next = first;
    else
        q->head = first;
    q->tail = last;
    __atomic_store_n(&x->n, x->n + n, __ATOMIC_RELAXED);
}

/* x runs the caller. Handlers are deferred by the caller. */
static inline void append_here(struct sbt_carrier *x, struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n,
                               enum sbt_runq_of which) {
    sbt_own_lock_enter(&x->lock);
    put_last(x, first, last, n, which);
    sbt_own_lock_leave(&x->lock);
}

static void prepend_here(struct sbt_carrier *x, struct sbt_fiber *f) {
    sbt_own_lock_enter(&x->lock);
    put_first(x, f);
    sbt_own_lock_leave(&x->lock);
}

/*
 * By any thread; `is_here`: x runs it. Handlers are deferred by the caller, or blocked because the caller is a parked
 * home thread.
 */
static SBT_NOINLINE void append(struct sbt_carrier *x, bool is_here, struct sbt_fiber *first, struct sbt_fiber *last,
                                uint32_t n, enum sbt_runq_of which) {
    if (SBT_LIKELY(is_here)) {
        append_here(x, first, last, n, which);
        return;
    }
    sbt_own_lock_visit(&x->lock);
    put_last(x, first, last, n, which);
    sbt_own_lock_depart(&x->lock);
}

static void prepend(struct sbt_carrier *x, struct sbt_fiber *f) {
    sbt_own_lock_visit(&x->lock);
    put_first(x, f);
    sbt_own_lock_depart(&x->lock);
}

static void send_home(struct sbt_fiber *first, uint32_t n) {
    for (struct sbt_fiber *next; n > 0; first = next, n--) {
        next = first->next;
        sbt_pin_send_home(first);
    }
}

static bool are_carriers_useless(const struct sbt_switch_state *s) {
    return (__atomic_load_n(&s->all_held, __ATOMIC_RELAXED) | __atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED)) != 0;
}

/* A fiber is in x's run queue now. */
static inline void tell(struct sbt_switch_state *s, const struct sbt_carrier *x, struct sbt_carrier *self) {
    if (__atomic_load_n(&s->pushes, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&s->pushes, 1, __ATOMIC_RELAXED);
    /*
     * Pairs with the heavy fences of a carrier and of the monitor that go to sleep. They announce that, fence, and look
     * at the queue. This queues, fences, and looks at the announcements. So one of the two sees the other.
     */
    sbt_fence_light();
    wake_monitor(s);
    uint64_t idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
    if (idle != 0)
        wake_for(s, x, self, idle);
}

static void push(struct sbt_carrier *self, struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n,
                 enum sbt_runq_of which, bool by_home_thread) {
    struct sbt_switch_state *s = SBT_SWITCH;
    self = SBT_UNLIKELY(sbt_serves(self)) ? NULL : self;
    struct sbt_carrier *x = self;
    if (x == NULL && SBT_UNLIKELY(are_carriers_useless(s))) {
        send_home(first, n);
        return;
    }
    if (x == NULL)
        x = choose_carrier(s, by_home_thread);
    if (SBT_UNLIKELY(x == NULL))
        return;
    append(x, self != NULL, first, last, n, which);
    tell(s, x, self);
}

void sbt_runq_push(struct sbt_carrier *self, struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n,
                   enum sbt_runq_of which) {
    sbt_handlers_hold();
    push(self, first, last, n, which, false);
    sbt_handlers_release();
}

void sbt_runq_push_woken(struct sbt_carrier *x, struct sbt_fiber *f) {
    append_here(x, f, f, 1, SBT_WOKEN);
    tell(SBT_SWITCH, x, x);
}

void sbt_runq_push_first(struct sbt_carrier *self, struct sbt_fiber *f) {
    sbt_handlers_hold();
    prepend_here(self, f);
    tell(SBT_SWITCH, self, self);
    sbt_handlers_release();
}

void sbt_runq_push_from_home(struct sbt_fiber *f, enum sbt_runq_of which) {
    push(NULL, f, f, 1, which, true);
}

/*
 * The light fence pairs with the heavy fence of a server that goes to sleep: either this sees `asleep`, or the server
 * sees the fiber.
 */
static void serve(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_runq_of which, bool first) {
    struct sbt_switch_state *s = SBT_SWITCH;
    if (SBT_UNLIKELY(are_carriers_useless(s))) {
        send_home(f, 1);
        return;
    }
    if (SBT_UNLIKELY(__atomic_load_n(&x->held, __ATOMIC_RELAXED) != 0 ||
                     __atomic_load_n(&s->n_active, __ATOMIC_RELAXED) == 0)) {
        push(NULL, f, f, 1, which, false);
        return;
    }
    if (first)
        prepend(x, f);
    else
        append(x, false, f, f, 1, which);
    if (__atomic_load_n(&s->pushes, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&s->pushes, 1, __ATOMIC_RELAXED);
    sbt_fence_light();
    wake_monitor(s);
    if (__atomic_load_n(&x->asleep, __ATOMIC_RELAXED) != 0)
        wake_carrier(s, (uint32_t)(x - s->carrier));
}

void sbt_runq_serve(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_runq_of which, bool first) {
    sbt_handlers_hold();
    serve(x, f, which, first);
    sbt_handlers_release();
}

/* ---- how useful wake-ups are ---- */
static uint32_t more(uint32_t skip) {
    return skip == 0 ? 1 : skip < SKIP_MOST ? skip * 2 : skip;
}

static void set_skip(struct sbt_carrier *x, uint32_t skip) {
    __atomic_store_n(&x->skip, skip, __ATOMIC_RELAXED);
    __atomic_store_n(&x->skip_left, skip, __ATOMIC_RELAXED);
}

void sbt_runq_judge(struct sbt_carrier *x) {
    bool soon = cpu_time_ns() - x->woke_at_ns < SOON_NS;
    uint32_t skip = __atomic_load_n(&x->skip, __ATOMIC_RELAXED);
    if (soon)
        skip = more(skip);
    else if (__atomic_load_n(&x->robbed_in_vain, __ATOMIC_RELAXED) < VAIN_MANY)
        skip = 0;
    set_skip(x, skip);
    x->woke = false;
}

void sbt_runq_learn(struct sbt_carrier *x, bool in_vain) {
    uint32_t n = in_vain ? __atomic_load_n(&x->robbed_in_vain, __ATOMIC_RELAXED) + 1 : 0;
    if (n < VAIN_MANY) {
        __atomic_store_n(&x->robbed_in_vain, n, __ATOMIC_RELAXED);
        return;
    }
    uint32_t skip = more(__atomic_load_n(&x->skip, __ATOMIC_RELAXED));
    __atomic_store_n(&x->robbed_in_vain, VAIN_MANY, __ATOMIC_RELAXED);
    set_skip(x, skip);
}

/* ---- taking ---- */

/*
 * A fiber that yielded waits for other fibers, perhaps for a fiber that has been woken since. So woken fibers go first,
 * but not for ever. (A fiber may look for long before it yields again, or waits. At PARSEC's barrier with 64 threads
 * each woken fiber would stand behind 31 fibers that look 35 000 times.)
 */
static bool prefers_woken(struct sbt_carrier *x) {
    bool both = x->queue[SBT_WOKEN].head != NULL;
    bool turn = both && x->preferred >= PREFERRED_MOST;
    x->preferred = both && !turn ? x->preferred + 1 : 0;
    return both && !turn;
}

/*
 * The same among fibers that yielded: one that has got something done since it yielded last goes before those that have
 * not, which wait for such fibers. (A C++20 semaphore's release wakes all that wait. The first takes all tokens, and
 * each of the others yields four times before it waits again.)
 */
static bool prefers_fresh(struct sbt_carrier *x) {
    bool fresh = x->queue[SBT_FRESH].head != NULL, both = fresh && x->queue[SBT_YIELDED].head != NULL;
    bool turn = both && x->n_fresh >= FRESH_MOST;
    x->n_fresh = both && !turn ? x->n_fresh + 1 : 0;
    return fresh && !turn;
}

enum sbt_runq_of sbt_runq_prefer(struct sbt_carrier *x) {
    return prefers_woken(x) ? SBT_WOKEN : prefers_fresh(x) ? SBT_FRESH : SBT_YIELDED;
}

struct sbt_fiber *sbt_runq_take(struct sbt_carrier *x) {
    sbt_handlers_hold();
    sbt_own_lock_visit(&x->lock);
    struct sbt_fiber *f = sbt_runq_take_first(x);
    if (f != NULL)
        __atomic_fetch_add(&x->stolen, 1, __ATOMIC_RELAXED);
    sbt_own_lock_depart(&x->lock);
    sbt_handlers_release();
    return f;
}

/* Fibers taken from a carrier, by queue. */
struct loot {
    struct sbt_fiber *first[SBT_RUNQS], *last[SBT_RUNQS];
    uint32_t n[SBT_RUNQS];
};

/* Take half of the fibers of `from`, with its lock held. The result is how many those are. */
static uint32_t take_half(struct sbt_carrier *from, struct loot *loot) {
    uint32_t half = (from->n + 1) / 2, all = 0;
    for (int k = 0; k < SBT_RUNQS; k++) {
        struct sbt_runq *q = &from->queue[k];
        loot->first[k] = q->head;
        for (loot->n[k] = 0; all < half && q->head != NULL; all++, loot->n[k]++) {
            loot->last[k] = q->head;
            q->head = q->head->next;
        }
        if (q->head == NULL)
            q->tail = NULL;
    }
    if (all > 0) {
        __atomic_store_n(&from->n, from->n - all, __ATOMIC_RELAXED);
        __atomic_fetch_add(&from->stolen, 1, __ATOMIC_RELAXED);
    }
    return all;
}

bool sbt_runq_steal(struct sbt_carrier *x, struct sbt_carrier *from) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct loot loot;
    sbt_handlers_hold(); /* handlers are deferred because no thread runs a fiber that is in neither queue */
    sbt_own_lock_visit(&from->lock);
    uint32_t all = take_half(from, &loot);
    sbt_own_lock_depart(&from->lock);
    for (int k = 0; k < SBT_RUNQS; k++)
        if (loot.n[k] > 0)
            append(x, true, loot.first[k], loot.last[k], loot.n[k], (enum sbt_runq_of)k);
    sbt_handlers_release();
    /* If there is enough for a third carrier, this one, which is awake, passes the wake-up on. */
    if (all > 1 && (__atomic_load_n(&s->searching, __ATOMIC_RELAXED) & ~((uint64_t)1 << (x - s->carrier))) == 0)
        wake_idle(s, 0);
    return all > 0;
}

void sbt_runq_give_away(struct sbt_carrier *x) {
    for (struct sbt_fiber *f; (f = sbt_runq_take(x)) != NULL;)
        sbt_runq_push(NULL, f, f, 1, SBT_WOKEN);
}

/*
 * From now on carriers take their run queues' locks. A handler that cannot be deferred may have interrupted its own
 * thread under one of them. It would wait for itself, so it visits none: a lock that is owned stays so until its next
 * visitor, which finds that heavy fences are refused.
 */
void sbt_switch_before_filter(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    sbt_own_lock_forbid();
    if (SBT_UNLIKELY(sbt_self.handlers_held != 0))
        return;
    for (uint32_t i = 0; i < sbt_switch_n_carriers(s); i++) {
        sbt_handlers_hold();
        sbt_own_lock_visit(&s->carrier[i].lock);
        sbt_own_lock_depart(&s->carrier[i].lock);
        sbt_handlers_release();
    }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Ready contexts: a FIFO queue for each carrier. A woken context is queued where its waker runs, because it will want
 * what the waker has in its cache, and the waker is often about to wait itself; a carrier with nothing to do takes half
 * of another's queue.
 *
 * Should an idle carrier be woken for it? If the waker goes on computing, yes; if it waits the next moment, that costs
 * a system call and a core for nothing. The carrier measures how much CPU time it spends between such a wake-up and its
 * next switch: when that was less than SOON_NS, it passes over twice as many occasions as the time before, until one
 * wake-up, or the watcher, finds that somebody was needed. CPU time, because the one that was woken may be given the
 * very core of the waker.
 */
#include "switch/inner.h"

#define SOON_NS 10000
#define SKIP_MOST 16384
#define PREFERRED_MOST 64

/* Of the kernel thread. */
static uint64_t cpu_time_ns(void) {
    struct timespec t;
    sbt_syscall3(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &t, 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Relaxed hints everywhere but in the idle mask, whose order against the queue's length is argued in push. */

static void wake_carrier(struct sbt_switch_state *s, uint32_t i) {
    struct sbt_carrier *x = &s->carrier[i];
    __atomic_store_n(&x->asleep, 0, __ATOMIC_RELEASE);
    sbt_futex_wake(&x->asleep, 1);
}

/* Wake one that sleeps, `wish` if it does, any other otherwise. False: none sleeps. */
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

static uint32_t this_cpu(void) {
    unsigned cpu = 0;
    sbt_syscall3(SYS_getcpu, &cpu, NULL, NULL);
    return cpu;
}

void sbt_ready_note_cpu(struct sbt_carrier *x) {
    __atomic_store_n(&x->cpu, this_cpu(), __ATOMIC_RELAXED);
}

/*
 * One of them, that there are. For a husk, which is about to leave its core: the one that slept there last, and that
 * the kernel will let run there. Another might find its own core taken; the one that is left then stays idle for many
 * ms (streamcluster, 2 threads: 25 of 90).
 */
static uint32_t choose(const struct sbt_switch_state *s, uint64_t of, bool by_husk) {
    uint32_t first = (uint32_t)__builtin_ctzll(of), here = by_husk && (of & (of - 1)) != 0 ? this_cpu() : 0;
    for (; by_husk && of != 0; of &= of - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(of);
        if (__atomic_load_n(&s->carrier[i].cpu, __ATOMIC_RELAXED) == here)
            return i;
    }
    return first;
}

/* Handlers are put off already, or on a husk blocked. */
static void append(struct sbt_carrier *x, struct sbt_context *first, struct sbt_context *last, uint32_t n,
                   enum sbt_queue_of which) {
    struct sbt_queue *q = &x->queue[which];
    last->next = NULL;
    sbt_guard_take(&x->guard);
    if (q->tail != NULL)
        q->tail->next = first;
    else
        q->head = first;
    q->tail = last;
    __atomic_store_n(&x->n, x->n + n, __ATOMIC_RELAXED);
    sbt_guard_drop(&x->guard);
}

static void push(struct sbt_carrier *self, struct sbt_context *first, struct sbt_context *last, uint32_t n,
                 enum sbt_queue_of which, bool by_husk) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct sbt_carrier *x = self;
    if (x == NULL && SBT_UNLIKELY((__atomic_load_n(&s->all_held, __ATOMIC_RELAXED) |
                                   __atomic_load_n(&s->all_home, __ATOMIC_RELAXED)) != 0)) {
        for (struct sbt_context *next; n > 0; first = next, n--) {
            next = first->next;
            sbt_home_call(first);
        }
        return;
    }
    if (x == NULL) { /* from outside: a carrier that looks for something, one that sleeps, or the next in turn */
        uint64_t idle = __atomic_load_n(&s->searching, __ATOMIC_RELAXED);
        if (idle == 0)
            idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
        if (SBT_UNLIKELY(s->n_carriers == 0)) /* a handler has forked, and this is the child: nobody is to run there */
            return;
        uint32_t i = idle != 0 ? choose(s, idle, by_husk)
                               : __atomic_fetch_add(&s->next_carrier, 1, __ATOMIC_RELAXED) % s->n_carriers;
        x = &s->carrier[i];
    }
    append(x, first, last, n, which);
    if (__atomic_load_n(&s->pushes, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&s->pushes, 1, __ATOMIC_RELAXED);
    /* Pairs with the heavy ones of a carrier and of the watcher that go to sleep: one of the two sees the other. */
    sbt_fence_light();
    if (SBT_UNLIKELY(__atomic_load_n(&s->watcher_sleeps, __ATOMIC_RELAXED) != 0) &&
        __atomic_exchange_n(&s->watcher_sleeps, 0, __ATOMIC_RELAXED) != 0)
        sbt_futex_wake(&s->watcher_sleeps, 1);
    uint64_t idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED);
    if (idle == 0)
        return;
    if (self == NULL && (idle >> (x - s->carrier) & 1) != 0) {
        wake_idle(s, (uint32_t)(x - s->carrier));
        return;
    }
    if (__atomic_load_n(&s->searching, __ATOMIC_RELAXED) != 0)
        return;
    if (self == NULL) {
        wake_idle(s, 0);
        return;
    }
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

void sbt_ready_push(struct sbt_carrier *self, struct sbt_context *first, struct sbt_context *last, uint32_t n,
                    enum sbt_queue_of which) {
    sbt_handlers_hold();
    push(self, first, last, n, which, false);
    sbt_handlers_release();
}

void sbt_ready_push_from_husk(struct sbt_context *c, enum sbt_queue_of which) {
    push(NULL, c, c, 1, which, true);
}

static uint32_t more(uint32_t skip) {
    return skip == 0 ? 1 : skip < SKIP_MOST ? skip * 2 : skip;
}

void sbt_ready_judge(struct sbt_carrier *x) {
    bool soon = cpu_time_ns() - x->woke_at_ns < SOON_NS;
    uint32_t skip = __atomic_load_n(&x->skip, __ATOMIC_RELAXED);
    if (soon)
        skip = more(skip);
    else if (__atomic_load_n(&x->robbed_in_vain, __ATOMIC_RELAXED) < SBT_VAIN_MANY)
        skip = 0;
    __atomic_store_n(&x->skip, skip, __ATOMIC_RELAXED);
    __atomic_store_n(&x->skip_left, skip, __ATOMIC_RELAXED);
    x->woke = false;
}

void sbt_ready_learn(struct sbt_carrier *x, bool in_vain) {
    uint32_t n = in_vain ? __atomic_load_n(&x->robbed_in_vain, __ATOMIC_RELAXED) + 1 : 0;
    if (n < SBT_VAIN_MANY) {
        __atomic_store_n(&x->robbed_in_vain, n, __ATOMIC_RELAXED);
        return;
    }
    uint32_t skip = more(__atomic_load_n(&x->skip, __ATOMIC_RELAXED));
    __atomic_store_n(&x->robbed_in_vain, SBT_VAIN_MANY, __ATOMIC_RELAXED);
    __atomic_store_n(&x->skip, skip, __ATOMIC_RELAXED);
    __atomic_store_n(&x->skip_left, skip, __ATOMIC_RELAXED);
}

/*
 * Who gave way waits for others, perhaps for one that has been woken since: let that go first, but not for ever. (It
 * may look for long before it gives way again, or waits: PARSEC's barrier, 64 threads, would have each woken one stand
 * behind 31 that look 35 000 times.)
 */
static struct sbt_context *take_first(struct sbt_carrier *x) {
    bool both = x->queue[SBT_WOKEN].head != NULL && x->queue[SBT_GAVE_WAY].head != NULL;
    bool turn = both && x->preferred >= PREFERRED_MOST;
    struct sbt_queue *q = &x->queue[x->queue[SBT_WOKEN].head == NULL || turn ? SBT_GAVE_WAY : SBT_WOKEN];
    struct sbt_context *c = q->head;
    if (c == NULL)
        return NULL;
    x->preferred = both && !turn ? x->preferred + 1 : 0;
    q->head = c->next;
    if (q->head == NULL)
        q->tail = NULL;
    __atomic_store_n(&x->n, x->n - 1, __ATOMIC_RELAXED);
    return c;
}

struct sbt_context *sbt_ready_pop(struct sbt_carrier *x) {
    if (__atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0)
        return NULL;
    sbt_switch_take(&x->guard);
    struct sbt_context *c = take_first(x);
    sbt_switch_drop(&x->guard);
    if (c != NULL)
        __atomic_store_n(&x->pops, x->pops + 1, __ATOMIC_RELAXED);
    return c;
}

struct sbt_context *sbt_ready_take(struct sbt_carrier *x) {
    sbt_switch_take(&x->guard);
    struct sbt_context *c = take_first(x);
    if (c != NULL)
        __atomic_fetch_add(&x->stolen, 1, __ATOMIC_RELAXED);
    sbt_switch_drop(&x->guard);
    return c;
}

bool sbt_ready_steal(struct sbt_carrier *x, struct sbt_carrier *from) {
    struct sbt_context *first[SBT_QUEUES], *last[SBT_QUEUES];
    uint32_t n[SBT_QUEUES] = {0};
    sbt_handlers_hold(); /* what is in neither queue is run by nobody */
    sbt_guard_take(&from->guard);
    uint32_t half = (from->n + 1) / 2, all = 0;
    for (int k = 0; k < SBT_QUEUES; k++) {
        struct sbt_queue *q = &from->queue[k];
        first[k] = q->head;
        for (; all < half && q->head != NULL; all++, n[k]++) {
            last[k] = q->head;
            q->head = q->head->next;
        }
        if (q->head == NULL)
            q->tail = NULL;
    }
    if (all > 0) {
        __atomic_store_n(&from->n, from->n - all, __ATOMIC_RELAXED);
        __atomic_fetch_add(&from->stolen, 1, __ATOMIC_RELAXED);
    }
    sbt_guard_drop(&from->guard);
    for (int k = 0; k < SBT_QUEUES; k++)
        if (n[k] > 0)
            append(x, first[k], last[k], n[k], (enum sbt_queue_of)k);
    sbt_handlers_release();
    if (all > 1) {
        struct sbt_switch_state *s = SBT_SWITCH;
        /* Enough for a third: the carrier that is awake passes the call on. */
        if ((__atomic_load_n(&s->searching, __ATOMIC_RELAXED) & ~((uint64_t)1 << (x - s->carrier))) == 0)
            wake_idle(s, 0);
    }
    return all > 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The order of locks in a profile: which lock a thread took while it held which other. For each pair the thread has an
 * entry in a table of PROFILE_N_ORDERS places, with the call sites of the first time, where stacks are wanted with the
 * call stack too, and with the gates: other locks that were held each time, under which an inverted order cannot
 * deadlock. Locks that are held for reading are told apart, since two readers do not wait for each other.
 *
 * The list of held locks costs a program without nested locks two stores an acquisition; a nested lock looks into the
 * table. Memory and disk are bounded: a pair has its place within PROBES of its hash. If these are taken one of
 * them is written and given away, PROFILE_N_ORDERS times between two flushes; later pairs wait for the next flush.
 * Objects without a number are in no order: a report could not tell them apart. Nor are semaphores, which another
 * thread may give back.
 *
 * The list may be wrong for a while: a lock that another thread gives back, or that is held when the thread leaves a
 * function by longjmp, stays in it until the thread takes it again, or PROFILE_N_NESTED newer ones have pushed it out.
 *
 * A handler of the thread's may come in between; while `busy` is set it makes no order. It usually gives back what it
 * takes, and leaves the list as it found it. One that keeps a lock, or gives back the thread's, makes the list wrong in
 * the same way; the list's bounds hold all the same.
 */
#include <string.h>
#include <sys/syscall.h>

#include "observe/profile.h"
#include "observe/stack.h"
#include "os/signals.h"

enum { PROBES = 4, LOG_ORDERS = 9 };
_Static_assert(1 << LOG_ORDERS == PROFILE_N_ORDERS, "its binary logarithm");

static uint32_t lives_of(const struct rec_order *o) {
    return __atomic_load_n(&rec_hint_of(o->held)->lives, __ATOMIC_RELAXED) +
           __atomic_load_n(&rec_hint_of(o->taken)->lives, __ATOMIC_RELAXED);
}

/* The pair's entry; else a place for it, which is free or another pair's. */
static struct rec_order *place_of(struct rec_profile *p, uintptr_t held, uintptr_t taken) {
    uint32_t at = rec_order_place(held, taken);
    struct rec_order *first = &p->orders[at], *room = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        struct rec_order *o = &p->orders[(at + i) % PROFILE_N_ORDERS];
        if (o->held == held && o->taken == taken)
            return o;
        if (room == NULL && o->held == 0)
            room = o;
    }
    return room != NULL ? room : first;
}

/* The thread's hold of that lock; NULL: none. */
static const struct rec_nested *hold_of(const struct rec_profile *p, uintptr_t object) {
    for (uint32_t i = 0; i < p->n_nested; i++)
        if (p->nested[i].object == object)
            return &p->nested[i];
    return NULL;
}

static void put(struct rec_profile *p, struct rec_order *o) {
    if (o->n == 0 || o->held_number == SBT_TRACE_NONE || o->taken_number == SBT_TRACE_NONE)
        return;
    struct sbt_trace_order order = {
        .thread = p->thread->number,
        .held = o->held_number,
        .taken = o->taken_number,
        .held_site = o->held_site_number,
        .taken_site = o->taken_site_number,
        .n = o->n,
        .stack = o->stack,
        .held_shared = o->held_shared,
        .taken_shared = o->taken_shared,
    };
    for (uint32_t i = 0; i < o->n_gates; i++)
        if (o->gate[i].number != SBT_TRACE_NONE) {
            order.gate_shared[order.n_gates] = o->gate[i].shared;
            order.gate[order.n_gates++] = o->gate[i].number;
        }
    rec_profile_put_order(p, &order, &o->n);
}

static struct rec_gate gate_of(struct rec_profile *p, const struct rec_nested *held) {
    struct rec_key key = {held->object, held->site, held->op, held->type, false, 0};
    return (struct rec_gate){held->object, rec_profile_number_for(p, &key), held->shared};
}

/* A pair that is new, or has an object that may be another one than before. The thread and its profile are busy.
 * False: there is no room for it. */
static bool begin_order(struct rec_profile *p, struct rec_order *o, const struct rec_nested *held,
                        const struct rec_key *taken) {
    struct rec_key key = {held->object, held->site, 0, held->type, false, 0};
    uint32_t held_number = rec_profile_number_for(p, &key), taken_number = rec_profile_number_for(p, taken);
    bool same = o->held == held->object && o->taken == taken->object && o->held_number == held_number &&
                o->taken_number == taken_number;
    if (!same) {
        if (o->n != 0 && p->n_orders_written >= PROFILE_N_ORDERS)
            return false;
        if (o->n != 0 && ++p->n_orders_written == PROFILE_MANY_PAIRS)
            rec_profile_hurry(p);
        put(p, o);
        o->n = 0; /* before the rest: the thread may be interrupted for good */
        __atomic_signal_fence(__ATOMIC_RELEASE);
        *o = (struct rec_order){.held = held->object,
                                .taken = taken->object,
                                .held_site = held->site,
                                .taken_site = taken->site,
                                .held_number = held_number,
                                .taken_number = taken_number,
                                .held_site_number = rec_site_of(p->thread, held->site),
                                .taken_site_number = rec_site_of(p->thread, taken->site),
                                .held_shared = held->shared,
                                .taken_shared = rec_is_shared(taken->op)};
        for (uint32_t i = 0; i < p->n_nested && o->n_gates < SBT_TRACE_MOST_GATES; i++)
            if (p->nested[i].object != held->object && p->nested[i].type != SBT_TRACE_SEM)
                o->gate[o->n_gates++] = gate_of(p, &p->nested[i]);
        if (rec.stack_min_ns != 0)
            o->stack = rec_stack_take(p->thread, __builtin_frame_address(0), (const void *)taken->site);
    }
    o->lives = lives_of(o);
    return true;
}

static void count(struct rec_profile *p, const struct rec_nested *held, const struct rec_key *taken) {
    struct rec_order *o = place_of(p, held->object, taken->object);
    bool other = o->held != held->object || o->taken != taken->object;
    if (SBT_UNLIKELY(other || o->lives != lives_of(o))) {
        bool no_room = other && o->n != 0 && p->n_orders_written >= PROFILE_N_ORDERS;
        if (no_room || !rec_busy_begin(p->thread))
            return;
        bool begun = begin_order(p, o, held, taken);
        rec_busy_end(p->thread);
        if (!begun)
            return;
    }
    o->held_shared &= held->shared;
    o->taken_shared &= rec_is_shared(taken->op);
    for (uint32_t i = 0; i < o->n_gates;) {
        const struct rec_nested *gate = hold_of(p, o->gate[i].object);
        if (gate != NULL) {
            o->gate[i++].shared |= gate->shared;
        } else { /* in this order: if the thread is interrupted for good, a gate may be there twice */
            o->gate[i] = o->gate[o->n_gates - 1];
            __atomic_signal_fence(__ATOMIC_RELEASE);
            o->n_gates--;
        }
    }
    __atomic_signal_fence(__ATOMIC_RELEASE); /* what is counted has passed no other gates */
    o->n += o->n < UINT32_MAX;
}

/* A handler that comes in between puts its locks behind the last one. What it keeps, or gives back, is overlooked. */
static void drop(struct rec_profile *p, uint32_t i) {
    uint32_t n = p->n_nested;
    if (i >= n)
        return;
    memmove(&p->nested[i], &p->nested[i + 1], (n - 1 - i) * sizeof p->nested[0]);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    p->n_nested = n - 1;
}

SBT_NOINLINE void rec_profile_nested(struct rec_profile *p, const struct rec_key *key) {
    for (uint32_t i = 0; i < p->n_nested; i++)
        if (p->nested[i].object == key->object)
            drop(p, i--);
    if (p->n_nested == PROFILE_N_NESTED)
        drop(p, 0);
    bool is_try = key->op == SBT_TRACE_MUTEX_TRYLOCK || key->op == SBT_TRACE_RWLOCK_TRYRDLOCK ||
                  key->op == SBT_TRACE_RWLOCK_TRYWRLOCK || key->op == SBT_TRACE_SPIN_TRYLOCK;
    if (is_try || key->type == SBT_TRACE_SEM || p->n_nested == 0 || p->busy != 0 || p->thread->busy != 0 ||
        !rec_profile_begin_change(p))
        return;
    if (p->orders == NULL)
        p->orders = rec_profile_map(p, PROFILE_N_ORDERS * sizeof *p->orders, LOG_ORDERS, &p->book->orders);
    for (uint32_t i = 0; p->orders != NULL && i < p->n_nested; i++)
        if (p->nested[i].type != SBT_TRACE_SEM)
            count(p, &p->nested[i], key);
    rec_profile_end_change(p);
}

SBT_NOINLINE void rec_profile_unnested(struct rec_profile *p, uintptr_t object) {
    for (uint32_t i = p->n_nested; i-- > 0;)
        if (p->nested[i].object == object) {
            drop(p, i);
            return;
        }
}

/* Another thread's list, which it may change meanwhile: then a hold may be overlooked, or be one that has just ended.
 */
__attribute__((no_sanitize("thread"))) static bool holds(const struct rec_profile *p, uintptr_t object) {
    uint32_t n = p->n_nested;
    for (uint32_t i = 0; i < n && i < PROFILE_N_NESTED; i++)
        if (p->nested[i].object == object)
            return true;
    return false;
}

/* Relaxed: the thread that is found may give the lock back, or end, at this moment. */
static uint32_t holder(uintptr_t object) {
    for (const struct rec_thread *t = __atomic_load_n(&rec.threads, __ATOMIC_ACQUIRE); t != NULL; t = t->next)
        if (t != rec_self && t->profile != NULL && __atomic_load_n(&t->state, __ATOMIC_RELAXED) == REC_LIVE &&
            holds(t->profile, object))
            return __atomic_load_n(&t->number, __ATOMIC_RELAXED);
    return SBT_TRACE_NONE;
}

/*
 * Records and profiles stay mapped as long as the process lives, and those of a forked child's parent are in no list.
 * No handler comes in between: if it forked, the child would go on here with records that it has unmapped.
 */
uint32_t rec_profile_holder(uintptr_t object) {
    uint64_t signals = sbt_signals_block();
    uint32_t found = holder(object);
    sbt_signals_restore(signals);
    return found;
}

void rec_profile_put_orders(struct rec_profile *p) {
    for (uint32_t i = 0; p->orders != NULL && i < PROFILE_N_ORDERS; i++)
        put(p, &p->orders[i]);
    p->n_orders_written = 0;
}

void rec_profile_clear_orders(struct rec_profile *p) {
    if (p->orders != NULL)
        memset(p->orders, 0, PROFILE_N_ORDERS * sizeof *p->orders);
}

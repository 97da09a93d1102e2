/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/det/turn.h"

#include <stddef.h>

#define WORD_BITS 64

/* turn_state_of may be reading it. */
static void set_state(struct turn *t, uint32_t i, enum turn_state state) {
    __atomic_store_n(&t->thread[i].state, (uint8_t)state, __ATOMIC_SEQ_CST);
}

/* It is read without what serializes the calls. */
static void set_offer(struct turn *t, uint32_t i, enum turn_offer offer) {
    __atomic_store_n(&t->offer[i], (uint8_t)offer, __ATOMIC_RELAXED);
}

static void set_runnable(struct turn *t, uint32_t i) {
    t->runnable[i / WORD_BITS] |= (uint64_t)1 << i % WORD_BITS;
    set_state(t, i, TURN_RUNNABLE);
    __atomic_store_n(&t->n_runnable, t->n_runnable + 1, __ATOMIC_RELAXED);
}

static void clear_back(struct turn *t, uint32_t i) {
    if (t->thread[i].is_back)
        __atomic_store_n(&t->n_back, t->n_back - 1, __ATOMIC_RELAXED);
    t->thread[i].is_back = false;
}

static void clear_runnable(struct turn *t, uint32_t i, enum turn_state state) {
    clear_back(t, i);
    t->runnable[i / WORD_BITS] &= ~((uint64_t)1 << i % WORD_BITS);
    set_state(t, i, state);
    __atomic_store_n(&t->n_runnable, t->n_runnable - 1, __ATOMIC_RELAXED);
}

void turn_begin(struct turn *t, uint64_t seed) {
    t->random = seed;
    t->next_due = TURN_NEVER;
    t->kept_ns = TURN_KEPT_NS;
    t->holder = turn_create(t);
}

uint32_t turn_create(struct turn *t) {
    for (uint32_t i = 0; i < TURN_THREADS; i++)
        if (t->thread[i].state == TURN_FREE) {
            if (i >= t->n_threads)
                t->n_threads = i + 1;
            set_runnable(t, i);
            return i;
        }
    return TURN_NO_THREAD;
}

void turn_end(struct turn *t) {
    clear_runnable(t, t->holder, TURN_ENDED);
}

/* A thread that goes on alone reads it without what serializes the calls. */
static void set_n_soft(struct turn *t, uint32_t n) {
    t->n_soft = n;
    __atomic_store_n(&t->kept_ns, n == 0 ? TURN_KEPT_NS : TURN_NS, __ATOMIC_RELAXED);
}

static void clear_soft(struct turn *t, uint32_t i) {
    if (t->thread[i].is_soft)
        set_n_soft(t, t->n_soft - 1);
    t->thread[i].is_soft = false;
}

void turn_release(struct turn *t, uint32_t i) {
    turn_wake_thread(t, i, TURN_INTERRUPTED);
    clear_soft(t, i);
    set_offer(t, i, TURN_NO_OFFER);
    if (t->thread[i].state == TURN_RUNNABLE)
        clear_runnable(t, i, TURN_FREE);
    set_state(t, i, TURN_FREE);
}

/* ---- choosing ---- */

/* The first runnable thread from that number on. */
static uint32_t runnable_from(const struct turn *t, uint32_t from) {
    for (uint32_t i = from; i < t->n_threads; i = (i / WORD_BITS + 1) * WORD_BITS) {
        uint64_t bits = t->runnable[i / WORD_BITS] >> i % WORD_BITS;
        if (bits != 0)
            return i + (uint32_t)__builtin_ctzll(bits);
    }
    return TURN_NO_THREAD;
}

static uint32_t nth_runnable(const struct turn *t, uint32_t n) {
    uint32_t i = runnable_from(t, 0);
    while (n-- > 0)
        i = runnable_from(t, i + 1);
    return i;
}

/* Steele, Lea, Flood: SplitMix64 (OOPSLA 2014). */
static uint64_t draw(struct turn *t) {
    uint64_t z = t->random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static uint32_t choose_from(struct turn *t, uint32_t after) {
    if (t->n_runnable == 0)
        return TURN_NO_THREAD;
    if (t->random != 0)
        return nth_runnable(t, (uint32_t)(draw(t) % t->n_runnable));
    uint32_t next = after == TURN_NO_THREAD ? TURN_NO_THREAD : runnable_from(t, after + 1);
    return next != TURN_NO_THREAD ? next : runnable_from(t, 0);
}

static bool has_deadline(const struct turn_thread *thread) {
    return (thread->state == TURN_BLOCKED && thread->deadline != TURN_NEVER) || thread->state == TURN_SECTION;
}

enum deadlines { ALL, SOFT, SEEN };

static bool is_among(const struct turn_thread *thread, enum deadlines which) {
    bool is_seen = !thread->is_absent || thread->overdue;
    return has_deadline(thread) && (which == ALL || (which == SOFT ? thread->is_soft : is_seen));
}

/* The thread with the earliest of these deadlines; of several, the one with the lowest number. */
static uint32_t earliest(const struct turn *t, enum deadlines which) {
    uint32_t found = TURN_NO_THREAD;
    for (uint32_t i = 0; i < t->n_threads; i++)
        if (is_among(&t->thread[i], which) &&
            (found == TURN_NO_THREAD || t->thread[i].deadline < t->thread[found].deadline))
            found = i;
    return found;
}

static void end_section(struct turn *t, uint32_t i, enum turn_reason reason) {
    clear_soft(t, i);
    t->thread[i].reason = (uint8_t)reason;
    set_runnable(t, i);
}

/* No thread is runnable: those that wait for turns alone would wait for ever. */
static void end_soft(struct turn *t) {
    while (t->n_runnable == 0 && t->n_soft != 0) { /* an absent thread is woken and not runnable */
        uint32_t first = earliest(t, SOFT);
        if (t->thread[first].state == TURN_SECTION)
            end_section(t, first, TURN_WOKEN);
        else
            turn_wake_thread(t, first, TURN_TIMED_OUT);
    }
}

static void wake_due(struct turn *t) {
    uint32_t first;
    if (t->now < t->next_due)
        return;
    while ((first = earliest(t, ALL)) != TURN_NO_THREAD && t->thread[first].deadline <= t->now)
        if (t->thread[first].state == TURN_SECTION)
            end_section(t, first, TURN_TIMED_OUT);
        else
            turn_wake_thread(t, first, TURN_TIMED_OUT);
    t->next_due = first == TURN_NO_THREAD ? TURN_NEVER : t->thread[first].deadline;
}

/*
 * No thread is runnable. An absent thread does not see its deadline pass outside: a signal handler runs in its place,
 * and may itself wait for a later time. If it has seen that before, it is woken, and is not runnable: time jumps again.
 */
static void jump(struct turn *t) {
    uint32_t first;
    while (t->n_runnable == 0 && t->next_due != TURN_NEVER) {
        first = earliest(t, SEEN);
        if (first == TURN_NO_THREAD || !t->thread[first].overdue)
            return;
        if (t->now < t->thread[first].deadline)
            t->now = t->thread[first].deadline;
        wake_due(t);
    }
}

static uint32_t choose(struct turn *t, uint32_t after) {
    end_soft(t);
    jump(t);
    uint32_t next = choose_from(t, after);
    if (next != TURN_NO_THREAD)
        clear_back(t, next);
    __atomic_store_n(&t->holder, next, __ATOMIC_SEQ_CST); /* pairs with the look of a thread that is about to sleep */
    return next;
}

uint32_t turn_pass(struct turn *t) {
    __atomic_store_n(&t->now, t->now + TURN_NS, __ATOMIC_RELAXED); /* stalls are looked for without a lock */
    wake_due(t);
    return choose(t, t->holder);
}

bool turn_keep(struct turn *t) {
    uint64_t after = t->now + __atomic_load_n(&t->kept_ns, __ATOMIC_RELAXED); /* as in set_n_soft */
    if (after >= t->next_due)
        return false;
    __atomic_store_n(&t->now, after, __ATOMIC_RELAXED);
    return true;
}

uint32_t turn_choose(struct turn *t) {
    return choose(t, t->holder);
}

/* ---- offers ---- */

bool turn_offer(struct turn *t, uint32_t i) {
    if (t->holder == i || t->thread[i].state != TURN_RUNNABLE)
        return false;
    set_offer(t, i, TURN_OFFERED);
    return true;
}

uint32_t turn_serve(struct turn *t) {
    uint32_t i = t->holder;
    if (i == TURN_NO_THREAD || t->offer[i] != TURN_OFFERED || t->thread[i].state != TURN_RUNNABLE)
        return TURN_NO_THREAD;
    set_offer(t, i, TURN_SERVED);
    t->thread[i].key = 0; /* it is not back from a wait: nothing is to be passed on */
    return i;
}

bool turn_withdraw(struct turn *t, uint32_t i) {
    bool is_served = t->offer[i] == TURN_SERVED;
    set_offer(t, i, TURN_NO_OFFER);
    return !is_served;
}

/* ---- blocked threads ---- */

/* To the queue of its key. */
static void append(struct turn *t, uint32_t i) {
    uint32_t q = turn_queue_of(t->thread[i].key);
    if (t->queue[q].first == 0)
        t->queue[q].first = i + 1;
    else
        t->thread[t->queue[q].last - 1].next = i + 1;
    t->queue[q].last = i + 1;
}

/* A served thread reads `state` and `overdue` meanwhile, without what serializes the calls. */
void turn_block(struct turn *t, uintptr_t key, uint64_t deadline, uint8_t tag, bool can_cancel) {
    uint32_t i = t->holder;
    struct turn_thread *thread = &t->thread[i];
    thread->key = key;
    thread->deadline = deadline;
    thread->next = thread->bits = 0;
    thread->reason = 0;
    thread->tag = tag;
    thread->can_cancel = can_cancel;
    thread->is_absent = thread->is_back = thread->is_soft = false;
    __atomic_store_n(&thread->overdue, false, __ATOMIC_RELAXED);
    clear_runnable(t, i, TURN_BLOCKED);
    append(t, i);
    if (deadline < t->next_due)
        t->next_due = deadline;
}

void turn_soften(struct turn *t) {
    t->thread[t->holder].is_soft = true;
    set_n_soft(t, t->n_soft + 1);
}

void turn_give_up(struct turn *t, uint64_t turns) {
    uint32_t i = t->holder;
    uint64_t end = t->now + (turns + 1) * TURN_NS; /* the holder's own turn is over first */
    t->thread[i] = (struct turn_thread){.deadline = end, .is_soft = true};
    clear_runnable(t, i, TURN_SECTION);
    set_n_soft(t, t->n_soft + 1);
    if (end < t->next_due)
        t->next_due = end;
}

static void cut_out(struct turn *t, uint32_t i, uint32_t before) {
    struct turn_thread *thread = &t->thread[i];
    uint32_t q = turn_queue_of(thread->key);
    if (before == 0)
        t->queue[q].first = thread->next;
    else
        t->thread[before - 1].next = thread->next;
    if (t->queue[q].last == i + 1)
        t->queue[q].last = before;
    thread->next = 0;
}

static void unqueue(struct turn *t, uint32_t i, uint32_t before, enum turn_reason reason) {
    struct turn_thread *thread = &t->thread[i];
    clear_soft(t, i);
    cut_out(t, i, before);
    thread->reason = (uint8_t)reason;
    if (thread->is_absent) {
        set_state(t, i, TURN_OUTSIDE);
    } else {
        set_runnable(t, i);
        thread->is_back = true;
        __atomic_store_n(&t->n_back, t->n_back + 1, __ATOMIC_RELAXED);
    }
    thread->is_absent = false;
}

/* bits NULL: all that wait for the key. Of a futex an absent thread never counts, although its wake-up is exact. */
static uint32_t wake(struct turn *t, uintptr_t key, uint32_t n, const uint32_t *bits) {
    uint32_t woken = 0, before = 0;
    for (uint32_t at = t->queue[turn_queue_of(key)].first, next; at != 0 && woken < n; at = next) {
        const struct turn_thread *thread = &t->thread[at - 1];
        next = thread->next;
        if (thread->key == key && (bits == NULL || (thread->bits & *bits) != 0)) {
            woken += !thread->is_absent || (bits == NULL && thread->tag == TURN_EXACT);
            unqueue(t, at - 1, before, TURN_WOKEN);
        } else {
            before = at;
        }
    }
    return woken;
}

uint32_t turn_wake(struct turn *t, uintptr_t key, uint32_t n) {
    return wake(t, key, n, NULL);
}

uint32_t turn_wake_bits(struct turn *t, uintptr_t key, uint32_t n, uint32_t bits) {
    return wake(t, key, n, &bits);
}

/* Where both keys have one queue, those that have been moved come again, with the other key. */
uint32_t turn_move(struct turn *t, uintptr_t from, uintptr_t to, uint32_t n) {
    uint32_t moved = 0, before = 0;
    for (uint32_t at = t->queue[turn_queue_of(from)].first, next; at != 0 && moved < n; at = next) {
        struct turn_thread *thread = &t->thread[at - 1];
        next = thread->next;
        bool is_one = thread->key == from && !thread->is_absent;
        moved += is_one;
        if (is_one && from != to) {
            cut_out(t, at - 1, before);
            thread->key = to;
            append(t, at - 1);
        } else {
            before = at;
        }
    }
    return moved;
}

uint32_t turn_first(const struct turn *t, uintptr_t key) {
    uint32_t at = t->queue[turn_queue_of(key)].first;
    while (at != 0 && t->thread[at - 1].key != key)
        at = t->thread[at - 1].next;
    return at == 0 ? TURN_NO_THREAD : at - 1;
}

void turn_wake_thread(struct turn *t, uint32_t i, enum turn_reason reason) {
    uint32_t before = 0;
    if (t->thread[i].state != TURN_BLOCKED)
        return;
    for (uint32_t at = t->queue[turn_queue_of(t->thread[i].key)].first; at != i + 1; at = t->thread[at - 1].next)
        before = at;
    unqueue(t, i, before, reason);
}

void turn_go_on(struct turn *t, uint32_t i) {
    clear_back(t, i);
}

uint32_t turn_last_back(const struct turn *t) {
    if (t->n_back == 0)
        return TURN_NO_THREAD;
    uint32_t from = t->holder == TURN_NO_THREAD ? 0 : t->holder, i = from;
    do
        i = i == 0 ? t->n_threads - 1 : i - 1;
    while (!t->thread[i].is_back && i != from);
    return i;
}

uint32_t turn_waiting(const struct turn *t, uintptr_t key, uint8_t tag) {
    uint32_t n = 0;
    for (uint32_t at = t->queue[turn_queue_of(key)].first; at != 0; at = t->thread[at - 1].next)
        n += t->thread[at - 1].key == key && t->thread[at - 1].tag == tag;
    return n;
}

/* ---- outside ---- */

void turn_leave(struct turn *t) {
    t->thread[t->holder].key = 0; /* it is not back from a wait: nothing is to be passed on */
    clear_runnable(t, t->holder, TURN_OUTSIDE);
}

void turn_expel(struct turn *t, uint32_t i) {
    clear_runnable(t, i, TURN_OUTSIDE);
}

void turn_return(struct turn *t, uint32_t i) {
    set_runnable(t, i);
}

void turn_absent(struct turn *t, uint32_t i) {
    struct turn_thread *thread = &t->thread[i];
    if (thread->state == TURN_BLOCKED) {
        thread->is_absent = true;
    } else if (thread->state == TURN_RUNNABLE) {
        clear_runnable(t, i, TURN_OUTSIDE);
        if (thread->reason == TURN_WOKEN && thread->tag != TURN_EXACT)
            turn_wake(t, thread->key, 1);
    }
}

bool turn_present(struct turn *t, uint32_t i) {
    t->thread[i].is_absent = false;
    if (t->thread[i].state != TURN_OUTSIDE)
        return false;
    set_runnable(t, i);
    return true;
}

void turn_overdue(struct turn *t, uint32_t i) {
    __atomic_store_n(&t->thread[i].overdue, true, __ATOMIC_RELAXED); /* its thread reads it */
}

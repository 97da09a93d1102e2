/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a thread counts; see profile.h. */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "observe/profile.h"

_Thread_local struct rec_profile *rec_profile_self __attribute__((tls_model("initial-exec")));

/* Nodes of objects until which an init makes one, for the sake of where the object was made. */
enum { MAX_MADE = 1 << 18 };

static struct rec_profile *new_profile(void) {
    struct rec_profile *p = rec_map(sizeof *p);
    if (p == NULL || rec_profile_begin_book(p))
        return p;
    sbt_syscall3(SYS_munmap, p, sizeof *p, 0);
    return NULL;
}

static void renew(struct rec_profile *p) {
    struct rec_counts objects = p->objects, sites = p->sites;
    struct trace_live_book *book = p->book;
    struct rec_order *orders = p->orders;
    uint64_t book_at = p->book_at;
    book->putting = 0;
    rec_counts_clear(&objects);
    rec_counts_clear(&sites);
    rec_profile_clear_orders(p);
    rec_misses_end(&p->misses);
    memset(&book->encoder, 0, offsetof(struct trace_tally_encoder, bytes));
    memset(p, 0, offsetof(struct rec_profile, filter));
    p->objects = objects;
    p->sites = sites;
    p->book = book;
    p->book_at = book_at;
    p->orders = orders;
}

void rec_profile_begin(struct rec_thread *t) {
    struct rec_profile *p = t->profile;
    if (p != NULL)
        renew(p);
    else if ((p = t->profile = new_profile()) == NULL)
        return;
    p->thread = t;
    p->generation = t->generation;
    p->book->encoder.thread = t->number;
    t->book_at = p->book_at;
    p->random = UINT64_C(0x9E3779B97F4A7C15) + t->number;
    p->sample_in = 1;
    p->weight = 1;
    p->stale = true;
    p->mark = &rec_preempt_mark; /* until the thread runs */
    p->seen_ns = rec_now_ns();
    p->written_ns = p->seen_ns;
    p->flush_ns = p->seen_ns + PROFILE_FLUSH_NS;
}

void rec_profile_forget(struct rec_profile *p) {
    rec_profile_forget_book(p);
    sbt_syscall3(SYS_munmap, p, sizeof *p, 0);
}

/* ---- counting; the thread is busy, and so is its profile ---- */

uint32_t rec_profile_number_for(struct rec_profile *p, const struct rec_key *key) {
    if (__atomic_load_n(&rec.n_objects, __ATOMIC_RELAXED) < PROFILE_N_NUMBERED)
        return rec_number_of(p->thread, key->type, key->object);
    struct rec_node *node = rec_node_find(key->object);
    return node != NULL && __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) == key->type ? rec_life_of(node)
                                                                                       : SBT_TRACE_NONE;
}

/* May the entry be of a life that is over? Not if its number has just been looked up. */
static bool is_over(const struct rec_key *key, const struct rec_entry *e) {
    if (key->known == 0 || e->number == SBT_TRACE_NONE)
        return false;
    struct rec_node *node = rec_node_find(e->object);
    return node == NULL || rec_life_of(node) != e->number || __atomic_load_n(&node->type, __ATOMIC_RELAXED) != e->type;
}

static void is_full(struct rec_profile *p) {
    memset(p->filter, 0, sizeof p->filter);
    for (uint32_t i = 0; i <= p->objects.mask; i++) {
        const struct rec_entry *e = &p->objects.entries[i];
        uint32_t bit = rec_filter_bit(e->object, e->site);
        p->filter[bit / 64] |= e->site != 0 ? UINT64_C(1) << bit % 64 : 0;
    }
    p->full = true;
    rec_profile_hurry(p);
}

/*
 * The number of the key's object; `e`: its entry, or NULL. If another thread has given the life its number, one look at
 * the node is enough: programs with many short lives come here for each.
 */
static uint32_t number_of(struct rec_profile *p, const struct rec_key *key, const struct rec_entry *e) {
    if (key->known != 0) {
        rec_define_late(p->thread, key->object, key->known - 1);
        return key->known - 1;
    }
    if (e != NULL && e->number == SBT_TRACE_NONE)
        return SBT_TRACE_NONE;
    struct rec_node *node = rec_node_find(key->object);
    if (node != NULL && __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) == key->type &&
        __atomic_load_n(&node->undefined, __ATOMIC_RELAXED) == 0)
        return rec_life_of(node);
    return rec_profile_number_for(p, key);
}

/* Gives the call site a number, if it has none. */
static uint16_t site_number_of(struct rec_profile *p, uintptr_t site) {
    uint32_t number = rec_site_of(p->thread, site);
    return number < PROFILE_OTHER_SITE ? (uint16_t)number : PROFILE_OTHER_SITE;
}

/* The entry of the key's object, made if need be; NULL: there is no room. */
static struct rec_entry *object_entry(struct rec_profile *p, const struct rec_key *key) {
    struct rec_entry *e = rec_counts_find(&p->objects, key);
    uint32_t lives = __atomic_load_n(&rec_hint_of(key->object)->lives, __ATOMIC_RELAXED);
    if (e != NULL) {
        uint32_t number = number_of(p, key, e);
        if (number != e->number)
            rec_profile_put(p, e);
        e->number = number;
        e->lives = lives - is_over(key, e); /* of a life that is over: the next call looks again */
        return e;
    }
    if (p->full)
        return NULL;
    struct rec_entry fresh = {.object = key->object,
                              .site = key->site,
                              .number = number_of(p, key, NULL),
                              .lives = lives,
                              .op = rec_counted_op(key),
                              .type = key->type};
    fresh.lives -= is_over(key, &fresh);
    fresh.site_number = site_number_of(p, key->site);
    e = rec_counts_put(p, &p->objects, &fresh);
    if (e == NULL)
        is_full(p);
    else if (++p->n_keys == PROFILE_MANY_KEYS) /* those of two writings have room */
        rec_profile_hurry(p);
    return e;
}

/* The entry of the call site; NULL: there is no room. No program has so many that call. */
static struct rec_entry *site_entry(struct rec_profile *p, const struct rec_key *key) {
    struct rec_key of_site = {0, key->site, key->op, key->type, key->failed, 0};
    struct rec_entry *e = rec_counts_find(&p->sites, &of_site);
    struct rec_entry fresh = {
        .site = key->site, .number = SBT_TRACE_NONE, .op = rec_counted_op(key), .type = key->type};
    if (e == NULL) {
        fresh.site_number = site_number_of(p, key->site);
        e = rec_counts_put(p, &p->sites, &fresh);
    }
    return e;
}

/* Adds `n` calls. */
static void add(struct rec_profile *p, const struct rec_key *key, uint32_t n) {
    struct rec_entry *e = key->object != 0 ? object_entry(p, key) : NULL;
    e = e != NULL ? e : site_entry(p, key);
    if (e == NULL) {
        rec_lost(p->thread, n);
        return;
    }
    if (e->n > UINT32_MAX - n)
        rec_profile_put(p, e);
    e->n += n;
}

/* ---- calls that the fast path has not counted ---- */

static bool is_same_key(const struct rec_key *a, const struct rec_key *b) {
    return a->object == b->object && a->site == b->site && a->op == b->op && a->failed == b->failed;
}

/*
 * In a handler that has interrupted its thread in the recorder: the interrupted code counts it. Another handler may
 * come in between, and put the same key in once more. All is relaxed: the handlers are this thread's own.
 */
static void pend(struct rec_profile *p, const struct rec_key *key) {
    uint32_t n = p->n_pending, i = 0;
    while (i < n && !is_same_key(&p->pending[i].key, key))
        i++;
    while (i == n && n < PROFILE_N_PENDING &&
           !__atomic_compare_exchange_n(&p->n_pending, &n, n + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        i = n;
    if (i == PROFILE_N_PENDING) {
        rec_lost(p->thread, 1);
        return;
    }
    if (i == n)
        p->pending[i].key = *key;
    __atomic_fetch_add(&p->pending[i].n, 1, __ATOMIC_RELAXED);
    p->is_pending = 1;
}

static void add_pending(struct rec_profile *p) {
    while (p->is_pending != 0) {
        p->is_pending = 0; /* a handler that comes after this sets it again */
        for (uint32_t i = 0; i < p->n_pending; i++) {
            uint32_t n = __atomic_load_n(&p->pending[i].n, __ATOMIC_RELAXED);
            if (n == 0)
                continue;
            add(p, &p->pending[i].key, n);
            /* last: if the thread is interrupted for good they count as lost */
            __atomic_fetch_sub(&p->pending[i].n, n, __ATOMIC_RELAXED);
        }
    }
}

void rec_profile_drain(struct rec_profile *p) {
    struct rec_thread *t = p->thread;
    if (p->busy != 0 || t->busy != 0 || !rec_busy_begin(t))
        return;
    __atomic_store_n(&p->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    add_pending(p);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
    rec_busy_end(t);
}

/* What handlers counted on top of the thread's last change or event, after which it counted no more. */
void rec_profile_drain_quiet(struct rec_profile *p) {
    if (p->is_pending == 0)
        return;
    p->thread->mark = &rec_preempt_nowhere; /* the mark of a thread that is gone cannot be read */
    add_pending(p);
}

uint64_t rec_profile_lost(const struct rec_thread *t) {
    uint64_t n = 0;
    for (uint32_t i = 0; t->profile != NULL && i < t->profile->n_pending; i++)
        n += __atomic_load_n(&t->profile->pending[i].n, __ATOMIC_RELAXED);
    return n;
}

static struct rec_thread *attached(void) {
    struct rec_thread *t = rec_self;
    if (SBT_UNLIKELY(t == NULL || t->generation != sbt_fork_generation()))
        t = rec_thread_attach();
    return t != NULL && t->profile != NULL ? t : NULL;
}

/* `n` is 0 or 1. */
static void add_slowly(const struct rec_key *key, uint32_t n) {
    struct rec_thread *t = attached();
    if (t == NULL || rec_is_apart(key->site))
        return;
    struct rec_profile *p = t->profile;
    if (p->busy != 0 || t->busy != 0) {
        if (n != 0 && __atomic_load_n(&rec.closing, __ATOMIC_RELAXED) == 0)
            pend(p, key);
        return;
    }
    if (!rec_busy_begin(t))
        return;
    __atomic_store_n(&p->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    add(p, key, n);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
    rec_busy_end(t);
    if (SBT_UNLIKELY(p->is_pending != 0))
        rec_profile_drain(p);
}

SBT_NOINLINE void rec_profile_count_slowly(const struct rec_key *key) {
    add_slowly(key, 1);
}

void rec_profile_make_entry(const struct rec_key *key) {
    add_slowly(key, 0);
}

/* A call that is counted for its call site alone. */
static void count_for_site(const struct rec_key *of_site) {
    struct rec_profile *p = rec_profile_mine();
    struct rec_entry *e = NULL;
    if (p != NULL && p->busy == 0 && rec_profile_begin_change(p)) {
        e = rec_counts_find(&p->sites, of_site);
        if (e != NULL && e->n < UINT32_MAX)
            e->n++;
        else
            e = NULL;
        rec_profile_end_change(p);
    }
    if (e == NULL)
        rec_profile_count_slowly(of_site);
}

void rec_profile_leave(struct rec_call *c, const void *object, const void *site, bool failed) {
    struct rec_key key = {(uintptr_t)object, (uintptr_t)site, c->event.op, c->event.type, failed, 0};
    if (c->thread != NULL && c->event.object != SBT_TRACE_NONE)
        key.known = c->event.object + 1;
    rec_drop(c);
    rec_profile_count(&key);
}

void rec_profile_life(const struct rec_key *key, bool made, uint32_t size) {
    struct rec_key all = {0, key->site, key->op, key->type, false, 0};
    struct rec_thread *t = attached();
    if (t == NULL)
        return;
    bool nested = t->busy != 0;
    if (!nested && !rec_busy_begin(t))
        return;
    struct rec_node *node = made && rec_node_count() < MAX_MADE ? rec_node_at(key->object) : rec_node_find(key->object);
    if (node != NULL) {
        uint32_t number = made && !nested ? rec_site_of(t, key->site) : SBT_TRACE_NONE;
        __atomic_store_n(&node->number, number, __ATOMIC_RELAXED); /* as in begin_life */
        __atomic_store_n(&node->initial, size, __ATOMIC_RELAXED);
        __atomic_store_n(&node->type, made && !nested ? REC_MADE : SBT_TRACE_NO_OBJECT, __ATOMIC_RELEASE);
    }
    if (!nested)
        rec_busy_end(t);
    /* Relaxed: threads that use the new object have been told of it after this. */
    __atomic_fetch_add(&rec_hint_of(key->object)->lives, 1, __ATOMIC_RELAXED);
    count_for_site(&all);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Profiles: calls that did not wait are counted, not written down one by one.
 *
 * An acquisition that did not wait costs its thread a look into a table of its own, by object and call site. It reads
 * no clock and touches nothing that other threads write, but for the hints below. A release looks at one hint. The
 * counts are written now and then as tallies (trace.h).
 *
 * Holds are timed by sampling: one acquisition in up to PROFILE_MAX_INTERVAL, less the seldomer the thread acquires, so
 * that a thread that takes a lock a thousand times a second has every hold timed. Each hold is timed of an object that
 * is held for long on average, or that the thread has acquired a few times only since the last tallies: few long holds
 * beside many short ones would mostly be missed by samples.
 *
 * A thread that finds a lock taken says so in the hint of the object's address before it waits. The hint tells the
 * thread that releases the lock to make an event of that. Objects share a hint if their addresses have the same
 * hash; so a release may be an event without a wait, which costs time only.
 *
 * Memory is bounded. A table has at most PROFILE_MAX_ENTRIES places. If it is full, new keys are counted for their call
 * site alone until the next tallies are written. Then the keys that were used least lose their places. The first
 * PROFILE_N_NUMBERED objects that are used get a number; of later ones those that a thread waits for, or that one
 * thread takes very often. Objects without a number are counted for the call site, too.
 *
 * The owner's handlers may come in between: `busy` is set while the table changes, and what a handler counts then waits
 * in `pending`. Other threads read the table when its thread is gone, or when the trace ends: then no thread begins a
 * change any more, and the changes that are under way are waited for (rec_profile_begin_change). A thread may have been
 * interrupted for good in the midst of a change: it is gone, or a handler of its own ends the process. So each change
 * can be left anywhere: it is a single store, or it says how to take it back (`changing`), whether it was done
 * (`putting`), or signals are blocked until it is done.
 */
#ifndef SBT_OBSERVE_PROFILE_H
#define SBT_OBSERVE_PROFILE_H

#include "live_format.h"
#include "observe/hint.h"
#include "observe/misses.h"
#include "observe/record.h"

enum {
    PROFILE_MIN_ENTRIES = 64,
    PROFILE_MAX_ENTRIES = 4096,  /* of a table, half of which are used at most */
    PROFILE_FEW = 8,             /* acquisitions of an entry, after each tally, that are all timed */
    PROFILE_LONG_NS = 4000,      /* timing a hold takes a hundredth of that */
    PROFILE_MAX_INTERVAL = 128,  /* acquisitions between two timed ones, on average */
    PROFILE_N_HOLDS = 8,         /* timed holds under way at a time in one thread */
    PROFILE_N_PENDING = 32,      /* keys that handlers count on top of the recorder */
    PROFILE_FILTER_BITS = 65536, /* 32 for each key of a full table */
    PROFILE_N_NUMBERED = 65536,
    PROFILE_N_NESTED = 16,        /* locks that a thread is known to hold at a time */
    PROFILE_N_PERMITS = 8,        /* semaphores of which a thread knows whether it uses them as locks */
    PROFILE_N_ORDERS = 512,       /* pairs of locks that one thread holds together */
    PROFILE_FLUSH_NS = 250000000, /* until the first tallies are written, and where keys find no room */
    PROFILE_CALM_NS = 1000000000, /* from one writing to the next where all do */
    /* New keys, and pairs that lose their places, since the last writing, from which on the next one is due soon. */
    PROFILE_MANY_KEYS = 512, /* an eighth of the table */
    PROFILE_MANY_PAIRS = 64, /* likewise */
};

/* What is counted. object 0: all objects for which there is no room. */
struct rec_key {
    uintptr_t object, site;
    uint8_t op, type;
    bool failed;
    /* The object's number, plus 1, if the call is over and the object may be gone; 0: it is to be looked up. */
    uint32_t known;
};

/* The timed holds of an entry. */
struct rec_held {
    struct rec_held_sums {
        uint64_t ns, max_ns;
        uint32_t n_timed, n;
    } sums;
    uint32_t buckets[SBT_TRACE_N_HOLD_BUCKETS];
};

/* A count is in one cache line, and with the sums of its holds; holds of 4 ns to 0.3 ms need one more. */
struct rec_entry {
    uintptr_t object, site; /* site 0: the entry is free */
    uint32_t n;             /* calls since the last tally */
    uint32_t number;        /* of the object, or SBT_TRACE_NONE */
    uint32_t lives;         /* the hint's, when the entry was last known to be of the object's life */
    uint8_t op;             /* PROFILE_FAILS is set: of calls that failed */
    uint8_t type : 7;
    bool is_long : 1;     /* its holds are long: each is timed */
    uint16_t site_number; /* PROFILE_OTHER_SITE: it is looked up */
    struct rec_held held;
} __attribute__((aligned(64)));
#define PROFILE_FAILS 0x80
#define PROFILE_OTHER_SITE UINT16_MAX

_Static_assert(offsetof(struct rec_entry, held.buckets[2]) == 64 && sizeof(struct rec_entry) == 192, "cache lines");

/* Open addressing: a key is in the first place from its hash on where it is found, before any free place. */
struct rec_counts {
    struct rec_entry *entries;
    uint32_t mask, n;              /* mask: number of places minus 1; n: of entries */
    struct trace_live_table *told; /* where the book says that the table is */
    bool is_apart;                 /* the table is not in the book's memory any more, because it has grown */
};

/* A lock that the thread holds; and a lock that it took while it held another one. See profile_order.c. */
struct rec_nested {
    uintptr_t object, site;
    uint8_t type, op;
    bool shared; /* held for reading */
};

struct rec_gate {
    uintptr_t object;
    uint32_t number;
    bool shared; /* held for reading at some time */
};

struct rec_order {
    uintptr_t held, taken, held_site, taken_site; /* held 0: the entry is free */
    uint32_t stack;                               /* where the lock was taken; 0: none was taken */
    uint32_t held_number, taken_number;
    uint32_t held_site_number, taken_site_number;
    uint32_t lives; /* the sum of both hints', when the numbers were last known to be right */
    uint32_t n;     /* since it was last written */
    uint8_t n_gates;
    bool held_shared, taken_shared; /* for reading, each time */
    struct rec_gate gate[SBT_TRACE_MOST_GATES];
};
_Static_assert(offsetof(struct rec_order, gate) == 64 && sizeof(struct rec_order) == 128,
               "without gates one cache line is enough");

/* One of the semaphores that the thread has used last. `gives_back`: as a lock. */
struct rec_permit {
    uintptr_t sem;
    bool taken, gives_back;
};

struct rec_profile {
    volatile uint32_t busy;
    uint32_t generation;                     /* as in a record */
    int32_t sample_in;                       /* acquisitions until one is timed */
    uint32_t n_holds;                        /* `holds` that are in use */
    volatile uint32_t n_pending, is_pending; /* keys of `pending`; 1: some of them have calls */
    volatile uint64_t *mark;                 /* the thread's of preemptions; without one, one that stays set */
    bool full;                               /* `objects` takes no more keys until the next tallies */
    struct rec_counts objects, sites;        /* sites: object 0, by call site */
    struct rec_thread *thread;
    uint32_t weight, next_hold; /* weight: acquisitions for which the next timed one stands */
    uint64_t random;
    uint64_t sampled_ns;           /* the last timed acquisition */
    uint64_t written_ns, flush_ns; /* when the last tallies were written, and the next ones are due */
    uint32_t n_keys;               /* that `objects` has got since then */
    /* When the thread was last seen to have been away, or an acquisition was timed by its turn; `sample_in` then; and
     * how long it takes from one acquisition to the next. */
    uint64_t seen_ns, each_ns;
    int32_t seen_in;
    /* The thread's CPU time at that moment. `stale`: the thread has been away since, and it was not read. */
    uint64_t cpu_at_ns, cpu_ns;
    bool stale;
    /* A hold is being added there; what was there, and in its bucket, before that. */
    struct rec_held_sums *volatile changing, before;
    uint32_t *bucket, bucket_before;
    /* What becomes a tally: the count that is zero afterwards, and its holds or NULL; the tallies of the block before.
     */
    uint32_t *volatile putting;
    struct rec_held *putting_held;
    uint32_t put_behind;
    uint64_t n_calls, n_calls_put; /* in the block; n_calls_put: with what becomes a tally */
    struct {
        struct rec_key key; /* object 0: free */
        uint64_t begin_ns;
        struct rec_missed missed; /* the counter, then */
        bool counts_misses, was_away;
        uint32_t weight; /* if it was not away */
    } holds[PROFILE_N_HOLDS];
    struct {
        struct rec_key key; /* stays the same */
        uint32_t n;         /* atomic */
    } pending[PROFILE_N_PENDING];
    volatile uint32_t n_nested;
    uint32_t n_orders_written; /* to make room, since the last flush */
    struct rec_nested nested[PROFILE_N_NESTED];
    struct rec_permit permits[PROFILE_N_PERMITS];
    struct rec_misses misses;
    struct trace_live_book *book;              /* what outlives a killed process, with the first tables behind it */
    uint64_t book_at;                          /* where it is in the file; 0: in private memory */
    struct rec_order *orders;                  /* [PROFILE_N_ORDERS]; NULL: no lock was nested yet */
    uint64_t filter[PROFILE_FILTER_BITS / 64]; /* while full: where a bit is 0 there is no such key in `objects` */
};

extern _Thread_local struct rec_profile *rec_profile_self __attribute__((tls_model("initial-exec")));

/* Make the thread's profile, or empty the one that it has. Called before the thread runs; without memory it has none.
 */
void rec_profile_begin(struct rec_thread *t);
/* In a forked child: give back the profile of a thread that is not there. */
void rec_profile_forget(struct rec_profile *p);
/* profile_live.c. The book, with its two tables. False: there is no memory. */
bool rec_profile_begin_book(struct rec_profile *p);
void rec_profile_forget_book(const struct rec_profile *p);
/* By the thread itself, which is busy: what is in private memory goes to the file, if there is one. */
void rec_profile_adopt(struct rec_profile *p);
/* In a forked child, for the calling thread: what is in the parent's file becomes private. False: there is no memory.
 */
bool rec_profile_take_home(struct rec_profile *p);
/* Zeroed memory for a table of so many bytes, in the file if the book is there, and what is to be said of it. NULL:
 * there is none. */
void *rec_profile_map(const struct rec_profile *p, size_t n_bytes, unsigned log_places, struct trace_live_table *told);
/* profile_table.c */
size_t rec_counts_bytes(uint32_t n_places);
void rec_counts_at(struct rec_counts *counts, void *memory, uint32_t n_places);
void rec_counts_clear(struct rec_counts *counts);
/* Puts in a key that is not there; NULL: there is no room. */
struct rec_entry *rec_counts_put(const struct rec_profile *p, struct rec_counts *counts, const struct rec_entry *entry);
/* Takes the entry out; another may be in its place then, that was behind it. */
void rec_counts_remove(struct rec_counts *counts, struct rec_entry *entry);

/* profile_order.c: another lock than the first; one that is not the last of the list is given back. */
void rec_profile_nested(struct rec_profile *p, const struct rec_key *key);
void rec_profile_unnested(struct rec_profile *p, uintptr_t object);
/* The number of a thread, but the caller, that holds the lock; SBT_TRACE_NONE: none is seen. */
uint32_t rec_profile_holder(uintptr_t object);
void rec_profile_put_orders(struct rec_profile *p);
void rec_profile_clear_orders(struct rec_profile *p);
/* The object's number; SBT_TRACE_NONE: it has none, and gets none now. The thread is busy. */
uint32_t rec_profile_number_for(struct rec_profile *p, const struct rec_key *key);
/* *n is order->n, and is zero afterwards. */
void rec_profile_put_order(struct rec_profile *p, const struct sbt_trace_order *order, uint32_t *n);

/* What the entry has counted becomes a tally. The entry stays, at zero. */
void rec_profile_put(struct rec_profile *p, struct rec_entry *e);
/* Has the thread counted anything that is not written? */
bool rec_profile_has_any(const struct rec_thread *t);
/*
 * Write what the thread has counted, when it is gone or the trace ends. It may have been interrupted for good anywhere,
 * unless it is `quiet`: a live thread that looks busy then has only come to see that the trace is being ended.
 */
void rec_profile_write(struct rec_thread *t, bool quiet);
/* How many calls of handlers wait for the interrupted code to count them. */
uint64_t rec_profile_lost(const struct rec_thread *t);
/* By the thread itself, in an event: if tallies are due, write them, and the events with them. */
void rec_profile_write_if_due(struct rec_thread *t, uint64_t now_ns);
/* There is no room soon: tallies are due as soon as they may be. */
void rec_profile_hurry(struct rec_profile *p);

/* The slow paths of the functions below. */
void rec_profile_count_slowly(const struct rec_key *key);
void rec_profile_drain(struct rec_profile *p);
/* The same by the thread that ends the trace, when the profile's thread is quiet, or is gone and was quiet. */
void rec_profile_drain_quiet(struct rec_profile *p);
void rec_profile_sample(struct rec_profile *p, const struct rec_key *key);
void rec_profile_time(struct rec_profile *p, const struct rec_key *key);
void rec_profile_was_away(struct rec_profile *p);
/* The key has an entry then, if there is room. */
void rec_profile_make_entry(const struct rec_key *key);
/* The result is when the hold began; 0: it was not timed. */
uint64_t rec_profile_end_hold(struct rec_profile *p, uintptr_t object);
/* A hold begins now, and stands for itself alone: its acquisition waited, so a clock more or less does not matter. */
void rec_profile_hold(const struct rec_key *key);
/* A hold that the caller has timed is over. It stands for itself alone. */
void rec_profile_held(const struct rec_key *key, uint64_t ns);
/* An init or destroy: the life at that address is over. `made`: another begins, made here, of that size. */
void rec_profile_life(const struct rec_key *key, bool made, uint32_t size);
/*
 * profile_signal.c: around a wait for a condition. And a signal for which threads wait: does one of them lack a signal,
 * so that this one may end its wait?
 */
void rec_profile_begin_signals(const void *cond, const void *mutex);
void rec_profile_end_signals(const void *cond, bool by_signal);
bool rec_profile_gives_signal(const void *cond, bool broadcast);
void rec_profile_forget_signals(void); /* in a forked child */
/* Instead of rec_leave: the call is no event, but counted. */
void rec_profile_leave(struct rec_call *c, const void *object, const void *site, bool failed);

/* Does this process write a profile? */
static inline bool rec_profiles(void) {
    if (SBT_UNLIKELY(__atomic_load_n(&rec.state, __ATOMIC_RELAXED) == REC_UNBORN))
        rec_start();
    return rec.profile;
}

/* Is what the call is about to release waited for, and have threads waited for long? Then its call stack is wanted. */
static inline bool rec_ends_wait(struct rec_call *c, const void *object) {
    uint64_t since = __atomic_load_n(&rec_waiting_since_ns[rec_hint_number((uintptr_t)object)], __ATOMIC_RELAXED);
    bool waited_for = rec_is_waited_for(object);
    c->ended_long_wait = waited_for && rec.stack_min_ns != 0 && c->begin_ns - since >= rec.stack_min_ns;
    return waited_for;
}

/* The caller's profile; NULL: the slow path makes it. */
static inline struct rec_profile *rec_profile_mine(void) {
    struct rec_profile *p = rec_profile_self;
    return SBT_LIKELY(p != NULL && p->generation == sbt_fork_generation()) ? p : NULL;
}

static inline uint8_t rec_counted_op(const struct rec_key *key) {
    return (uint8_t)(key->op | (key->failed ? PROFILE_FAILS : 0));
}

static inline uint64_t rec_hash_of(uintptr_t object, uintptr_t site) {
    return (uint64_t)object * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)site * UINT64_C(0xD6E8FEB86659FD93);
}

static inline uint32_t rec_place_of(const struct rec_counts *counts, uintptr_t object, uintptr_t site) {
    return (uint32_t)(rec_hash_of(object, site) >> 32) & counts->mask;
}

/* The key's bit of the filter. */
static inline uint32_t rec_filter_bit(uintptr_t object, uintptr_t site) {
    return (uint32_t)(rec_hash_of(object, site) >> 48) % PROFILE_FILTER_BITS;
}

/* The key's entry; NULL: there is none. */
static inline struct rec_entry *rec_counts_find(const struct rec_counts *counts, const struct rec_key *key) {
    uint32_t i = rec_place_of(counts, key->object, key->site);
    for (struct rec_entry *e; (e = &counts->entries[i])->site != 0; i = (i + 1) & counts->mask)
        if (e->object == key->object && e->site == key->site && e->op == rec_counted_op(key))
            return e;
    return NULL;
}

/*
 * The entry that a call counts in; NULL: the slow path makes it. If the hint's lives are not the entry's, another
 * object may have taken the place of the entry's. The filter is for programs with more objects than there is room for:
 * it is in the first cache, and the table is not.
 */
static inline struct rec_entry *rec_entry_of(const struct rec_profile *p, const struct rec_key *key) {
    uint32_t bit = rec_filter_bit(key->object, key->site);
    struct rec_key of_site = {0, key->site, key->op, key->type, key->failed, 0};
    if (SBT_UNLIKELY(p->full) && (p->filter[bit / 64] >> bit % 64 & 1) == 0)
        return rec_counts_find(&p->sites, &of_site);
    struct rec_entry *e = rec_counts_find(&p->objects, key);
    if (SBT_LIKELY(e != NULL))
        return e->lives == __atomic_load_n(&rec_hint_of(key->object)->lives, __ATOMIC_RELAXED) ? e : NULL;
    return p->full ? rec_counts_find(&p->sites, &of_site) : NULL;
}

/* Where the thread looks for the pair first. */
static inline uint32_t rec_order_place(uintptr_t held, uintptr_t taken) {
    return (uint32_t)(rec_hash_of(held, taken) * UINT64_C(0x9E3779B97F4A7C15) >> 32) % PROFILE_N_ORDERS;
}

/*
 * The caller is about to take the lock: what counts that comes into the cache meanwhile. A program of many locks takes
 * each so seldom that its entry has left the cache, and an atomic operation, as the next lock or unlock is, waits for
 * loads and not for these.
 */
static inline void rec_profile_expect(const struct rec_key *key) {
    const struct rec_profile *p = rec_profile_self;
    __builtin_prefetch(rec_hint_of(key->object));
    if (SBT_UNLIKELY(p == NULL || p->full)) /* full: most keys are not there */
        return;
    __builtin_prefetch(&p->objects.entries[rec_place_of(&p->objects, key->object, key->site)], 1);
    uint32_t n = p->n_nested;
    if (n != 0 && n < PROFILE_N_NESTED && p->orders != NULL)
        __builtin_prefetch(&p->orders[rec_order_place(p->nested[n - 1].object, key->object)], 1);
}

/*
 * Around each change of the caller's own profile that is not busy. False: the trace is being ended, and nothing may be
 * changed. As rec_busy_begin: the membarrier of rec_finish orders it, so a count costs no fence.
 */
static inline bool rec_profile_begin_change(struct rec_profile *p) {
    __atomic_store_n(&p->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_LIKELY(__atomic_load_n(&rec.closing, __ATOMIC_RELAXED) == 0))
        return true;
    __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
    return false;
}

static inline void rec_profile_end_change(struct rec_profile *p) {
    __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE); /* pairs with rec_finish */
    if (SBT_UNLIKELY(p->is_pending != 0))
        rec_profile_drain(p);
}

/* Count a call. The result, of an acquisition: its hold is to be timed, whether it is its turn or not. */
static inline bool rec_profile_count(const struct rec_key *key) {
    struct rec_profile *p = rec_profile_mine();
    if (SBT_UNLIKELY(p == NULL || p->busy != 0 || !rec_profile_begin_change(p))) {
        rec_profile_count_slowly(key);
        return false;
    }
    struct rec_entry *e = rec_entry_of(p, key);
    bool found = e != NULL && e->n < UINT32_MAX, timed = !found;
    if (SBT_LIKELY(found))
        timed = ++e->n <= PROFILE_FEW || e->is_long;
    rec_profile_end_change(p);
    if (SBT_UNLIKELY(!found))
        rec_profile_count_slowly(key);
    return timed;
}

static inline bool rec_is_shared(uint8_t op) {
    return op == SBT_TRACE_RWLOCK_RDLOCK || op == SBT_TRACE_RWLOCK_TRYRDLOCK;
}

/* At each lock and unlock: was the thread off its core since the last one? Then what it holds, it has held for long. */
static inline void rec_profile_look(struct rec_profile *p) {
    if (SBT_UNLIKELY(!rec_preempt_is_armed(p->mark)))
        rec_profile_was_away(p);
}

/* From now on the thread holds the lock. */
static inline void rec_profile_holds(struct rec_profile *p, const struct rec_key *key) {
    if (SBT_UNLIKELY(p->n_nested != 0))
        rec_profile_nested(p, key);
    uint32_t n = p->n_nested;
    if (SBT_UNLIKELY(n == PROFILE_N_NESTED)) /* a handler has come in between, and keeps what it took */
        n = PROFILE_N_NESTED - 1;
    p->nested[n] = (struct rec_nested){key->object, key->site, key->type, key->op, rec_is_shared(key->op)};
    __atomic_signal_fence(__ATOMIC_RELEASE); /* a handler's locks come behind this one */
    p->n_nested = n + 1;
}

/* The same for an acquisition. */
static inline void rec_profile_acquired(const struct rec_key *key) {
    bool timed = rec_profile_count(key);
    struct rec_profile *p = rec_profile_self;
    if (SBT_UNLIKELY(p == NULL))
        return;
    rec_profile_look(p);
    rec_profile_holds(p, key);
    if (SBT_UNLIKELY(timed))
        rec_profile_time(p, key);
    else if (SBT_UNLIKELY(--p->sample_in <= 0))
        rec_profile_sample(p, key);
}

/* The caller is about to release the object. The result is when the hold began; 0: it was not timed. */
static inline uint64_t rec_profile_releasing(const void *object) {
    struct rec_profile *p = rec_profile_mine(); /* not a parent's, of which the tables may be shared */
    if (SBT_UNLIKELY(p == NULL) && (rec_thread_self() == NULL || (p = rec_profile_mine()) == NULL)) /* after a vfork */
        return 0;
    rec_profile_look(p);
    uint32_t n = p->n_nested;
    if (SBT_LIKELY(n != 0 && p->nested[n - 1].object == (uintptr_t)object))
        p->n_nested = n - 1;
    else
        rec_profile_unnested(p, (uintptr_t)object);
    return p->n_holds != 0 ? rec_profile_end_hold(p, (uintptr_t)object) : 0;
}

/* profile_lock.c: a lock that the caller could not take at once, by `wait`; and a release that threads wait for. */
struct rec_limit {
    clockid_t clock;
    const struct timespec *at;
};
/* A limit that the call may refuse: then the call itself must decide, even where it need not wait. NULL: no limit. */
static inline bool rec_is_refusable(const struct rec_limit *limit) {
    return limit != NULL && ((limit->clock != CLOCK_REALTIME && limit->clock != CLOCK_MONOTONIC) ||
                             (limit->at != NULL && (uint64_t)limit->at->tv_nsec >= 1000000000));
}
int rec_profile_wait(const struct rec_key *key, int (*wait)(void *, const struct rec_limit *),
                     const struct rec_limit *limit);
int rec_profile_release(const struct rec_key *key, int (*release)(void *));
/* The thread has taken the semaphore: is that a hold? And it is about to post it: if so, the hold is over. */
bool rec_permit_taken(const void *sem);
void rec_permit_given(const void *sem);
/* A condition wait is about to give up its mutex, and has it again. */
void rec_profile_give_up(const void *mutex, const void *site);
uint64_t rec_profile_regained(struct rec_node *node, const void *mutex, const void *site);

#endif

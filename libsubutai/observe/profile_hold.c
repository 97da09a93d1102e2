/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Holds of a profile: which are timed, and how.
 *
 * Of a thread's acquisitions one in `interval` is timed, at random, and stands for as many. What is timed beside
 * these, because the object's holds are long or few (rec_profile_count), stands for itself alone and is left out of
 * the interval. Which of the two ways is taken depends on what was before and not on the hold, so the sum of holds has
 * no bias.
 *
 * A hold in which the thread was off its core, preempted or asleep, may be thousands of times as long as those beside
 * it: the few that are timed by their turn say little about these. But each is seen, by the mark that the kernel clears
 * (preempt.h). So each of them stands for itself alone, timed by its turn or not, and the others stand for the others.
 * These are two strata, and a hold's stratum does not depend on its turn: the sum has no bias.
 *
 * Of a hold that was away and is not timed, the time off the core is measured. It is the wall clock's time less the
 * thread's CPU time, since both were read last; all of it lies behind the last lock or unlock, which found the mark
 * set. To that comes what it may have had on the core: what the acquisitions since then took, PROFILE_LONG_NS at most.
 *
 * CPU time costs a system call. It is read when a hold was away that needs it, and by turn after the thread was away
 * elsewhere: a thread that waits often and holds what it holds for long never reads it. If the thread is away twice
 * before its turn, the acquisitions between say how long it was on its core.
 */
#include "observe/profile.h"

/*
 * SAMPLE_NS: from one acquisition of a thread that is timed by its turn to the next, at least, on average.
 * CPU_PAUSE_NS: from one reading of CPU time to the next, by turn. A thread that waits for input may be away each time.
 * CPU_LASTS_NS: the same if the thread was not away. A hypervisor may take the core away without the kernel's seeing,
 * and a processor's clocks differ; what that makes is taken for time off the core.
 */
enum { SAMPLE_NS = 20000, CPU_PAUSE_NS = 50000, CPU_LASTS_NS = 10000000 };

static uint64_t draw(struct rec_profile *p) {
    p->random ^= p->random << 13;
    p->random ^= p->random >> 7;
    p->random ^= p->random << 17;
    return p->random;
}

/*
 * A free place; or else one after the other: some locks are given back by another thread, or never. What is left of
 * such a hold of the same lock is no hold any more, since its thread could not take the lock again. (Readers may.)
 */
static uint32_t place_of_hold(struct rec_profile *p, const struct rec_key *key) {
    uint32_t place = PROFILE_N_HOLDS;
    for (uint32_t i = 0; i < PROFILE_N_HOLDS; i++) {
        uintptr_t object = p->holds[i].key.object;
        if (object == key->object && !rec_is_shared(key->op))
            return i;
        if (object == 0 && place == PROFILE_N_HOLDS)
            place = i;
    }
    return place < PROFILE_N_HOLDS ? place : p->next_hold++ % PROFILE_N_HOLDS;
}

/* As in rec_profile_expect: the hold will be added there. A handler that came in between might give the table back. */
static void expect_held(struct rec_profile *p, const struct rec_key *key) {
    if (p->busy != 0 || !rec_profile_begin_change(p))
        return;
    const struct rec_entry *e = rec_counts_find(&p->objects, key);
    if (e != NULL)
        __builtin_prefetch(&e->held.buckets[2], 1);
    rec_profile_end_change(p);
}

/*
 * begun_ns: 0: now. Until a hold is over, object is 0 or what it says. A handler that comes in between may take the
 * same place; what it still holds behind itself is not timed then.
 */
static void begin_hold(struct rec_profile *p, const struct rec_key *key, uint32_t weight, uint64_t begun_ns) {
    __typeof(&p->holds[0]) hold = &p->holds[place_of_hold(p, key)];
    hold->key.object = 0;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    hold->key.site = key->site;
    hold->key.op = key->op;
    hold->key.type = key->type;
    hold->weight = weight;
    hold->was_away = false;
    expect_held(p, key);
    p->n_holds++; /* too many do no harm, and rec_profile_end_hold counts them */
    hold->counts_misses = begun_ns == 0 && rec_misses_read(&p->misses, &hold->missed);
    hold->begin_ns = begun_ns != 0 ? begun_ns : rec_now_ns();
    __atomic_signal_fence(__ATOMIC_RELEASE);
    hold->key.object = key->object;
}

static void read_cpu(struct rec_profile *p, uint64_t now) {
    p->cpu_ns = rec_cpu_ns();
    p->cpu_at_ns = now;
    p->stale = false;
}

/* The interval to the next timed acquisition: the longer, the shorter the acquisitions have been behind each other. */
SBT_NOINLINE void rec_profile_sample(struct rec_profile *p, const struct rec_key *key) {
    uint64_t now = rec_now_ns(), each_ns = (now - p->sampled_ns) / p->weight;
    uint32_t weight = p->weight;
    uint32_t interval =
        each_ns * PROFILE_MAX_INTERVAL > SAMPLE_NS ? (uint32_t)(SAMPLE_NS / each_ns) : PROFILE_MAX_INTERVAL;
    interval = interval > 1 ? 1 + (uint32_t)(draw(p) % (2 * interval - 1)) : 1;
    p->weight = interval;
    if (p->seen_ns <= p->sampled_ns)
        p->each_ns = each_ns;
    p->sample_in = p->seen_in = (int32_t)interval;
    p->sampled_ns = now;
    struct rec_thread *t = p->thread;
    if (SBT_UNLIKELY(now >= p->flush_ns) && t->busy == 0 && rec_busy_begin(t)) {
        rec_profile_write_if_due(t, now);
        rec_busy_end(t);
        now = rec_now_ns(); /* what the thread slept there is no hold's */
        p->stale = true;
    }
    p->seen_ns = now;
    /* If each hold is timed none needs it; and without a mark none is seen to have been away. */
    bool is_needed = (weight > 1 || interval > 1) && p->mark != &rec_preempt_mark;
    if (SBT_UNLIKELY(is_needed && now - p->cpu_at_ns > (p->stale ? CPU_PAUSE_NS : CPU_LASTS_NS)))
        read_cpu(p, now);
    begin_hold(p, key, weight, 0);
}

SBT_NOINLINE void rec_profile_time(struct rec_profile *p, const struct rec_key *key) {
    begin_hold(p, key, 1, 0);
}

static __typeof(&((struct rec_profile *)0)->holds[0]) timed_hold(struct rec_profile *p, uintptr_t object) {
    for (uint32_t i = 0; i < PROFILE_N_HOLDS; i++)
        if (p->holds[i].key.object == object)
            return &p->holds[i];
    return NULL;
}

/* Does a hold of the thread's need its time off the core? One that is timed has it in its length. */
static bool needs_off_core(struct rec_profile *p) {
    for (uint32_t i = 0; i < p->n_nested; i++) {
        if (timed_hold(p, p->nested[i].object) == NULL)
            return true;
    }
    return false;
}

/* How long the thread was off its core since it was seen last. `on_ns`: how long it was on its core, by reckoning. */
static uint64_t off_core(struct rec_profile *p, uint64_t now, uint64_t on_ns) {
    uint64_t gap_ns = rec_above_zero(now, p->seen_ns), before_ns = p->cpu_ns, wall_ns = now - p->cpu_at_ns;
    bool was_stale = p->stale;
    read_cpu(p, now);
    uint64_t off_ns = was_stale ? rec_above_zero(gap_ns, on_ns) : rec_above_zero(wall_ns, p->cpu_ns - before_ns);
    return off_ns < gap_ns ? off_ns : gap_ns;
}

static void hold_was_away(struct rec_profile *p, const struct rec_nested *held, uint64_t begun_ns) {
    struct rec_key key = {held->object, held->site, held->op, held->type, false, 0};
    __typeof(&p->holds[0]) hold = timed_hold(p, held->object);
    if (hold == NULL) {
        begin_hold(p, &key, 1, begun_ns);
        return;
    }
    hold->was_away = true;
}

SBT_NOINLINE void rec_profile_was_away(struct rec_profile *p) {
    uint64_t was = *p->mark;
    rec_preempt_arm_again(p->mark);
    if (was != 0) /* a sequence of the program's */
        return;
    uint64_t now = rec_now_ns(), on_ns = (uint64_t)(p->seen_in - p->sample_in) * p->each_ns, off_ns = 0;
    if (!needs_off_core(p))
        p->stale = true;
    else
        off_ns = off_core(p, now, on_ns);
    uint64_t most_ns = on_ns < PROFILE_LONG_NS ? on_ns : PROFILE_LONG_NS;
    for (uint32_t i = 0; i < p->n_nested; i++)
        hold_was_away(p, &p->nested[i], now - off_ns - most_ns);
    p->seen_ns = now;
    p->seen_in = p->sample_in;
}

static unsigned bucket_of(uint64_t ns) {
    unsigned b = ns > 0 ? 63 - (unsigned)__builtin_clzll(ns) : 0;
    return b < SBT_TRACE_N_HOLD_BUCKETS ? b : SBT_TRACE_N_HOLD_BUCKETS - 1;
}

static struct rec_entry *entry_of_hold(const struct rec_profile *p, const struct rec_key *key) {
    struct rec_key of_site = {0, key->site, key->op, key->type, false, 0};
    struct rec_entry *e = rec_counts_find(&p->objects, key);
    return e != NULL ? e : rec_counts_find(&p->sites, &of_site);
}

/* Makes the key's entry, if it has none. Handlers change the tables, unless the profile is busy. */
static void need_entry(struct rec_profile *p, const struct rec_key *key,
                       struct rec_entry *find(const struct rec_profile *p, const struct rec_key *key)) {
    if (p->busy != 0 || !rec_profile_begin_change(p))
        return;
    bool has_any = find(p, key) != NULL;
    rec_profile_end_change(p);
    if (!has_any)
        rec_profile_make_entry(key);
}

/* If a handler has come in between, the hold is forgotten. */
static void add_hold(struct rec_profile *p, const struct rec_key *key, uint32_t weight, uint64_t ns) {
    need_entry(p, key, entry_of_hold); /* the lock was held so long that its entry has lost its place (make_room) */
    if (p->busy != 0 || !rec_profile_begin_change(p))
        return;
    struct rec_entry *e = entry_of_hold(p, key);
    if (e != NULL) {
        struct rec_held *h = &e->held;
        uint32_t *bucket = &h->buckets[bucket_of(ns)];
        p->before = h->sums;
        p->bucket = bucket;
        p->bucket_before = *bucket;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        p->changing = &h->sums;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        h->sums.ns += ns * weight;
        h->sums.max_ns = ns > h->sums.max_ns ? ns : h->sums.max_ns;
        h->sums.n_timed++;
        h->sums.n += weight;
        e->is_long = h->sums.ns >= (uint64_t)h->sums.n * PROFILE_LONG_NS;
        *bucket += weight;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        p->changing = NULL;
    }
    rec_profile_end_change(p);
}

/* Each hold as often as there are holds that it stands for, if the counter was there all the time. Relaxed: sums. */
static void count_misses(const struct rec_profile *p, const struct rec_missed *before, uint32_t weight) {
    struct rec_missed now;
    if (!rec_misses_read(&p->misses, &now) || now.away_ns != before->away_ns)
        return;
    __atomic_fetch_add(&rec.n_counted_holds, weight, __ATOMIC_RELAXED);
    __atomic_fetch_add(&rec.n_misses, (now.n - before->n) * weight, __ATOMIC_RELAXED);
}

SBT_NOINLINE uint64_t rec_profile_end_hold(struct rec_profile *p, uintptr_t object) {
    uint64_t now = 0, began_ns = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < PROFILE_N_HOLDS; i++) {
        __typeof(&p->holds[0]) hold = &p->holds[i];
        if (hold->key.object == object) {
            now = now != 0 ? now : rec_now_ns(); /* mostly another lock is released, within a hold that is timed */
            began_ns = hold->begin_ns;
            if (hold->counts_misses)
                count_misses(p, &hold->missed, hold->weight);
            hold->key.object = 0;
            struct rec_key key = {object, hold->key.site, hold->key.op, hold->key.type, false, 0};
            uint64_t ns = rec_above_zero(now - began_ns, rec.reading_ns);
            add_hold(p, &key, hold->was_away ? 1 : hold->weight, ns);
        }
        n += hold->key.object != 0;
    }
    p->n_holds = n;
    return began_ns;
}

void rec_profile_hold(const struct rec_key *key) {
    struct rec_profile *p = rec_profile_mine();
    if (p == NULL)
        return;
    need_entry(p, key, rec_entry_of);
    rec_profile_look(p);
    rec_profile_holds(p, key);
    begin_hold(p, key, 1, 0);
}

void rec_profile_held(const struct rec_key *key, uint64_t ns) {
    struct rec_profile *p = rec_profile_mine();
    if (p != NULL)
        need_entry(p, key, rec_entry_of);
    else
        rec_profile_make_entry(key);
    if ((p = rec_profile_mine()) != NULL)
        add_hold(p, key, 1, ns);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a thread has counted becomes tallies; see profile.h. */
#include "observe/profile.h"

#include "observe/live.h"
#include "os/signals.h"

/*
 * FLUSH_SHARE: tallies are due when so large a part of the run has passed since the last ones, and some time at least.
 * OFTEN: calls between two flushes by which an object gets a number after all.
 */
enum { FLUSH_SHARE = 16, OFTEN = 4096 };

static void write_block(struct rec_profile *p) {
    struct trace_block header;
    if (p->book->encoder.n_tallies == 0)
        return;
    uint64_t signals = sbt_signals_block();
    trace_tally_header(&p->book->encoder, rec_now_ns() - rec.start_ns, &header);
    if (!rec_write(&header, p->book->encoder.bytes, p->book->encoder.n_bytes, NULL, 0, NULL, 0))
        rec_lost(p->thread, p->book->encoder.n_tallies);
    else
        __atomic_fetch_add(&rec.n_tallied, p->n_calls, __ATOMIC_RELAXED);
    p->n_calls = 0;
    trace_tally_next(&p->book->encoder);
    sbt_signals_restore(signals);
}

/*
 * What has been counted is in the block once, wherever the thread is interrupted for good: until the block has a tally
 * more it is not there, and then it is as good as forgotten.
 */
static void begin_put(struct rec_profile *p, uint32_t *n, struct rec_held *h) {
    if (!trace_tally_has_room(&p->book->encoder))
        write_block(p);
    p->put_behind = p->book->encoder.n_tallies;
    p->n_calls_put = p->n_calls + (h != NULL ? *n : 0);
    p->putting_held = h;
    p->book->put_behind = p->put_behind;
    p->book->putting_held = (uintptr_t)h;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&p->book->putting, (uintptr_t)n, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    p->putting = n;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void end_put(struct rec_profile *p) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    p->n_calls = p->n_calls_put;
    *p->putting = 0;
    if (p->putting_held != NULL && p->putting_held->sums.n_timed != 0)
        *p->putting_held = (struct rec_held){0};
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&p->book->putting, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    p->putting = NULL;
}

static uint32_t site_number_of(const struct rec_entry *e) {
    if (SBT_LIKELY(e->site_number != PROFILE_OTHER_SITE))
        return e->site_number;
    const struct rec_node *site = rec_node_find(e->site);
    return site != NULL ? site->number : SBT_TRACE_NONE;
}

/* What the entry has counted becomes a tally. The entry stays, at zero. */
void rec_profile_put(struct rec_profile *p, struct rec_entry *e) {
    struct rec_held *h = &e->held;
    if (e->n == 0 && h->sums.n_timed == 0)
        return;
    struct sbt_trace_tally tally = {
        .object = e->number,
        .site = site_number_of(e),
        .op = (uint8_t)(e->op & ~PROFILE_FAILS),
        .type = e->type,
        .n = e->n,
        .n_failed = (e->op & PROFILE_FAILS) != 0 ? e->n : 0,
        .n_timed = h->sums.n_timed,
        .n_held = h->sums.n,
        .held_ns = h->sums.ns,
        .held_max_ns = h->sums.max_ns,
    };
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS; b++)
        tally.held[b] = h->buckets[b];
    begin_put(p, &e->n, h);
    trace_encode_tally(&p->book->encoder, &tally);
    end_put(p);
}

void rec_profile_put_order(struct rec_profile *p, const struct sbt_trace_order *order, uint32_t *n) {
    begin_put(p, n, NULL);
    trace_encode_order(&p->book->encoder, order);
    end_put(p);
}

static void put_counts(struct rec_profile *p, const struct rec_counts *counts) {
    for (uint32_t i = 0; i <= counts->mask; i++)
        if (counts->entries[i].site != 0)
            rec_profile_put(p, &counts->entries[i]);
}

static void put_all(struct rec_profile *p) {
    put_counts(p, &p->objects);
    put_counts(p, &p->sites);
    rec_profile_put_orders(p);
    write_block(p);
}

static uint64_t calls_in(const struct rec_counts *counts) {
    uint64_t n = 0;
    for (uint32_t i = 0; i <= counts->mask; i++)
        n += counts->entries[i].site != 0 ? counts->entries[i].n : 0;
    return n;
}

/*
 * Before the thread itself writes: the keys that it has used least lose their places; of a full table all with less
 * than the mean. An object without a number that it has used very often gets one.
 */
static void make_room(struct rec_profile *p) {
    struct rec_counts *counts = &p->objects;
    uint64_t least = p->full ? calls_in(counts) / counts->n : 1;
    uint64_t signals = sbt_signals_block(); /* an entry that moves is in two places for a moment */
    for (uint32_t i = 0; i <= counts->mask; i++) {
        struct rec_entry *e = &counts->entries[i];
        bool often = e->site != 0 && e->number == SBT_TRACE_NONE && e->n >= OFTEN;
        if (often) {
            rec_profile_put(p, e);
            e->number = rec_number_of(p->thread, e->type, e->object);
        }
        while (!often && counts->entries[i].site != 0 && counts->entries[i].n < least) {
            rec_profile_put(p, e);
            rec_counts_remove(counts, e);
        }
    }
    p->full = false;
    sbt_signals_restore(signals);
}

bool rec_profile_has_any(const struct rec_thread *t) {
    return t->profile != NULL && calls_in(&t->profile->objects) + calls_in(&t->profile->sites) > 0;
}

/*
 * The thread was interrupted for good in the midst of a change. The hold that it was adding is forgotten. What it was
 * putting into the block would not fit what comes now, so a new block begins.
 */
static void take_back(struct rec_profile *p) {
    if (p->changing != NULL) {
        *p->changing = p->before;
        *p->bucket = p->bucket_before;
    }
    p->changing = NULL;
    if (p->putting != NULL && p->book->encoder.n_tallies != p->put_behind)
        end_put(p);
    p->book->putting = 0;
    if (p->book->encoder.n_tallies == 0)
        trace_tally_again(&p->book->encoder);
    else
        write_block(p);
}

void rec_profile_write(struct rec_thread *t, bool quiet) {
    struct rec_profile *p = t->profile;
    if (p == NULL)
        return;
    if (!quiet && (p->busy != 0 || t->busy != 0))
        take_back(p);
    else
        rec_profile_drain_quiet(p);
    put_all(p);
}

static uint64_t due_ns(uint64_t written_ns, uint64_t least_ns) {
    uint64_t pause_ns = (written_ns - rec.start_ns) / FLUSH_SHARE;
    return written_ns + (pause_ns > least_ns ? pause_ns : least_ns);
}

void rec_profile_hurry(struct rec_profile *p) {
    uint64_t at_ns = due_ns(p->written_ns, PROFILE_FLUSH_NS);
    p->flush_ns = at_ns < p->flush_ns ? at_ns : p->flush_ns;
}

void rec_profile_write_if_due(struct rec_thread *t, uint64_t now_ns) {
    struct rec_profile *p = t->profile;
    if (p == NULL || now_ns < p->flush_ns || p->busy != 0)
        return;
    p->written_ns = now_ns;
    p->flush_ns = due_ns(now_ns, PROFILE_CALM_NS);
    p->n_keys = 0;
    __atomic_store_n(&p->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    make_room(p);
    put_all(p);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&p->busy, 0, __ATOMIC_RELEASE);
    rec_flush(t);
    if (!t->is_live) /* these may have been the first blocks */
        rec_live_adopt(t);
}

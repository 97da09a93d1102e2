/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a thread has counted becomes tallies; see profile.h. */
#include "observe/profile.h"

/*
 * FLUSH_SHARE: tallies are due when so large a part of the run has passed since the last ones, and FIRST_FLUSH_NS at
 * least. OFTEN: calls between two flushes by which an object gets a number after all.
 */
enum { FLUSH_SHARE = 16, OFTEN = 4096 };

static void write_block(struct rec_profile *p) {
    struct trace_block header;
    if (p->encoder.n_tallies == 0)
        return;
    uint64_t signals = rec_block_signals();
    trace_tally_header(&p->encoder, rec_now_ns() - rec.start_ns, &header);
    if (!rec_write(&header, p->encoder.bytes, p->encoder.n_bytes, NULL, 0, NULL, 0))
        rec_lost(p->thread, p->encoder.n_tallies);
    trace_tally_next(&p->encoder);
    rec_unblock_signals(signals);
}

/* What the entry has counted becomes a tally. The entry stays, at zero. */
void rec_profile_put(struct rec_profile *p, struct rec_entry *e, struct rec_held *h) {
    struct rec_node *site = rec_node_at(e->site);
    if (e->n == 0 && h->n_timed == 0)
        return;
    struct sbt_trace_tally tally = {
        .object = e->number,
        .site = site != NULL ? site->number : SBT_TRACE_NONE,
        .op = (uint8_t)(e->op & ~PROFILE_FAILED),
        .type = e->type,
        .n = e->n,
        .n_failed = (e->op & PROFILE_FAILED) != 0 ? e->n : 0,
        .n_timed = h->n_timed,
        .n_held = h->n,
        .held_ns = h->ns,
        .held_max_ns = h->max_ns,
    };
    for (unsigned b = 0; b < SBT_TRACE_N_HOLD_BUCKETS; b++)
        tally.held[b] = h->buckets[b];
    if (!trace_tally_has_room(&p->encoder))
        write_block(p);
    trace_encode_tally(&p->encoder, &tally);
    __atomic_fetch_add(&rec.n_tallied, e->n, __ATOMIC_RELAXED);
    e->n = e->n_seen = 0;
    if (h->n_timed != 0)
        *h = (struct rec_held){0};
}

/*
 * Entries without a call since the last time give up their places. `owner`: the table's thread, if it is the caller: an
 * object without a number that it has used very often gets one now.
 */
static void put_all(struct rec_profile *p, struct rec_thread *owner) {
    for (uint32_t i = 0; i <= p->mask; i++) {
        struct rec_entry *e = &p->entries[i];
        if (e->site == 0)
            continue;
        bool idle = e->n == 0 && p->held[i].n_timed == 0, often = e->number == SBT_TRACE_NONE && e->n >= OFTEN;
        rec_profile_put(p, e, &p->held[i]);
        if (often && owner != NULL)
            e->number = rec_number_of(owner, e->type, e->object);
        if (idle) {
            e->site = 0;
            p->n_entries--;
        }
    }
    for (uint32_t i = 0; i < p->n_others; i++)
        rec_profile_put(p, &p->others[i], &p->others_held[i]);
    write_block(p);
}

bool rec_profile_has_any(const struct rec_thread *t) {
    const struct rec_profile *p = t->profile;
    bool any = false;
    for (uint32_t i = 0; p != NULL && i <= p->mask; i++)
        any = any || (p->entries[i].site != 0 && p->entries[i].n != 0);
    for (uint32_t i = 0; p != NULL && i < p->n_others; i++)
        any = any || p->others[i].n != 0;
    return any;
}

void rec_profile_write(struct rec_thread *t) {
    if (t->profile != NULL)
        put_all(t->profile, NULL);
}

void rec_profile_write_if_due(struct rec_thread *t, uint64_t now_ns) {
    struct rec_profile *p = t->profile;
    if (p == NULL || now_ns < p->flush_ns || p->busy != 0)
        return;
    uint64_t pause_ns = (now_ns - rec.start_ns) / FLUSH_SHARE;
    p->flush_ns = now_ns + (pause_ns > PROFILE_FLUSH_NS ? pause_ns : PROFILE_FLUSH_NS);
    p->busy = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    put_all(p, t);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    p->busy = 0;
    rec_flush(t);
}

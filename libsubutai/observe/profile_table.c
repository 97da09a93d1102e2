/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of what a thread counts: open addressing with linear probing, at most half full. No library's: the memory
 * is mapped, not allocated, because the program may have called from inside its allocator.
 */
#include <string.h>
#include <sys/syscall.h>

#include "observe/profile.h"
#include "os/signals.h"

size_t rec_counts_bytes(uint32_t n_places) {
    return n_places * sizeof(struct rec_entry);
}

/* The table is there, and empty. */
void rec_counts_at(struct rec_counts *counts, void *memory, uint32_t n_places) {
    counts->entries = memory;
    counts->mask = n_places - 1;
    counts->n = 0;
}

void rec_counts_clear(struct rec_counts *counts) {
    memset(counts->entries, 0, rec_counts_bytes(counts->mask + 1));
    counts->n = 0;
}

static struct rec_entry *free_place(const struct rec_counts *counts, const struct rec_entry *entry) {
    uint32_t i = rec_place_of(counts, entry->object, entry->site);
    while (counts->entries[i].site != 0)
        i = (i + 1) & counts->mask;
    return &counts->entries[i];
}

/* The site comes last: until then the place is free. A thread may be killed in between. */
static void fill(struct rec_counts *counts, uint32_t i, const struct rec_entry *entry) {
    struct rec_entry *e = &counts->entries[i], without_site = *entry;
    without_site.site = 0;
    *e = without_site;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&e->site, entry->site, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void empty(struct rec_counts *counts, uint32_t i) {
    __atomic_store_n(&counts->entries[i].site, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void move(struct rec_counts *to, const struct rec_counts *from) {
    for (uint32_t i = 0; i <= from->mask; i++)
        if (from->entries[i].site != 0)
            fill(to, (uint32_t)(free_place(to, &from->entries[i]) - to->entries), &from->entries[i]);
    to->n = from->n;
}

/*
 * Four times as many places. With signals blocked: there is no moment at which both tables or neither are whole. If
 * the thread is killed the book names the one or the other, and that is whole.
 */
static bool grow(const struct rec_profile *p, struct rec_counts *counts) {
    struct rec_counts before = *counts, more = before;
    uint32_t n_places = 4 * (before.mask + 1);
    struct trace_live_table told;
    if (n_places > PROFILE_MAX_ENTRIES)
        return false;
    uint64_t signals = sbt_signals_block();
    void *memory = rec_profile_map(p, rec_counts_bytes(n_places), (unsigned)__builtin_ctz(n_places), &told);
    if (memory != NULL) {
        rec_counts_at(&more, memory, n_places);
        more.is_apart = true;
        move(&more, &before);
        *counts = more;
        counts->told->address = told.address; /* of which the reader has no need while nothing becomes a tally */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        __atomic_store_n(&counts->told->at, told.at, __ATOMIC_RELAXED);
        if (before.is_apart)
            sbt_syscall3(SYS_munmap, before.entries, rec_counts_bytes(before.mask + 1), 0);
    }
    sbt_signals_restore(signals);
    return memory != NULL;
}

struct rec_entry *rec_counts_put(const struct rec_profile *p, struct rec_counts *counts,
                                 const struct rec_entry *entry) {
    if (counts->n > counts->mask / 2 && !grow(p, counts))
        return NULL;
    struct rec_entry *e = free_place(counts, entry);
    fill(counts, (uint32_t)(e - counts->entries), entry);
    counts->n++;
    return e;
}

/*
 * Entries behind it move up, as far as their own places allow, so that no free place is left before one of them. One
 * that moves is in two places for a moment, of which the first from its own place on counts.
 */
void rec_counts_remove(struct rec_counts *counts, struct rec_entry *entry) {
    uint32_t hole = (uint32_t)(entry - counts->entries), i = hole, mask = counts->mask;
    counts->n--;
    empty(counts, hole);
    for (;;) {
        i = (i + 1) & mask;
        struct rec_entry *e = &counts->entries[i];
        if (e->site == 0)
            break;
        uint32_t from_place = (i - rec_place_of(counts, e->object, e->site)) & mask;
        if (from_place >= ((i - hole) & mask)) {
            fill(counts, hole, e);
            empty(counts, i);
            hole = i;
        }
    }
    memset(&counts->entries[hole], 0, sizeof counts->entries[hole]);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of what a thread counts: open addressing with linear probing, at most half full. No library's: the memory
 * is mapped, not allocated, because the program may have called from inside its allocator.
 */
#include <string.h>
#include <sys/syscall.h>

#include "observe/profile.h"
#include "os/signals.h"

static size_t bytes_of(uint32_t n_places) {
    return n_places * (sizeof(struct rec_entry) + sizeof(struct rec_held));
}

bool rec_counts_begin(struct rec_counts *counts, uint32_t n_places) {
    void *memory = rec_map(bytes_of(n_places));
    if (memory == NULL)
        return false;
    struct rec_entry *entries = memory;
    *counts = (struct rec_counts){entries, (struct rec_held *)(void *)(entries + n_places), n_places - 1, 0};
    return true;
}

void rec_counts_clear(struct rec_counts *counts) {
    memset(counts->entries, 0, bytes_of(counts->mask + 1));
    counts->n = 0;
}

void rec_counts_forget(const struct rec_counts *counts) {
    sbt_syscall3(SYS_munmap, counts->entries, bytes_of(counts->mask + 1), 0);
}

static struct rec_entry *free_place(const struct rec_counts *counts, const struct rec_entry *entry) {
    uint32_t i = rec_place_of(counts, entry->object, entry->site);
    while (counts->entries[i].site != 0)
        i = (i + 1) & counts->mask;
    return &counts->entries[i];
}

static void move(struct rec_counts *to, const struct rec_counts *from) {
    for (uint32_t i = 0; i <= from->mask; i++)
        if (from->entries[i].site != 0) {
            struct rec_entry *place = free_place(to, &from->entries[i]);
            *place = from->entries[i];
            to->held[place - to->entries] = from->held[i];
        }
    to->n = from->n;
    rec_counts_forget(from);
}

/* Four times as many places. With signals blocked: there is no moment at which both tables or neither are whole. */
static bool grow(struct rec_counts *counts) {
    struct rec_counts before = *counts;
    if (before.mask + 1 >= PROFILE_MAX_ENTRIES)
        return false;
    uint64_t signals = sbt_signals_block();
    bool more = rec_counts_begin(counts, 4 * (before.mask + 1));
    if (more)
        move(counts, &before);
    sbt_signals_restore(signals);
    return more;
}

struct rec_entry *rec_counts_put(struct rec_counts *counts, const struct rec_entry *entry) {
    if (counts->n > counts->mask / 2 && !grow(counts))
        return NULL;
    struct rec_entry *e = free_place(counts, entry);
    *e = *entry;
    counts->n++;
    return e;
}

/* Entries behind it move up, as far as their own places allow, so that no free place is left before one of them. */
void rec_counts_remove(struct rec_counts *counts, struct rec_entry *entry) {
    uint32_t hole = (uint32_t)(entry - counts->entries), i = hole, mask = counts->mask;
    counts->n--;
    for (;;) {
        i = (i + 1) & mask;
        struct rec_entry *e = &counts->entries[i];
        if (e->site == 0)
            break;
        uint32_t from_place = (i - rec_place_of(counts, e->object, e->site)) & mask;
        if (from_place >= ((i - hole) & mask)) {
            counts->entries[hole] = *e;
            counts->held[hole] = counts->held[i];
            hole = i;
        }
    }
    memset(&counts->entries[hole], 0, sizeof counts->entries[hole]);
    memset(&counts->held[hole], 0, sizeof counts->held[hole]);
}

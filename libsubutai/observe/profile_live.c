/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a thread of a profile has counted outlives a killed process: it lies in FILE.live, as the thread's record does
 * (live.h), in a book and in tables (trace/live_format.h). The book has the first tables behind it; a table that grows
 * gets memory of its own.
 *
 * All pointers to it are in the profile, which is private. So a forked child knows what it has mapped, although its
 * parent goes on and changes what both see.
 */
#include <sys/mman.h>
#include <sys/syscall.h>

#include "observe/live.h"
#include "observe/profile.h"

enum {
    LOG_MIN = 6,
    LOG_ORDERS = 9,
    ORDERS_BYTES = PROFILE_N_ORDERS * sizeof(struct rec_order),
    TABLE_BYTES = PROFILE_MIN_ENTRIES * sizeof(struct rec_entry),
    TABLES_AT = (sizeof(struct trace_live_book) + 63) / 64 * 64,
    BOOK_BYTES = TABLES_AT + 2 * TABLE_BYTES
};
_Static_assert(1 << LOG_MIN == PROFILE_MIN_ENTRIES && 1 << LOG_ORDERS == PROFILE_N_ORDERS && TABLE_BYTES % 64 == 0 &&
                   PROFILE_MAX_ENTRIES <= 1 << LIVE_LOG_MOST && PROFILE_N_ORDERS <= 1 << LIVE_LOG_MOST,
               "trace_live_table");

#define SAME(ours, theirs, field) (offsetof(struct ours, field) == offsetof(struct theirs, field))
_Static_assert(sizeof(struct rec_entry) == sizeof(struct trace_live_entry) && SAME(rec_entry, trace_live_entry, n) &&
                   SAME(rec_entry, trace_live_entry, number) && SAME(rec_entry, trace_live_entry, op) &&
                   SAME(rec_entry, trace_live_entry, site_number) && SAME(rec_entry, trace_live_entry, held) &&
                   (int)PROFILE_FAILS == (int)LIVE_FAILS && (int)PROFILE_OTHER_SITE == (int)LIVE_OTHER_SITE,
               "trace/live_format.h");
_Static_assert(sizeof(struct rec_held) == sizeof(struct trace_live_held) && SAME(rec_held, trace_live_held, buckets) &&
                   offsetof(struct rec_held, sums.n) == offsetof(struct trace_live_held, n),
               "trace/live_format.h");
_Static_assert(sizeof(struct rec_order) == sizeof(struct trace_live_order) && SAME(rec_order, trace_live_order, gate) &&
                   SAME(rec_order, trace_live_order, gate[1].number) &&
                   SAME(rec_order, trace_live_order, gate[1].shared) && SAME(rec_order, trace_live_order, stack) &&
                   SAME(rec_order, trace_live_order, taken_site_number) && SAME(rec_order, trace_live_order, n_gates) &&
                   SAME(rec_order, trace_live_order, taken_shared),
               "trace/live_format.h");

void *rec_profile_map(const struct rec_profile *p, size_t n_bytes, unsigned log_places, struct trace_live_table *told) {
    uint64_t at = 0;
    void *memory = p->book_at != 0 ? rec_live_area(n_bytes, &at) : NULL;
    if (memory == NULL)
        memory = rec_map(n_bytes);
    if (memory != NULL)
        *told = (struct trace_live_table){at != 0 ? at + log_places : 0, (uintptr_t)memory};
    return memory;
}

/* Where a table of the book's own memory is. */
static void tell(const struct rec_profile *p, struct rec_counts *counts) {
    uint64_t behind = (uint64_t)((char *)counts->entries - (char *)p->book);
    if (!counts->is_apart)
        *counts->told =
            (struct trace_live_table){p->book_at != 0 ? p->book_at + behind + LOG_MIN : 0, (uintptr_t)counts->entries};
}

bool rec_profile_begin_book(struct rec_profile *p) {
    p->book = rec_live_area(BOOK_BYTES, &p->book_at);
    if (p->book == NULL)
        p->book = rec_map(BOOK_BYTES);
    if (p->book == NULL)
        return false;
    char *tables = (char *)p->book + TABLES_AT;
    rec_counts_at(&p->objects, tables, PROFILE_MIN_ENTRIES);
    rec_counts_at(&p->sites, tables + TABLE_BYTES, PROFILE_MIN_ENTRIES);
    p->objects.told = &p->book->objects;
    p->sites.told = &p->book->sites;
    tell(p, &p->objects);
    tell(p, &p->sites);
    return true;
}

static void forget(const struct rec_counts *counts) {
    if (counts->is_apart)
        sbt_syscall3(SYS_munmap, counts->entries, rec_counts_bytes(counts->mask + 1), 0);
}

void rec_profile_forget_book(const struct rec_profile *p) {
    forget(&p->objects);
    forget(&p->sites);
    if (p->orders != NULL)
        sbt_syscall3(SYS_munmap, p->orders, ORDERS_BYTES, 0);
    sbt_syscall3(SYS_munmap, p->book, BOOK_BYTES, 0);
}

static void adopt(const struct rec_profile *p, struct rec_counts *counts) {
    uint64_t at = counts->is_apart ? rec_live_move(counts->entries, rec_counts_bytes(counts->mask + 1)) : 0;
    if (at != 0)
        counts->told->at = at + (uint64_t)__builtin_ctz(counts->mask + 1);
    tell(p, counts);
}

void rec_profile_adopt(struct rec_profile *p) {
    if (p->book_at != 0 || (p->book_at = rec_live_move(p->book, BOOK_BYTES)) == 0)
        return;
    adopt(p, &p->objects);
    adopt(p, &p->sites);
    uint64_t at = p->orders != NULL ? rec_live_move(p->orders, ORDERS_BYTES) : 0;
    if (at != 0)
        p->book->orders = (struct trace_live_table){at + LOG_ORDERS, (uintptr_t)p->orders};
    p->thread->book_at = p->book_at;
}

static bool take_home(const struct rec_counts *counts) {
    return !counts->is_apart || rec_live_take_home(counts->entries, rec_counts_bytes(counts->mask + 1));
}

bool rec_profile_take_home(struct rec_profile *p) {
    if (p->book_at == 0)
        return true;
    p->book_at = 0;
    bool all = rec_live_take_home(p->book, BOOK_BYTES) && take_home(&p->objects) && take_home(&p->sites) &&
               (p->orders == NULL || rec_live_take_home(p->orders, ORDERS_BYTES));
    if (all)
        p->book->objects.at = p->book->sites.at = p->book->orders.at = 0;
    return all;
}

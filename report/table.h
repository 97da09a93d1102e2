/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Entries of one size that begin with their key, found by a hash of the key, in memory that grows up to a bound. Open
 * addressing; an entry is never taken out. Pointers to entries are good until the next call.
 */
#ifndef REP_TABLE_H
#define REP_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct rep_table {
    size_t key_bytes, entry_bytes; /* the key comes first; both are multiples of 4 */
    size_t most;                   /* entries */
    size_t n;
    char *entries; /* [n], in the order in which they came */
    uint32_t *index;
    size_t capacity, n_index; /* n_index: a power of 2 */
};

/* The entry with this key, all-zero but for the key if it is new. NULL: it is new, and there is no room for it. */
void *rep_table_get(struct rep_table *t, const void *key);
/* The same, without making one. */
void *rep_table_find(const struct rep_table *t, const void *key);
void rep_table_free(struct rep_table *t);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bounded hash table; see table.h. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

static size_t hash(const struct rep_table *t, const void *key) {
    uint64_t h = 0;
    for (size_t i = 0; i < t->key_bytes; i += 4) {
        uint32_t word;
        memcpy(&word, (const char *)key + i, sizeof word);
        h = (h ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        h ^= h >> 29;
    }
    return (size_t)h;
}

/* The place of the key in the index: its entry's number plus 1, or 0. The index has a free place. */
static uint32_t *place_of(const struct rep_table *t, const void *key) {
    for (size_t i = hash(t, key);; i++) {
        uint32_t *place = &t->index[i & (t->n_index - 1)];
        if (*place == 0 || memcmp(t->entries + (*place - 1) * t->entry_bytes, key, t->key_bytes) == 0)
            return place;
    }
}

static int grow(struct rep_table *t) {
    size_t capacity = t->capacity == 0 ? 64 : 2 * t->capacity, n_index = 2 * capacity;
    char *entries = realloc(t->entries, capacity * t->entry_bytes);
    if (entries == NULL)
        return -1;
    t->entries = entries;
    uint32_t *index = calloc(n_index, sizeof *index);
    if (index == NULL)
        return -1;
    free(t->index);
    t->index = index;
    t->n_index = n_index;
    t->capacity = capacity;
    for (size_t i = 0; i < t->n; i++)
        *place_of(t, t->entries + i * t->entry_bytes) = (uint32_t)i + 1;
    return 0;
}

void *rep_table_find(const struct rep_table *t, const void *key) {
    if (t->n == 0)
        return NULL;
    uint32_t at = *place_of(t, key);
    return at != 0 ? t->entries + (at - 1) * t->entry_bytes : NULL;
}

void *rep_table_get(struct rep_table *t, const void *key) {
    void *old = rep_table_find(t, key);
    if (old != NULL)
        return old;
    if (t->n == t->most || (t->n == t->capacity && grow(t) != 0))
        return NULL;
    char *entry = t->entries + t->n * t->entry_bytes;
    *place_of(t, key) = (uint32_t)++t->n;
    memset(entry, 0, t->entry_bytes);
    memcpy(entry, key, t->key_bytes);
    return entry;
}

void rep_table_free(struct rep_table *t) {
    free(t->entries);
    free(t->index);
    t->entries = NULL;
    t->index = NULL;
    t->n = t->capacity = t->n_index = 0;
}

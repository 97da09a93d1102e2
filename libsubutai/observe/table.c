/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects and call sites by address: buckets of nodes that are only ever added, so a look-up takes no lock and may be
 * interrupted anywhere. A life ends with the next one at its address, not with its memory, of whose end nobody tells:
 * what is put where an object of the same type was forgotten, without an init, is taken for the same one.
 */
#include <sys/mman.h>

#include "observe/record.h"

enum { LOG_BUCKETS = 20, N_BUCKETS = 1 << LOG_BUCKETS, CHUNK_BYTES = 1 << 16 };

struct chunk {
    struct chunk *before;
    uint32_t n_used;
    struct rec_node nodes[];
};
enum { N_NODES = (CHUNK_BYTES - sizeof(struct chunk)) / sizeof(struct rec_node) };

static struct rec_node **buckets; /* 8 MiB of addresses; memory comes with the first node of a page's buckets */
static struct chunk *chunks;

static void *map(size_t bytes) {
    long r = sbt_syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1, 0);
    return r < 0 && r > -4096 ? NULL : (void *)r;
}

bool rec_table_start(void) {
    buckets = map(N_BUCKETS * sizeof(struct rec_node *));
    return buckets != NULL;
}

void rec_table_forget(void) {
    sbt_syscall3(SYS_madvise, buckets, N_BUCKETS * sizeof(struct rec_node *), MADV_DONTNEED);
    while (chunks != NULL) {
        struct chunk *chunk = chunks;
        chunks = chunk->before;
        sbt_syscall3(SYS_munmap, chunk, CHUNK_BYTES, 0);
    }
}

static struct rec_node *allocate(void) {
    for (;;) {
        struct chunk *chunk = __atomic_load_n(&chunks, __ATOMIC_ACQUIRE); /* pairs with the exchange below */
        if (chunk != NULL && __atomic_load_n(&chunk->n_used, __ATOMIC_RELAXED) < N_NODES) {
            uint32_t i = __atomic_fetch_add(&chunk->n_used, 1, __ATOMIC_RELAXED);
            if (i < N_NODES)
                return &chunk->nodes[i];
        }
        struct chunk *fresh = map(CHUNK_BYTES);
        if (fresh == NULL)
            return NULL;
        fresh->before = chunk;
        if (!__atomic_compare_exchange_n(&chunks, &chunk, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            sbt_syscall3(SYS_munmap, fresh, CHUNK_BYTES, 0);
    }
}

static struct rec_node *find(struct rec_node *node, uintptr_t address, const struct rec_node *end) {
    for (; node != end; node = node->next)
        if (node->address == address)
            return node;
    return NULL;
}

struct rec_node *rec_node_at(uintptr_t address) {
    struct rec_node **bucket = &buckets[(uint64_t)address * UINT64_C(0x9E3779B97F4A7C15) >> (64 - LOG_BUCKETS)];
    struct rec_node *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE); /* pairs with the exchange below */
    struct rec_node *node = find(first, address, NULL);
    if (node != NULL)
        return node;
    struct rec_node *fresh = allocate();
    if (fresh == NULL)
        return NULL;
    *fresh = (struct rec_node){.next = first, .address = address, .number = SBT_TRACE_NONE};
    while (!__atomic_compare_exchange_n(bucket, &fresh->next, fresh, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        node = find(fresh->next, address, first); /* what others have put there meanwhile */
        if (node != NULL)
            return node; /* the fresh one is lost: it happens once for an address at most */
        first = fresh->next;
    }
    return fresh;
}

/*
 * Two threads that use a new object first at the same time both come here: the one that changes the type numbers it.
 * The other one may count at once, so counters are reset before.
 */
uint32_t rec_node_begin(struct rec_node *node, uint32_t type) {
    uint32_t number = __atomic_fetch_add(&rec.n_objects, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&node->acquired, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&node->signals, 0, __ATOMIC_RELAXED);
    node->initial = node->in_flight = 0;
    node->open = node->broadcasts = 0;
    node->guard = 0;
    node->type = type;
    __atomic_store_n(&node->number, number, __ATOMIC_RELEASE);
    return number;
}

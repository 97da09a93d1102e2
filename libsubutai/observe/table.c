/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Objects and call sites by address: buckets of nodes. Nodes are only ever added, so a look-up takes no lock and may be
 * interrupted anywhere. The life of an object ends when the next life at its address begins. The end of its memory is
 * not seen: an object without an init, in the place of a forgotten object of the same type, is taken for the same
 * object.
 *
 * The table is the library's own and not liburcu's hash table (rculfhash), because the recorder is called from signal
 * handlers and in forked children. liburcu's allocates nodes' tables by malloc, needs readers that are registered and
 * in read-side sections, resizes by a thread of its own, and a child must repair it. Here nothing is ever removed, so
 * no grace periods are needed; memory is mapped; and a child forgets all buckets by one madvise.
 *
 * Every acquire here pairs with the release of the exchange or store that published the node, the chunk or the type.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "observe/record.h"
#include "os/futex.h"
#include "os/memory.h"
#include "os/signals.h"

enum { LOG_BUCKETS = 20, N_BUCKETS = 1 << LOG_BUCKETS, CHUNK_BYTES = 1 << 16 };

struct chunk {
    struct chunk *before;
    uint32_t n_used;
    struct rec_node nodes[];
};
enum { N_NODES = (CHUNK_BYTES - sizeof(struct chunk)) / sizeof(struct rec_node) };

static struct rec_node **buckets; /* 8 MiB of addresses; a page becomes memory with the first node of its buckets */
static struct chunk *chunks;
static uint64_t n_chunks; /* atomic, relaxed: only a limit is compared with it */

void *rec_map(size_t bytes) {
    long r = sbt_syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                          -1, 0);
    return r < 0 && r > -4096 ? NULL : (void *)r;
}

bool rec_table_start(void) {
    buckets = rec_map(N_BUCKETS * sizeof(struct rec_node *));
    return buckets != NULL;
}

/*
 * The parent's nodes stay mapped:
 * 1. A thread looks up its object's node, waits, and a handler that interrupts the wait forks.
 * 2. In the child the handler makes an event, which begins the child's trace and forgets the nodes.
 * 3. The handler returns, the wait ends, and the thread counts in the node.
 * No thread reads what it counts there. The child's copy costs memory only where it or the parent writes later.
 */
void rec_table_forget(void) {
    sbt_memory_clear(buckets, N_BUCKETS * sizeof(struct rec_node *));
    n_chunks = 0;
    chunks = NULL;
}

static struct rec_node *allocate(void) {
    for (;;) {
        struct chunk *chunk = __atomic_load_n(&chunks, __ATOMIC_ACQUIRE); /* pairs with the exchange below */
        if (chunk != NULL && __atomic_load_n(&chunk->n_used, __ATOMIC_RELAXED) < N_NODES) {
            uint32_t i = __atomic_fetch_add(&chunk->n_used, 1, __ATOMIC_RELAXED);
            if (i < N_NODES)
                return &chunk->nodes[i];
        }
        struct chunk *fresh = rec_map(CHUNK_BYTES);
        if (fresh == NULL)
            return NULL;
        fresh->before = chunk;
        if (__atomic_compare_exchange_n(&chunks, &chunk, fresh, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            __atomic_fetch_add(&n_chunks, 1, __ATOMIC_RELAXED);
        else
            sbt_syscall3(SYS_munmap, fresh, CHUNK_BYTES, 0);
    }
}

static struct rec_node *find(struct rec_node *node, uintptr_t address, const struct rec_node *end) {
    for (; node != end; node = node->next)
        if (node->address == address)
            return node;
    return NULL;
}

/* Neighbouring addresses have neighbouring buckets: those of a page's objects are few cache lines, and one page. */
static struct rec_node **bucket_of(uintptr_t address) {
    uint64_t of_page = (uint64_t)(address >> 12) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - LOG_BUCKETS);
    return &buckets[(of_page + (address >> 4 & 255)) % N_BUCKETS];
}

struct rec_node *rec_node_find(uintptr_t address) {
    return find(__atomic_load_n(bucket_of(address), __ATOMIC_ACQUIRE), address, NULL);
}

uint64_t rec_node_count(void) {
    return __atomic_load_n(&n_chunks, __ATOMIC_RELAXED) * N_NODES;
}

struct rec_node *rec_node_at(uintptr_t address) {
    struct rec_node **bucket = bucket_of(address);
    struct rec_node *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE); /* pairs with the exchange below */
    struct rec_node *node = find(first, address, NULL);
    if (node != NULL)
        return node;
    struct rec_node *fresh = allocate();
    if (fresh == NULL)
        return NULL;
    *fresh = (struct rec_node){.next = first, .address = address, .number = SBT_TRACE_NONE, .before = SBT_TRACE_NONE};
    while (!__atomic_compare_exchange_n(bucket, &fresh->next, fresh, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
        node = find(fresh->next, address, first); /* the node that another thread has put there meanwhile */
        if (node != NULL)
            return node; /* the fresh node is lost: once for an address at most */
        first = fresh->next;
    }
    return fresh;
}

enum { BEGINNING = 255 };               /* a type: the life is being begun */
enum { YIELDS = 16, PAUSE_NS = 20000 }; /* about 20 us of yields, then sleeps of the same length */
enum { LOCK_LOOKS = 5000 };             /* at least a tenth of a second */

/*
 * Wait a moment for another thread that will be ready as soon as it runs. Yielding alone would keep a thread of lower
 * priority from its core, so after some yields the caller sleeps.
 */
void rec_wait_a_moment(unsigned tried) {
    if (tried < YIELDS)
        sbt_syscall0(SYS_sched_yield);
    else
        sbt_pause_ns(PAUSE_NS);
}

/*
 * Not an sbt_lock: its owner may be the thread that this handler has interrupted, or may be gone in a forked child. So
 * the caller gives up waiting. A wrong number in a trace is better than a program that hangs.
 */
void rec_node_lock(struct rec_node *node) {
    for (unsigned i = 0; i < LOCK_LOOKS && __atomic_exchange_n(&node->lock, 1, __ATOMIC_ACQUIRE) != 0; i++)
        rec_wait_a_moment(i);
}

void rec_node_unlock(struct rec_node *node) {
    __atomic_store_n(&node->lock, 0, __ATOMIC_RELEASE);
}

/*
 * Until it stores the type, only the caller may begin a life there. The number is relaxed: it only has to be unique. So
 * are the fields: calls of the life before may still be returning, if their object's memory is another object's
 * already; and of the order of lives in memory that a thread has unmapped and another one mapped only the kernel knows.
 */
static uint32_t begin_life(struct rec_node *node, uint32_t *numbers) {
    uint32_t number = __atomic_fetch_add(numbers, 1, __ATOMIC_RELAXED);
    rec_node_lock(node);
    __atomic_store_n(&node->before, rec_life_of(node), __ATOMIC_RELAXED);
    node->before_signals = (node->broadcasts & 1) != 0 ? node->signals : 0;
    __atomic_store_n(&node->acquired, 0, __ATOMIC_RELAXED); /* this also clears `open` */
    __atomic_store_n(&node->signals, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&node->broadcasts, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&node->initial, 0, __ATOMIC_RELAXED); /* this also clears `flying` */
    __atomic_store_n(&node->undefined, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&node->number, number, __ATOMIC_RELAXED);
    rec_node_unlock(node);
    return number;
}

uint32_t rec_node_begin(struct rec_node *node, uint8_t type) {
    uint64_t signals = sbt_signals_block(); /* a handler may use the object: its initialisation has succeeded */
    uint32_t number = begin_life(node, &rec.n_objects);
    __atomic_store_n(&node->type, type, __ATOMIC_RELEASE);
    sbt_signals_restore(signals);
    return number;
}

/*
 * Several threads may use an object for the first time at once:
 *  1. The thread that changes the type to BEGINNING (acquire) begins the object's life.
 *  2. The other threads wait until that thread stores the type (release).
 *
 * Until then no handler may run on that thread: it might wait for the thread that it has interrupted.
 */
bool rec_node_claim(struct rec_node *node, uint8_t type, uint32_t *numbers, uint64_t *signals) {
    *signals = sbt_signals_block();
    uint8_t seen = __atomic_load_n(&node->type, __ATOMIC_ACQUIRE);
    for (unsigned i = 0; seen != type; i++) {
        if (seen != BEGINNING &&
            __atomic_compare_exchange_n(&node->type, &seen, BEGINNING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            begin_life(node, numbers);
            return true;
        }
        if (seen == BEGINNING) { /* for a few instructions, unless that thread is not running */
            rec_wait_a_moment(i);
            seen = __atomic_load_n(&node->type, __ATOMIC_ACQUIRE); /* pairs with the other thread's store of the type */
        }
    }
    sbt_signals_restore(*signals);
    return false;
}

void rec_node_claimed(struct rec_node *node, uint8_t type, uint64_t signals) {
    __atomic_store_n(&node->type, type, __ATOMIC_RELEASE);
    sbt_signals_restore(signals);
}

/* Type and number are one word, so that a life can begin by one exchange. Little-endian, as both architectures are. */
struct word {
    uint8_t type, lock, undefined, unused;
    uint32_t number;
};
_Static_assert(offsetof(struct rec_node, type) % 8 == 0 &&
                   offsetof(struct rec_node, number) == offsetof(struct rec_node, type) + offsetof(struct word, number),
               "the same places");

bool rec_node_claim_made(struct rec_node *node, uint8_t type, uint32_t number, bool undefined) {
    struct word seen, fresh = {.type = type, .undefined = undefined, .number = number};
    uint64_t *word = (uint64_t *)(void *)&node->type, was = __atomic_load_n(word, __ATOMIC_ACQUIRE), now;
    memcpy(&seen, &was, sizeof seen);
    if (seen.type != REC_MADE || seen.lock != 0)
        return false;
    if (__atomic_load_n(&node->signals, __ATOMIC_RELAXED) != 0)
        __atomic_store_n(&node->signals, 0, __ATOMIC_RELAXED);
    memcpy(&now, &fresh, sizeof now);
    return __atomic_compare_exchange_n(word, &was, now, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

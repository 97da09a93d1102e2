/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * futex(2): a mutex of three states and a condition that moves its waiters to it (Drepper, "Futexes Are Tricky");
 * and turns that are passed by bits, with deadlines on the way. A missed wake-up leaves a thread asleep.
 */
#include "objects.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A sanitizer sees the engine only where it is linked in. */
#ifdef SBT_PREFIX
#include "abi/futex.h"
static long futex(uint32_t *at, int op, uint32_t val, uintptr_t more, uint32_t *at2, uint32_t val3) {
    return abi_futex(at, op, val, more, at2, val3);
}
#else
static long futex(uint32_t *at, int op, uint32_t val, uintptr_t more, uint32_t *at2, uint32_t val3) {
    long r = syscall(SYS_futex, at, op, val, more, at2, val3);
    return r == -1 ? -errno : r;
}
#endif

/* ---- a mutex and a condition ---- */
struct place {
    uint32_t mutex, sequence;
    struct guard guard;
    unsigned tokens, waiting;
};
struct market {
    struct place *places;
    unsigned n;
};

static void wait_on(uint32_t *at, uint32_t seen) {
    long r = futex(at, FUTEX_WAIT_PRIVATE, seen, 0, NULL, 0);
    CHECK(r == 0 || r == -EAGAIN || r == -EINTR);
}
static void take_contended(uint32_t *mutex) {
    AT("futex mutex");
    while (__atomic_exchange_n(mutex, 2, __ATOMIC_ACQUIRE) != 0)
        wait_on(mutex, 2);
}
static void take(uint32_t *mutex) {
    uint32_t zero = 0;
    if (!__atomic_compare_exchange_n(mutex, &zero, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        take_contended(mutex);
}
static void drop(uint32_t *mutex) {
    if (__atomic_exchange_n(mutex, 0, __ATOMIC_RELEASE) == 2)
        CHECK(futex(mutex, FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0) >= 0);
}

/* All waiters are told: one is woken, the others wait for the mutex, which counts as contended. */
static void tell(struct place *p) {
    uint32_t now = __atomic_add_fetch(&p->sequence, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&p->mutex, 2, __ATOMIC_RELAXED);
    AT("futex requeue");
    long r = futex(&p->sequence, FUTEX_CMP_REQUEUE_PRIVATE, 1, INT_MAX, &p->mutex, now);
    CHECK(r >= 0);
}

static void market_body(struct worker *w) {
    struct market *m = w->shared;
    uint64_t quota = w->left;
    for (uint64_t i = 0; i < quota; i++) {
        struct place *p = &m->places[(w->index / 2) % m->n];
        take(&p->mutex);
        guard_section(&p->guard, w);
        if ((w->index & 1) == 0) {
            p->tokens++;
            if (p->waiting != 0)
                tell(p);
        } else {
            while (p->tokens == 0) {
                uint32_t seen = __atomic_load_n(&p->sequence, __ATOMIC_RELAXED);
                p->waiting++;
                drop(&p->mutex);
                AT("futex condition");
                wait_on(&p->sequence, seen);
                take_contended(&p->mutex);
                p->waiting--;
            }
            p->tokens--;
        }
        drop(&p->mutex);
        w->n[w->index & 1]++;
        think(w);
        DID();
    }
}

static void futex_market(struct run *run) {
    struct market m = {.n = 2};
    uint64_t sums[4];
    m.places = calloc(m.n, sizeof *m.places);
    team_whole(run, run->threads & ~3u, market_body, &m, sums);
    CHECK(sums[0] == sums[1]);
    for (unsigned i = 0; i < m.n; i++)
        CHECK(m.places[i].tokens == 0 && m.places[i].waiting == 0);
    free(m.places);
    torture_note("%llu tokens given and taken", (unsigned long long)sums[1]);
}

/* ---- turns ---- */
struct ring {
    uint32_t turn; /* thread turn % n is next */
    unsigned n;
    uint64_t data; /* plain: the turn orders it */
    uint64_t most;
};

static void ring_body(struct worker *w) {
    struct ring *r = w->shared;
    for (;;) {
        uint32_t seen;
        while ((seen = __atomic_load_n(&r->turn, __ATOMIC_ACQUIRE)) < r->most && seen % r->n != w->index) {
            struct timespec at;
            clockid_t clock = rng_chance(&w->rng, 50) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
            bool timed = rng_chance(&w->rng, 10);
            int op = FUTEX_WAIT_BITSET_PRIVATE | (timed && clock == CLOCK_REALTIME ? FUTEX_CLOCK_REALTIME : 0);
            if (timed)
                random_deadline(w, clock, &at);
            AT("futex turn");
            long got = futex(&r->turn, op, seen, timed ? (uintptr_t)&at : 0, NULL, (uint32_t)1 << w->index % 32);
            CHECK(got == 0 || got == -EAGAIN || got == -EINTR || (timed && got == -ETIMEDOUT));
            w->n[1] += got == -ETIMEDOUT;
        }
        if (seen >= r->most)
            return;
        CHECK(r->data == seen);
        r->data++;
        __atomic_store_n(&r->turn, seen + 1, __ATOMIC_RELEASE);
        uint32_t bits = seen + 1 == r->most ? FUTEX_BITSET_MATCH_ANY : (uint32_t)1 << (seen + 1) % r->n % 32;
        CHECK(futex(&r->turn, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, 0, NULL, bits) >= 0);
        w->n[0]++;
        DID();
    }
}

static void futex_ring(struct run *run) {
    struct ring r = {.n = run->threads, .most = run->ops / 4 + 1};
    uint64_t sums[4];
    team_whole(run, run->threads, ring_body, &r, sums);
    CHECK(r.data == r.most);
    torture_note("%llu turns, %llu waits timed out", (unsigned long long)sums[0], (unsigned long long)sums[1]);
}

const struct torture futex_tortures[] = {
    {"futex-market", "a mutex and a condition made of futexes exclude, and lose no waiter that is moved", futex_market,
     16, 40000, 0},
    {"futex-ring", "a turn goes round by wake-ups for one bit, while others time out", futex_ring, 24, 40000, 0},
    {0},
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the rest of the engine knows of the NI service threads; see service.h. `placing` is held together with no other
 * lock.
 */
#include "engine/ni/service.h"

#include "core/thread.h"
#include "os/futex.h"

#define TILES_PER_THREAD 32

struct ni_services ni_services;

static struct sbt_lock placing;

static struct ni_service *service_of(const struct ni_tile *tile) {
    return &ni_services.service[ni_number_of(tile) / ni_services.tiles_each];
}

/*
 * A producer and a service thread that falls asleep (service_thread.c, doze) do not miss each other:
 *  1. The producer writes its request, fences, and reads `state`.
 *  2. The service thread writes NI_DOZES, fences, and looks for requests.
 *
 * At least one of the two sees what the other has written. The fences order this, so the accesses are relaxed. If there
 * are several producers, the compare-and-swap lets a single one make the system call. A service thread that is called
 * looks for requests when it has a core.
 */
void ni_service_wake(const struct ni_tile *tile) {
    struct ni_service *s = service_of(tile);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with doze's */
    uint32_t dozes = NI_DOZES;
    if (SBT_UNLIKELY(__atomic_load_n(&s->state, __ATOMIC_RELAXED) == NI_DOZES) &&
        __atomic_compare_exchange_n(&s->state, &dozes, NI_CALLED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        sbt_futex_wake(&s->state, 1);
}

bool ni_service_has_core(void) {
    return ni_machine.time_scale != 0 || sbt_cores_to_spare();
}

/* A service thread that sleeps is not counted among the runnable threads, and would be a further thread. */
static bool leave(struct ni_trust *trust, const struct ni_tile *tile) {
    uint32_t state = __atomic_load_n(&service_of(tile)->state, __ATOMIC_RELAXED);
    if (!sbt_cores_to_spare_for(state != NI_AWAKE))
        return false;
    if (state == NI_AWAKE)
        return true;
    if (state == NI_CALLED) {
        trust->n_own = NI_OWN;
    } else if (trust->called) { /* it has gone to sleep again: requests are too rare for it */
        trust->called = false;
        trust->n_late += trust->n_late < NI_LATE_MOST;
        trust->n_own = (uint16_t)(NI_OWN << trust->n_late);
    } else {
        trust->called = true;
        trust->n_own = NI_OWN;
        ni_service_wake(tile);
    }
    return false;
}

bool ni_service_leave(struct ni_thread *t) {
    struct ni_trust *trust = &t->trust;
    if (!ni_service_runs())
        trust->left = false;
    else if (ni_machine.time_scale != 0)
        trust->left = true;
    else if (trust->n_own != 0)
        trust->n_own--, trust->left = false;
    else
        trust->left = leave(trust, &ni_machine.tiles[t->tile]);
    return trust->left;
}

void ni_service_judge(struct ni_thread *t, bool late) {
    struct ni_trust *trust = &t->trust;
    trust->called = false;
    trust->n_late = late ? trust->n_late + (trust->n_late < NI_LATE_MOST) : 0;
    trust->n_own = late ? (uint16_t)(NI_OWN << trust->n_late) : 0;
}

void ni_service_occupy(uint32_t number) {
    if (ni_services.n == 0)
        return;
    struct ni_service *s = service_of(&ni_machine.tiles[number]);
    uint32_t i = 0;
    sbt_lock_take(&placing);
    while (i < s->n_occupied && s->occupied[i] != number)
        i++;
    if (i == s->n_occupied) {
        s->occupied[i] = (uint16_t)number;
        /* Pairs with look_at_mailboxes. The count alone says what is in the list: a forked child may be made here. */
        __atomic_store_n(&s->n_occupied, i + 1, __ATOMIC_RELEASE);
    }
    sbt_lock_drop(&placing);
}

bool ni_service_hand_over(const struct ni_tile *from, const struct ni_tile *to) {
    if (!ni_service_runs())
        return false;
    struct ni_service *s = service_of(to);
    if (s == service_of(from))
        return false;
    uint32_t number = ni_number_of(to);
    /* pairs with look_at_sent */
    __atomic_fetch_or(&s->sent[number / 64], UINT64_C(1) << number % 64, __ATOMIC_RELEASE);
    ni_service_wake(to);
    return true;
}

/*
 * The number in the options; or else one for TILES_PER_THREAD tiles, and at most half of the CPUs: the program needs
 * CPUs too.
 */
static uint32_t n_wanted(const struct sbt_options *options, uint32_t n_tiles) {
    uint32_t n = (uint32_t)options->value[SBT_OPT_NI_THREADS].u;
    if (n == 0) {
        n = (n_tiles + TILES_PER_THREAD - 1) / TILES_PER_THREAD;
        n = n > sbt_usable_cpus() / 2 ? sbt_usable_cpus() / 2 : n;
        n = n > 0 ? n : 1;
    }
    n = n > n_tiles ? n_tiles : n;
    return n > NI_MAX_SERVICES ? NI_MAX_SERVICES : n;
}

void ni_service_start(const struct sbt_options *options) {
    if (options->value[SBT_OPT_NI_SERVICE].u == SBT_NI_SERVICE_INLINE)
        return;
    uint32_t tiles = ni_machine.n_tiles, n = n_wanted(options, tiles), each = (tiles + n - 1) / n;
    ni_services.tiles_each = each;
    ni_services.n = (tiles + each - 1) / each;
    for (uint32_t i = 0; i < ni_services.n; i++) {
        struct ni_service *s = &ni_services.service[i];
        uint32_t to = (i + 1) * each;
        s->number = i;
        s->from = i * each;
        s->to = to < tiles ? to : tiles;
    }
}

void ni_service_fork_child(void) {
    ni_services.state = NI_SERVICES_STOPPED;
    ni_services.quit = 0;
    placing = (struct sbt_lock){0};
    for (uint32_t i = 0; i < ni_services.n; i++)
        ni_services.service[i].state = NI_AWAKE;
}

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
 *  1. The producer writes its request, fences, and reads `dozes`.
 *  2. The service thread writes `dozes`, fences, and looks for requests.
 *
 * At least one of the two sees what the other has written. The fences order this, so the accesses are relaxed. If there
 * are several producers, the exchange lets a single one make the system call.
 */
void ni_service_wake(const struct ni_tile *tile) {
    struct ni_service *s = service_of(tile);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with doze's */
    if (SBT_UNLIKELY(__atomic_load_n(&s->dozes, __ATOMIC_RELAXED) != 0) &&
        __atomic_exchange_n(&s->dozes, 0, __ATOMIC_RELAXED) != 0)
        sbt_futex_wake(&s->dozes, 1);
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
        n = n > sbt_n_cpus / 2 ? sbt_n_cpus / 2 : n;
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
        ni_services.service[i].dozes = 0;
}

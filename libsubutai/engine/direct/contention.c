/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a mutex remembers of the threads that have spun for it. Relaxed everywhere: these are hints, and a lost hint
 * costs a spin.
 */
#include "core/object.h"
#include "core/thread.h"
#include "engine/direct/mutex.h"
#include "engine/direct/policy.h"
#include "os/clock.h"
#include "switch/switch.h"
#include "wait/adapt.h"

static struct direct_contention contention(const struct sbt_mutex *mx) {
    return (struct direct_contention){__atomic_load_n(&mx->spins_failed, __ATOMIC_RELAXED),
                                      __atomic_load_n(&mx->dense, __ATOMIC_RELAXED),
                                      __atomic_load_n(&mx->contended_ns, __ATOMIC_RELAXED)};
}

/* Only what has changed: the word of the mutex is in the same cache line. */
static void remember(struct sbt_mutex *mx, const struct direct_contention *was, const struct direct_contention *c) {
    if (c->spins_failed != was->spins_failed)
        __atomic_store_n(&mx->spins_failed, c->spins_failed, __ATOMIC_RELAXED);
    if (c->dense != was->dense)
        __atomic_store_n(&mx->dense, c->dense, __ATOMIC_RELAXED);
    if (c->taken_ns != was->taken_ns)
        __atomic_store_n(&mx->contended_ns, c->taken_ns, __ATOMIC_RELAXED);
}

void direct_mutex_spin(struct sbt_mutex *mx, struct sbt_active *active) {
    struct direct_contention was = contention(mx), c = was;
    if (direct_policy_spins(&c, sbt_switch_takes_part()))
        sbt_active_force_spin(active);
    remember(mx, &was, &c);
}

void direct_mutex_learn_taken(struct sbt_mutex *mx) {
    struct direct_contention was = contention(mx), c = was;
    direct_policy_taken(&c, sbt_now_ns());
    remember(mx, &was, &c);
}

void direct_mutex_learn_luck(struct sbt_mutex *mx, bool got) {
    struct direct_contention was = contention(mx), c = was;
    direct_policy_spun(&c, got);
    remember(mx, &was, &c);
}

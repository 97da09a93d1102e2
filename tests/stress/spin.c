/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Spin locks: exclusion by lock and trylock, with as many threads as cores and with more. */
#include "objects.h"

struct object {
    pthread_spinlock_t lock;
    struct guard guard;
};

static void spin_body(struct worker *w) {
    struct object *objects = w->shared;
    while (worker_more(w)) {
        struct object *o = &objects[rng_below(&w->rng, 2)];
        int error;
        if (rng_chance(&w->rng, 30)) {
            AT("spin_trylock");
            error = pthread_spin_trylock(&o->lock);
            CHECK(error == 0 || error == EBUSY);
        } else {
            AT("spin_lock");
            OK(error = pthread_spin_lock(&o->lock));
        }
        if (error == 0) {
            guard_enter(&o->guard, w);
            busy(rng_below(&w->rng, 100));
            CHECK_INT(pthread_spin_trylock(&o->lock), EBUSY);
            guard_leave(&o->guard, w);
            AT("spin_unlock");
            OK(pthread_spin_unlock(&o->lock));
            w->n[0]++;
        } else {
            w->n[1]++;
        }
        think(w);
        DID();
    }
}

static void spin_exclusion(struct run *run) {
    struct object objects[2] = {0};
    uint64_t sums[4];
    OK(pthread_spin_init(&objects[0].lock, PTHREAD_PROCESS_PRIVATE));
    OK(pthread_spin_init(&objects[1].lock, PTHREAD_PROCESS_SHARED));
    team_whole(run, run->threads, spin_body, objects, sums);
    CHECK_INT(objects[0].guard.after + objects[1].guard.after, sums[0]);
    for (unsigned i = 0; i < 2; i++) {
        OK(pthread_spin_trylock(&objects[i].lock));
        OK(pthread_spin_unlock(&objects[i].lock));
        OK(pthread_spin_destroy(&objects[i].lock));
    }
    torture_note("%llu sections, %llu attempts given up", (unsigned long long)sums[0], (unsigned long long)sums[1]);
}

const struct torture spin_tortures[] = {
    {"spin-exclusion", "one owner at a time", spin_exclusion, 2, 100000, 0},
    {"spin-oversubscribed", "the same with more threads than cores", spin_exclusion, 16, 20000, 0},
    {0},
};

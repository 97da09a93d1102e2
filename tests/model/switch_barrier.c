/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For switch-walk: a barrier of the engine `direct`, and how threads wait actively: never, or for so many looks. */
#include "switch_barrier.h"

#include "core/object.h"
#include "engine/direct/direct.h"
#include "switch/inner.h"
#include "wait/park.h"
#include "wait/turn.h"

uint32_t walk_n_offers, walk_n_looks;

uint32_t *walk_n_in_vain(void) {
    static const struct sbt_thread *whose[SCHED_MAX_THREADS];
    static uint32_t n[SCHED_MAX_THREADS];
    uint32_t i = 0;
    while (whose[i] != NULL && whose[i] != sched_self)
        if (++i == SCHED_MAX_THREADS)
            sched_wrong("more threads than the test has room for");
    whose[i] = sched_self;
    return &n[i];
}

static pthread_barrier_t barrier;
static uint32_t n_arrived, n_serial, n_others, size;

/* ---- wait/ ---- */
void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory) {
    (void)memory;
    memset(a, 0, sizeof *a);
    a->yields_left = (uint16_t)walk_n_looks;
}

bool sbt_active_step(struct sbt_active *a) {
    return a->yields_left != 0 && a->yields_left-- != 0;
}

void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory) {
    (void)a, (void)memory;
}

void sbt_active_in_vain(struct sbt_active *a, uint16_t switches) {
    (void)a, (void)switches;
    ++*walk_n_in_vain();
}

void sbt_active_spin(struct sbt_active *a) {
    (void)a;
}

bool sbt_turn_offer(void) {
    walk_n_offers++;
    return false;
}

void sbt_turn_give_or_pause(void) {
    sched_pause();
}

/* ---- the walk's ---- */
void walk_barrier_setup(uint32_t count) {
    n_arrived = n_serial = n_others = 0;
    size = count;
    direct_barrier_init(&barrier, count);
}

static bool is_away(void) {
    return sbt_self.context != NULL && sbt_self.context->carrier != NULL;
}

void walk_barrier_wait(bool stays_away) {
    n_arrived++;
    stays_away = stays_away && is_away();
    int r = direct_barrier_wait(&barrier);
    if (stays_away && !is_away())
        sched_wrong("somebody has been sent home for no reason");
    n_serial += r == PTHREAD_BARRIER_SERIAL_THREAD;
    n_others += r == 0;
    if (n_serial + n_others > n_arrived / size * size)
        sched_wrong("somebody has been let go before his round was complete");
}

void walk_barrier_destroy(void) {
    if (direct_barrier_destroy(&barrier) != 0)
        sched_wrong("a barrier that nobody waits in is busy");
    sched_free(&barrier, sizeof barrier);
}

const char *walk_barrier_at_end(void) {
    if (!sched_is_freed(&barrier) && sbt_barrier_of(&barrier)->crowd != 0)
        return "somebody is left in the crowd";
    return n_others != n_serial * (size - 1) ? "not one of each round's threads is the serial one" : NULL;
}

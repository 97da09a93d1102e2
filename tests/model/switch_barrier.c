/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For switch-walk: a barrier of the engine `direct`, and how threads wait actively: never, or for so many looks. */
#include "switch_barrier.h"

#include "core/object.h"
#include "engine/direct/direct.h"
#include "switch/fiber.h"
#include "wait/park.h"
#include "wait/yield_gate.h"

uint32_t walk_n_offers, walk_n_looks;

uint32_t *walk_n_in_vain(void) {
    static const struct sbt_thread *thread[SCHED_MAX_THREADS];
    static uint32_t n[SCHED_MAX_THREADS];
    uint32_t i = 0;
    while (thread[i] != NULL && thread[i] != sched_self)
        if (++i == SCHED_MAX_THREADS)
            sched_wrong("more threads than the test has room for");
    thread[i] = sched_self;
    return &n[i];
}

static pthread_barrier_t barrier;
static uint32_t n_arrived, n_serial, n_others, size;

/* ---- wait/ ---- */
static struct sbt_adapt of_all_words;

struct sbt_adapt *sbt_adapt_of_word(const uint32_t *word) {
    (void)word;
    return &of_all_words;
}

void walk_forget_waits(void) {
    memset(&of_all_words, 0, sizeof of_all_words);
}

void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory) {
    (void)memory;
    memset(a, 0, sizeof *a);
    a->yields_left = (uint16_t)walk_n_looks;
}

bool sbt_active_step(struct sbt_active *a) {
    return a->yields_left != 0 && a->yields_left-- != 0;
}

uint64_t sbt_active_since_ns(const struct sbt_active *a) {
    (void)a;
    return sched_now_ns();
}

void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory) {
    (void)a, (void)memory;
}

void sbt_active_futile(struct sbt_active *a, uint16_t switches) {
    (void)a, (void)switches;
    ++*walk_n_in_vain();
}

void sbt_active_force_spin(struct sbt_active *a) {
    (void)a;
}

bool sbt_spared_yield(struct sbt_spared *spared) {
    (void)spared;
    sched_pause();
    return true;
}

struct sbt_yield_gate sbt_yield_gate;

bool sbt_yield_gate_offer(struct sbt_yield_gate *gate) {
    (void)gate;
    walk_n_offers++;
    return false;
}

void sbt_yield_gate_offer_or_pause(struct sbt_yield_gate *gate) {
    (void)gate;
    sched_pause();
}

/* ---- the walk's ---- */
void walk_barrier_setup(uint32_t count) {
    n_arrived = n_serial = n_others = 0;
    size = count;
    direct_barrier_init(&barrier, count);
}

static bool is_away(void) {
    return sbt_self.fiber != NULL && sbt_self.fiber->carrier != NULL;
}

void walk_barrier_wait(bool stays_away) {
    n_arrived++;
    stays_away = stays_away && is_away();
    int r = direct_barrier_wait(&barrier);
    if (stays_away && !is_away())
        sched_wrong("a fiber has been sent home for no reason");
    n_serial += r == PTHREAD_BARRIER_SERIAL_THREAD;
    n_others += r == 0;
    if (n_serial + n_others > n_arrived / size * size)
        sched_wrong("a thread has been released before its round was complete");
}

void walk_barrier_destroy(void) {
    if (direct_barrier_destroy(&barrier) != 0)
        sched_wrong("a barrier without waiters is busy");
    sched_free(&barrier, sizeof barrier);
}

const char *walk_barrier_at_end(void) {
    if (!sched_is_freed(&barrier) && sbt_barrier_of(&barrier)->waiter_stack != 0)
        return "a fiber is left on the waiter stack";
    return n_others != n_serial * (size - 1) ? "not one of each round's threads is the serial one" : NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/objects.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/clock.h"
#include "os/fork.h"
#include "os/futex.h"
#include "os/signals.h"

/*
 * Patience is counted in waits of TICK_NS that ended without a change, not by the clock: the clock goes on while the
 * process, or the whole machine, is stopped, and the thread that is waited for does not.
 */
#define TICK_NS 100000000
#define PATIENCE_TICKS 10u       /* a look takes 0.1 ms; on a busy machine a thread may have no core for long */
#define HELD_PATIENCE_TICKS 100u /* of one that needs a core and nothing else */
#define FORK_PATIENCE_TICKS 30u  /* a fork waits for looks, and copies the tables of all memory */

/* Sequentially consistent: of a thread that goes inside and one that forks, at least one sees the other. */
static uint32_t change(uint32_t *word, uint32_t by) {
    return __atomic_add_fetch(word, by, __ATOMIC_SEQ_CST);
}

static uint32_t read_word(uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/*
 * Until the word is another one than n, or a tick is over. False: the tick is over. Handlers do not begin it anew: with
 * a timer that is quicker than a tick none would ever be over.
 */
static bool wait_a_tick(uint32_t *word, uint32_t n) {
    struct sbt_deadline limit = sbt_deadline_in(TICK_NS);
    while (read_word(word) == n)
        if (sbt_futex_wait(word, n, &limit) == ETIMEDOUT)
            return false;
    return true;
}

/* Returns how much of the patience that wait has taken: 1 if no fork has begun or ended for a tick. */
static unsigned wait_for_forks(void) {
    uint32_t n = read_word(&sbt_fork_page.forks);
    return n != 0 && !wait_a_tick(&sbt_fork_page.forks, n);
}

static void go_outside(void) {
    if (change(&sbt_fork_page.inside, -1U) == 0 && read_word(&sbt_fork_page.forks) != 0)
        sbt_futex_wake(&sbt_fork_page.inside, INT_MAX);
}

/*
 * A fork that begins after the wait for the one before is waited for as well:
 *  1. The looker is outside, and the fork that it waits for ends.
 *  2. Another fork begins, finds no thread inside, and copies the process.
 *  3. The looker goes inside. The linker's lock would be copied with it as the owner, so it looks for forks again.
 * Returns the signals that were blocked before.
 */
static uint64_t go_inside(void) {
    for (unsigned ticks = 0;;) {
        uint64_t signals = sbt_signals_block();
        change(&sbt_fork_page.inside, 1);
        if (SBT_LIKELY(read_word(&sbt_fork_page.forks) == 0) || ticks >= FORK_PATIENCE_TICKS)
            return signals;
        go_outside();
        sbt_signals_restore(signals);
        ticks += wait_for_forks();
    }
}

struct look {
    int (*f)(struct dl_phdr_info *, size_t, void *);
    void *argument;
    bool holds;
};

static int visit(struct dl_phdr_info *info, size_t size, void *argument) {
    struct look *look = argument;
    if (!look->holds)
        change(&sbt_fork_page.holding, 1);
    look->holds = true;
    return look->f(info, size, look->argument);
}

int sbt_objects_iterate(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument) {
    struct look look = {f, argument, false};
    uint64_t signals = go_inside();
    int r = dl_iterate_phdr(visit, &look);
    if (look.holds)
        change(&sbt_fork_page.holding, -1U);
    go_outside();
    sbt_signals_restore(signals);
    return r;
}

/* Patience begins anew with each look that ends. */
void sbt_objects_fork_prepare(void) {
    change(&sbt_fork_page.forks, 1);
    uint32_t n = read_word(&sbt_fork_page.inside);
    for (unsigned ticks = 0; n != 0;) {
        bool over = !wait_a_tick(&sbt_fork_page.inside, n);
        uint32_t left = read_word(&sbt_fork_page.inside);
        ticks = left != n ? 0 : ticks + over;
        n = left;
        if (ticks >= (read_word(&sbt_fork_page.holding) != 0 ? HELD_PATIENCE_TICKS : PATIENCE_TICKS))
            break;
    }
}

void sbt_objects_fork_parent(void) {
    if (change(&sbt_fork_page.forks, -1U) == 0)
        sbt_futex_wake(&sbt_fork_page.forks, INT_MAX);
}

void sbt_objects_fork_child(void) {
    sbt_fork_page.inside = sbt_fork_page.holding = sbt_fork_page.forks = 0;
}

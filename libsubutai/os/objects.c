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

#define PATIENCE_NS 100000000 /* a look at a hundred objects takes 0.1 ms */

/* Sequentially consistent: of a thread that goes inside and one that forks, at least one sees the other. */
static uint32_t change(uint32_t *word, uint32_t by) {
    return __atomic_add_fetch(word, by, __ATOMIC_SEQ_CST);
}

static uint32_t read_word(uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

static void wait_until_zero(uint32_t *word) {
    struct sbt_deadline limit = sbt_deadline_in(PATIENCE_NS);
    for (uint32_t n; (n = read_word(word)) != 0;)
        if (sbt_futex_wait(word, n, &limit) == ETIMEDOUT)
            return;
}

static void go_outside(void) {
    if (change(&sbt_fork_page.inside, -1U) == 0 && read_word(&sbt_fork_page.forks) != 0)
        sbt_futex_wake(&sbt_fork_page.inside, INT_MAX);
}

int sbt_objects_iterate(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument) {
    uint64_t signals = sbt_signals_block();
    change(&sbt_fork_page.inside, 1);
    if (SBT_UNLIKELY(read_word(&sbt_fork_page.forks) != 0)) {
        go_outside();
        sbt_signals_restore(signals);
        wait_until_zero(&sbt_fork_page.forks);
        signals = sbt_signals_block();
        change(&sbt_fork_page.inside, 1);
    }
    int r = dl_iterate_phdr(f, argument);
    go_outside();
    sbt_signals_restore(signals);
    return r;
}

void sbt_objects_fork_prepare(void) {
    change(&sbt_fork_page.forks, 1);
    wait_until_zero(&sbt_fork_page.inside);
}

void sbt_objects_fork_parent(void) {
    if (change(&sbt_fork_page.forks, -1U) == 0)
        sbt_futex_wake(&sbt_fork_page.forks, INT_MAX);
}

void sbt_objects_fork_child(void) {
    sbt_fork_page.inside = sbt_fork_page.forks = 0;
}

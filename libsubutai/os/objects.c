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

#define PATIENCE_NS 1000000000       /* a look takes 0.1 ms; on a busy machine a thread may have no core for long */
#define HELD_PATIENCE_NS 3000000000u /* of one that needs a core and nothing else */
#define FORK_PATIENCE_NS 3000000000u /* a fork waits for looks, and copies the tables of all memory */
#define LOOK_NS 100000000            /* how often a fork that waits sees whether there is progress */

/* Sequentially consistent: of a thread that goes inside and one that forks, at least one sees the other. */
static uint32_t change(uint32_t *word, uint32_t by) {
    return __atomic_add_fetch(word, by, __ATOMIC_SEQ_CST);
}

static uint32_t read_word(uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* False: the word was not zero for all that time. */
static bool wait_until_zero(uint32_t *word, uint64_t most_ns) {
    struct sbt_deadline limit = sbt_deadline_in(most_ns);
    for (uint32_t n; (n = read_word(word)) != 0;)
        if (sbt_futex_wait(word, n, &limit) == ETIMEDOUT)
            return false;
    return true;
}

static void go_outside(void) {
    if (change(&sbt_fork_page.inside, -1U) == 0 && read_word(&sbt_fork_page.forks) != 0)
        sbt_futex_wake(&sbt_fork_page.inside, INT_MAX);
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
    uint64_t signals = sbt_signals_block();
    change(&sbt_fork_page.inside, 1);
    if (SBT_UNLIKELY(read_word(&sbt_fork_page.forks) != 0)) {
        go_outside();
        sbt_signals_restore(signals);
        wait_until_zero(&sbt_fork_page.forks, FORK_PATIENCE_NS);
        signals = sbt_signals_block();
        change(&sbt_fork_page.inside, 1);
    }
    int r = dl_iterate_phdr(visit, &look);
    if (look.holds)
        change(&sbt_fork_page.holding, -1U);
    go_outside();
    sbt_signals_restore(signals);
    return r;
}

void sbt_objects_fork_prepare(void) {
    change(&sbt_fork_page.forks, 1);
    uint32_t n = read_word(&sbt_fork_page.inside);
    for (uint64_t since = sbt_now_ns(); !wait_until_zero(&sbt_fork_page.inside, LOOK_NS);) {
        uint64_t now = sbt_now_ns();
        uint32_t left = read_word(&sbt_fork_page.inside);
        if (left != n)
            since = now;
        n = left;
        if (now - since >= (read_word(&sbt_fork_page.holding) != 0 ? HELD_PATIENCE_NS : PATIENCE_NS))
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

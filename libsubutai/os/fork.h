/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fork generation: how a process notices that it is a forked child.
 *
 * The kernel zeroes a page in a forked child (MADV_WIPEONFORK), whether fork, _Fork or clone made the child, and before
 * any atfork handler runs. Nothing here blocks or allocates.
 */
#ifndef SBT_OS_FORK_H
#define SBT_OS_FORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/arch.h"

/*
 * `known` is the generation, and 1 from the start of the library on. 0: a child that has not noticed yet. The others
 * are os/objects.c's, atomic, also futex words.
 */
extern union sbt_fork_page {
    struct {
        uint32_t known;
        uint32_t inside;  /* threads that look at the loaded objects */
        uint32_t holding; /* of these, threads that have the dynamic linker's lock */
        uint32_t forks;   /* that are under way */
    };
    char page[SBT_PAGE_MAX];
} sbt_fork_page SBT_HIDDEN;

/* The slow path of sbt_fork_generation: begins the next generation and calls sbt_fork_on_notice. */
void sbt_fork_notice(void);

/*
 * How many forks lie between the process in which the library started and this process. A child's number differs from
 * its parent's.
 */
static inline uint32_t sbt_fork_generation(void) {
    if (SBT_UNLIKELY(sbt_fork_page.known == 0))
        sbt_fork_notice();
    return sbt_fork_page.known - 1;
}

/* Has this process noticed that it is one, so that sbt_fork_generation calls no function? */
static inline bool sbt_fork_is_noticed(void) {
    return sbt_fork_page.known != 0;
}

/*
 * Called as soon as a child notices, to forget the parent's threads; may be NULL. Set once, before there are threads.
 */
extern void (*sbt_fork_on_notice)(void);

/* Once, by start/: ask the kernel to wipe the page. */
void sbt_fork_start(void);

/* Does the kernel wipe memory in forked children? */
bool sbt_fork_wipes(void);

/*
 * In a forked child. True: the kernel did not wipe what it should have, and the caller must forget the waiters itself.
 */
bool sbt_fork_child(void);

#endif

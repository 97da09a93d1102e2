/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/fork.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define NO_SUCH_ADVICE 0x7FFFFFFF

union sbt_fork_page sbt_fork_page __attribute__((aligned(SBT_PAGE_MAX)));
void (*sbt_fork_on_notice)(void);

static uint32_t generation;
static bool wipes; /* the kernel wipes memory in forked children */

SBT_NOINLINE void sbt_fork_notice(void) {
    generation++;
    if (sbt_fork_on_notice != NULL)
        sbt_fork_on_notice();
    sbt_fork_page.known = generation + 1;
}

void sbt_fork_start(void) {
    sbt_fork_page.known = generation + 1;
    /* Old kernels refuse. An emulator may accept any advice, even nonsense, and do nothing. */
    wipes = sbt_syscall3(SYS_madvise, &sbt_fork_page, sizeof sbt_fork_page, NO_SUCH_ADVICE) != 0 &&
            sbt_syscall3(SYS_madvise, &sbt_fork_page, sizeof sbt_fork_page, MADV_WIPEONFORK) == 0;
}

bool sbt_fork_wipes(void) {
    return wipes;
}

bool sbt_fork_child(void) {
    if (!wipes || sbt_fork_page.known == 0)
        sbt_fork_notice();
    return !wipes;
}

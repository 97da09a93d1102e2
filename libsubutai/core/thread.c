/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/thread.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/arch.h"

#define NO_SUCH_ADVICE 0x7FFFFFFF

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

uint32_t sbt_n_runnable = 1;
uint32_t sbt_n_cpus = 1;

union sbt_thread_process sbt_thread_process __attribute__((aligned(SBT_PAGE_MAX)));

static uint32_t generation;
static bool wipes; /* the kernel does it */

SBT_NOINLINE void sbt_thread_fork_noticed(void) {
    generation++;
    sbt_self.tid = 0;
    sbt_n_runnable = 1;
    sbt_thread_process.known = generation + 1;
}

void sbt_thread_start(void) {
    cpu_set_t cpus;
    long n = sbt_syscall3(SYS_sched_getaffinity, 0, sizeof cpus, &cpus);
    if (n > 0)
        sbt_n_cpus = (uint32_t)CPU_COUNT_S((size_t)n, &cpus);
    sbt_thread_process.known = generation + 1;
    /* Old kernels refuse; emulators may accept any advice, nonsense too, and do nothing. */
    wipes = madvise(&sbt_thread_process, sizeof sbt_thread_process, NO_SUCH_ADVICE) != 0 &&
            madvise(&sbt_thread_process, sizeof sbt_thread_process, MADV_WIPEONFORK) == 0;
}

bool sbt_thread_wipes_on_fork(void) {
    return wipes;
}

bool sbt_thread_fork_child(void) {
    if (!wipes || sbt_thread_process.known == 0)
        sbt_thread_fork_noticed();
    return !wipes;
}

uint32_t sbt_thread_tid(void) {
    if (SBT_UNLIKELY(sbt_thread_process.known == 0))
        sbt_thread_fork_noticed();
    if (SBT_UNLIKELY(sbt_self.tid == 0))
        sbt_self.tid = (uint32_t)sbt_syscall0(SYS_gettid);
    return sbt_self.tid;
}

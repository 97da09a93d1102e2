/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/cpus.h"
#include "os/arch.h"
#include "os/elf.h"
#include "os/proc.h"
#include "os/real.h"

#define ADDRESS_AS_ID 0x20000000u /* FUTEX_WAITERS and FUTEX_OWNER_DIED are above it, the largest id is far below */

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

uint32_t sbt_n_runnable = 1;

/* In a forked child: the caller is its only thread. */
static void forget_parent(void) {
    sbt_self.tid = 0;
    sbt_n_runnable = 1;
    sbt_cpus_fork_child();
}

void sbt_thread_start(void) {
    sbt_cpus_start();
    sbt_fork_on_notice = forget_parent;
    sbt_fork_start();
}

intptr_t sbt_thread_copy_at;

/*
 * glibc describes its thread record to debuggers (libthread_db): the bits of a field, the number of fields, and the
 * offset. If the field is not as described, its place stays unknown. Where no call tells the id, glibc's copy is what
 * there is, if it can be an id. It is better than an address, which the next thread may have.
 */
void sbt_thread_learn(void) {
    enum { BITS, COUNT, OFFSET };
    const uint32_t *field = sbt_real_dlvsym()(RTLD_NEXT, "_thread_db_pthread_tid", "GLIBC_PRIVATE");
    /* The C library's own: another preloaded library's may not be ready for a call yet. */
    __typeof(pthread_self) *self = (__typeof(pthread_self) *)sbt_elf_libc("pthread_self");
    if (field == NULL || field[BITS] != 32 || field[COUNT] != 1 || self == NULL)
        return;
    const char *record = (const char *)self();
    uint32_t copy, id = sbt_thread_tid();
    memcpy(&copy, record + field[OFFSET], sizeof copy);
    if (copy == id || (id >= ADDRESS_AS_ID && copy - 1 < ADDRESS_AS_ID - 1))
        sbt_thread_copy_at = record - (const char *)__builtin_thread_pointer() + (intptr_t)field[OFFSET];
}

/*
 * A filter of system calls may refuse to tell the id. Owners of locks must be told apart all the same: by another way
 * to the id, or by an address, which is no thread's id.
 */
static uint32_t read_tid(void) {
    long tid = sbt_syscall0(SYS_gettid);
    if (SBT_LIKELY(tid > 0))
        return (uint32_t)tid;
    uint32_t linked = sbt_proc_tid();
    return linked != 0 ? linked : ADDRESS_AS_ID | (uint32_t)((uintptr_t)&sbt_self / sizeof sbt_self % ADDRESS_AS_ID);
}

uint32_t sbt_thread_tid(void) {
    sbt_fork_generation(); /* a child has an id of its own */
    if (SBT_UNLIKELY(sbt_self.tid == 0))
        sbt_self.tid = read_tid();
    return sbt_self.tid;
}

void sbt_thread_await_end(pthread_t thread) {
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    sbt_real.pthread_join(thread, NULL);
    pthread_setcancelstate(state, NULL);
}

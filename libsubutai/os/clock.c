/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/clock.h"

#include <sys/syscall.h>

#include "os/arch.h"
#include "os/elf.h"

#if defined(__x86_64__)
#define VDSO_NAME "__vdso_clock_gettime"
#else
#define VDSO_NAME "__kernel_clock_gettime"
#endif

/* NULL before the start, and if the kernel offers none. Written once; a thread that still sees NULL asks the kernel. */
static int (*vdso)(clockid_t clock, struct timespec *now);

void sbt_clock_start(void) {
    __atomic_store_n(&vdso, (int (*)(clockid_t, struct timespec *))sbt_elf_vdso(VDSO_NAME), __ATOMIC_RELAXED);
}

void sbt_clock_read(clockid_t clock, struct timespec *now) {
    int (*f)(clockid_t, struct timespec *) = __atomic_load_n(&vdso, __ATOMIC_RELAXED);
    if (f == NULL || f(clock, now) != 0)
        sbt_syscall3(SYS_clock_gettime, clock, now, 0);
}

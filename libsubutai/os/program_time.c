/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/program_time.h"

#include <stdint.h>

#include "os/elf.h"
#include "os/real.h"

struct sbt_program_time sbt_program_time;

/* Nothing where the library is linked in: there the next functions are a sanitizer's, which show no other time. */
void sbt_program_time_start(void) {
    if (sbt_real_is_linked || sbt_elf_is_libcs("clock_gettime", (void *)(uintptr_t)sbt_real.clock_gettime))
        return;
    sbt_program_time.cond_timedwait =
        !sbt_elf_is_libcs("pthread_cond_timedwait", (void *)(uintptr_t)sbt_real.pthread_cond_timedwait);
    sbt_program_time.sem_timedwait = !sbt_elf_is_libcs("sem_timedwait", (void *)(uintptr_t)sbt_real.sem_timedwait);
}

struct sbt_deadline sbt_program_time_deadline(clockid_t clock, const struct timespec *at) {
    const long second = 1000000000;
    struct sbt_deadline d = {clock, *at};
    struct timespec program, kernel;
    if (sbt_deadline_check(&d) != 0 || sbt_real.clock_gettime(clock, &program) != 0)
        return d;
    sbt_clock_read(clock, &kernel);
    d.at.tv_nsec += kernel.tv_nsec - program.tv_nsec;
    long carry = d.at.tv_nsec < 0 ? -1 : d.at.tv_nsec >= second ? 1 : 0;
    d.at.tv_nsec -= carry * second;
    if (__builtin_add_overflow(d.at.tv_sec, kernel.tv_sec - program.tv_sec + carry, &d.at.tv_sec))
        d.at = *at; /* so far away that the kernel's time will do */
    return d;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/clock.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "os/arch.h"

struct rec_clock rec_clock;

/* The kernel trusts the counter only if it has compared the counters of the cores and knows that they do not stop. */
static int kernel_uses_it(void) {
    char name[32] = "";
    long fd =
        sbt_syscall6(SYS_openat, AT_FDCWD, (long)"/sys/devices/system/clocksource/clocksource0/current_clocksource",
                     O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return 0;
    sbt_syscall3(SYS_read, fd, name, sizeof name - 1);
    sbt_syscall3(SYS_close, fd, 0, 0);
    return strcmp(name, "tsc\n") == 0 || strcmp(name, "arch_sys_counter\n") == 0;
}

void rec_clock_start(void) {
    /* two readings are within 100 ns of each other, so the scale is good to a ten-thousandth */
    enum { CALIBRATION_NS = 1000000 };
    if (!kernel_uses_it())
        return;
    uint64_t start_ns = sbt_now_ns(), start = rec_ticks(), now_ns, now;
    do {
        now_ns = sbt_now_ns();
        now = rec_ticks();
    } while (now_ns - start_ns < CALIBRATION_NS);
    if (now == start)
        return;
    uint64_t scale = (uint64_t)(((unsigned __int128)(now_ns - start_ns) << 32) / (now - start));
    rec_clock.base_ticks = start - (uint64_t)(((unsigned __int128)1000000000 << 32) / (scale != 0 ? scale : 1));
    rec_clock.scale = scale; /* times are above 0; before this no time was asked for */
}

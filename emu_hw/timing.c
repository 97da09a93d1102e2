/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "timing.h"

struct hw_timing hw_timing_default(void) {
    return (struct hw_timing){.fsm_cycles = 1,
                              .memory_cycles = 2,
                              .entry_cycles = 4,
                              .exit_cycles = 1,
                              .router_cycles = 3,
                              .link_cycles = 1,
                              .handover_cycles = 60,
                              .resume_cycles = 185,
                              .clock_mhz = 1000};
}

uint64_t hw_timing_ns(const struct hw_timing *timing, uint64_t cycles) {
    /* In two parts: cycles * 1000 would overflow after some months of model time. */
    uint64_t mhz = timing->clock_mhz;
    return cycles / mhz * 1000 + cycles % mhz * 1000 / mhz;
}

/* In two parts too, and for the same reason. A cycle's nanoseconds, times the scale and the clock's MHz: */
static uint64_t unit_of(uint32_t scale) {
    return UINT64_C(1000) * scale;
}

uint64_t hw_timing_cycles_of_wall(const struct hw_timing *timing, uint64_t wall_ns, uint32_t scale) {
    uint64_t unit = unit_of(scale), mhz = timing->clock_mhz;
    return wall_ns / unit * mhz + wall_ns % unit * mhz / unit;
}

uint64_t hw_timing_wall_ns(const struct hw_timing *timing, uint64_t cycles, uint32_t scale) {
    uint64_t unit = unit_of(scale), mhz = timing->clock_mhz;
    return cycles / mhz * unit + (cycles % mhz * unit + mhz - 1) / mhz;
}

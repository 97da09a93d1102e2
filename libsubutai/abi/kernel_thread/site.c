/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How the sites of libraries that make futex calls themselves are served (core/sites.h): by abi_futex. */
#include "abi/kernel_thread/site.h"

#include "abi/abi.h"
#include "core/sites.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* From site_x86_64.S. */
extern const char abi_site_narrow[], abi_site_wide[];
extern uint32_t abi_site_wide_bytes, abi_site_wide_mask;

/* The area that the registers are saved in, and which: x87, SSE, AVX, AVX-512, the general registers beyond 16. */
uint32_t abi_site_wide_bytes, abi_site_wide_mask;
#define HEADER_END 576
#define WANTED (0x7u | 0xe0u | 1u << 19)

/* False: the processor, or the kernel, saves no registers in that way. Intel's manual, "Managing State". */
static bool learn_area(void) {
    uint32_t a, b, c, d, low, high;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_OSXSAVE) == 0)
        return false;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    abi_site_wide_mask = low & WANTED;
    abi_site_wide_bytes = HEADER_END;
    for (uint32_t i = 2; i < 32; i++) {
        if ((abi_site_wide_mask >> i & 1) == 0)
            continue;
        if (__get_cpuid_count(0xd, i, &a, &b, &c, &d) == 0)
            return false;
        if (a + b > abi_site_wide_bytes)
            abi_site_wide_bytes = a + b;
    }
    return true;
}

void abi_sites_serve(void) {
    static struct sbt_sites_by by = {abi_site_narrow, NULL, abi_futex_adopt, abi_futex_forget};
    if (abi_site_wide_bytes == 0 && learn_area())
        by.wide = abi_site_wide;
    sbt_sites_serve(&by);
}
#else
void abi_sites_serve(void) {
    static const struct sbt_sites_by by = {NULL, NULL, abi_futex_adopt, abi_futex_forget};
    sbt_sites_serve(&by);
}
#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The system-call instructions of a loaded library that makes futex calls itself, and not by the C library's functions.
 * One at which the call can be replaced is a site.
 *
 * On x86-64 libgomp's sites are `syscall` followed by `cmp $-38,%rax`: has the kernel no such call? These six bytes
 * have room for a jump (os/site_stub.h). Where the kernel has none, libgomp takes the private flag out of its futex
 * operations, and calls again by a second instruction: a fallback, which is never reached. On aarch64 libgomp calls
 * `syscall` of the C library: it has no such instructions.
 */
#ifndef SBT_OS_SITE_FIND_H
#define SBT_OS_SITE_FIND_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

#define SBT_SITE_BYTES 6
#define SBT_SITES_MAX 64

struct sbt_sites {
    uint32_t n;
    uintptr_t code, code_end;    /* all of the library's code */
    bool is_wide;                /* the library may use other vector registers than XMM0 to 15 */
    uintptr_t at[SBT_SITES_MAX]; /* ascending */
    /*
     * How often libgomp looks before it sleeps; and if the program has more OpenMP threads than CPUs: variables of the
     * library's. NULL, both: they were not found, or the user has chosen how libgomp waits.
     */
    uint64_t *spins, *crowded_spins;
};

/* libgomp's own values of these variables, where the user has not chosen. */
#define SBT_SITE_SPINS 300000
#define SBT_SITE_CROWDED_SPINS 100

/*
 * Find the sites of a library. NULL: these are all; every other system-call instruction is a fallback; and nothing but
 * the instruction before it leads to any byte of a site behind its first, or to a fallback. Otherwise why not that much
 * is known: the end of a sentence "LIBRARY ...". A millisecond for a libgomp. Reads the library's memory, and finds out
 * first whether it may be read.
 */
const char *sbt_sites_find(struct sbt_sites *sites, const struct dl_phdr_info *library);

#endif

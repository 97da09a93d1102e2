/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How large a function's frame is at one of its calls, by the unwind table (.eh_frame) that exceptions need anyway.
 *
 * A row of the table says where the canonical frame address (CFA) is while an instruction runs. On x86-64 it is the
 * stack pointer's value before the call of the function, so the return address of the function is below it. Only rows
 * `CFA = rsp + N` are of use: N is known without looking at the registers of the time. DWARF 5, section 6.4.
 */
#ifndef SBT_OS_CFA_H
#define SBT_OS_CFA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A frame description entry as the C library's linker has loaded it: it and its CIE are whole. */
struct sbt_fde {
    const uint8_t *bytes;
    uintptr_t function; /* where the function begins */
};

/*
 * From where the stack pointer is when the call at that return address is made, to the place of the return address of
 * the function that makes it: bytes. False: it is not fixed, or not known. The unwinder is loaded (os/unwinder.h).
 */
bool sbt_cfa_at(uintptr_t return_address, uint32_t *bytes);
/* The same, by that entry. Pure. */
bool sbt_cfa_in(const struct sbt_fde *fde, uintptr_t return_address, uint32_t *bytes);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Instructions of x86-64, as far as must be known to walk through a function: how long each is, where it may go, and
 * which registers it may use. Pure code.
 */
#ifndef SBT_OS_INSN_H
#define SBT_OS_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SBT_INSN_MAX 15 /* bytes of the longest instruction */

enum sbt_insn_kind {
    SBT_INSN_OTHER,
    SBT_INSN_SYSCALL,
    SBT_INSN_BRANCH,       /* the next instruction need not be the one behind it: jumps, calls, returns */
    SBT_INSN_JUMP_ANYWHERE /* a jump to an address from a register or from memory */
};

struct sbt_insn {
    uint8_t n_bytes;
    uint8_t kind;    /* enum sbt_insn_kind */
    bool is_wide;    /* it may use vector registers beyond XMM0 to 15, or the x87's */
    bool has_target; /* of a jump or a call; or an address relative to the instruction, which may be a jump's */
    int64_t target;  /* from the instruction's first byte */
};

/*
 * The instruction at `code`, of which `n` bytes may be read. False: it is not one that compilers make for all x86-64
 * processors and those with AVX; or it does not end within `n` bytes.
 */
bool sbt_insn_read(struct sbt_insn *insn, const uint8_t *code, size_t n);

#endif

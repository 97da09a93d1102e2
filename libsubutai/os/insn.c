/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Format: Intel's and AMD's manuals, "Instruction Format" and "Opcode Map". An instruction is: prefixes; REX, VEX or
 * EVEX; an opcode; ModRM with SIB and displacement; an immediate. The tables say what follows an opcode.
 */
#include "os/insn.h"

#include <string.h>

/* What follows an opcode. */
enum follows {
    X, /* not an opcode in 64-bit mode, or one that is not decoded */
    N, /* nothing */
    M, /* ModRM */
    B, /* an immediate of 1 byte */
    Z, /* an immediate of 4 bytes; 2 with the operand-size prefix */
    C, /* ModRM and 1 byte */
    D, /* ModRM and 4 bytes; 2 with the prefix */
    R, /* a branch by 1 byte */
    L, /* a branch by 4 bytes */
    E, /* a branch that says nothing of where it goes: return, trap */
    P, /* a prefix, or an opcode that read_one treats itself */
};

static const uint8_t one_byte[256] = {
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, P, /* 00: add, or */
    M, M, M, M, B, Z, X, X, M, M, M, M, B, Z, X, X, /* 10: adc, sbb */
    M, M, M, M, B, Z, P, X, M, M, M, M, B, Z, P, X, /* 20: and, sub */
    M, M, M, M, B, Z, P, X, M, M, M, M, B, Z, P, X, /* 30: xor, cmp */
    P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, P, /* 40: REX */
    N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, /* 50: push, pop */
    X, X, P, M, P, P, P, P, Z, D, B, C, N, N, N, N, /* 60: EVEX, movslq, prefixes, push, imul, ins, outs */
    R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, R, /* 70: jumps on a condition */
    C, D, X, C, M, M, M, M, M, M, M, M, M, M, M, M, /* 80: arithmetic with an immediate, test, xchg, mov, lea, pop */
    N, N, N, N, N, N, N, N, N, N, X, N, N, N, N, N, /* 90: xchg, sign extensions, flags */
    P, P, P, P, N, N, N, N, B, Z, N, N, N, N, N, N, /* a0: mov by a long address, strings, test */
    B, B, B, B, B, B, B, B, P, P, P, P, P, P, P, P, /* b0: mov of an immediate */
    C, C, P, E, P, P, C, D, P, N, P, E, E, X, X, E, /* c0: shifts, ret, VEX, mov, enter, leave, traps; not int */
    M, M, M, M, X, X, X, N, M, M, M, M, M, M, M, M, /* d0: shifts, x87 */
    R, R, R, R, B, B, B, B, L, L, X, R, N, N, N, N, /* e0: loop, in, out, call, jmp */
    P, N, P, P, E, N, P, P, N, N, N, N, N, N, M, P, /* f0: prefixes, groups 3 to 5 */
};

/* Behind 0f. */
static const uint8_t two_bytes[256] = {
    M, M, M, M, X, P, N, X, N, N, X, E, X, M, N, C, /* 00: system, syscall, ud2, prefetch */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 10: moves, nop, endbr */
    X, X, X, X, X, X, X, X, M, M, M, M, M, M, M, M, /* 20: moves, conversions */
    N, N, N, N, X, X, X, X, P, X, P, X, X, X, X, X, /* 30: counters; two more maps */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 40: cmov */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 50: arithmetic */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 60: integers */
    C, C, C, C, M, M, M, N, X, X, X, X, M, M, M, M, /* 70: shuffles, shifts */
    L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, /* 80: jumps on a condition */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* 90: set */
    N, N, N, M, C, M, X, X, N, N, X, M, C, M, M, M, /* a0: cpuid, bit tests, double shifts, fences, imul */
    M, M, M, M, M, M, M, M, M, M, C, M, M, M, M, M, /* b0: cmpxchg, bit tests, zero extensions, bit scans */
    M, M, C, M, C, C, C, M, N, N, N, N, N, N, N, N, /* c0: xadd, compares, shuffles, cmpxchg16b, bswap */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* d0: integers */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* e0 */
    M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, M, /* f0 */
};

struct cursor {
    const uint8_t *begin, *at, *end;
    bool has_66, has_67, has_f2_f3, rex_w;
};

static bool skip(struct cursor *c, size_t n) {
    if ((size_t)(c->end - c->at) < n)
        return false;
    c->at += n;
    return true;
}

/* ModRM, SIB and displacement. `behind`: how many bytes of the instruction follow, for an address relative to its end.
 */
static bool skip_modrm(struct cursor *c, struct sbt_insn *insn, size_t behind) {
    if (c->at == c->end)
        return false;
    const uint8_t modrm = *c->at++, mod = modrm >> 6, rm = modrm & 7;
    size_t n = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    if (mod == 3)
        return true;
    if (rm == 4) {
        if (c->at == c->end)
            return false;
        if ((*c->at++ & 7) == 5 && mod == 0)
            n = 4; /* no base */
    } else if (rm == 5 && mod == 0) {
        int32_t distance;
        if (c->end - c->at < 4)
            return false;
        memcpy(&distance, c->at, sizeof distance);
        insn->has_target = true;
        insn->target = c->at + 4 + behind - c->begin + distance;
        n = 4;
    }
    return skip(c, n);
}

static bool branch(struct cursor *c, struct sbt_insn *insn, size_t n) {
    int32_t distance = 0;
    if ((size_t)(c->end - c->at) < n)
        return false;
    if (n == 1)
        distance = *c->at - ((*c->at & 0x80) << 1);
    else
        memcpy(&distance, c->at, sizeof distance);
    c->at += n;
    insn->kind = SBT_INSN_BRANCH;
    insn->has_target = true;
    insn->target = c->at - c->begin + distance;
    return true;
}

static bool skip_follows(struct cursor *c, struct sbt_insn *insn, enum follows follows) {
    const size_t z = c->has_66 && !c->rex_w ? 2 : 4;
    switch (follows) {
    case N:
        return true;
    case M:
        return skip_modrm(c, insn, 0);
    case B:
        return skip(c, 1);
    case Z:
        return skip(c, z);
    case C:
        return skip_modrm(c, insn, 1) && skip(c, 1);
    case D:
        return skip_modrm(c, insn, z) && skip(c, z);
    case R:
        return branch(c, insn, 1);
    case L:
        return z == 4 && branch(c, insn, 4); /* with the prefix processors differ */
    case E:
        insn->kind = SBT_INSN_BRANCH;
        return true;
    case X:
    case P:
        break;
    }
    return false;
}

/* Group 3 has an immediate only for test; group 5 has jumps and calls. */
static bool read_group(struct cursor *c, struct sbt_insn *insn, uint8_t opcode) {
    if (c->at == c->end)
        return false;
    const unsigned which = *c->at >> 3 & 7;
    if (opcode == 0xff) {
        if (which == 4 || which == 5)
            insn->kind = SBT_INSN_JUMP_ANYWHERE;
        else if (which == 2 || which == 3)
            insn->kind = SBT_INSN_BRANCH;
        return which != 7 && skip_modrm(c, insn, 0);
    }
    return skip_follows(c, insn, which > 1 ? M : opcode == 0xf6 ? C : D);
}

/* VEX and EVEX: the opcode's map is in the prefix, which begins with c5, c4 or 62. */
static bool read_vector(struct cursor *c, struct sbt_insn *insn, uint8_t first) {
    const size_t n = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;
    const uint8_t *p = c->at;
    if (!skip(c, n + 1))
        return false;
    const unsigned map = first == 0xc5 ? 1 : first == 0xc4 ? p[0] & 0x1f : p[0] & 7;
    const uint8_t opcode = p[n], follows = two_bytes[opcode];
    insn->is_wide = true;
    c->has_66 = c->rex_w = false;
    if (map == 1)
        return (follows == N || follows == M || follows == C) && skip_follows(c, insn, follows);
    if (map == 2 || (first == 0x62 && (map == 5 || map == 6)))
        return skip_follows(c, insn, M);
    return map == 3 && skip_follows(c, insn, C);
}

/* Does it use the x87's registers by their other name, MMX? */
static bool is_mmx(const struct cursor *c, uint8_t opcode) {
    return !c->has_66 && !c->has_f2_f3 &&
           ((opcode >= 0x60 && opcode <= 0x7f) || opcode == 0xc4 || opcode == 0xc5 ||
            (opcode >= 0xd0 && opcode != 0xff) || opcode == 0x2a || opcode == 0x2c || opcode == 0x2d);
}

static bool read_two_bytes(struct cursor *c, struct sbt_insn *insn) {
    if (c->at == c->end)
        return false;
    const uint8_t opcode = *c->at++;
    if (opcode == 0x05) {
        insn->kind = SBT_INSN_SYSCALL;
        return true;
    }
    if (opcode == 0x38 || opcode == 0x3a) {
        insn->is_wide = !c->has_66 && !c->has_f2_f3; /* MMX, and a few others */
        return skip(c, 1) && skip_follows(c, insn, opcode == 0x38 ? M : C);
    }
    insn->is_wide = opcode == 0x0f || is_mmx(c, opcode);
    return skip_follows(c, insn, two_bytes[opcode]);
}

static bool read_one(struct cursor *c, struct sbt_insn *insn, uint8_t opcode, bool rex) {
    if (opcode == 0x0f)
        return read_two_bytes(c, insn);
    if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62)
        return !rex && !c->has_66 && !c->has_f2_f3 && read_vector(c, insn, opcode);
    if (opcode == 0xf6 || opcode == 0xf7 || opcode == 0xff)
        return read_group(c, insn, opcode);
    if (opcode >= 0xb8 && opcode <= 0xbf)
        return skip(c, c->rex_w ? 8 : c->has_66 ? 2 : 4);
    if (opcode >= 0xa0 && opcode <= 0xa3)
        return skip(c, c->has_67 ? 4 : 8);
    if (opcode == 0xc8)
        return skip(c, 3);
    if (opcode == 0xc2 || opcode == 0xca) {
        insn->kind = SBT_INSN_BRANCH;
        return skip(c, 2);
    }
    if ((opcode == 0x8f || opcode == 0xc6 || opcode == 0xc7) && (c->at == c->end || (*c->at & 0x38) != 0))
        return false; /* XOP, transactions */
    insn->is_wide = opcode == 0x9b || (opcode >= 0xd8 && opcode <= 0xdf);
    return skip_follows(c, insn, one_byte[opcode]);
}

static bool is_prefix(struct cursor *c, uint8_t byte) {
    switch (byte) {
    case 0x66:
        return c->has_66 = true;
    case 0x67:
        return c->has_67 = true;
    case 0xf2:
    case 0xf3:
        return c->has_f2_f3 = true;
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0xf0:
        return true;
    default:
        return false;
    }
}

bool sbt_insn_read(struct sbt_insn *insn, const uint8_t *code, size_t n) {
    struct cursor c = {.begin = code, .at = code, .end = code + (n < SBT_INSN_MAX ? n : SBT_INSN_MAX)};
    bool rex = false;
    memset(insn, 0, sizeof *insn);
    while (c.at < c.end && is_prefix(&c, *c.at))
        c.at++;
    if (c.at < c.end && (*c.at & 0xf0) == 0x40) {
        rex = true;
        c.rex_w = (*c.at++ & 8) != 0;
    }
    if (c.at == c.end)
        return false;
    const uint8_t opcode = *c.at++;
    if (!read_one(&c, insn, opcode, rex))
        return false;
    insn->n_bytes = (uint8_t)(c.at - code);
    return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/cfa.h"

#include <string.h>

#include "os/unwinder.h"

enum {
    REGISTER_SP = 7, /* rsp, in DWARF's numbers for x86-64 */
    STATES = 8,      /* that are remembered at a time */
    LENGTH = 4,      /* bytes of an entry's length */
    PC_SIZE = 0x07   /* bits of a pointer's encoding: its size */
};

/* Instructions of a table. The upper two bits, and where these are 0, the rest. */
enum {
    ADVANCE_LOC = 0x40,
    OFFSET = 0x80,
    RESTORE = 0xc0,
    UPPER = 0xc0,
    NOP = 0x00,
    ADVANCE_LOC1 = 0x02,
    ADVANCE_LOC2 = 0x03,
    ADVANCE_LOC4 = 0x04,
    OFFSET_EXTENDED = 0x05,
    RESTORE_EXTENDED = 0x06,
    UNDEFINED = 0x07,
    SAME_VALUE = 0x08,
    REGISTER = 0x09,
    REMEMBER_STATE = 0x0a,
    RESTORE_STATE = 0x0b,
    DEF_CFA = 0x0c,
    DEF_CFA_REGISTER = 0x0d,
    DEF_CFA_OFFSET = 0x0e,
    DEF_CFA_EXPRESSION = 0x0f,
    EXPRESSION = 0x10,
    VAL_EXPRESSION = 0x16,
    GNU_ARGS_SIZE = 0x2e
};

struct rule {
    uint64_t reg, offset;
    bool is_expression;
};

struct table {
    const uint8_t *at, *end;
    uint64_t align; /* bytes that an advance by 1 means */
    uintptr_t here, until;
    struct rule rule, remembered[STATES];
    unsigned n_remembered;
    bool is_known; /* so far */
};

/* ---- numbers ---- */

static uint64_t take_byte(struct table *t) {
    if (t->at < t->end)
        return *t->at++;
    t->is_known = false;
    return 0;
}

/* LEB128. Of a signed one the value is of no use here. */
static uint64_t take_leb(struct table *t) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take_byte(t);
        if (shift < 64)
            value |= (byte & 127) << shift;
        shift += 7;
    } while ((byte & 128) != 0 && t->is_known);
    return value;
}

static uint64_t take_fixed(struct table *t, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= take_byte(t) << 8 * i;
    return value;
}

static void pass_over(struct table *t, uint64_t bytes) {
    if (bytes > (uint64_t)(t->end - t->at)) {
        t->is_known = false;
        bytes = 0;
    }
    t->at += bytes;
}

static uint32_t word_at(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* ---- instructions ---- */

/* Those that say nothing of the CFA, by their numbers. */
static void pass_over_other(struct table *t, uint64_t instruction) {
    switch (instruction) {
    case NOP:
        break;
    case RESTORE_EXTENDED:
    case UNDEFINED:
    case SAME_VALUE:
    case GNU_ARGS_SIZE:
        take_leb(t);
        break;
    case OFFSET_EXTENDED:
    case REGISTER:
        take_leb(t);
        take_leb(t);
        break;
    case EXPRESSION:
    case VAL_EXPRESSION:
        take_leb(t);
        pass_over(t, take_leb(t));
        break;
    default:
        t->is_known = false;
    }
}

static void remember(struct table *t) {
    if (t->n_remembered < STATES)
        t->remembered[t->n_remembered++] = t->rule;
    else
        t->is_known = false;
}

static void restore(struct table *t) {
    if (t->n_remembered > 0)
        t->rule = t->remembered[--t->n_remembered];
    else
        t->is_known = false;
}

static void define(struct table *t, uint64_t instruction) {
    if (instruction != DEF_CFA_OFFSET)
        t->rule.reg = take_leb(t);
    if (instruction != DEF_CFA_REGISTER)
        t->rule.offset = take_leb(t);
    t->rule.is_expression = false;
}

static void take_instruction(struct table *t) {
    uint64_t instruction = take_byte(t), upper = instruction & UPPER;
    if (upper == ADVANCE_LOC) {
        t->here += (instruction & ~(uint64_t)UPPER) * t->align;
    } else if (upper == OFFSET) {
        take_leb(t);
    } else if (upper != RESTORE) {
        switch (instruction) {
        case ADVANCE_LOC1:
        case ADVANCE_LOC2:
        case ADVANCE_LOC4:
            t->here += take_fixed(t, 1u << (instruction - ADVANCE_LOC1)) * t->align;
            break;
        case REMEMBER_STATE:
            remember(t);
            break;
        case RESTORE_STATE:
            restore(t);
            break;
        case DEF_CFA:
        case DEF_CFA_REGISTER:
        case DEF_CFA_OFFSET:
            define(t, instruction);
            break;
        case DEF_CFA_EXPRESSION:
            pass_over(t, take_leb(t));
            t->rule.is_expression = true;
            break;
        default:
            pass_over_other(t, instruction);
        }
    }
}

/* The rows up to that of the call: an advance beyond it ends them, before it says anything. */
static void take_rows(struct table *t) {
    while (t->at < t->end && t->is_known) {
        struct rule before = t->rule;
        take_instruction(t);
        if (t->here >= t->until) {
            t->rule = before;
            return;
        }
    }
}

/* ---- entries ---- */

static struct table part_of(const uint8_t *entry) {
    return (struct table){.at = entry + LENGTH, .end = entry + LENGTH + word_at(entry), .is_known = true};
}

/* Bytes of a pointer with that encoding; 0: not known. */
static unsigned pointer_size(uint64_t encoding) {
    static const unsigned char sizes[PC_SIZE + 1] = {[0] = 8, [2] = 2, [3] = 4, [4] = 8};
    return sizes[encoding & PC_SIZE];
}

/* The CIE, up to its instructions: how the FDE's pointers are encoded; `t->is_known` false: not as known. */
static uint64_t begin_cie(struct table *t) {
    uint64_t encoding = 0;
    pass_over(t, sizeof(uint32_t)); /* its id */
    uint64_t version = take_byte(t);
    const char *augmentation = (const char *)t->at;
    pass_over(t, strnlen(augmentation, (size_t)(t->end - t->at)) + 1);
    t->align = take_leb(t);
    take_leb(t);
    if (version == 1)
        take_byte(t);
    else
        take_leb(t);
    t->is_known = t->is_known && *augmentation == 'z';
    const uint64_t n = take_leb(t);
    const uint8_t *data = t->at;
    for (const char *c = augmentation + 1; t->is_known && *c != '\0'; c++)
        if (*c == 'R')
            encoding = take_byte(t);
        else if (*c == 'L')
            take_byte(t);
        else if (*c == 'P')
            pass_over(t, pointer_size(take_byte(t)));
        else if (*c != 'B') /* not 'S' either: a signal's frame */
            t->is_known = false;
    t->at = data;
    pass_over(t, n);
    return encoding;
}

bool sbt_cfa_in(const struct sbt_fde *fde, uintptr_t return_address, uint32_t *bytes) {
    const uint8_t *id = fde->bytes + LENGTH;
    struct table t = part_of(id - word_at(id)), rows = part_of(fde->bytes);
    const uint64_t encoding = begin_cie(&t);
    t.here = rows.here = fde->function;
    t.until = rows.until = return_address; /* the call is below that */
    while (t.at < t.end && t.is_known)
        take_instruction(&t);
    pass_over(&rows, sizeof(uint32_t) + 2 * pointer_size(encoding));
    pass_over(&rows, take_leb(&rows));
    rows.align = t.align;
    rows.rule = t.rule;
    rows.is_known = rows.is_known && t.is_known && pointer_size(encoding) != 0;
    take_rows(&rows);
    if (!rows.is_known || rows.rule.is_expression || rows.rule.reg != REGISTER_SP ||
        rows.rule.offset < sizeof(uintptr_t) || rows.rule.offset > UINT32_MAX)
        return false;
    *bytes = (uint32_t)rows.rule.offset;
    return true;
}

bool sbt_cfa_at(uintptr_t return_address, uint32_t *bytes) {
#if defined(__x86_64__)
    struct dwarf_eh_bases bases;
    const struct sbt_fde fde = {.bytes = sbt_unwinder.find_fde((void *)(return_address - 1), &bases)};
    return fde.bytes != NULL &&
           sbt_cfa_in(&(struct sbt_fde){fde.bytes, (uintptr_t)bases.function}, return_address, bytes);
#else
    (void)return_address;
    (void)bytes;
    return false;
#endif
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "abi/futex_op.h"

#include <linux/futex.h>

bool abi_futex_op_is_known(uint32_t code) {
    return (code >> 24 & 15) <= FUTEX_OP_CMP_GE;
}

static int32_t signed_12(uint32_t bits) {
    return (int32_t)(bits << 20) >> 20;
}

bool abi_futex_operate(uint32_t *word, uint32_t code, int32_t *old) {
    uint32_t argument = (uint32_t)signed_12(code >> 12);
    if ((code >> 28 & FUTEX_OP_OPARG_SHIFT) != 0)
        argument = (uint32_t)1 << (argument & 31);
    switch (code >> 28 & 7) {
    case FUTEX_OP_SET:
        *old = (int32_t)__atomic_exchange_n(word, argument, __ATOMIC_SEQ_CST);
        return true;
    case FUTEX_OP_ADD:
        *old = (int32_t)__atomic_fetch_add(word, argument, __ATOMIC_SEQ_CST);
        return true;
    case FUTEX_OP_OR:
        *old = (int32_t)__atomic_fetch_or(word, argument, __ATOMIC_SEQ_CST);
        return true;
    case FUTEX_OP_ANDN:
        *old = (int32_t)__atomic_fetch_and(word, ~argument, __ATOMIC_SEQ_CST);
        return true;
    case FUTEX_OP_XOR:
        *old = (int32_t)__atomic_fetch_xor(word, argument, __ATOMIC_SEQ_CST);
        return true;
    default:
        return false;
    }
}

bool abi_futex_holds(int32_t old, uint32_t code) {
    int32_t with = signed_12(code);
    switch (code >> 24 & 15) {
    case FUTEX_OP_CMP_EQ:
        return old == with;
    case FUTEX_OP_CMP_NE:
        return old != with;
    case FUTEX_OP_CMP_LT:
        return old < with;
    case FUTEX_OP_CMP_LE:
        return old <= with;
    case FUTEX_OP_CMP_GT:
        return old > with;
    default:
        return old >= with;
    }
}

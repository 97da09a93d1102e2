/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the tests of emu_hw share: a NI with memory of its own, and one request at a time. */
#ifndef HW_CHECK_H
#define HW_CHECK_H

#include <stdlib.h>

#include "fsm.h"
#include "lib/suite.h"

struct bench_ni {
    struct hw_ni ni;
    uint8_t *bytes;
    struct hw_output *outputs;
    struct hw_step step;
};

static inline void bench_open(struct bench_ni *b, const struct hw_config *config, uint32_t number) {
    b->bytes = malloc(hw_config_spm_bytes(config));
    ck_assert_ptr_nonnull(b->bytes);
    ck_assert(hw_ni_init(&b->ni, config, number, b->bytes));
    b->outputs = calloc(hw_ni_max_outputs(&b->ni), sizeof *b->outputs);
    ck_assert_ptr_nonnull(b->outputs);
}

static inline void bench_close(struct bench_ni *b) {
    free(b->outputs);
    free(b->bytes);
}

/* One step with a packet as it is; the scratchpad must be valid after it. */
static inline void bench_packet(struct bench_ni *b, const struct hw_packet *packet) {
    const char *why = "";
    hw_fsm_step(&b->ni, packet, &b->step, b->outputs);
    ck_assert_msg(hw_spm_is_valid(&b->ni.spm, &why), "%s", why);
    ck_assert_uint_le(b->step.n_outputs, hw_ni_max_outputs(&b->ni));
}

static inline void bench_do(struct bench_ni *b, enum hw_op op, uint32_t flit1, uint32_t core, uint32_t thread) {
    struct hw_packet packet = hw_packet_alloc(&b->ni.spm.layout, op, b->ni.spm.ni, flit1, core, thread);
    bench_packet(b, &packet);
}

static inline struct hw_message bench_output(const struct bench_ni *b, uint32_t i) {
    ck_assert_uint_lt(i, b->step.n_outputs);
    return hw_packet_decode(&b->ni.spm.layout, &b->outputs[i].packet);
}

static inline void ck_answer(const struct bench_ni *b, uint32_t i, enum hw_op op, uint32_t id, uint32_t core,
                             uint32_t thread) {
    struct hw_message m = bench_output(b, i);
    ck_assert_int_eq(m.op, op);
    ck_assert_uint_eq(m.primitive, id);
    ck_assert_uint_eq(m.destination, core);
    ck_assert_uint_eq(m.core, core);
    ck_assert_uint_eq(m.thread, thread);
    ck_assert_uint_eq(m.source, b->ni.spm.ni);
}

static inline void ck_nack(const struct bench_ni *b, enum hw_op op, enum hw_reason reason) {
    ck_assert_int_eq(b->step.status, HW_STATUS_REFUSED);
    ck_assert_uint_eq(b->step.n_outputs, 1);
    struct hw_message m = bench_output(b, 0);
    ck_assert_int_eq(m.op, HW_OP_NACK);
    ck_assert_int_eq(hw_nack_op(m.argument), op);
    ck_assert_int_eq(hw_nack_reason(m.argument), reason);
}

static inline uint32_t bench_alloc(struct bench_ni *b, enum hw_op op, uint32_t flit1) {
    bench_do(b, op, flit1, 0, 0);
    struct hw_message m = bench_output(b, 0);
    ck_assert_int_eq(m.op, HW_OP_ALLOCATED);
    return m.primitive;
}

#endif

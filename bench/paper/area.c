/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "area.h"

#include <math.h>

#include "fsm.h"

/* Table VIII, um2. */
#define NI_UM2 13539.23
#define FSM_UM2 2626.21
#define SPM_UM2 3702.00
enum { SPM_BYTES = 1024, CONTROL_BITS = 96, QUEUE_BITS = 64 };

#define CELL_UM2 0.120

#define FLIP_FLOP_UM2 3.0
enum {
    OWN_REGISTER_BITS = 3 * 32 + 3, /* the paper's registers without the packet's, which are the NI's */
    TAG_BITS = 32,                  /* for each control element: a copy of its word 0 */
    COUNT_BITS = 2 * 16,            /* free queue elements, and elements promised to barriers */
    OWN_STATES = HW_N_STATES - HW_N_STATES_PAPER
};

const struct area_other area_others[] = {
    {"HTM", 0.32800, 0.01560, 5.497},
    {"MCAS", 0.01824, 0, 0.291},
    {"Abellan et al.", 0.00022, 0, 0.003},
    {"Notifying Memories", 0.00534, 0, 0.008},
};
const uint32_t area_n_others = sizeof area_others / sizeof *area_others;

struct area area_of(uint64_t spm_bytes) {
    double ratio = (double)spm_bytes / SPM_BYTES, cells = SPM_BYTES * 8 * CELL_UM2;
    return (struct area){.ni = NI_UM2,
                         .fsm = FSM_UM2,
                         .spm = cells * ratio + (SPM_UM2 - cells) * sqrt(ratio),
                         .spm_linear = SPM_UM2 * ratio};
}

struct area_ours area_ours(uint32_t n_control) {
    double logic = FSM_UM2 - OWN_REGISTER_BITS * FLIP_FLOP_UM2;
    uint32_t n_tag_bits = TAG_BITS * n_control;
    return (struct area_ours){.n_tag_bits = n_tag_bits,
                              .n_count_bits = COUNT_BITS,
                              .n_states = OWN_STATES,
                              .tags = n_tag_bits * FLIP_FLOP_UM2,
                              .counts = COUNT_BITS * FLIP_FLOP_UM2,
                              .states = logic / HW_N_STATES_PAPER * OWN_STATES};
}

uint64_t area_least_spm_bytes(uint32_t n_cores) {
    uint64_t waiters = n_cores > 0 ? n_cores - 1 : 0;
    return (CONTROL_BITS + QUEUE_BITS * waiters) / 8;
}

uint64_t area_least_spm_bytes_with_condition(uint32_t n_cores) {
    return area_least_spm_bytes(n_cores) + CONTROL_BITS / 8;
}

double area_overhead(double added_um2, double base_um2) {
    return 100 * added_um2 / base_um2;
}

double area_of_chip(double um2, uint32_t n_cores, double chip_mm2) {
    return 100 * um2 * n_cores / (chip_mm2 * 1e6);
}

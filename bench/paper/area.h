/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the hardware takes of a chip: Tables VIII and IX for any number of cores and any scratchpad.
 *
 * The paper's four areas are synthesis results, 28 nm, and inputs here. Everything but the scratchpad is the same for
 * every core: the registers and the state machine do not depend on how many cores or elements there are, as long as a
 * packet has three flits. The scratchpad is one published point, 1 KiB in 3702 um2, so how its area grows is ours: the
 * cells grow with the bits, the rest (decoder, sense amplifiers, control) with the sides of a square array. A cell of
 * 28 nm SRAM is taken as 0.120 um2. Area in proportion to the bits, the other simple assumption, is printed beside it.
 *
 * The paper's areas are of the paper's hardware. What the model in emu_hw/ has beside it is estimated apart, and not
 * part of Tables VIII and IX: tags and counts are flip-flops of 3 um2 each, and a state takes as much logic as a state
 * of the paper's, the registers taken off. Not estimated: the comparators of the tags, and wider packets above 128
 * tiles. The model's statistics, and what it does for a forked child, are not hardware.
 */
#ifndef PAPER_AREA_H
#define PAPER_AREA_H

#include <stdint.h>

/* um2, of one core's network interface. */
struct area {
    double ni;         /* basic network interface */
    double fsm;        /* Subutai's state machine and registers */
    double spm;        /* its scratchpad */
    double spm_linear; /* the same, were it in proportion to the bits */
};

struct area area_of(uint64_t spm_bytes);

/* um2, of one core's network interface: what the model has and the paper has not. */
struct area_ours {
    uint32_t n_tag_bits, n_count_bits, n_states;
    double tags, counts, states;
};

struct area_ours area_ours(uint32_t n_control);

/* The smallest scratchpad with which a barrier of all cores can be served: one control element, cores - 1 queue
 * elements. */
uint64_t area_least_spm_bytes(uint32_t n_cores);
/* The same with a condition variable beside its mutex: two control elements. */
uint64_t area_least_spm_bytes_with_condition(uint32_t n_cores);

/* Percent: of `added` on top of `base`, and of n_cores of them on a chip. */
double area_overhead(double added_um2, double base_um2);
double area_of_chip(double um2, uint32_t n_cores, double chip_mm2);

/* Table IX: others' areas for one core, as published. */
struct area_other {
    const char *name;
    double core_mm2, additional_mm2; /* additional: 0, none */
    double paper_percent;            /* what the table says of 64 cores on 400 mm2 */
};
extern const struct area_other area_others[];
extern const uint32_t area_n_others;

#endif

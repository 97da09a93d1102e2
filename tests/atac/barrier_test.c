/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Section 6.1 of the thesis: what it says of barriers, on simulated numbers. */
#include "clustering.h"
#include "lib/suite.h"
#include "subutai/atac.h"

enum { LOOPS = 60 };

static struct barrier_loop loop_of(enum barrier_kind kind, uint32_t n_cores) {
    struct atac_config config = atac_config_default();
    config.chip.n_cores = n_cores;
    return barrier_loop_run(&config, kind, LOOPS);
}

static struct barrier_loop vc_with(void (*change)(struct hw_optical_config *, uint32_t), uint32_t value) {
    struct atac_config config = atac_config_default();
    change(&config.chip.optical, value);
    return barrier_loop_run(&config, BARRIER_VC, LOOPS);
}

static void set_transport(struct hw_optical_config *c, uint32_t value) {
    c->transport_cycles = value;
}
static void set_controller(struct hw_optical_config *c, uint32_t value) {
    c->controller_cycles = value;
}
static void set_check_buffer(struct hw_optical_config *c, uint32_t value) {
    c->check_cycles = value;
}

TEST_EACH(it_is_a_barrier, 3 * 8, "no thread leaves before all have come; the same cycles twice") {
    uint32_t n = 1u << number / 3;
    struct barrier_loop a = loop_of((enum barrier_kind)(number % 3), n);
    struct barrier_loop b = loop_of((enum barrier_kind)(number % 3), n);
    ck_assert_uint_eq(a.n_overlapping, 0);
    ck_assert(a.cycles == b.cycles && a.median_exit == b.median_exit);
}

/* Two threads that come together: 300 to send, 15 on the way, 3 for the look, 300 to retrieve. */
TEST(two_threads) {
    struct barrier_loop loop = loop_of(BARRIER_VC, 2);
    ck_assert_uint_eq(loop.median_exit, 618);
    ck_assert_uint_eq(loop.cycles, 2000 + LOOPS * 618);
}

TEST_EACH(vc_is_ahead, 5, "of both others, from 4 cores on") {
    uint32_t n = 4u << number;
    uint64_t vc = loop_of(BARRIER_VC, n).cycles;
    ck_assert_uint_lt(vc, loop_of(BARRIER_SENSE_REVERSING, n).cycles);
    ck_assert_uint_lt(vc, loop_of(BARRIER_PTHREAD, n).cycles);
}

TEST(vc_grows_slowest, "from 8 to 64 cores") {
    double growth[N_BARRIER_KINDS];
    for (uint32_t kind = 0; kind < N_BARRIER_KINDS; kind++)
        growth[kind] = (double)loop_of((enum barrier_kind)kind, 64).median_exit /
                       (double)loop_of((enum barrier_kind)kind, 8).median_exit;
    ck_assert(growth[BARRIER_VC] < growth[BARRIER_PTHREAD] && growth[BARRIER_VC] < growth[BARRIER_SENSE_REVERSING]);
}

TEST_EACH(exit_latency_has_the_trend, 3,
          "of the end-to-end time: half to one and a half times a barrier's share of it") {
    for (uint32_t n = 4; n <= 64; n *= 2) {
        struct barrier_loop loop = loop_of((enum barrier_kind)number, n);
        uint64_t each = (loop.cycles - 2000) / LOOPS;
        ck_assert_msg(2 * loop.median_exit <= 3 * each && 2 * loop.median_exit >= each, "%u cores: %ju of %ju", n,
                      (uintmax_t)loop.median_exit, (uintmax_t)each);
    }
}

TEST(transport_cost, "up to 200 cycles changes nothing, 20000 about doubles the loop") {
    uint64_t base = vc_with(set_transport, 5).cycles;
    ck_assert_uint_lt(vc_with(set_transport, 200).cycles * 100, base * 103);
    uint64_t slow = vc_with(set_transport, 20000).cycles;
    ck_assert_uint_gt(slow * 10, base * 18);
    ck_assert_uint_lt(slow * 10, base * 22);
}

TEST(controller_cost, "up to 200 cycles is comparable, beyond what the core needs for a message it is not") {
    uint64_t base = vc_with(set_controller, 10).cycles;
    ck_assert_uint_lt(vc_with(set_controller, 200).cycles * 100, base * 115);
    ck_assert_uint_gt(vc_with(set_controller, 1000).cycles, base * 2);
}

/* Each barrier has 63 looks at each core. */
TEST(check_cost, "of the buffer raises the run time directly, and is not the biggest part of it") {
    uint64_t base = vc_with(set_check_buffer, 3).cycles, more = vc_with(set_check_buffer, 50).cycles;
    ck_assert_uint_ge(more - base, (uint64_t)LOOPS * 63 * 47 * 9 / 10);
    ck_assert_uint_le(more - base, (uint64_t)LOOPS * 63 * 47 * 11 / 10);
    ck_assert_uint_lt(63 * 3 * LOOPS * 50, base);
}

/* ---- streamcluster: sections 6.1.2 and 6.1.3 ---- */

static struct barrier_loop clustering(enum barrier_kind kind, uint32_t n_cores) {
    struct atac_config config = atac_config_default();
    config.chip.n_cores = n_cores;
    return barrier_program_run(&config, kind, LOOPS, clustering_work);
}

static uint64_t clustering_with(void (*change)(struct hw_optical_config *, uint32_t), uint32_t value) {
    struct atac_config config = atac_config_default();
    change(&config.chip.optical, value);
    return barrier_program_run(&config, BARRIER_VC, LOOPS, clustering_work).cycles;
}

TEST_EACH(streamcluster_vc_is_ahead, 5, "from 4 cores on, end to end and in the median exit latency") {
    uint32_t n = 4u << number;
    struct barrier_loop vc = clustering(BARRIER_VC, n);
    for (uint32_t kind = BARRIER_PTHREAD; kind < BARRIER_VC; kind++) {
        struct barrier_loop other = clustering((enum barrier_kind)kind, n);
        ck_assert_uint_eq(other.n_overlapping, 0);
        ck_assert_uint_lt(vc.cycles, other.cycles);
        ck_assert_uint_lt(vc.median_exit, other.median_exit);
    }
}

/* The thesis has more of transport: high delays do not increase the run time. Here 20000 cycles double it. */
TEST(streamcluster_costs, "transport and controller of 200 cycles change little, the check's cost is added directly") {
    uint64_t base = clustering_with(set_transport, 5);
    ck_assert_uint_lt(clustering_with(set_transport, 200) * 100, base * 103);
    ck_assert_uint_lt(clustering_with(set_controller, 200) * 100, base * 115);
    uint64_t more = clustering_with(set_check_buffer, 50) - base;
    ck_assert_uint_ge(more, (uint64_t)LOOPS * 63 * 47 * 9 / 10);
    ck_assert_uint_le(more, (uint64_t)LOOPS * 63 * 47 * 11 / 10);
}

TEST(streamcluster_work, "is that of all points, whatever the number of threads") {
    for (uint32_t episode = 0; episode < 56; episode++) {
        uint64_t one = clustering_work(0, 1, episode);
        for (uint32_t n = 2; n <= 1024 && (episode % 7 == 0 || episode % 7 == 3); n *= 2) {
            uint64_t all = 0;
            for (uint32_t i = 0; i < n; i++)
                all += clustering_work(i, n, episode);
            ck_assert_uint_eq(all, one);
        }
    }
}

/* ---- early messages ---- */

static BarrierMaster *master;

static void make(struct sim_program *chip, void *argument) {
    (void)chip;
    (void)argument;
    master = BarrierMaster_new(3);
}

/* Thread 0 is late to look: the others' messages of its next episodes come before it has counted this one's. */
static void uneven(struct sim_program *chip, void *argument) {
    uint32_t *inside = argument;
    Barrier *barrier = BarrierMaster_generate_barrier(master);
    for (uint32_t i = 0; i < 200; i++) {
        sim_compute(chip, (sim_self(chip) + i) % 3 * 1000 + (sim_self(chip) * 31 + i * 17) % 700);
        inside[i]++;
        Barrier_wait(barrier);
        ck_assert_uint_eq(inside[i], 3);
    }
    Barrier_delete(barrier);
}

TEST(early_messages_are_kept) {
    static uint32_t inside[200];
    struct atac_config config = atac_config_default();
    struct sim_error error;
    uint64_t cycles;
    config.chip.n_cores = 3;
    ck_assert_int_eq(atac_run(&config, make, uneven, inside, &cycles, &error), SIM_OK);
    BarrierMaster_delete(master);
}

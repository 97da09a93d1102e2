/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The optical network: times computed by hand, filters, limits, refusals. */
#include "optical_bench.h"

TEST(costs_of_the_thesis, "Table 4.1") {
    struct hw_optical_config c = hw_optical_config_default();
    ck_assert_uint_eq(c.transport_cycles, 5);
    ck_assert_uint_eq(c.controller_cycles, 10);
    ck_assert_uint_eq(c.check_cycles, 3);
    ck_assert_uint_eq(c.n_cores, 64);
    ck_assert(c.shape == HW_OPTICAL_FLAT && c.lambda_limit == 0 && c.buffer_limit == 0);
}

TEST(one_message, "sent at 100: in the lambda queue at 105, in the message buffer at 115, at each other core") {
    struct bench b;
    struct hw_optical_config config = small(64);
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 3, 1, 100), HW_OPTICAL_OK);
    for (uint32_t core = 0; core < 64; core++)
        if (core != 3)
            ck_at(&b, core, 115, 3);
    struct hw_optical_received r;
    ck_assert(!hw_optical_receive(&b.net, 3, 0, 10000, &r));
    ck_assert_uint_eq(hw_optical_next(&b.net, 3, 0), UINT64_MAX);
    struct hw_optical_counts sum = hw_optical_sum(&b.net);
    ck_assert(sum.n_sent == 1 && sum.n_arrived == 63 && sum.n_transferred == 63 && sum.n_received == 63);
    ck_assert_uint_eq(sum.delay_cycles, 63 * 15);
    close_net(&b);
}

TEST(all_at_once, "63 messages arrive at 5; the controller needs 10 cycles for each, in the order of wavelengths") {
    struct bench b;
    struct hw_optical_config config = small(64);
    open_net(&b, &config, true);
    for (uint32_t from = 0; from < 63; from++)
        ck_assert_int_eq(send(&b, from, 1, 0), HW_OPTICAL_OK);
    for (uint32_t k = 0; k < 63; k++)
        ck_at(&b, 63, 15 + 10 * k, k);
    close_net(&b);
}

/*
 * Core 0's controller. 2 and 3 send at 0 and arrive at 5: 2 is moved from 5 to 15, 3 from 15 to 25. 1 sends at 10, is
 * there at 15, and comes after 3, because the loop is behind 2: from 25 to 35. 2 sends again at 20, is there at 25: the
 * loop is behind 3 and finds 1 first: 2 is moved from 35 to 45.
 */
TEST(the_loop_goes_round) {
    struct bench b;
    struct hw_optical_config config = small(4);
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 3, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 2, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 1, 1, 10), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 2, 1, 20), HW_OPTICAL_OK);
    ck_at(&b, 0, 15, 2);
    ck_at(&b, 0, 25, 3);
    ck_at(&b, 0, 35, 1);
    ck_at(&b, 0, 45, 2);
    close_net(&b);
}

/* 0's message is moved until 15. 2's, of the other channel, arrives at 13, and is moved from 15 to 25. */
TEST(the_next_message_waits_for_the_controller) {
    struct bench b;
    struct hw_optical_config config = small(3);
    struct hw_optical_message m = {.channel = 1, .signature = 1, .wavelength = 2};
    struct hw_optical_received r;
    uint32_t slot;
    open_net(&b, &config, true);
    ck_assert_int_eq(hw_optical_subscribe(&b.net, 1, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(hw_optical_send(&b.net, &m, 8, &slot), HW_OPTICAL_OK);
    for (uint64_t now = 8; now < 25; now++) {
        ck_assert(!hw_optical_receive(&b.net, 1, 1, now, &r));
        ck_assert_uint_eq(hw_optical_next(&b.net, 1, 1), 25);
    }
    ck_assert(hw_optical_receive(&b.net, 1, 1, 25, &r));
    close_net(&b);
}

TEST(other_costs) {
    struct bench b;
    struct hw_optical_config config = small(2);
    config.transport_cycles = 200;
    config.controller_cycles = 7;
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 50), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 51), HW_OPTICAL_OK);
    ck_at(&b, 1, 257, 0);
    ck_at(&b, 1, 264, 0);
    close_net(&b);
}

TEST(filters, "every operation, on every pair of three bits") {
    for (uint32_t bits = 0; bits < 512; bits++) {
        uint32_t signature = bits & 7, mask = bits >> 3 & 7, own = bits >> 6;
        struct hw_filter f = {.mask = mask, .op = HW_FILTER_AND, .signature = own};
        ck_assert(hw_filter_passes(&f, signature) == ((signature & mask & own) > 0));
        f.op = HW_FILTER_OR;
        ck_assert(hw_filter_passes(&f, signature) == ((signature & mask) > 0 || own > 0));
        f.op = HW_FILTER_XOR;
        ck_assert(hw_filter_passes(&f, signature) == ((signature & mask) != own));
    }
}

TEST(a_filter_is_for_what_arrives_later, "set at 5: what arrives at 5 has passed the old one") {
    struct bench b;
    struct hw_optical_config config = small(3);
    struct hw_filter none = {.mask = 0, .op = HW_FILTER_AND, .signature = 0};
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 2, 1, 1), HW_OPTICAL_OK);
    ck_assert_int_eq(hw_optical_set_filter(&b.net, 1, &none, 5), HW_OPTICAL_OK);
    ck_at(&b, 1, 15, 0);
    struct hw_optical_received r;
    ck_assert(!hw_optical_receive(&b.net, 1, 0, 100, &r));
    ck_assert_uint_eq(b.net.cores[1].counts.n_filtered, 1);
    ck_assert_uint_eq(hw_optical_sum(&b.net).n_filtered, 1);
    ck_at(&b, 0, 16, 2);
    close_net(&b);
}

TEST(only_subscribers_receive, "a channel that a core does not read costs its controller nothing") {
    struct bench b;
    struct hw_optical_config config = small(3);
    open_net(&b, &config, false);
    ck_assert_int_eq(hw_optical_subscribe(&b.net, 1, 0, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_at(&b, 1, 15, 0);
    struct hw_optical_received r;
    ck_assert(!hw_optical_receive(&b.net, 2, 0, 100, &r));
    ck_assert_uint_eq(b.net.cores[2].counts.n_unsubscribed, 1);
    ck_assert_uint_eq(hw_optical_sum(&b.net).n_unsubscribed, 1);
    ck_assert_uint_eq(b.net.cores[2].counts.n_transferred, 0);
    ck_assert_int_eq(hw_optical_unsubscribe(&b.net, 1, 0, 100), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 100), HW_OPTICAL_OK);
    ck_assert(!hw_optical_receive(&b.net, 1, 0, 1000, &r));
    close_net(&b);
}

/*
 * One place. The first message has it from 0 until it has been transferred, at 15. The next can be sent at 15, and is
 * in the buffer at 30.
 */
TEST(back_pressure) {
    struct bench b;
    struct hw_optical_config config = small(2);
    config.lambda_limit = 1;
    open_net(&b, &config, true);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 4), HW_OPTICAL_FULL);
    ck_assert_uint_eq(hw_optical_retry(&b.net, 0, 4), 5);
    ck_assert_int_eq(send(&b, 0, 1, 5), HW_OPTICAL_FULL);
    ck_assert_uint_eq(hw_optical_retry(&b.net, 0, 5), 15);
    ck_assert_int_eq(send(&b, 0, 1, 14), HW_OPTICAL_FULL);
    ck_assert_int_eq(send(&b, 1, 1, 14), HW_OPTICAL_OK); /* another wavelength */
    ck_assert_int_eq(send(&b, 0, 1, 15), HW_OPTICAL_OK);
    ck_at(&b, 1, 15, 0);
    ck_at(&b, 1, 30, 0);
    ck_assert_uint_eq(hw_optical_sum(&b.net).n_refused, 3);
    close_net(&b);
}

TEST(a_channel_that_is_not_read, "the third message is one too many, and the network says where") {
    struct bench b;
    struct hw_optical_config config = small(2);
    config.buffer_limit = 2;
    open_net(&b, &config, false);
    ck_assert_int_eq(hw_optical_subscribe(&b.net, 1, 1, 0), HW_OPTICAL_OK);
    struct hw_optical_message m = {.channel = 1, .signature = 1};
    uint32_t slot;
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(hw_optical_send(&b.net, &m, 0, &slot), HW_OPTICAL_OK);
    hw_optical_advance(&b.net, 1, 24);
    ck_assert(!b.net.overflowed);
    hw_optical_advance(&b.net, 1, 25);
    ck_assert(b.net.overflowed);
    ck_assert_int_eq(hw_optical_subscribe(&b.net, 0, 0, 25), HW_OPTICAL_OK);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_int_eq(send(&b, 1, 1, 30), HW_OPTICAL_OK);
    hw_optical_advance(&b.net, 0, 100); /* too many here as well: the first place is remembered */
    ck_assert_uint_eq(b.net.overflowed_core, 1);
    ck_assert_uint_eq(b.net.overflowed_channel, 1);
    ck_assert_uint_eq(b.net.cores[1].counts.max_buffer, 3);
    ck_assert_uint_eq(b.net.cores[1].counts.max_lambda, 3); /* all arrive before the first is moved */
    struct hw_optical_counts sum = hw_optical_sum(&b.net);
    ck_assert_uint_eq(sum.max_buffer, 4);
    ck_assert_uint_eq(sum.max_lambda, 4);
    close_net(&b);
}

TEST(refused_calls) {
    struct bench b;
    struct hw_optical_config config = small(2);
    open_net(&b, &config, true);
    struct hw_optical_message m = {.size = HW_OPTICAL_MAX_BYTES + 1};
    struct hw_filter f = {.op = HW_N_FILTER_OPS};
    uint32_t slot;
    ck_assert_int_eq(hw_optical_send(&b.net, &m, 0, &slot), HW_OPTICAL_BAD_SIZE);
    m.size = HW_OPTICAL_MAX_BYTES;
    ck_assert_int_eq(hw_optical_send(&b.net, &m, 0, &slot), HW_OPTICAL_OK);
    m = (struct hw_optical_message){.channel = 2};
    ck_assert_int_eq(hw_optical_send(&b.net, &m, 0, &slot), HW_OPTICAL_BAD_CHANNEL);
    ck_assert_int_eq(send(&b, 2, 1, 0), HW_OPTICAL_BAD_CORE);
    ck_assert_int_eq(send(&b, 0, 1, 9), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 1, 1, 8), HW_OPTICAL_PAST);
    ck_assert_int_eq(hw_optical_set_filter(&b.net, 0, &f, 0), HW_OPTICAL_BAD_FILTER);
    ck_assert_int_eq(hw_optical_set_filter(&b.net, 2, &f, 0), HW_OPTICAL_BAD_CORE);
    ck_assert_int_eq(hw_optical_subscribe(&b.net, 0, 2, 0), HW_OPTICAL_BAD_CHANNEL);
    ck_assert_int_eq(hw_optical_subscribe(&b.net, 2, 0, 0), HW_OPTICAL_BAD_CORE);
    ck_assert_int_eq(hw_optical_unsubscribe(&b.net, 2, 0, 0), HW_OPTICAL_BAD_CORE);
    ck_assert_uint_eq(hw_optical_sum(&b.net).n_sent, 2);
    for (uint32_t i = 0; i < HW_N_OPTICAL_STATUSES; i++)
        ck_assert_uint_gt(strlen(hw_optical_status_name((enum hw_optical_status)i)), 1);
    close_net(&b);
}

TEST(one_core, "a message without a receiver needs no slot") {
    struct bench b;
    struct hw_optical_config config = small(1);
    open_net(&b, &config, true);
    for (uint32_t i = 0; i <= N_SLOTS; i++)
        ck_assert_int_eq(send(&b, 0, 1, i), HW_OPTICAL_OK);
    ck_assert_uint_eq(hw_optical_next(&b.net, 0, 0), UINT64_MAX);
    close_net(&b);
}

TEST(memory_that_is_used_up, "nothing is sent; with more memory it is") {
    struct bench b;
    struct hw_optical_config config = small(2);
    open_net(&b, &config, true);
    for (uint32_t i = 0; i < N_SLOTS; i++)
        ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_NO_MEMORY);
    struct hw_optical_node *nodes = realloc(b.net.nodes, 2 * N_SLOTS * sizeof *nodes);
    struct hw_optical_slot *slots = realloc(b.net.slots, 2 * N_SLOTS * sizeof *slots);
    ck_assert(nodes != NULL && slots != NULL);
    hw_optical_extend(&b.net, nodes, 2 * N_SLOTS, slots, 2 * N_SLOTS);
    ck_assert_int_eq(send(&b, 0, 1, 0), HW_OPTICAL_OK);
    for (uint32_t i = 0; i <= N_SLOTS; i++)
        ck_at(&b, 1, 15 + 10 * i, 0);
    close_net(&b);
}

static const char *refusal_with(void (*change)(struct hw_optical_config *)) {
    struct hw_optical_config config = hw_optical_config_default();
    config.shape = HW_OPTICAL_CLUSTERS;
    ck_assert_ptr_null(hw_optical_refusal(&config));
    change(&config);
    struct hw_optical net;
    ck_assert(!hw_optical_init(&net, &config, NULL));
    return hw_optical_refusal(&config);
}

#define REFUSED(name, field, value, why)                                                                               \
    static void change_##name(struct hw_optical_config *c) {                                                           \
        c->field = value;                                                                                              \
    }                                                                                                                  \
    TEST(refused_##name) {                                                                                             \
        ck_assert_str_eq(refusal_with(change_##name), why);                                                            \
    }
REFUSED(no_cores, n_cores, 0, "cores")
REFUSED(many_cores, n_cores, 1025, "cores")
REFUSED(no_channels, n_channels, 0, "channels")
REFUSED(many_channels, n_channels, 1025, "channels")
REFUSED(transport_cycles, transport_cycles, 1000001, "transport cycles")
REFUSED(controller_cycles, controller_cycles, 1000001, "controller cycles")
REFUSED(check_cycles, check_cycles, 1000001, "check cycles")
REFUSED(no_clock, clock_mhz, 0, "clock")
REFUSED(fast_clock, clock_mhz, 100001, "clock")
REFUSED(shape, shape, HW_N_OPTICAL_SHAPES, "shape")
REFUSED(empty_clusters, clusters.n_cores, 0, "cores of a cluster")
REFUSED(large_clusters, clusters.n_cores, 1025, "cores of a cluster")
REFUSED(receive, clusters.receive, HW_N_RECEIVE_NETWORKS, "kind of receive network")
REFUSED(no_receive_networks, clusters.n_receive_networks, 0, "receive networks")
REFUSED(many_receive_networks, clusters.n_receive_networks, 17, "receive networks")
REFUSED(empty_flits, clusters.flit_bits, 0, "bits of a flit")
REFUSED(large_flits, clusters.flit_bits, 4097, "bits of a flit")
REFUSED(link_cycles, clusters.link_cycles, 1000001, "cycles of links, hubs and conversions")
REFUSED(hub_cycles, clusters.hub_cycles, 1000001, "cycles of links, hubs and conversions")
REFUSED(star_cycles, clusters.star_cycles, 1000001, "cycles of links, hubs and conversions")
REFUSED(eo_cycles, clusters.eo_cycles, 1000001, "cycles of links, hubs and conversions")
REFUSED(oe_cycles, clusters.oe_cycles, 1000001, "cycles of links, hubs and conversions")
REFUSED(waveguide, clusters.waveguide_ps_per_mm, 1001, "waveguide")
REFUSED(tile_um, clusters.tile_um, 100001, "waveguide")

TEST(the_largest_and_the_smallest_configuration) {
    struct hw_optical_config c = hw_optical_config_default();
    c.shape = HW_OPTICAL_CLUSTERS;
    c.n_cores = c.n_channels = c.clusters.n_cores = 1024;
    c.transport_cycles = c.controller_cycles = c.check_cycles = 1000000;
    c.clusters.link_cycles = c.clusters.hub_cycles = c.clusters.star_cycles = 1000000;
    c.clusters.eo_cycles = c.clusters.oe_cycles = 1000000;
    c.clusters.n_receive_networks = 16;
    c.clusters.flit_bits = 4096;
    c.clusters.waveguide_ps_per_mm = 1000;
    c.clusters.tile_um = c.clock_mhz = 100000;
    ck_assert_ptr_null(hw_optical_refusal(&c));
    c = (struct hw_optical_config){.n_cores = 1, .n_channels = 1, .shape = HW_OPTICAL_CLUSTERS, .clock_mhz = 1};
    c.clusters = (struct hw_clusters_config){.n_cores = 1, .n_receive_networks = 1, .flit_bits = 1};
    ck_assert_ptr_null(hw_optical_refusal(&c));
}

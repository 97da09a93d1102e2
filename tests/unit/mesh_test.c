/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The mesh: ways and times in an empty network, ports that never carry two flits at once, priority over data. */
#include <stdlib.h>
#include <string.h>

#include "lib/suite.h"
#include "mesh.h"

static void open_mesh(struct hw_mesh *mesh, const struct hw_mesh_config *config) {
    struct hw_port *ports = malloc(hw_mesh_bytes(config->width, config->height));
    ck_assert_ptr_nonnull(ports);
    ck_assert(hw_mesh_init(mesh, config, ports));
}

static void close_mesh(struct hw_mesh *mesh) {
    free(mesh->ports);
}

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static const struct { uint32_t w, h; } sizes[] = {{1, 1}, {1, 7}, {7, 1}, {2, 2}, {4, 3}, {8, 8}, {16, 8}, {32, 32}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* Every pair of tiles: x first, then y, one router and link per step, and no other packet in the way. */
TEST_EACH(empty_network, N_SIZES) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.width = sizes[number].w;
    config.height = sizes[number].h;
    struct hw_mesh mesh;
    open_mesh(&mesh, &config);
    uint32_t n = config.width * config.height, stride = n > 64 ? 13 : 1;
    struct hw_hop trace[2 * HW_MESH_MAX_SIDE];
    uint64_t at = 5, n_remote = 0, n_local = 0, n_hops = 0;
    for (uint32_t from = 0; from < n; from += stride)
        for (uint32_t to = 0; to < n; to += stride, at += 1000) {
            struct hw_delivery d = hw_mesh_send(&mesh, from, to, at, trace), alone = hw_mesh_distance(&mesh, from, to);
            int dx = (int)(to % config.width) - (int)(from % config.width);
            int dy = (int)(to / config.width) - (int)(from / config.width);
            uint32_t distance = (uint32_t)(abs(dx) + abs(dy));
            if (from == to) {
                n_local++;
                ck_assert(d.head_cycles == at && d.tail_cycles == at && d.n_hops == 0);
                continue;
            }
            n_remote++;
            n_hops += distance;
            bool right = d.n_hops == distance && d.contention_cycles == 0 && d.head_cycles == at + 4 * (distance + 1) &&
                         d.tail_cycles == d.head_cycles + 3 && d.head_cycles - at == alone.head_cycles &&
                         d.tail_cycles - at == alone.tail_cycles && d.n_hops == alone.n_hops &&
                         distance + 2 <= hw_mesh_max_trace(&mesh);
            uint32_t tile = from;
            for (uint32_t i = 0; i < distance + 2; i++) {
                enum hw_direction expected = HW_INJECT;
                if (i == distance + 1)
                    expected = HW_EJECT;
                else if (i > (uint32_t)abs(dx))
                    expected = dy > 0 ? HW_SOUTH : HW_NORTH;
                else if (i > 0)
                    expected = dx > 0 ? HW_EAST : HW_WEST;
                right &=
                    trace[i].port == tile * HW_N_DIRECTIONS + (uint32_t)expected && trace[i].at_cycles == at + 4 * i;
                tile += expected == HW_EAST ? 1u : expected == HW_WEST ? -1u : 0u;
                tile += expected == HW_SOUTH ? config.width : expected == HW_NORTH ? -config.width : 0u;
            }
            ck_assert_msg(right && tile == to, "from %u to %u", from, to);
        }
    ck_assert_uint_eq(mesh.n_packets, n_remote);
    ck_assert_uint_eq(mesh.n_local, n_local);
    ck_assert_uint_eq(mesh.n_hops, n_hops);
    ck_assert_uint_eq(mesh.contention_cycles, 0);
    close_mesh(&mesh);
}

/* Two packets for one tile at one time: the second header is three flits late, and the port says so. */
TEST(two_for_one_tile) {
    struct hw_mesh_config config = hw_mesh_config_default();
    struct hw_mesh mesh;
    open_mesh(&mesh, &config);
    struct hw_delivery a = hw_mesh_send(&mesh, 0, 9, 100, NULL), b = hw_mesh_send(&mesh, 18, 9, 100, NULL);
    ck_assert_uint_eq(a.n_hops, b.n_hops);
    ck_assert_uint_eq(a.contention_cycles, 0);
    ck_assert_uint_eq(b.contention_cycles, 3);
    ck_assert_uint_eq(b.head_cycles, a.head_cycles + 3);
    ck_assert_uint_eq(hw_port_n_packets(&mesh.ports[9 * HW_N_DIRECTIONS + HW_EJECT]), 2);
    ck_assert_uint_eq(mesh.ports[9 * HW_N_DIRECTIONS + HW_EJECT].contention_cycles, 3);
    /* An earlier one, sent late, finds the time before them free. */
    struct hw_delivery c = hw_mesh_send(&mesh, 11, 9, 90, NULL);
    ck_assert_uint_eq(c.contention_cycles, 0);
    close_mesh(&mesh);
}

/* A barrier's releases: one every 25 cycles from one NI, and a later request of the same NI passes between them. */
TEST(gaps_are_used) {
    struct hw_mesh_config config = hw_mesh_config_default();
    struct hw_mesh mesh;
    open_mesh(&mesh, &config);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(hw_mesh_send(&mesh, 0, 7, 7 + 25 * i, NULL).contention_cycles, 0);
    ck_assert_uint_eq(hw_mesh_send(&mesh, 0, 7, 40, NULL).contention_cycles, 0);
    ck_assert_uint_eq(hw_mesh_send(&mesh, 0, 7, 58, NULL).contention_cycles, 2);
    close_mesh(&mesh);
}

/*
 * Heavy random traffic, sent out of order by up to 300 cycles: no port carries two flits in one cycle, packets take
 * their ways in time, the waiting of the ports adds up to that of the packets, and a mere question for the time gets
 * the same answer.
 */
TEST_EACH(one_flit_at_a_time, 3) {
    enum { W = 4, H = 4, CYCLES = 400000, PACKETS = 60000 };
    struct hw_mesh_config config = hw_mesh_config_default();
    config.width = W;
    config.height = H;
    config.load_permille = (uint32_t)number * 300;
    struct hw_mesh mesh, another;
    open_mesh(&mesh, &config);
    open_mesh(&another, &config);
    uint8_t *carries = calloc(hw_mesh_n_ports(W, H), CYCLES);
    ck_assert_ptr_nonnull(carries);
    struct hw_hop trace[W + H];
    uint64_t random = 42, waited = 0;
    for (uint32_t i = 0; i < PACKETS; i++) {
        uint32_t from = (uint32_t)draw(&random) % (W * H),
                 to = draw(&random) % 3 ? (uint32_t)draw(&random) % (W * H) : 5;
        uint64_t at = 3u * i + draw(&random) % 300;
        struct hw_delivery d = hw_mesh_send(&mesh, from, to, at, trace);
        waited += d.contention_cycles;
        if (hw_mesh_arrival(&another, from, to, at) != d.head_cycles ||
            d.head_cycles + hw_mesh_tail(&another, from, to) != d.tail_cycles)
            ck_abort_msg("packet %u: another time of arrival", i);
        if (from == to)
            continue;
        ck_assert_uint_lt(d.tail_cycles, CYCLES);
        uint64_t before = at;
        for (uint32_t hop = 0; hop < d.n_hops + 2; hop++) {
            ck_assert(trace[hop].at_cycles >= before);
            before = trace[hop].at_cycles + 4;
            uint8_t *flit = carries + (size_t)trace[hop].port * CYCLES + trace[hop].at_cycles;
            if (flit[0] | flit[1] | flit[2])
                ck_abort_msg("port %u carries two flits in cycle %lu", trace[hop].port, (long)trace[hop].at_cycles);
            flit[0] = flit[1] = flit[2] = 1;
        }
    }
    uint64_t of_ports = 0;
    for (size_t i = 0; i < hw_mesh_n_ports(W, H); i++)
        of_ports += mesh.ports[i].contention_cycles;
    ck_assert_uint_gt(waited, 0);
    ck_assert_uint_eq(of_ports, waited);
    ck_assert_uint_eq(of_ports, mesh.contention_cycles);
    ck_assert_uint_eq(another.contention_cycles, mesh.contention_cycles);
    free(carries);
    close_mesh(&mesh);
    close_mesh(&another);
}

static double mean_wait(enum hw_qos qos, uint32_t load_permille, uint64_t seed, uint32_t *worst) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.qos = qos;
    config.load_permille = load_permille;
    config.seed = seed;
    struct hw_mesh mesh;
    open_mesh(&mesh, &config);
    enum { N = 20000 };
    uint64_t random = 7, waited = 0;
    *worst = 0;
    for (uint32_t i = 0; i < N; i++) {
        uint32_t from = (uint32_t)draw(&random) % 64, to = (from + 1 + (uint32_t)draw(&random) % 63) % 64;
        /* Far apart: what they wait for is data. */
        struct hw_delivery d = hw_mesh_send(&mesh, from, to, i * 1000ull, NULL);
        waited += d.contention_cycles;
        uint32_t per_port = d.contention_cycles / (d.n_hops + 1);
        *worst = per_port > *worst ? per_port : *worst;
    }
    close_mesh(&mesh);
    return (double)waited / N;
}

/* Control packets wait less with priority, never more than for one data packet at a port, and more when there is more
 * data. */
TEST(control_before_data) {
    uint32_t worst;
    double none = mean_wait(HW_QOS_CONTROL_FIRST, 0, 1, &worst);
    ck_assert(none == 0);
    double before = 0;
    for (uint32_t load = 200; load <= 800; load += 300) {
        double first = mean_wait(HW_QOS_CONTROL_FIRST, load, 1, &worst);
        ck_assert_uint_lt(worst, 18);
        double equal = mean_wait(HW_QOS_NONE, load, 1, &worst);
        ck_assert_msg(first < equal && first > before, "load %u: %f with priority, %f without, %f at less load", load,
                      first, equal, before);
        before = first;
    }
    /* The same seed, the same network; another, another. */
    ck_assert(mean_wait(HW_QOS_CONTROL_FIRST, 500, 3, &worst) == mean_wait(HW_QOS_CONTROL_FIRST, 500, 3, &worst));
    ck_assert(mean_wait(HW_QOS_CONTROL_FIRST, 500, 3, &worst) != mean_wait(HW_QOS_CONTROL_FIRST, 500, 4, &worst));
}

/*
 * A control packet takes its time from data that comes later. If the port is busy without a pause from one packet to
 * the next, 30 cycles later, that one leaves three cycles later than without the first. Where its wait is 100 cycles or
 * more there was no pause.
 */
TEST(control_takes_time_from_data) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.width = 2;
    config.height = 1;
    config.load_permille = 900;
    config.qos = HW_QOS_NONE;
    struct hw_mesh both, second_alone;
    struct hw_hop with[4], without[4];
    uint32_t n = 0;
    open_mesh(&both, &config);
    open_mesh(&second_alone, &config);
    for (uint64_t i = 1; i < 5000; i++) {
        uint64_t at = 4 * i * both.data.epoch + 100 + i % 17; /* both meshes begin to look at the same packet */
        hw_mesh_send(&both, 0, 1, at, NULL);
        hw_mesh_send(&both, 0, 1, at + 30, with);
        hw_mesh_send(&second_alone, 0, 1, at + 30, without);
        ck_assert_uint_eq(with[1].port, HW_EAST);
        if (without[1].at_cycles < at + 34 + 100)
            continue;
        ck_assert_uint_eq(with[1].at_cycles, without[1].at_cycles + 3);
        n++;
    }
    ck_assert_uint_gt(n, 100);
    close_mesh(&both);
    close_mesh(&second_alone);
}

TEST(refused_meshes) {
    struct hw_mesh mesh = {0};
    struct hw_mesh_config config = hw_mesh_config_default();
    config.width = 33;
    ck_assert(!hw_mesh_init(&mesh, &config, NULL));
    config = hw_mesh_config_default();
    config.height = 0;
    ck_assert(!hw_mesh_init(&mesh, &config, NULL));
    config = hw_mesh_config_default();
    config.load_permille = 901;
    ck_assert(!hw_mesh_init(&mesh, &config, NULL));
}

/* Table IV's costs and clock; a hop's, which are ours; and the two that are fitted to Table XI. */
TEST(costs) {
    struct hw_timing t = hw_timing_default();
    ck_assert_uint_eq(t.fsm_cycles, 1);
    ck_assert_uint_eq(t.memory_cycles, 2);
    ck_assert_uint_eq(t.entry_cycles, 4);
    ck_assert_uint_eq(t.exit_cycles, 1);
    ck_assert_uint_eq(t.clock_mhz, 1000);
    ck_assert_uint_eq(t.router_cycles, 3);
    ck_assert_uint_eq(t.link_cycles, 1);
    ck_assert_uint_eq(t.handover_cycles, 60);
    ck_assert_uint_eq(t.resume_cycles, 185);
}

TEST(nanoseconds) {
    struct hw_timing t = hw_timing_default();
    ck_assert_uint_eq(hw_timing_ns(&t, 1583), 1583);
    t.clock_mhz = 2500;
    ck_assert_uint_eq(hw_timing_ns(&t, 5), 2);
    ck_assert_uint_eq(hw_timing_ns(&t, UINT64_C(2500000000) * 100000000), UINT64_C(100000000000000000));
}

/* A cycle has passed when the clock shows its end, and not a nanosecond earlier. */
TEST(wall_clock) {
    static const uint32_t clocks[] = {1, 333, 1000, 2500}, scales[] = {1, 2, 7, 1000, 1000000};
    static const uint64_t times[] = {0, 1, 2, 3, 999, 1000, 1001, 123456789, UINT64_C(1) << 40};
    for (size_t c = 0; c < sizeof clocks / sizeof *clocks; c++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
            for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
                struct hw_timing t = hw_timing_default();
                t.clock_mhz = clocks[c];
                uint64_t cycles = times[i] / scales[s], ns = hw_timing_wall_ns(&t, cycles, scales[s]);
                /* The least ns for which ns * MHz is at least cycles * 1000 * scale. */
                unsigned __int128 end = (unsigned __int128)cycles * 1000 * scales[s];
                ck_assert((unsigned __int128)ns * clocks[c] >= end);
                ck_assert(ns == 0 || (unsigned __int128)(ns - 1) * clocks[c] < end);
                /* The greatest number of cycles that have passed. */
                uint64_t passed = hw_timing_cycles_of_wall(&t, times[i], scales[s]);
                unsigned __int128 now = (unsigned __int128)times[i] * clocks[c];
                ck_assert((unsigned __int128)passed * 1000 * scales[s] <= now);
                ck_assert(((unsigned __int128)passed + 1) * 1000 * scales[s] > now);
            }
}

TEST(one_hand_over_at_a_time) {
    struct hw_timing t = hw_timing_default();
    uint64_t until = 0;
    ck_assert_uint_eq(hw_timing_hand_over(&t, &until, 100), 160);
    ck_assert_uint_eq(hw_timing_hand_over(&t, &until, 100), 220); /* both at once: one after the other */
    ck_assert_uint_eq(hw_timing_hand_over(&t, &until, 219), 280);
    ck_assert_uint_eq(hw_timing_hand_over(&t, &until, 280), 340); /* at once after the other */
    ck_assert_uint_eq(hw_timing_hand_over(&t, &until, 500), 560);
    ck_assert_uint_eq(until, 560);
}

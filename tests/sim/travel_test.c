/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The network in which data packets travel, and data packets that are followed through the chip's own network. */
#include "travel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "lib/suite.h"

enum { WIDTH = 5, HEIGHT = 4, N_PORTS = WIDTH * HEIGHT * HW_N_DIRECTIONS, DATA = 18, CONTROL = 3 };

static struct sim_travel_config travel_config(uint32_t load_permille, enum hw_qos qos) {
    struct sim_travel_config config = {
        .mesh = hw_mesh_config_default(), .control_gap = 300, .warm_cycles = 2000, .n_cycles = 30000};
    config.mesh.width = WIDTH;
    config.mesh.height = HEIGHT;
    config.mesh.load_permille = load_permille;
    config.mesh.qos = qos;
    return config;
}

static double mean(const struct sim_spread *s) {
    return (double)s->histogram.sum / (double)s->histogram.n;
}

/* What each port has carried, to judge each packet that leaves by it. */
struct seen {
    enum hw_qos qos;
    uint64_t until[N_PORTS];               /* taken until then */
    uint64_t left[N_PORTS][SIM_N_PACKETS]; /* plus 1: when the last packet of a kind left; 0: none */
    uint64_t came[N_PORTS][SIM_N_PACKETS]; /* when that packet had come */
    uint64_t control_cycles[N_PORTS];      /* of control packets so far */
    uint64_t n[SIM_N_PACKETS], n_waited, n_overtaken;
};

static void judge(void *context, const struct sim_travel_hop *hop) {
    struct seen *s = context;
    uint32_t p = hop->port, other = 1 - hop->kind;
    ck_assert_uint_ge(hop->left, hop->came);
    ck_assert_uint_ge(hop->left, s->until[p]); /* one packet at a time */
    if (hop->left > hop->came)
        ck_assert_uint_eq(hop->left, s->until[p]);       /* and no port idles while a packet waits */
    ck_assert_uint_ge(hop->came, s->came[p][hop->kind]); /* no packet overtakes another of its kind */
    if (s->qos == HW_QOS_NONE)
        ck_assert_uint_ge(hop->came, s->came[p][other]); /* nor of the other kind */
    else if (hop->kind == SIM_CONTROL_PACKET)
        ck_assert_uint_le(s->left[p][SIM_DATA_PACKET], hop->came); /* no data leaves while a control packet waits */
    s->n_overtaken += hop->came < s->came[p][other];
    s->n_waited += hop->left > hop->came;
    s->n[hop->kind]++;
    s->until[p] = hop->left + (hop->kind == SIM_CONTROL_PACKET ? CONTROL : DATA);
    s->left[p][hop->kind] = hop->left + 1;
    s->came[p][hop->kind] = hop->came;
}

/* Exact, at each port, for each packet of random traffic. */
TEST_EACH(each_port_serves_as_it_should, 8) {
    struct seen seen = {.qos = number % 2 == 0 ? HW_QOS_CONTROL_FIRST : HW_QOS_NONE};
    struct sim_travel_config config = travel_config(300 * ((uint32_t)number / 2), seen.qos);
    struct sim_travel_result result;
    config.context = &seen;
    config.on_hop = judge;
    ck_assert(sim_travel(&config, &result));
    ck_assert_uint_gt(seen.n[SIM_CONTROL_PACKET], 4000);
    ck_assert((seen.n[SIM_DATA_PACKET] > 4000) == (number >= 2));
    ck_assert_uint_gt(seen.n_waited, 0);
    ck_assert((seen.n_overtaken > 0) == (seen.qos == HW_QOS_CONTROL_FIRST && number >= 2));
}

/* So seldom that no packet meets another: each one takes the time of its distance, whatever its kind. */
TEST(alone_the_latency_is_the_distance) {
    struct sim_travel_config config = travel_config(1, HW_QOS_CONTROL_FIRST);
    struct sim_travel_result r;
    config.mesh.width = 2;
    config.mesh.height = 1;
    config.control_gap = 0;
    config.n_cycles = 1000000;
    ck_assert(sim_travel(&config, &r));
    const struct sim_spread *data = &r.latency[SIM_DATA_PACKET];
    ck_assert_uint_gt(data->histogram.n, 50);
    ck_assert_uint_eq(data->histogram.max, 2 * 4 + DATA);
    ck_assert_uint_eq(data->histogram.sum, data->histogram.n * (2 * 4 + DATA));
    ck_assert(sim_spread_deviation(data) == 0);
    ck_assert_uint_eq(r.wait[SIM_DATA_PACKET].histogram.max, 0);
    ck_assert_uint_eq(r.latency[SIM_CONTROL_PACKET].histogram.n, 0);
}

/* Within 3 %; and both kinds of service carry the same packets. */
TEST(the_busiest_links_have_the_load) {
    for (uint32_t load = 100; load <= 900; load += 400) {
        struct sim_travel_result r[2];
        for (int qos = 0; qos < 2; qos++) {
            struct sim_travel_config config = travel_config(load, (enum hw_qos)qos);
            config.mesh.width = 2; /* both links are the busiest */
            config.mesh.height = 1;
            config.n_cycles = 1000000;
            ck_assert(sim_travel(&config, &r[qos]));
            double busy = (double)r[qos].busy_cycles / (double)(r[qos].n_links * r[qos].n_cycles) * 1000;
            ck_assert_msg(fabs(busy / load - 1) < 0.03, "%f for %u", busy, load);
        }
        ck_assert_uint_eq(r[0].latency[SIM_DATA_PACKET].histogram.n, r[1].latency[SIM_DATA_PACKET].histogram.n);
        struct sim_travel_config wide = travel_config(load, HW_QOS_NONE);
        wide.n_cycles = 200000;
        ck_assert(sim_travel(&wide, &r[0]));
        double busiest = (double)r[0].busiest_cycles / (double)r[0].n_cycles * 1000;
        ck_assert_msg(fabs(busiest / load - 1) < 0.1, "%f for %u", busiest, load);
    }
}

/* The claim of section III-E, by more than chance, with several seeds; and deterministic. */
TEST_EACH(control_packets_are_faster_and_vary_less, 3) {
    for (uint32_t load = 300; load <= 900; load += 200) {
        struct sim_travel_result first, none, again;
        struct sim_travel_config config = travel_config(load, HW_QOS_CONTROL_FIRST);
        config.mesh.seed = (uint64_t)number;
        ck_assert(sim_travel(&config, &first) && sim_travel(&config, &again));
        ck_assert(memcmp(&first, &again, sizeof first) == 0);
        config.mesh.qos = HW_QOS_NONE;
        ck_assert(sim_travel(&config, &none));
        const struct sim_spread *control = &first.latency[SIM_CONTROL_PACKET];
        ck_assert(mean(control) < mean(&first.latency[SIM_DATA_PACKET]));
        ck_assert(sim_spread_deviation(control) < sim_spread_deviation(&first.latency[SIM_DATA_PACKET]));
        ck_assert(mean(control) < mean(&none.latency[SIM_CONTROL_PACKET]));
        ck_assert(mean(&first.wait[SIM_CONTROL_PACKET]) * 1.2 < mean(&none.wait[SIM_CONTROL_PACKET]));
        config.mesh.seed += 100;
        ck_assert(sim_travel(&config, &again));
        ck_assert(memcmp(&none, &again, sizeof none) != 0);
    }
}

/* ---- a data packet of the load, followed through mesh.h ---- */

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

struct followed {
    uint64_t n, waited[SIM_N_PACKETS], worst; /* worst: of a control packet, at one port on average */
};

/* Control packets far apart, and a data packet beside each of them. */
static struct followed follow(uint32_t load_permille, enum hw_qos qos) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.load_permille = load_permille;
    config.qos = qos;
    struct hw_mesh mesh, alone;
    struct hw_port *ports = malloc(hw_mesh_bytes(8, 8)), *alone_ports = malloc(hw_mesh_bytes(8, 8));
    ck_assert(ports != NULL && alone_ports != NULL);
    ck_assert(hw_mesh_init(&mesh, &config, ports) && hw_mesh_init(&alone, &config, alone_ports));
    struct followed f = {.n = 10000};
    uint64_t random = 3;
    for (uint64_t i = 0; i < f.n; i++) {
        uint32_t from = (uint32_t)draw(&random) % 64, to = (from + 1 + (uint32_t)draw(&random) % 63) % 64;
        uint64_t at = i * 1500 + draw(&random) % 500;
        struct hw_delivery empty = hw_mesh_distance(&mesh, from, to);
        struct hw_delivery data = hw_mesh_follow(&mesh, from, to, at);
        struct hw_delivery control = hw_mesh_send(&mesh, from, to, at, NULL);
        ck_assert_uint_eq(data.n_hops, empty.n_hops);
        ck_assert_uint_eq(data.head_cycles, at + empty.head_cycles + data.contention_cycles);
        ck_assert_uint_eq(data.tail_cycles, data.head_cycles + DATA);
        /* It changes nothing. */
        ck_assert_uint_eq(control.tail_cycles, hw_mesh_send(&alone, from, to, at, NULL).tail_cycles);
        f.waited[SIM_DATA_PACKET] += data.contention_cycles;
        f.waited[SIM_CONTROL_PACKET] += control.contention_cycles;
        if (qos == HW_QOS_CONTROL_FIRST) /* the rest of one data packet at each port but the first */
            ck_assert_uint_le(control.contention_cycles, (control.n_hops + 1) * (DATA - 1));
    }
    free(ports);
    free(alone_ports);
    return f;
}

TEST(a_followed_packet_waits_for_what_is_before_it) {
    struct followed before = {0};
    for (uint32_t load = 0; load <= 900; load += 300) {
        struct followed first = follow(load, HW_QOS_CONTROL_FIRST), none = follow(load, HW_QOS_NONE);
        if (load == 0) {
            ck_assert_uint_eq(first.waited[SIM_DATA_PACKET] + none.waited[SIM_DATA_PACKET], 0);
            continue;
        }
        ck_assert_uint_gt(first.waited[SIM_DATA_PACKET], before.waited[SIM_DATA_PACKET]);
        ck_assert_uint_lt(first.waited[SIM_CONTROL_PACKET], first.waited[SIM_DATA_PACKET]);
        ck_assert_uint_lt(first.waited[SIM_CONTROL_PACKET], none.waited[SIM_CONTROL_PACKET]);
        /* In the order of coming it makes no difference of which kind a packet is. */
        double ratio = (double)none.waited[SIM_CONTROL_PACKET] / (double)none.waited[SIM_DATA_PACKET];
        ck_assert_msg(fabs(ratio - 1) < 0.05, "load %u: %f", load, ratio);
        before = first;
    }
}

/* It waits for a control packet that is before it, and for the end of the gap if one before the next is too short. */
TEST(a_followed_packet_yields_to_control_packets) {
    struct hw_mesh_config config = hw_mesh_config_default();
    struct hw_mesh mesh;
    struct hw_port *ports = malloc(hw_mesh_bytes(8, 8));
    ck_assert(ports != NULL && hw_mesh_init(&mesh, &config, ports));
    hw_mesh_send(&mesh, 0, 7, 1000, NULL);
    hw_mesh_send(&mesh, 0, 7, 1020, NULL);
    ck_assert_uint_eq(hw_mesh_follow(&mesh, 0, 7, 900).contention_cycles, 0);
    ck_assert_uint_eq(hw_mesh_follow(&mesh, 0, 7, 982).contention_cycles, 0);
    ck_assert_uint_eq(hw_mesh_follow(&mesh, 0, 7, 983).contention_cycles, 40);
    ck_assert_uint_eq(hw_mesh_follow(&mesh, 0, 7, 1001).contention_cycles, 22);
    ck_assert_uint_eq(hw_mesh_follow(&mesh, 0, 7, 1023).contention_cycles, 0);
    ck_assert_uint_eq(hw_mesh_follow(&mesh, 9, 9, 77).tail_cycles, 77);
    free(ports);
}

/* A port that has been asked about a later time still knows what it answers about an earlier one. */
TEST(a_followed_packet_may_come_late) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.load_permille = 500;
    struct hw_mesh mesh, fresh;
    struct hw_port *ports = malloc(hw_mesh_bytes(8, 8)), *fresh_ports = malloc(hw_mesh_bytes(8, 8));
    ck_assert(ports != NULL && fresh_ports != NULL);
    ck_assert(hw_mesh_init(&mesh, &config, ports) && hw_mesh_init(&fresh, &config, fresh_ports));
    hw_mesh_send(&mesh, 0, 7, 5000, NULL);
    for (uint64_t at = 0; at < 1000; at++)
        ck_assert_uint_eq(hw_mesh_follow(&mesh, 0, 7, at).tail_cycles, hw_mesh_follow(&fresh, 0, 7, at).tail_cycles);
    free(ports);
    free(fresh_ports);
}

/* ---- the chip ---- */

static struct sim *run_chip(uint32_t load_permille, enum hw_qos qos) {
    struct build b;
    struct sim_config config = sim_config_default();
    build_open(&b);
    create_all(&b, 16);
    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t k = 0; k < 200; k++) {
            call(&b, i, SBT_TRACE_MUTEX_LOCK, (i + k) % 7, 3000 + 100 * i);
            call(&b, i, SBT_TRACE_MUTEX_UNLOCK, (i + k) % 7, 100);
        }
    end_all(&b, 16);
    config.load_permille = load_permille;
    config.qos = qos;
    return simulate(&config, build_close(&b), 1);
}

TEST(a_chip_counts_its_packets) {
    struct sim *quiet = run_chip(0, HW_QOS_NONE);
    ck_assert_uint_eq(sim_packets(quiet, SIM_CONTROL_PACKET).n + sim_packets(quiet, SIM_DATA_PACKET).n, 0);
    for (uint32_t load = 300; load <= 900; load += 300) {
        struct sim *first = run_chip(load, HW_QOS_CONTROL_FIRST), *none = run_chip(load, HW_QOS_NONE);
        struct sim_packets control = sim_packets(first, SIM_CONTROL_PACKET), data = sim_packets(first, SIM_DATA_PACKET);
        struct sim_packets equal = sim_packets(none, SIM_CONTROL_PACKET);
        ck_assert_uint_eq(control.n, sim_summary(first).n_packets);
        ck_assert_uint_eq(data.n, control.n);
        ck_assert(control.mean_ns + 15 < data.mean_ns && control.deviation_ns < data.deviation_ns);
        ck_assert(control.mean_ns < equal.mean_ns && control.deviation_ns < equal.deviation_ns);
        ck_assert(control.mean_ns <= (double)control.max_ns && control.p99_ns <= control.max_ns);
        sim_trim(first);
        ck_assert_uint_eq(sim_packets(first, SIM_DATA_PACKET).max_ns, data.max_ns);
        sim_free(first);
        sim_free(none);
    }
    sim_free(quiet);
}

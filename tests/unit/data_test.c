/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Data traffic: a pure function of port and time, with the load and the waits of packets that come one by one. */
#include "data.h"

#include <math.h>
#include <stdlib.h>

#include "lib/suite.h"
#include "slotted.h"

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

enum { LENGTH = 18, N_SAMPLES = 120000 };

static const struct {
    uint32_t load;
    enum hw_qos qos;
} cases[] = {{100, HW_QOS_CONTROL_FIRST}, {500, HW_QOS_CONTROL_FIRST}, {900, HW_QOS_CONTROL_FIRST},
             {100, HW_QOS_NONE},          {500, HW_QOS_NONE},          {900, HW_QOS_NONE}};
enum { N_CASES = sizeof cases / sizeof *cases };

struct waits {
    double mean;
    uint64_t most;
};

/* Packets one by one, with gaps that are independent of each other from the first to the last. */
static struct waits one_by_one(const struct hw_data *data) {
    uint64_t random = 5, at = 0, next = 0, until = 0, sum = 0, most = 0;
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        at += 100 + draw(&random) % 900;
        while (next <= at) {
            until = (until > next ? until : next) + LENGTH;
            next += 1 + draw(&random) % (2 * data->gap - 1);
        }
        uint64_t waits = hw_data_wait(data, at, until);
        sum += waits;
        most = waits > most ? waits : most;
    }
    return (struct waits){(double)sum / N_SAMPLES, most};
}

/* The same mean within 5 %, and a maximum that is the same with priority and within a factor of 1.5 without. */
TEST_EACH(waits, N_CASES) {
    struct hw_data data = hw_data_init(cases[number].load, LENGTH, cases[number].qos, 1);
    uint64_t random = 8, at = 0, sum = 0, most = 0;
    for (uint32_t i = 0; i < N_SAMPLES; i++) {
        at += 100 + draw(&random) % 900;
        uint64_t waits = hw_data_wait_at(&data, 11, at);
        sum += waits;
        most = waits > most ? waits : most;
    }
    struct waits expected = one_by_one(&data);
    double mean = (double)sum / N_SAMPLES;
    ck_assert_msg(fabs(mean / expected.mean - 1) < 0.05, "mean %f, one by one %f", mean, expected.mean);
    if (cases[number].qos == HW_QOS_CONTROL_FIRST)
        ck_assert(most == LENGTH - 1 && expected.most == LENGTH - 1);
    else
        ck_assert_msg(most * 3 <= expected.most * 4 + 60 && expected.most * 2 <= most * 3 + 60,
                      "most %lu, one by one %lu", (long)most, (long)expected.most);
}

/* The share of cycles in which a port has data to carry is the load. */
TEST_EACH(load, 3) {
    uint32_t load = 100 + 400 * (uint32_t)number;
    struct hw_data data = hw_data_init(load, LENGTH, HW_QOS_NONE, 3);
    struct hw_data_stream stream;
    uint64_t until = 0, n = 0, end = 3000 * data.epoch;
    hw_data_seek(&data, 2, 0, &stream);
    while (stream.next < end) {
        n++;
        hw_data_pass(&data, 2, stream.next, &stream, &until);
    }
    double carried = 1000 * (double)(n * LENGTH) / (double)end;
    ck_assert_msg(fabs(carried / load - 1) < 0.01, "%f of 1000 cycles", carried);
}

/* In any order, and however often, the answers are the same; other ports and other seeds have other traffic. */
TEST(pure) {
    enum { N = 2000 };
    struct hw_data data = hw_data_init(600, LENGTH, HW_QOS_NONE, 3), other = hw_data_init(600, LENGTH, HW_QOS_NONE, 4);
    uint64_t waits[N], random = 1;
    uint32_t n_port = 0, n_seed = 0;
    for (uint32_t i = 0; i < N; i++)
        waits[i] = hw_data_wait_at(&data, 9, 1000000 + 37 * i);
    for (uint32_t k = 0; k < 3 * N; k++) {
        uint32_t i = (uint32_t)draw(&random) % N;
        ck_assert_uint_eq(hw_data_wait_at(&data, 9, 1000000 + 37 * i), waits[i]);
        n_port += hw_data_wait_at(&data, 10, 1000000 + 37 * i) != waits[i];
        n_seed += hw_data_wait_at(&other, 9, 1000000 + 37 * i) != waits[i];
    }
    ck_assert(n_port > N && n_seed > N);
    /* Between packets that come, what is left to wait falls by a cycle in each cycle. */
    for (uint64_t at = 5000000; at < 5100000; at++) {
        uint64_t before = hw_data_wait_at(&data, 1, at - 1), after = hw_data_wait_at(&data, 1, at);
        ck_assert(at % data.epoch == 0 || after + 1 == before || after == before + LENGTH - 1 ||
                  (before == 0 && after == 0) || (before == 0 && after == LENGTH));
    }
}

/*
 * In the slotted network, data delays as much as in the mesh, at each load. With control packets first, such a packet
 * finds a data packet under way as often as the load says, at each port but the first, and waits for 0 to LENGTH - 1
 * cycles.
 */
TEST_EACH(networks_agree, N_CASES) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.load_permille = cases[number].load;
    config.qos = cases[number].qos;
    struct hw_mesh mesh;
    struct hw_slotted net;
    struct hw_port *ports = malloc(hw_mesh_bytes(8, 8));
    uint64_t *memory = calloc(1, hw_slotted_bytes(8, 8)), random = 4, of_mesh = 0, of_net = 0, n_ports = 0, worst = 0;
    ck_assert(hw_mesh_init(&mesh, &config, ports) && hw_slotted_init(&net, &config, memory));
    for (uint64_t i = 0; i < 6000; i++) {
        uint32_t from = (uint32_t)draw(&random) % 64, to = (from + 1 + (uint32_t)draw(&random) % 63) % 64;
        of_mesh += hw_mesh_send(&mesh, from, to, 1000 * i, NULL).contention_cycles;
        struct hw_delivery d = hw_slotted_send(&net, from, to, 1000 * i);
        of_net += d.contention_cycles;
        n_ports += d.n_hops + 1;
        uint64_t each = d.contention_cycles / (d.n_hops + 1);
        worst = each > worst ? each : worst;
    }
    ck_assert_msg(fabs((double)of_net / (double)of_mesh - 1) < 0.05, "%lu cycles, in the mesh %lu", (long)of_net,
                  (long)of_mesh);
    if (config.qos == HW_QOS_CONTROL_FIRST) {
        double expected = (double)n_ports * cases[number].load / 1000 * (LENGTH - 1) / 2;
        ck_assert_msg(fabs((double)of_mesh / expected - 1) < 0.05, "%lu cycles, %f by the load", (long)of_mesh,
                      expected);
        ck_assert_uint_lt(worst, LENGTH);
    }
    free(ports);
    free(memory);
}

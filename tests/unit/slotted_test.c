/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The slotted network: what a packet waits for does not depend on the order of sending, and agrees with a network with
 * ports that serve packets in the order of time.
 */
#include "slotted.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fifo_mesh.h"
#include "lib/suite.h"
#include "lib/threads.h"

static uint64_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void shuffle(uint64_t *slots, uint32_t n, uint64_t *random) {
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t k = (uint32_t)(draw(random) % (i + 1));
        uint64_t swap = slots[i];
        slots[i] = slots[k];
        slots[k] = swap;
    }
}

/* ---- one port ---- */

static uint64_t words[HW_CALENDAR_WORDS], others[HW_CALENDAR_WORDS];

static uint64_t take_all(uint64_t *calendar, const uint64_t *slots, uint32_t n) {
    uint64_t waited = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool forgotten;
        waited += hw_calendar_take(calendar, slots[i], &forgotten) - slots[i];
        ck_assert(!forgotten);
    }
    return waited;
}

/* In any order: the same slots, and the same sum of waits, which is that of packets in order of time. */
TEST_EACH(calendar__order, 12) {
    enum { N = 4000 };
    uint64_t slots[N], random = 17 + (uint64_t)number, free_from = 0, in_order = 0;
    uint64_t first = number % 2 ? 0 : UINT64_C(5000000000000) + (uint64_t)number;
    for (uint32_t i = 0; i < N; i++) /* about a packet in 1.2 slots to one in 7 */
        slots[i] = first + (uint64_t)i * (12 + 5 * (uint64_t)number) / 10 + draw(&random) % 8;
    /* in order of time, by counting */
    enum { SPAN = 40000 };
    static uint32_t ready[SPAN];
    memset(ready, 0, sizeof ready);
    for (uint32_t i = 0; i < N; i++)
        ready[slots[i] - first]++;
    for (uint64_t s = 0; s < SPAN; s++)
        for (; ready[s] > 0; ready[s]--) {
            free_from = free_from > s ? free_from : s;
            in_order += free_from++ - s;
        }
    memset(words, 0, sizeof words);
    ck_assert_uint_eq(take_all(words, slots, N), in_order);
    for (uint32_t round = 0; round < 20; round++) {
        shuffle(slots, N, &random);
        memset(others, 0, sizeof others);
        ck_assert_uint_eq(take_all(others, slots, N), in_order);
        ck_assert_mem_eq(others, words, sizeof words);
    }
}

/* A later packet has taken the word of a packet's time: this one neither waits nor is noted, that one keeps its slots.
 */
TEST(calendar__forgotten_time) {
    uint64_t turn = (uint64_t)HW_CALENDAR_WORDS * HW_CALENDAR_SLOTS;
    bool forgotten;
    memset(words, 0, sizeof words);
    ck_assert_uint_eq(hw_calendar_take(words, 7 + 3 * turn, &forgotten), 7 + 3 * turn);
    ck_assert(!forgotten);
    memcpy(others, words, sizeof words);
    ck_assert_uint_eq(hw_calendar_take(words, 7 + 2 * turn, &forgotten), 7 + 2 * turn);
    ck_assert(forgotten);
    ck_assert_mem_eq(others, words, sizeof words);
    ck_assert_uint_eq(hw_calendar_take(words, 7 + 3 * turn, &forgotten), 8 + 3 * turn);
    ck_assert(!forgotten);
    /* Another block of the earlier turn is not forgotten. */
    ck_assert_uint_eq(hw_calendar_take(words, 40 + 2 * turn, &forgotten), 40 + 2 * turn);
    ck_assert(!forgotten);
    ck_assert_uint_eq(hw_calendar_take(words, 40 + 2 * turn, &forgotten), 41 + 2 * turn);
    /* A block that is full, before one that is forgotten: the wait ends there. */
    for (uint32_t i = 0; i < HW_CALENDAR_SLOTS; i++)
        hw_calendar_take(words, 64 + 2 * turn, &forgotten);
    hw_calendar_take(words, 96 + 3 * turn, &forgotten);
    ck_assert_uint_eq(hw_calendar_take(words, 70 + 2 * turn, &forgotten), 96 + 2 * turn);
    ck_assert(forgotten);
}

/* Tags count modulo 2^32: a step over that is like any other, and what is left over from long ago is replaced. */
TEST(calendar__tags_wrap) {
    uint64_t turn = (uint64_t)HW_CALENDAR_WORDS * HW_CALENDAR_SLOTS, round = turn << 32;
    bool forgotten;
    memset(words, 0, sizeof words);
    for (uint64_t tag = (UINT64_C(1) << 32) - 3; tag < (UINT64_C(1) << 32) + 3; tag++)
        for (uint64_t i = 0; i < 3; i++) {
            ck_assert_uint_eq(hw_calendar_take(words, 5 + tag * turn, &forgotten), 5 + tag * turn + i);
            ck_assert(!forgotten);
        }
    hw_calendar_take(words, 5 + round - turn, &forgotten); /* before the wrap, when what is after it is noted */
    ck_assert(forgotten);
    /* An empty calendar at any time: nothing is forgotten. */
    for (uint64_t tag = 1; tag < UINT64_C(1) << 34; tag = 3 * tag + 1) {
        memset(words, 0, sizeof words);
        ck_assert_uint_eq(hw_calendar_take(words, 9 + tag * turn, &forgotten), 9 + tag * turn);
        ck_assert(!forgotten);
    }
    /* 2^24 tags ahead, in the circle, is long ago. One less is ahead. */
    memset(words, 0, sizeof words);
    hw_calendar_take(words, (uint64_t)HW_CALENDAR_AHEAD * turn, &forgotten);
    hw_calendar_take(words, turn, &forgotten);
    ck_assert(forgotten);
    ck_assert_uint_eq(hw_calendar_take(words, round, &forgotten), round);
    ck_assert(!forgotten);
    ck_assert_uint_eq(hw_calendar_take(words, round, &forgotten), round + 1);
}

enum { N_THREADS = 8, N_EACH = 3000 };
static uint64_t thread_slots[N_THREADS * N_EACH], thread_waited[N_THREADS];
static uint64_t shared[HW_CALENDAR_WORDS];

static void *take_some(void *which) {
    uintptr_t t = (uintptr_t)which;
    thread_waited[t] = take_all(shared, &thread_slots[t * N_EACH], N_EACH);
    return NULL;
}

/* Threads that take slots of one port at once: the same slots, and the same sum, as one thread after the other. */
TEST_EACH(calendar__threads, 10) {
    uint64_t random = 99 + (uint64_t)number, waited = 0;
    pthread_t threads[N_THREADS];
    for (uint32_t i = 0; i < N_THREADS * N_EACH; i++)
        thread_slots[i] = 1000 + draw(&random) % 28000;
    memset(words, 0, sizeof words);
    memset(shared, 0, sizeof shared);
    uint64_t alone = take_all(words, thread_slots, N_THREADS * N_EACH);
    for (uintptr_t t = 0; t < N_THREADS; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, take_some, (void *)t), 0);
    for (uint32_t t = 0; t < N_THREADS; t++) {
        pthread_join(threads[t], NULL);
        waited += thread_waited[t];
    }
    ck_assert_uint_eq(waited, alone);
    ck_assert_mem_eq(shared, words, sizeof words);
}

/* ---- the network ---- */

static void open_net(struct hw_slotted *net, const struct hw_mesh_config *config) {
    uint64_t *memory = calloc(1, hw_slotted_bytes(config->width, config->height));
    ck_assert_ptr_nonnull(memory);
    ck_assert(hw_slotted_init(net, config, memory));
}

static void close_net(struct hw_slotted *net) {
    free(net->calendars);
}

static struct hw_mesh_config config_of(uint32_t width, uint32_t height) {
    struct hw_mesh_config config = hw_mesh_config_default();
    config.width = width;
    config.height = height;
    return config;
}

static void open_mesh(struct hw_mesh *mesh, const struct hw_mesh_config *config) {
    struct hw_port *ports = malloc(hw_mesh_bytes(config->width, config->height));
    ck_assert_ptr_nonnull(ports);
    ck_assert(hw_mesh_init(mesh, config, ports));
}

static const struct {
    uint32_t w, h;
} sizes[] = {{1, 1}, {2, 1}, {1, 7}, {3, 1}, {2, 2}, {4, 3}, {8, 8}, {16, 8}, {32, 32}};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

/* Alone, a packet takes as long as in mesh.h, by the same ports, whenever it comes. */
TEST_EACH(empty_network, N_SIZES) {
    struct hw_mesh_config config = config_of(sizes[number].w, sizes[number].h);
    struct hw_slotted net;
    struct hw_mesh mesh;
    open_net(&net, &config);
    open_mesh(&mesh, &config);
    uint32_t n = config.width * config.height, stride = n > 64 ? 7 : 1;
    uint64_t at = 4, n_hops = 0, *port_packets = calloc(hw_mesh_n_ports(config.width, config.height), sizeof(uint64_t));
    for (uint32_t from = 0; from < n; from += stride)
        for (uint32_t to = 0; to < n; to += stride, at += 997) {
            struct hw_delivery d = hw_slotted_send(&net, from, to, at), alone = hw_mesh_distance(&mesh, from, to);
            hw_mesh_send(&mesh, from, to, at, NULL);
            n_hops += alone.n_hops;
            if (d.head_cycles != at + alone.head_cycles || d.tail_cycles != at + alone.tail_cycles ||
                d.n_hops != alone.n_hops || d.contention_cycles != 0)
                ck_abort_msg("from %u to %u", from, to);
        }
    struct hw_slotted_sums sums = hw_slotted_sum(&net, port_packets);
    ck_assert_uint_eq(sums.n_packets, mesh.n_packets);
    ck_assert_uint_eq(sums.n_hops, n_hops);
    ck_assert_uint_eq(sums.contention_cycles + sums.n_forgotten, 0);
    for (uint32_t i = 0; i < hw_mesh_n_ports(config.width, config.height); i++)
        ck_assert_uint_eq(port_packets[i], hw_port_n_packets(&mesh.ports[i]));
    free(port_packets);
    free(mesh.ports);
    close_net(&net);
}

/*
 * Two packets by one way, d cycles apart: over the three phases of a slot one waits for 3 - d on average, exactly,
 * however long the way is and wherever it turns. They meet once, at its beginning.
 */
TEST_EACH(two_meet_once, N_SIZES) {
    struct hw_mesh_config config = config_of(sizes[number].w, sizes[number].h);
    struct hw_slotted net;
    open_net(&net, &config);
    uint32_t n = config.width * config.height, stride = n > 64 ? 31 : n > 12 ? 3 : 1;
    uint64_t at = 300;
    for (uint32_t from = 0; from < n; from += stride)
        for (uint32_t to = 0; to < n; to += stride)
            for (uint32_t d = 0; from != to && d < 5; d++)
                for (uint32_t order = 0; order < 2; order++) {
                    uint64_t waited = 0;
                    for (uint32_t phase = 0; phase < 3; phase++, at += 301) {
                        waited += hw_slotted_send(&net, from, to, at + (order ? d : 0)).contention_cycles;
                        waited += hw_slotted_send(&net, from, to, at + (order ? 0 : d)).contention_cycles;
                    }
                    if (waited != (d < 3 ? 3 * (3 - d) : 0))
                        ck_abort_msg("from %u to %u, %u apart: %lu in three phases", from, to, d, (long)waited);
                }
    close_net(&net);
}

/* Two packets of different tiles for one tile, at all distances in time: on average 9 / 5 over five distances. */
TEST(two_merge) {
    struct hw_mesh_config config = config_of(8, 8);
    struct hw_slotted net;
    uint64_t random = 3, waited = 0, n = 0, at = 5000;
    open_net(&net, &config);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t to = (uint32_t)draw(&random) % 64, a = (uint32_t)draw(&random) % 64, b = (uint32_t)draw(&random) % 64;
        struct hw_mesh mesh = {.config = config, .by_width = hw_mesh_by_width(8), .hop = 4, .length = 3};
        if (to == a || to == b || a == b)
            continue;
        uint64_t of_a = hw_mesh_distance(&mesh, a, to).head_cycles, of_b = hw_mesh_distance(&mesh, b, to).head_cycles;
        for (uint32_t d = 0; d < 21; d++, at += 1001) { /* the arrivals are up to 10 apart */
            waited += hw_slotted_send(&net, a, to, at + 200 - of_a).contention_cycles;
            waited += hw_slotted_send(&net, b, to, at + 190 + d - of_b).contention_cycles;
        }
        n++;
    }
    double mean = (double)waited / (double)n; /* of 21 pairs: 1 + 2 + 3 + 2 + 1 */
    ck_assert_msg(fabs(mean - 9) < 0.15, "%f cycles for 21 pairs", mean);
    close_net(&net);
}

/* 20 packets 1000 cycles apart, the latest first. */
TEST(latest_first) {
    struct hw_mesh_config config = config_of(8, 8);
    struct hw_slotted net;
    open_net(&net, &config);
    for (uint32_t i = 20; i-- > 0;)
        ck_assert_uint_eq(hw_slotted_send(&net, 0, 63, 1000 + 1000 * i).contention_cycles, 0);
    ck_assert_uint_eq(hw_slotted_sum(&net, NULL).contention_cycles, 0);
    close_net(&net);
}

struct traffic {
    const char *name;
    double gap;    /* mean cycles between packets */
    uint32_t hot;  /* one packet of so many goes to one tile; 0: none */
    uint64_t near; /* packets are sent up to so late, */
    uint64_t far;  /* and one of far_one_in up to so late, in cycles */
    uint32_t far_one_in;
};

static const struct traffic traffics[] = {
    {"dense, as at scale 100: up to 20 us late", 1.5, 0, 20000, 0, 0},
    {"dense, to one tile", 6, 2, 20000, 0, 0},
    {"dense, in order", 1.5, 8, 0, 0, 0},
    {"less dense, some 100 us late", 8, 4, 300, 100000, 50},
    {"sparse, as at scale 0: some 100 ms late", 20, 2, 3000, 100000000, 50},
};
enum { N_TRAFFICS = sizeof traffics / sizeof *traffics, N_PACKETS = 200000 };

struct sent {
    struct fifo_packet packet;
    uint64_t when;
};

static int by_when(const void *a, const void *b) {
    const struct sent *x = a, *y = b;
    return x->when < y->when ? -1 : x->when > y->when;
}

static struct sent *make_traffic(const struct traffic *t, uint32_t n_tiles, uint64_t seed) {
    struct sent *all = malloc(N_PACKETS * sizeof *all);
    uint64_t random = seed;
    double at = 1e9;
    ck_assert_ptr_nonnull(all);
    for (uint32_t i = 0; i < N_PACKETS; i++) {
        at += t->gap * (double)(draw(&random) % 2001) / 1000;
        uint64_t late = t->far_one_in != 0 && draw(&random) % t->far_one_in == 0 ? t->far : t->near;
        struct sent *s = &all[i];
        s->packet.at_cycles = (uint64_t)at;
        s->packet.from = (uint32_t)draw(&random) % n_tiles;
        s->packet.to = t->hot != 0 && draw(&random) % t->hot == 0 ? n_tiles / 3 : (uint32_t)draw(&random) % n_tiles;
        s->when = s->packet.at_cycles + (late != 0 ? draw(&random) % late : 0);
    }
    return all;
}

/*
 * The bound: out of order, the sum of all waits is within 10 % of that of a network with ports that serve the same
 * packets in the order of time. No packet is faster than alone.
 */
TEST_EACH(as_in_order_of_time, N_SIZES *N_TRAFFICS) {
    const struct traffic *t = &traffics[number % N_TRAFFICS];
    struct hw_mesh_config config = config_of(sizes[number / N_TRAFFICS].w, sizes[number / N_TRAFFICS].h);
    struct hw_mesh mesh;
    struct hw_slotted net;
    open_net(&net, &config);
    open_mesh(&mesh, &config);
    struct traffic own = *t;
    if (config.width * config.height < 12 && own.gap < 10) /* fewer ports for the same load */
        own.gap *= 4;
    struct sent *all = make_traffic(&own, config.width * config.height, 7 + (uint64_t)number);
    struct fifo_packet *packets = malloc(N_PACKETS * sizeof *packets);
    for (uint32_t i = 0; i < N_PACKETS; i++)
        packets[i] = all[i].packet;
    uint64_t in_order = fifo_mesh(&config, packets, N_PACKETS), waited = 0;
    qsort(all, N_PACKETS, sizeof *all, by_when);
    for (uint32_t i = 0; i < N_PACKETS; i++) {
        const struct fifo_packet *p = &all[i].packet;
        struct hw_delivery d = hw_slotted_send(&net, p->from, p->to, p->at_cycles);
        struct hw_delivery alone = hw_mesh_distance(&mesh, p->from, p->to);
        if (d.head_cycles != p->at_cycles + alone.head_cycles + d.contention_cycles ||
            d.tail_cycles != p->at_cycles + alone.tail_cycles + d.contention_cycles)
            ck_abort_msg("packet %u: not its way and what it waited", i);
        waited += d.contention_cycles;
    }
    double ratio = (double)waited / (double)in_order;
    bool right = in_order == 0 ? waited == 0 : fabs(ratio - 1) < 0.1;
    if (!right || getenv("SHOW") != NULL)
        fprintf(stderr, "# %ux%u, %s: %lu cycles, %lu in order, %.4f, %lu forgotten\n", config.width, config.height,
                t->name, (long)waited, (long)in_order, ratio, (long)hw_slotted_sum(&net, NULL).n_forgotten);
    ck_assert_msg(right, "%ux%u, %s: %lu cycles, %lu in order", config.width, config.height, t->name, (long)waited,
                  (long)in_order);
    ck_assert_uint_eq(hw_slotted_sum(&net, NULL).contention_cycles, waited);
    free(packets);
    free(all);
    free(mesh.ports);
    close_net(&net);
}

/* ---- other timings, refusals ---- */

/* Links of two cycles, routers of one: a packet takes a port for six, a hop is three. */
TEST(other_timing) {
    struct hw_mesh_config config = config_of(8, 8);
    config.timing.link_cycles = 2;
    config.timing.router_cycles = 1;
    struct hw_slotted net;
    open_net(&net, &config);
    for (uint32_t d = 0; d < 8; d++) {
        uint64_t waited = 0;
        for (uint32_t phase = 0; phase < 6; phase++) {
            uint64_t at = 10000 + 601 * (6 * d + phase);
            struct hw_delivery a = hw_slotted_send(&net, 3, 60, at), b = hw_slotted_send(&net, 3, 60, at + d);
            ck_assert_uint_eq(a.head_cycles, at + 3 * 9 + a.contention_cycles);
            waited += a.contention_cycles + b.contention_cycles;
        }
        ck_assert_uint_eq(waited, d < 6 ? 6 * (6 - d) : 0);
    }
    close_net(&net);
}

TEST(refused_networks) {
    struct hw_slotted net = {0};
    struct hw_mesh_config config = config_of(33, 1);
    ck_assert(!hw_slotted_init(&net, &config, NULL));
    config = config_of(8, 0);
    ck_assert(!hw_slotted_init(&net, &config, NULL));
    config = config_of(8, 8);
    config.load_permille = 901;
    ck_assert(!hw_slotted_init(&net, &config, NULL));
}

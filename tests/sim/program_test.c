/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs of simulated threads: costs computed by hand, messages, shared words, futexes, ends that are errors. */
#include <string.h>

#include "lib/suite.h"
#include "program.h"

static struct sim_program_config config;
static struct sim_error error;
static uint32_t word, channel;
static uint64_t at[SIM_MAX_CORES];

static struct sim_program *open_program(uint32_t n_cores) {
    if (config.n_cores == 0)
        config = sim_program_config_default();
    config.n_cores = n_cores;
    struct sim_program *p = sim_program_new(&config, &error);
    ck_assert_msg(p != NULL, "%s", error.text);
    word = sim_words(p, 8);
    channel = sim_channel(p);
    return p;
}

static void spawn(struct sim_program *p, uint32_t n, sim_program_body *body) {
    for (uint32_t i = 0; i < n; i++)
        ck_assert_int_eq(sim_program_spawn(p, body, NULL, &error), SIM_OK);
}

static void run(struct sim_program *p) {
    ck_assert_msg(sim_program_run(p, &error) == SIM_OK, "%s", error.text);
}

/* ---- time ---- */

static void computes(struct sim_program *p, void *argument) {
    (void)argument;
    ck_assert_uint_eq(sim_cycles(p), 0);
    sim_compute(p, 100 + sim_self(p));
    at[sim_self(p)] = sim_cycles(p);
}

TEST(computing, "takes the cycles that it says, and 1024 threads run side by side") {
    struct sim_program *p = open_program(1024);
    spawn(p, 1024, computes);
    run(p);
    for (uint32_t i = 0; i < 1024; i++)
        ck_assert_uint_eq(at[i], 100 + i);
    ck_assert_uint_eq(sim_program_cycles(p), 1123);
    sim_program_free(p);
}

/* ---- messages ---- */

/* Sent at 100, in the buffer at 115; the look takes until 118. */
static void sends_one(struct sim_program *p, void *argument) {
    (void)argument;
    static const char text[] = "data";
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) == 0) {
        sim_compute(p, 100);
        sim_send(p, channel, 5, 77, text, sizeof text);
        return;
    }
    sim_compute(p, sim_self(p) == 1 ? 0 : 1000);
    sim_wait_receive(p, channel, &m);
    at[sim_self(p)] = sim_cycles(p);
    ck_assert(m.head.wavelength == 0 && m.head.tag == 77 && m.head.signature == 5 && m.head.size == sizeof text);
    ck_assert_str_eq(m.data, text);
    ck_assert_uint_eq(m.sent_cycles, 100);
}

TEST(one_message, "15 cycles and the look; a thread that comes later only pays the look") {
    struct sim_program *p = open_program(3);
    spawn(p, 3, sends_one);
    run(p);
    ck_assert_uint_eq(at[1], 118);
    ck_assert_uint_eq(at[2], 1003);
    sim_program_free(p);
}

static void looks(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) == 0) {
        sim_compute(p, 1);
        sim_send(p, channel, 1, 0, NULL, 0);
        return;
    }
    /* Looks at 0, 3, 6, 9, 12 find nothing; at 15 it is not there until 16; the look at 18 finds it. */
    uint32_t n = 0;
    while (!sim_receive(p, channel, &m))
        n++;
    ck_assert_uint_eq(n, 6);
    at[1] = sim_cycles(p);
}

TEST(looking_again_and_again) {
    struct sim_program *p = open_program(2);
    spawn(p, 2, looks);
    run(p);
    ck_assert_uint_eq(at[1], 21);
    sim_program_free(p);
}

enum { ROUNDS = 20 };

static void all_to_all(struct sim_program *p, void *argument) {
    (void)argument;
    uint32_t n = config.n_cores, last[SIM_MAX_CORES] = {0};
    struct sim_message m;
    sim_subscribe(p, channel);
    sim_compute(p, 10);
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        sim_compute(p, sim_self(p) * 7 % 31 * round);
        sim_send(p, channel, 1, round, &round, sizeof round);
    }
    for (uint32_t i = 0; i < (n - 1) * ROUNDS; i++) {
        sim_wait_receive(p, channel, &m);
        ck_assert_uint_eq(m.head.tag, ++last[m.head.wavelength]); /* each sender's in order, none lost */
        ck_assert(memcmp(m.data, &m.head.tag, 4) == 0);
    }
    ck_assert(!sim_receive(p, channel, &m));
    at[sim_self(p)] = sim_cycles(p);
}

static uint64_t all_to_all_cycles(uint32_t n) {
    struct sim_program *p = open_program(n);
    spawn(p, n, all_to_all);
    run(p);
    uint64_t cycles = sim_program_cycles(p);
    const char *why = "";
    ck_assert_msg(hw_optical_is_valid(sim_program_optical(p), &why), "%s", why);
    ck_assert_uint_eq(hw_optical_sum(sim_program_optical(p)).n_received, (uint64_t)n * (n - 1) * ROUNDS);
    sim_program_free(p);
    return cycles;
}

static const struct {
    uint32_t n, limit;
    enum hw_optical_shape shape;
} nets[] = {{2, 0, HW_OPTICAL_FLAT}, {64, 0, HW_OPTICAL_FLAT},     {64, 2, HW_OPTICAL_FLAT},
            {7, 1, HW_OPTICAL_FLAT}, {64, 0, HW_OPTICAL_CLUSTERS}, {10, 1, HW_OPTICAL_CLUSTERS}};

TEST_EACH(nothing_is_lost, sizeof nets / sizeof *nets, "also with full queues and in clusters; twice the same course") {
    config = sim_program_config_default();
    config.optical.lambda_limit = nets[number].limit;
    config.optical.shape = nets[number].shape;
    uint64_t cycles = all_to_all_cycles(nets[number].n);
    ck_assert_uint_eq(all_to_all_cycles(nets[number].n), cycles);
    /* A core's controller moves them one by one. */
    ck_assert_uint_ge(cycles, (nets[number].n - 1) * ROUNDS * 10);
}

/* ---- shared words ---- */

/*
 * Core 1 of a 2 x 1 mesh; the word's home is core 0. The request: a hit's cycle, two routers with a link each, 8, and
 * three flits: there at 12. The directory's 10 and the
 * memory's 100: served at 122. 18 flits on the way back: 8 + 18, there at 148, and a hit.
 */
static void loads(struct sim_program *p, void *argument) {
    (void)argument;
    if (sim_self(p) == 0)
        return;
    ck_assert_uint_eq(sim_load(p, word), 0);
    ck_assert_uint_eq(sim_cycles(p), 149);
    ck_assert_uint_eq(sim_load(p, word + 1), 0); /* the same line */
    ck_assert_uint_eq(sim_cycles(p), 150);
    sim_store(p, word, 3); /* asks the home again: it does not write what it only reads */
    ck_assert_uint_eq(sim_cycles(p), 299);
    ck_assert_uint_eq(sim_fetch_add(p, word, 4), 3);
    ck_assert_uint_eq(sim_swap(p, word, 9), 7);
    ck_assert_uint_eq(sim_compare_and_swap(p, word, 8, 1), 9);
    ck_assert_uint_eq(sim_compare_and_swap(p, word, 9, 1), 9);
    ck_assert_uint_eq(sim_load(p, word), 1);
    ck_assert_uint_eq(sim_cycles(p), 304);
}

TEST(a_line_travels) {
    struct sim_program *p = open_program(2);
    ck_assert_uint_eq(word, 0);
    spawn(p, 2, loads);
    run(p);
    ck_assert_uint_eq(sim_program_n_transfers(p), 2);
    sim_program_free(p);
}

/* Both requests are at the home, the line's, at the same time: the second one is served when the first one is. */
static void loads_beside(struct sim_program *p, void *argument) {
    (void)argument;
    if (sim_self(p) == 0)
        return;
    sim_load(p, word);
    at[sim_self(p)] = sim_cycles(p);
}

TEST(a_home_serves_one_after_the_other) {
    struct sim_program *p = open_program(3); /* 2 x 2: cores 1 and 2 are as far from core 0 */
    spawn(p, 3, loads_beside);
    run(p);
    ck_assert_uint_eq(at[1], 149);
    ck_assert_uint_eq(at[2], 259);
    sim_program_free(p);
}

static void adds(struct sim_program *p, void *argument) {
    (void)argument;
    for (uint32_t i = 0; i < 50; i++) {
        uint64_t before = sim_fetch_add(p, word, 1);
        ck_assert_uint_lt(before, 50 * config.n_cores);
        sim_compute(p, sim_self(p) % 5);
        for (uint64_t seen = sim_load(p, word + 8);; seen = sim_load(p, word + 8))
            if (sim_compare_and_swap(p, word + 8, seen, seen + 1) == seen)
                break;
    }
}

TEST(atomic_words, "64 threads count, by add and by compare and swap") {
    struct sim_program *p = open_program(64);
    sim_words(p, 8);
    spawn(p, 64, adds);
    run(p);
    ck_assert_uint_gt(sim_program_n_transfers(p), 64 * 50);
    sim_program_free(p);
    p = open_program(1);
    sim_words(p, 8);
    spawn(p, 1, adds);
    run(p);
    sim_program_free(p);
}

static void passes_on(struct sim_program *p, void *argument) {
    (void)argument;
    uint32_t me = sim_self(p), n = config.n_cores;
    for (uint64_t turn = me; turn < 20 * n; turn += n) {
        for (uint64_t seen = sim_load(p, word); seen != turn;)
            seen = sim_spin_while(p, word, seen);
        at[me] = turn;
        sim_store(p, word, turn + 1);
    }
}

TEST(spinning, "a turn goes round: each thread sees each change") {
    struct sim_program *p = open_program(16);
    spawn(p, 16, passes_on);
    run(p);
    for (uint32_t i = 0; i < 16; i++)
        ck_assert_uint_eq(at[i], 19 * 16 + i);
    sim_program_free(p);
}

/* ---- futexes ---- */

static void sleeps(struct sim_program *p, void *argument) {
    (void)argument;
    if (sim_self(p) != 0) {
        sim_futex_wait(p, word, 1); /* not asleep: it is 0 */
        while (sim_load(p, word) == 0)
            sim_futex_wait(p, word, 0);
        at[sim_self(p)] = sim_cycles(p);
        return;
    }
    sim_compute(p, 100000);
    ck_assert_uint_eq(sim_futex_wake(p, word + 1, 5), 0);
    sim_store(p, word, 1);
    ck_assert_uint_eq(sim_futex_wake(p, word, 2), 2);
    ck_assert_uint_eq(sim_futex_wake(p, word, 1000), 5);
}

TEST(sleeping, "woken in the order of coming, one after the other") {
    struct sim_program *p = open_program(8);
    spawn(p, 8, sleeps);
    run(p);
    for (uint32_t i = 1; i < 8; i++)
        ck_assert_uint_gt(at[i], 100000);
    sim_program_free(p);
}

static uint64_t left[8];

static void meets(struct sim_program *p, void *argument) {
    (void)argument;
    for (uint64_t episode = 1; episode <= 3; episode++) {
        sim_compute(p, 1000 * sim_self(p));
        at[sim_self(p)] = sim_cycles(p);
        sim_server_barrier(p, word, 8);
        for (uint32_t i = 0; i < 8; i++)
            ck_assert_uint_le(at[i], sim_cycles(p)); /* all have come */
        left[sim_self(p)] = sim_cycles(p);
        sim_compute(p, 100000 * episode - sim_cycles(p));
        ck_assert_uint_eq(sim_load(p, word), 0);
    }
}

TEST(server_barrier, "none leaves before all have come; they are let go one after the other, as they came") {
    struct sim_program *p = open_program(8);
    spawn(p, 8, meets);
    run(p);
    for (uint32_t i = 1; i < 7; i++)
        ck_assert_uint_gt(left[i] + 2 * 100, left[i - 1]);
    ck_assert_uint_ge(left[7], at[7] + 100 * 8 + 2 * 100); /* a request, seven woken threads, into the call and out */
    sim_program_free(p);
}

/* ---- ends that are errors ---- */

static void waits_for_ever(struct sim_program *p, void *argument) {
    (void)argument;
    struct sim_message m;
    sim_subscribe(p, channel);
    if (sim_self(p) == 1)
        sim_wait_receive(p, channel, &m);
}
static void sleeps_for_ever(struct sim_program *p, void *argument) {
    (void)argument;
    sim_futex_wait(p, word, 0);
}
static void no_channel(struct sim_program *p, void *argument) {
    (void)argument;
    sim_send(p, 9, 1, 0, NULL, 0);
}
static void no_word(struct sim_program *p, void *argument) {
    (void)argument;
    sim_load(p, 800);
}
static void no_operation(struct sim_program *p, void *argument) {
    (void)argument;
    sim_set_filter(p, (struct hw_filter){.op = (enum hw_filter_op)3});
}
static void too_large(struct sim_program *p, void *argument) {
    (void)argument;
    sim_send(p, channel, 1, 0, NULL, HW_OPTICAL_MAX_BYTES + 1);
}
static void too_many_channels(struct sim_program *p, void *argument) {
    (void)argument;
    for (uint32_t i = 0; i < 64; i++)
        sim_channel(p);
}
static void too_many_words(struct sim_program *p, void *argument) {
    (void)argument;
    sim_words(p, UINT32_MAX);
}
static void reads_nothing(struct sim_program *p, void *argument) {
    (void)argument;
    sim_subscribe(p, channel);
    sim_compute(p, 10);
    for (uint32_t i = 0; i < 100; i++) {
        sim_send(p, channel, 1, 0, NULL, 0);
        sim_compute(p, 100);
    }
}

static const struct {
    sim_program_body *body;
    enum sim_status status;
    const char *text;
} failures[] = {
    {waits_for_ever, SIM_STUCK, "thread 1 waits for a message of channel 0 for ever"},
    {sleeps_for_ever, SIM_STUCK, "thread 0 waits for shared word 0 for ever"},
    {no_channel, SIM_USAGE, "thread 0: there is no channel 9"},
    {no_word, SIM_USAGE, "thread 0: there is no shared word 800"},
    {no_operation, SIM_USAGE, "thread 0: there is no filter operation 3"},
    {too_large, SIM_USAGE, "thread 0: message of 65537 bytes: size out of range"},
    {too_many_channels, SIM_USAGE, "more than 64 channels"},
    {too_many_words, SIM_USAGE, "no room for 4294967295 shared words"},
    {reads_nothing, SIM_USAGE, "core 0: more than 10 messages of channel 0, which no thread there reads"},
};

TEST_EACH(errors, sizeof failures / sizeof *failures, "the run ends, and the text names thread, channel or word") {
    config = sim_program_config_default();
    config.optical.buffer_limit = 10;
    struct sim_program *p = open_program(2);
    spawn(p, 2, failures[number].body);
    ck_assert_int_eq(sim_program_run(p, &error), failures[number].status);
    ck_assert_str_eq(error.text, failures[number].text);
    sim_program_free(p);
}

static void sends_for_ever(struct sim_program *p, void *argument) {
    (void)argument;
    if (sim_self(p) != 0)
        return;
    for (;;)
        sim_send(p, channel, 0, 0, NULL, 0);
}

TEST(messages__that_are_never_received_end_the_run) {
    config = sim_program_config_default();
    struct sim_program *p = open_program(1024);
    spawn(p, 1, sends_for_ever);
    ck_assert_int_eq(sim_program_run(p, &error), SIM_USAGE);
    ck_assert_str_eq(error.text, "16384 messages are under way to 1024 cores: threads send faster than others receive");
    sim_program_free(p);
}

static void sends_much(struct sim_program *p, void *argument) {
    (void)argument;
    if (sim_self(p) == 1)
        sim_subscribe(p, channel);
    sim_compute(p, 10);
    for (int i = 0; sim_self(p) == 0 && i < 5000; i++) {
        sim_send(p, channel, 1, 0, NULL, 0);
        sim_compute(p, 100);
    }
    sim_compute(p, 1000000);
}

TEST(one_slow_receiver, "needs a slot for each message, and a node: no room for those that all others have dropped") {
    config = sim_program_config_default();
    struct sim_program *p = open_program(64);
    spawn(p, 2, sends_much);
    ck_assert_int_eq(sim_program_run(p, &error), SIM_OK);
    const struct hw_optical *net = sim_program_optical(p);
    ck_assert_uint_ge(net->n_slots, 5000);
    ck_assert_uint_ge(net->n_nodes, 5000);
    ck_assert_uint_le(net->n_nodes, 20000); /* and not 5000 for each of 63 */
    const char *why = "";
    ck_assert_msg(hw_optical_is_valid(net, &why), "%s", why);
    sim_program_free(p);
}

TEST(impossible_chips) {
    config = sim_program_config_default();
    config.n_cores = 1025;
    ck_assert_ptr_null(sim_program_new(&config, &error));
    ck_assert_str_eq(error.text, "impossible chip: cores");
    config.n_cores = 4;
    config.optical.n_channels = 0;
    ck_assert_ptr_null(sim_program_new(&config, &error));
    ck_assert_str_eq(error.text, "impossible chip: channels");
    config = sim_program_config_default();
    struct sim_program *p = open_program(1);
    spawn(p, 1, computes);
    ck_assert_int_eq(sim_program_spawn(p, computes, NULL, &error), SIM_USAGE);
    ck_assert_str_eq(error.text, "more threads than 1 cores");
    sim_program_free(p);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ATAC_run: the same programs in virtual time, on real threads, and on real threads with the model's delays. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "programs.h"

/* ---- messages ---- */

TEST_EACH(each_message_comes_once_to_each_other, WAYS * 4, "in the order of its sender: 1 to 64 cores") {
    ATAC_options o = options_of(number % WAYS, n = 1 << number / WAYS * 2);
    passes(&o, make, talks, NULL);
    drop();
}

TEST_EACH(limited_lambda_queues, WAYS, "hold senders back, and nothing is lost") {
    ATAC_options o = options_of(number, n = 5);
    o.lambda_limit = 1;
    passes(&o, make, talks, NULL);
    drop();
}

TEST_EACH(each_core_has_its_filter, WAYS) {
    ATAC_options o = options_of(number, n = 4);
    passes(&o, make, filters, NULL);
    drop();
}

/* ---- barriers ---- */

TEST_EACH(no_thread_leaves_a_barrier_early, WAYS * 3, "of 1, 8 and 64 threads") {
    ATAC_options o = options_of(number % WAYS, n = 1 << number / WAYS * 3);
    passes_barriers(&o);
}

/* ---- work stealing ---- */

TEST_EACH(each_task_is_run_once, WAYS *ATAC_N_PILES * 3, "by all systems, on 1, 3 and 9 cores, and all threads end") {
    static const int sizes[] = {1, 3, 9};
    int kind = number / WAYS % ATAC_N_PILES;
    ATAC_options o = options_of(number % WAYS, n = sizes[number / WAYS / ATAC_N_PILES]);
    passes_stealing(&o, &kind);
}

/* ---- time ---- */

static void ping_pong(void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = port_when_all_are_ready();
    for (int i = 0; i < 20; i++) {
        if ((ATAC_self() + i) % 2 == 0)
            CHECK(VirtualChannelPort_send_message(port, i, 1, i));
        else
            CHECK(VirtualChannelPort_wait_and_receive_message(port, &m) && m.payload == i);
        ATAC_compute(40);
    }
    VirtualChannelPort_delete(port);
}

TEST(no_call_takes_less_than_the_model_says, "live with a time scale: one message after the other") {
    ATAC_options o = options_of(0, n = 2);
    unsigned long long model = passes(&o, make, ping_pong, NULL);
    drop();
    /* Ours to send, 15 on the way, a look, and to retrieve: each 618. The 40 of the sender pass meanwhile. */
    ck_assert_msg(model >= 20 * 618, "%llu", model);
    o = options_of(2, 2);
    o.time_scale = 1000;
    unsigned long long live = passes(&o, make, ping_pong, NULL);
    ck_assert_msg(live >= model, "%llu cycles, less than the model's %llu", live, model);
    drop();
}

TEST(the_time_scale_of_the_command, "is the default's") {
    ATAC_options o = options_of(1, n = 2);
    o.time_scale = ATAC_options_default().time_scale;
    CHECK(setenv("SUBUTAI_TIME_SCALE", "1000", 1) == 0);
    CHECK(passes(&o, make, ping_pong, NULL) >= 20 * 618);
    drop();
}

/* ---- what cannot be ---- */

static void waits(void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = VirtualChannelPort_new(channel);
    if (ATAC_self() == 1)
        VirtualChannelPort_wait_and_receive_message(port, &m);
    VirtualChannelPort_delete(port);
}

TEST_EACH(a_message_that_nobody_sends, WAYS, "is an error that names thread and channel") {
    ATAC_options o = options_of(number, n = 3);
    fails(&o, make, waits, "thread 1 waits for a message of channel 0 for ever");
}

static void floods(void *argument) {
    (void)argument;
    VirtualChannelPort *port = port_when_all_are_ready();
    for (int i = 0; ATAC_self() == 0 && i < 100; i++)
        VirtualChannelPort_send_message(port, i, 1, 0);
    ATAC_compute(100000);
    VirtualChannelPort_delete(port);
}

TEST_EACH(a_channel_that_nobody_reads, WAYS, "is an error that names core and channel, with buffer_limit") {
    ATAC_options o = options_of(number, n = 2);
    o.buffer_limit = 8;
    fails(&o, make, floods, "core 1: more than 8 messages of channel 0, which no thread there reads");
    drop();
}

static VirtualChannelPort *first_port;
static Barrier *first_barrier;

static void meddles(void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *own = VirtualChannelPort_new(channel);
    if (ATAC_self() == 0) {
        first_port = own;
        first_barrier = BarrierMaster_generate_barrier(master);
    }
    ATAC_ready();
    if (ATAC_self() == 0) {
        CHECK(VirtualChannelPort_send_message(first_port, 1, 1, 1));
        return;
    }
    CHECK(VirtualChannelPort_wait_and_receive_message(own, &m));
    errno = 0;
    CHECK(!VirtualChannelPort_send_message(first_port, 1, 1, 1) && errno == EPERM);
    errno = 0;
    CHECK(!VirtualChannelPort_wait_and_receive_message(first_port, &m) && errno == EPERM);
    errno = 0;
    CHECK(!VirtualChannelPort_set_local_filter(first_port, 1, ATAC_OR, 1) && errno == EPERM);
    errno = 0;
    CHECK(!Barrier_wait(first_barrier) && errno == EPERM);
    VirtualChannelPort_delete(own);
}

TEST_EACH(a_port_of_another_thread, WAYS, "is refused, a barrier too") {
    ATAC_options o = options_of(number, n = 2);
    passes(&o, make, meddles, NULL);
    VirtualChannelPort_delete(first_port);
    Barrier_delete(first_barrier);
    drop();
}

static void wrong_piles(void *argument) {
    DWorkPile *pile = DWorkPileMaster_generateLocalWorkPile(piles);
    IWorkTask task = {NULL};
    int way = *(int *)argument;
    for (int i = 0; way == 0 && i <= ALL; i++)
        DWorkPile_put(pile, &task);
    pile_of[0] = pile;
    if (way == 1)
        DWorkPile_put(pile, NULL);
}

TEST_EACH(piles_that_cannot_be, 2 * WAYS, "a queue that is full, no task") {
    static const char *const expected[] = {"thread 0: more than 600 tasks in a queue", "thread 0 puts no task"};
    int way = number / WAYS; /* and the kind of the piles */
    ATAC_options o = options_of(number % WAYS, n = 1);
    const char *error = ATAC_run(&o, make_piles, wrong_piles, &way, NULL);
    ck_assert_msg(error != NULL && strcmp(error, expected[way]) == 0, "%s", error);
}

static void nests(void *argument) {
    ATAC_options o = ATAC_options_default();
    const char *error = ATAC_run(&o, NULL, nests, argument, NULL);
    CHECK(error != NULL && strcmp(error, "another run is under way") == 0);
}

TEST(runs_that_cannot_be, "each option out of its range, a run in a run") {
    static const struct {
        size_t offset;
        int value;
        const char *error;
    } wrong[] = {
        {offsetof(ATAC_options, number_of_cores), 0, "impossible run: cores"},
        {offsetof(ATAC_options, number_of_cores), -1, "impossible run: cores"},
        {offsetof(ATAC_options, number_of_cores), 1025, "impossible run: cores"},
        {offsetof(ATAC_options, number_of_threads), -1, "impossible run: threads"},
        {offsetof(ATAC_options, number_of_threads), 1025, "impossible run: threads"},
        {offsetof(ATAC_options, channels), 0, "impossible run: channels"},
        {offsetof(ATAC_options, channels), 1025, "impossible run: channels"},
        {offsetof(ATAC_options, transport_cycles), -1, "impossible run: transport cycles"},
        {offsetof(ATAC_options, controller_cycles), 1000001, "impossible run: controller cycles"},
        {offsetof(ATAC_options, check_cycles), -1, "impossible run: check cycles"},
        {offsetof(ATAC_options, software_cycles), -1, "impossible run: software cycles"},
        {offsetof(ATAC_options, lambda_limit), -1, "impossible run: limit of a queue"},
        {offsetof(ATAC_options, buffer_limit), -1, "impossible run: limit of a queue"},
        {offsetof(ATAC_options, time_scale), -2, "impossible run: time scale"},
        {offsetof(ATAC_options, time_scale), 1000001, "impossible run: time scale"},
        {offsetof(ATAC_options, stack_bytes), 0, "impossible run: bytes of a stack"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ATAC_options o = options_of(i % 2 != 0, 1);
        memcpy((char *)&o + wrong[i].offset, &wrong[i].value, sizeof(int));
        fails(&o, NULL, meets, wrong[i].error);
    }
    for (int way = 0; way < WAYS; way++) {
        ATAC_options o = options_of(way, n = 1);
        passes(&o, NULL, nests, NULL);
    }
}

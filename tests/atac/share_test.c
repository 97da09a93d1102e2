/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* More threads than cores: in virtual time, on real threads, and on real threads with the model's delays. */
#include <errno.h>

#include "programs.h"

enum { SIZES = 4 };

/* Threads and cores: all on one core, some cores with more than others, and one core that has no thread beside it. */
static const struct { int threads, cores; } sizes[SIZES] = {{2, 1}, {7, 3}, {40, 16}, {64, 1}};

static ATAC_options shared(int way, int threads, int cores) {
    ATAC_options o = options_of(way, cores);
    o.number_of_threads = n = threads;
    return o;
}

/* ---- messages ---- */

TEST_EACH(each_message_comes_once_to_each_other_thread, WAYS *SIZES,
          "of its core too, and in the order of its sender") {
    int size = number / WAYS;
    ATAC_options o = shared(number % WAYS, sizes[size].threads, sizes[size].cores);
    passes(&o, make, talks, NULL);
    drop();
}

TEST_EACH(limited_lambda_queues, WAYS, "hold all threads of a core back, and nothing is lost") {
    ATAC_options o = shared(number, 7, 3);
    o.lambda_limit = 1;
    passes(&o, make, talks, NULL);
    drop();
}

TEST_EACH(each_thread_has_its_filter, WAYS * 2, "on one core, and on two") {
    ATAC_options o = shared(number % WAYS, 4, 1 + number / WAYS);
    passes(&o, make, filters, NULL);
    drop();
}

/* The same filter for both threads of core 1, then another one for thread 3. */
static void changes(void *argument) {
    (void)argument;
    int self = ATAC_self();
    Message m;
    VirtualChannelPort *port = port_when_all_are_ready();
    if (self % 2 == 1)
        CHECK(VirtualChannelPort_set_local_filter(port, -1, ATAC_AND, 1));
    ATAC_ready();
    if (self == 0) {
        CHECK(VirtualChannelPort_send_message(port, 1, 2, 0));
        CHECK(VirtualChannelPort_send_message(port, 2, 1, 0));
    }
    if (self % 2 == 1)
        CHECK(VirtualChannelPort_wait_and_receive_message(port, &m) && m.payload == 2);
    if (self == 3)
        CHECK(VirtualChannelPort_set_local_filter(port, -1, ATAC_AND, 2));
    ATAC_ready();
    if (self == 0) {
        CHECK(VirtualChannelPort_send_message(port, 3, 2, 0));
        CHECK(VirtualChannelPort_send_message(port, 4, 1, 0));
    }
    if (self % 2 == 1)
        CHECK(VirtualChannelPort_wait_and_receive_message(port, &m) && m.payload == (self == 3 ? 3 : 4));
    VirtualChannelPort_delete(port);
}

TEST_EACH(a_filter_that_changes, WAYS, "leaves that of the core's other thread") {
    ATAC_options o = shared(number, 4, 2);
    passes(&o, make, changes, NULL);
    drop();
}

/* Thread 2, beside thread 0, subscribes when all have what was sent before. */
static void comes_late(void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = ATAC_self() != 2 ? VirtualChannelPort_new(channel) : NULL;
    ATAC_ready();
    if (ATAC_self() == 1)
        CHECK(VirtualChannelPort_send_message(port, 1, 1, 0));
    ATAC_compute(100000);
    ATAC_ready();
    if (ATAC_self() == 2)
        port = VirtualChannelPort_new(channel);
    ATAC_ready();
    if (ATAC_self() == 1)
        CHECK(VirtualChannelPort_send_message(port, 2, 1, 0));
    if (ATAC_self() == 0)
        CHECK(VirtualChannelPort_wait_and_receive_message(port, &m) && m.payload == 1);
    if (ATAC_self() != 1)
        CHECK(VirtualChannelPort_wait_and_receive_message(port, &m) && m.payload == 2);
    VirtualChannelPort_delete(port);
}

TEST_EACH(a_thread_that_subscribes_late, WAYS, "has nothing of what its core received before") {
    ATAC_options o = shared(number, 3, 2);
    passes(&o, make, comes_late, NULL);
    drop();
}

/* ---- barriers, work stealing ---- */

TEST_EACH(no_thread_leaves_a_barrier_early, WAYS *SIZES) {
    int size = number / WAYS;
    ATAC_options o = shared(number % WAYS, sizes[size].threads, sizes[size].cores);
    passes_barriers(&o);
}

TEST_EACH(each_task_is_run_once, WAYS *ATAC_N_PILES * 2, "by all systems, nine threads on two cores and on one") {
    int kind = number / WAYS % ATAC_N_PILES;
    ATAC_options o = shared(number % WAYS, 9, 1 + number / WAYS / ATAC_N_PILES);
    passes_stealing(&o, &kind);
}

/* ---- time ---- */

static void computes(void *argument) {
    (void)argument;
    ATAC_compute(10000);
}

TEST_EACH(a_core_computes_for_one_thread_at_a_time, WAYS - 1) {
    ATAC_options o = shared(number * 2, 7, 2);
    unsigned long long cycles = passes(&o, NULL, computes, NULL);
    if (number == 0)
        CHECK_INT(cycles, 40000);
    ck_assert_msg(cycles >= 40000, "%llu", cycles);
}

TEST(a_shared_core_in_virtual_time, "has the same course each time") {
    ATAC_options o = shared(0, 40, 16);
    unsigned long long first = passes_barriers(&o);
    ck_assert_uint_eq(passes_barriers(&o), first);
}

static void nothing(void *argument) {
    (void)argument;
}

TEST_EACH(fewer_threads_than_cores, WAYS, "leave cores alone") {
    ATAC_options o = shared(number, 2, 16);
    passes(&o, make, talks, NULL);
    drop();
}

TEST_EACH(many_threads, WAYS, "on two cores: as many as there can be, in virtual time") {
    ATAC_options o = shared(number, number == 0 ? 1024 : MOST, 2);
    passes(&o, NULL, nothing, NULL);
}

/* ---- what cannot be ---- */

static void floods(void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = port_when_all_are_ready();
    for (int i = 0; ATAC_self() == 0 && i < 100; i++)
        VirtualChannelPort_send_message(port, i, 1, 0);
    while (ATAC_self() == 1 && VirtualChannelPort_wait_and_receive_message(port, &m)) {
    }
    ATAC_compute(100000);
    VirtualChannelPort_delete(port);
}

TEST_EACH(a_channel_that_one_thread_of_a_core_does_not_read, WAYS, "is an error that names it, with buffer_limit") {
    ATAC_options o = shared(number, 3, 1);
    o.buffer_limit = 20;
    const char *error = ATAC_run(&o, make, floods, NULL, NULL);
    static const char *const expected[] = {"core 0: more than 20 messages of channel 0, which thread 1 does not read",
                                           "core 0: more than 20 messages of channel 0, which thread 2 does not read"};
    ck_assert_msg(error != NULL && (strcmp(error, expected[0]) == 0 || strcmp(error, expected[1]) == 0), "%s", error);
    drop();
}

/* Both threads of core 0 have filters of their own, so that the hardware has none, and read nothing. */
static void filters_only(void *argument) {
    int self = ATAC_self(), signature = *(int *)argument;
    VirtualChannelPort *port = port_when_all_are_ready();
    if (self != 1)
        CHECK(VirtualChannelPort_set_local_filter(port, -1, ATAC_AND, self == 0 ? 2 : 4));
    ATAC_ready();
    for (int i = 0; self == 1 && i < 40; i++) /* fewer than what memory is first made for: all are sorted then */
        CHECK(VirtualChannelPort_send_message(port, i, signature, 0));
    ATAC_compute(100000);
    ATAC_ready();
    VirtualChannelPort_delete(port);
}

TEST_EACH(messages_that_all_threads_refuse, WAYS, "are no messages that are not read, with buffer_limit") {
    ATAC_options o = shared(number, 3, 2);
    o.buffer_limit = 20;
    passes(&o, make, filters_only, &(int){1});
    drop();
    const char *error = ATAC_run(&o, make, filters_only, &(int){6}, NULL);
    ck_assert_msg(error != NULL, "which all let pass");
    ck_assert_str_eq(error, "core 0: more than 20 messages of channel 0, which thread 0 does not read");
    drop();
}

static void waits(void *argument) {
    (void)argument;
    Message m;
    VirtualChannelPort *port = VirtualChannelPort_new(channel);
    if (ATAC_self() == 1)
        VirtualChannelPort_wait_and_receive_message(port, &m);
    VirtualChannelPort_delete(port);
}

TEST_EACH(a_message_that_nobody_sends, WAYS, "is an error that names thread and channel") {
    ATAC_options o = shared(number, 3, 1);
    fails(&o, make, waits, "thread 1 waits for a message of channel 0 for ever");
    drop();
}

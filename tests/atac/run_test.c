/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* ATAC_run: the same programs in virtual time, on real threads, and on real threads with the model's delays. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/suite.h"
#include "ways.h"

enum { MOST = 64 };

static VirtualChannel *channel;
static BarrierMaster *master;
static int n;

static void make(void *argument) {
    (void)argument;
    CHECK((channel = VirtualChannel_create()) != NULL);
    CHECK((master = BarrierMaster_new(n)) != NULL);
}

static void drop(void) {
    VirtualChannel_delete(channel);
    BarrierMaster_delete(master);
}

/* ---- messages ---- */

enum { EACH = 20 };

/* All ports are there before the first message. */
static VirtualChannelPort *port_when_all_are_ready(void) {
    VirtualChannelPort *port = VirtualChannelPort_new(channel);
    CHECK(port != NULL);
    ATAC_ready();
    return port;
}

static void talks(void *argument) {
    (void)argument;
    int next[MOST] = {0}, self = ATAC_self(), text[3];
    VirtualChannelPort *port = port_when_all_are_ready();
    for (int k = 0; k < EACH; k++) {
        int own[3] = {self, k, self * k};
        CHECK(VirtualChannelPort_send_message_long(port, (const char *)own, sizeof own, 1 + self, k));
    }
    for (int i = 0; i < (n - 1) * EACH; i++) {
        Message m;
        CHECK(VirtualChannelPort_wait_and_receive_message_long(port, &m, (char *)text, sizeof text));
        CHECK(m.sender != self && m.sender < n && m.size == sizeof text && m.signature == 1 + m.sender);
        CHECK(m.tag == next[m.sender]++ && text[1] == m.tag && text[2] == m.tag * m.sender && m.payload == m.sender);
    }
    Message m;
    CHECK(!VirtualChannelPort_receive_message(port, &m));
    VirtualChannelPort_delete(port);
}

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

/* The others say that they have set their filters. Then thread 0 sends 1 to 7 as signatures, and an end. */
static void filters(void *argument) {
    (void)argument;
    enum { ANY = 15, END = 100 };
    static const struct {
        int mask, op, signature, expected;
    } by[] = {{-1, ATAC_OR, -1, 0}, {-1, ATAC_AND, 4, END + 22}, {3, ATAC_XOR, 1, END + 22}, {1, ATAC_OR, 0, END + 16}};
    int self = ATAC_self(), sum = 0;
    Message m;
    VirtualChannelPort *port = port_when_all_are_ready();
    CHECK(VirtualChannelPort_set_local_filter(port, by[self].mask, by[self].op, by[self].signature));
    if (self != 0)
        CHECK(VirtualChannelPort_send_message(port, 0, ANY, 0));
    for (int i = 1; self == 0 && i < n; i++)
        CHECK(VirtualChannelPort_wait_and_receive_message(port, &m));
    for (int i = 1; self == 0 && i < 8; i++)
        CHECK(VirtualChannelPort_send_message(port, i, i, 0));
    if (self == 0)
        CHECK(VirtualChannelPort_send_message(port, END, ANY, 0));
    while (self != 0 && sum < END) {
        CHECK(VirtualChannelPort_wait_and_receive_message(port, &m));
        sum += m.payload;
    }
    CHECK_INT(sum, by[self].expected);
    VirtualChannelPort_delete(port);
}

TEST_EACH(each_core_has_its_filter, WAYS) {
    ATAC_options o = options_of(number, n = 4);
    passes(&o, make, filters, NULL);
    drop();
}

/* ---- barriers ---- */

static int inside[200];

static void meets(void *argument) {
    (void)argument;
    Barrier *barrier = BarrierMaster_generate_barrier(master);
    ATAC_ready();
    for (int i = 0; i < 200; i++) {
        ATAC_compute((unsigned long long)(ATAC_self() * 31 + i * 17) % 100);
        __atomic_fetch_add(&inside[i], 1, __ATOMIC_RELAXED);
        CHECK(Barrier_wait(barrier));
        CHECK(__atomic_load_n(&inside[i], __ATOMIC_RELAXED) == n);
    }
    Barrier_delete(barrier);
}

TEST_EACH(no_thread_leaves_a_barrier_early, WAYS * 3, "of 1, 8 and 64 threads") {
    ATAC_options o = options_of(number % WAYS, n = 1 << number / WAYS * 3);
    passes(&o, make, meets, NULL);
    drop();
}

/* ---- work stealing ---- */

enum { TASKS = 200, CHILDREN = 2, ALL = TASKS * (1 + CHILDREN) };

struct task {
    IWorkTask base;
    int n_run, number;
};
static struct task tasks[ALL];
static DWorkPileMaster *piles;
static DWorkPile *pile_of[MOST];

static void run_task(IWorkTask *base) {
    struct task *task = (struct task *)(void *)base;
    task->n_run++;
    ATAC_compute(50);
    DWorkPile_process_pending_request(pile_of[ATAC_self()]);
    for (int i = 0; task->number < TASKS && i < CHILDREN; i++)
        DWorkPile_put(pile_of[ATAC_self()], &tasks[TASKS + task->number * CHILDREN + i].base);
}

static void make_piles(void *argument) {
    CHECK((piles = DWorkPileMaster_new(*(int *)argument, n, ALL)) != NULL);
}

/* Thread 0 has all the work at first. */
static void steals(void *argument) {
    (void)argument;
    IWorkTask *task;
    DWorkPile *pile = DWorkPileMaster_generateLocalWorkPile(piles);
    pile_of[ATAC_self()] = pile;
    for (int i = 0; ATAC_self() == 0 && i < TASKS; i++)
        DWorkPile_put(pile, &tasks[i].base);
    while ((task = DWorkPile_get(pile)) != NULL) {
        task->run(task);
        DWorkPile_update_filter(pile);
    }
    DWorkPile_delete(pile);
}

TEST_EACH(each_task_is_run_once, WAYS *ATAC_N_PILES * 3, "by all systems, on 1, 3 and 9 cores, and all threads end") {
    static const int sizes[] = {1, 3, 9};
    int kind = number / WAYS % ATAC_N_PILES;
    ATAC_options o = options_of(number % WAYS, n = sizes[number / WAYS / ATAC_N_PILES]);
    for (int i = 0; i < ALL; i++)
        tasks[i] = (struct task){.base.run = run_task, .number = i};
    passes(&o, make_piles, steals, &kind);
    for (int i = 0; i < ALL; i++)
        ck_assert_msg(tasks[i].n_run == 1, "task %d was run %d times", i, tasks[i].n_run);
    DWorkPileMaster_delete(piles);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* More threads than cores: in virtual time, on real threads, and on real threads with the model's delays. */
#include <errno.h>

#include "ways.h"

enum { MOST = 64, EACH = 10, SIZES = 4 };

/* Threads and cores: all on one core, some cores with more than others, and one core that has no thread beside it. */
static const struct { int threads, cores; } sizes[SIZES] = {{2, 1}, {7, 3}, {40, 16}, {64, 1}};
static int n;
static VirtualChannel *channel;
static BarrierMaster *master;

static ATAC_options shared(int way, int threads, int cores) {
    ATAC_options o = options_of(way, cores);
    o.number_of_threads = n = threads;
    return o;
}

static void make(void *argument) {
    (void)argument;
    CHECK((channel = VirtualChannel_create()) != NULL);
    CHECK((master = BarrierMaster_new(n)) != NULL);
}

static void drop(void) {
    VirtualChannel_delete(channel);
    BarrierMaster_delete(master);
}

static VirtualChannelPort *port_when_all_are_ready(void) {
    VirtualChannelPort *port = VirtualChannelPort_new(channel);
    CHECK(port != NULL);
    ATAC_ready();
    return port;
}

/* ---- messages ---- */

static void talks(void *argument) {
    (void)argument;
    int next[MOST] = {0}, self = ATAC_self(), text[2];
    Message m;
    VirtualChannelPort *port = port_when_all_are_ready();
    for (int k = 0; k < EACH; k++) {
        int own[] = {self, self * k};
        CHECK(VirtualChannelPort_send_message_long(port, (const char *)own, sizeof own, 1, k));
    }
    for (int i = 0; i < (n - 1) * EACH; i++) {
        CHECK(VirtualChannelPort_wait_and_receive_message_long(port, &m, (char *)text, sizeof text));
        CHECK(m.sender != self && m.sender < n && m.payload == m.sender && text[1] == m.sender * m.tag);
        CHECK_INT(m.tag, next[m.sender]++);
    }
    CHECK(!VirtualChannelPort_receive_message(port, &m));
    VirtualChannelPort_delete(port);
}

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

/* Thread 0 sends 1 to 7 as signatures, and an end, when the others have their filters. */
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
    ATAC_ready();
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

static int inside[50];

static void meets(void *argument) {
    (void)argument;
    Barrier *barrier = BarrierMaster_generate_barrier(master);
    ATAC_ready();
    for (int i = 0; i < 50; i++) {
        ATAC_compute((unsigned long long)(ATAC_self() * 31 + i * 17) % 100);
        __atomic_fetch_add(&inside[i], 1, __ATOMIC_RELAXED);
        CHECK(Barrier_wait(barrier));
        CHECK_INT(__atomic_load_n(&inside[i], __ATOMIC_RELAXED), n);
    }
    Barrier_delete(barrier);
}

TEST_EACH(no_thread_leaves_a_barrier_early, WAYS *SIZES) {
    int size = number / WAYS;
    ATAC_options o = shared(number % WAYS, sizes[size].threads, sizes[size].cores);
    memset(inside, 0, sizeof inside);
    passes(&o, make, meets, NULL);
    drop();
}

enum { TASKS = 100, CHILDREN = 2, ALL = TASKS * (1 + CHILDREN) };

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

TEST_EACH(each_task_is_run_once, WAYS *ATAC_N_PILES * 2, "by all systems, nine threads on two cores and on one") {
    int kind = number / WAYS % ATAC_N_PILES;
    ATAC_options o = shared(number % WAYS, 9, 1 + number / WAYS / ATAC_N_PILES);
    for (int i = 0; i < ALL; i++)
        tasks[i] = (struct task){.base.run = run_task, .number = i};
    passes(&o, make_piles, steals, &kind);
    for (int i = 0; i < ALL; i++)
        ck_assert_msg(tasks[i].n_run == 1, "task %d was run %d times", i, tasks[i].n_run);
    DWorkPileMaster_delete(piles);
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
    unsigned long long first = passes(&o, make, meets, NULL);
    drop();
    memset(inside, 0, sizeof inside);
    ck_assert_uint_eq(passes(&o, make, meets, NULL), first);
    drop();
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

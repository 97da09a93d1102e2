/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "programs.h"

VirtualChannel *channel;
BarrierMaster *master;
DWorkPileMaster *piles;
DWorkPile *pile_of[MOST];
int n;

void make(void *argument) {
    (void)argument;
    CHECK((channel = VirtualChannel_create()) != NULL);
    CHECK((master = BarrierMaster_new(n)) != NULL);
}

void drop(void) {
    VirtualChannel_delete(channel);
    BarrierMaster_delete(master);
}

VirtualChannelPort *port_when_all_are_ready(void) {
    VirtualChannelPort *port = VirtualChannelPort_new(channel);
    CHECK(port != NULL);
    ATAC_ready();
    return port;
}

void talks(void *argument) {
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

/* The others say that they have set their filters. Then thread 0 sends 1 to 7 as signatures, and an end. */
void filters(void *argument) {
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

static int inside[200];

void meets(void *argument) {
    (void)argument;
    Barrier *barrier = BarrierMaster_generate_barrier(master);
    ATAC_ready();
    for (int i = 0; i < (n < MOST ? 200 : 50); i++) { /* of many threads each takes long, beside other processes */
        ATAC_compute((unsigned long long)(ATAC_self() * 31 + i * 17) % 100);
        __atomic_fetch_add(&inside[i], 1, __ATOMIC_RELAXED);
        CHECK(Barrier_wait(barrier));
        CHECK(__atomic_load_n(&inside[i], __ATOMIC_RELAXED) == n);
    }
    Barrier_delete(barrier);
}

unsigned long long passes_barriers(const ATAC_options *o) {
    memset(inside, 0, sizeof inside);
    unsigned long long cycles = passes(o, make, meets, NULL);
    drop();
    return cycles;
}

struct task {
    IWorkTask base;
    int n_run, number;
};
static struct task tasks[ALL];

static void run_task(IWorkTask *base) {
    struct task *task = (struct task *)(void *)base;
    task->n_run++;
    ATAC_compute(50);
    DWorkPile_process_pending_request(pile_of[ATAC_self()]);
    for (int i = 0; task->number < TASKS && i < CHILDREN; i++)
        DWorkPile_put(pile_of[ATAC_self()], &tasks[TASKS + task->number * CHILDREN + i].base);
}

void make_piles(void *argument) {
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

void passes_stealing(const ATAC_options *o, int *kind) {
    for (int i = 0; i < ALL; i++)
        tasks[i] = (struct task){.base.run = run_task, .number = i};
    passes(o, make_piles, steals, kind);
    for (int i = 0; i < ALL; i++)
        ck_assert_msg(tasks[i].n_run == 1, "task %d was run %d times", i, tasks[i].n_run);
    DWorkPileMaster_delete(piles);
}

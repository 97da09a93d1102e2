/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What a forked child makes of its parent's network interfaces (engine/ni/fork.h). */
#include "engine/ni/fork.h"

#include "engine/ni/broadcast.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/requests.h"
#include "engine/ni/service.h"
#include "engine/ni/stats.h"
#include "engine/ni/thread.h"
#include "engine/ni/tile.h"
#include "lib/suite.h"
#include "os/fork.h"

enum { N_TILES = 2, N_CONTROL = 4 };

struct ni_machine ni_machine;
union sbt_fork_page sbt_fork_page = {.known = 2};

static struct ni_tile tiles[N_TILES];
static struct ni_held_queue queues[N_TILES][N_CONTROL];
static struct ni_thread thread;
static struct ni_request parents[2];
static enum hw_op in_mailbox = HW_OP_NONE; /* what the parent has left in the first mailbox */
static uint32_t n_stepped, n_fenced, n_threads_forked;
static bool services_forked, entered;

void hw_fsm_step(struct hw_ni *ni, const struct hw_packet *packet, struct hw_step *step, struct hw_output *outputs) {
    (void)packet, (void)step, (void)outputs;
    ck_assert_ptr_eq(ni, &tiles[1].ni);
    n_stepped++;
}

void hw_ni_forget_waiters(struct hw_ni *ni) {
    (void)ni;
}

struct ni_thread *ni_enter(bool may_wait) {
    ck_assert(!may_wait);
    entered = true;
    return &thread;
}

void ni_leave(struct ni_thread *t) {
    ck_assert_ptr_eq(t, &thread);
    entered = false;
}

void ni_fence(struct ni_thread *t, uint32_t tile) {
    ck_assert(entered);
    ck_assert_uint_eq(tile, t->tile);
    n_fenced++;
}

void ni_broadcast_fork_child(void) {}
void ni_machine_clear_mesh(void) {}

void ni_mailbox_fork_child(struct ni_tile *tile, void (*serve)(const struct hw_packet *)) {
    if (tile != &tiles[0] || in_mailbox == HW_OP_NONE)
        return;
    struct hw_message message = {.destination = 1, .op = in_mailbox};
    struct hw_packet packet = hw_packet_encode(&ni_machine.layout, &message);
    serve(&packet);
}

void ni_requests_fork_child(void) {}

void ni_service_fork_child(void) {
    services_forked = true;
}

void ni_stats_fork_child(void) {}

void ni_thread_fork_child(void) {
    n_threads_forked++;
}

void sbt_fork_notice(void) {
    ck_abort_msg("the generation is known");
}

static void setup(void) {
    ni_machine.tiles = tiles;
    ni_machine.n_tiles = N_TILES;
    ni_machine.config.n_control = N_CONTROL;
    ck_assert(hw_layout_init(&ni_machine.layout, N_TILES, N_CONTROL));
    for (uint32_t i = 0; i < N_TILES; i++) {
        tiles[i].held.element = queues[i];
        tiles[i].lock = 1;
        tiles[i].next_cycles = 7;
        tiles[i].pending = &parents[0];
        __cds_wfcq_init(&tiles[i].queue_head, &tiles[i].queue_tail);
        cds_wfcq_node_init(&parents[i].node);
        cds_wfcq_enqueue(&tiles[i].queue_head, &tiles[i].queue_tail, &parents[i].node);
    }
}

TEST(prepare__own_requests_are_served_first) {
    setup();
    thread.tile = 1;
    ni_fork_prepare();
    ck_assert_uint_eq(n_fenced, 1);
    ck_assert(!entered);
}

TEST(child__has_none_of_the_parents_requests) {
    setup();
    ni_fork_child();
    ck_assert(services_forked);
    ck_assert_uint_eq(n_threads_forked, 1);
    for (uint32_t i = 0; i < N_TILES; i++) {
        ck_assert(!ni_has_work(&tiles[i]));
        ck_assert_ptr_null(tiles[i].pending);
        ck_assert_uint_eq(tiles[i].lock, 0);
    }
    ni_fork_child();
    ck_assert_uint_eq(n_threads_forked, 1);
}

TEST(child__serves_what_has_no_answer_and_drops_the_rest) {
    setup();
    for (int op = HW_OP_NONE + 1; op < HW_N_REQUESTS; op++) {
        in_mailbox = (enum hw_op)op;
        n_stepped = 0;
        ni_child_begins();
        ck_assert_uint_eq(n_stepped,
                          op == HW_OP_UNLOCK || op == HW_OP_SIGNAL || op == HW_OP_BROADCAST || op == HW_OP_DEALLOC);
    }
}

/* The answer to a request that the fork has forgotten; HW_OP_NONE: its thread waits on. */
static enum hw_op answer_to(enum hw_op main, enum hw_op withdraw, int which) {
    thread.state = 0;
    thread.posted[NI_ANSWER_MAIN] = (uint8_t)main;
    thread.posted[NI_ANSWER_WITHDRAW] = (uint8_t)withdraw;
    ni_fork_answer_forgotten(&thread, which);
    if (thread.state == 0)
        return HW_OP_NONE;
    ck_assert_uint_eq(thread.state, NI_ANSWERED(which));
    return hw_packet_op(&thread.answer[which].packet);
}

TEST(child__forgotten_requests_are_answered) {
    setup();
    ck_assert_int_eq(answer_to(HW_OP_COND_WAIT, HW_OP_NONE, NI_ANSWER_MAIN), HW_OP_WOKEN);
    ck_assert_int_eq(answer_to(HW_OP_LOCK, HW_OP_NONE, NI_ANSWER_MAIN), HW_OP_BUSY);
    ck_assert_int_eq(answer_to(HW_OP_TRYLOCK, HW_OP_NONE, NI_ANSWER_MAIN), HW_OP_BUSY);
    ck_assert_int_eq(answer_to(HW_OP_EVICT, HW_OP_NONE, NI_ANSWER_MAIN), HW_OP_BUSY);
    ck_assert_int_eq(answer_to(HW_OP_ALLOC_MUTEX, HW_OP_NONE, NI_ANSWER_MAIN), HW_OP_NO_SPACE);
    ck_assert_int_eq(answer_to(HW_OP_BARRIER_WAIT, HW_OP_NONE, NI_ANSWER_MAIN), HW_OP_NONE);
}

TEST(child__a_forgotten_withdrawal_is_the_answer, "to it, and to what it withdraws") {
    setup();
    ck_assert_int_eq(answer_to(HW_OP_LOCK, HW_OP_WITHDRAW, NI_ANSWER_WITHDRAW), HW_OP_WITHDRAWN);
    ck_assert_int_eq(answer_to(HW_OP_LOCK, HW_OP_WITHDRAW, NI_ANSWER_MAIN), HW_OP_NONE);
    ck_assert_int_eq(answer_to(HW_OP_COND_WAIT, HW_OP_WITHDRAW, NI_ANSWER_MAIN), HW_OP_NONE);
}

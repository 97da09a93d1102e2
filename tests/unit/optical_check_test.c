/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The optical network: states that cannot be are found. */
#include "optical_bench.h"

static void more_nodes(struct hw_optical *net) {
    net->n_free_nodes++;
}
static void more_slots(struct hw_optical *net) {
    net->n_free_slots--;
}
static void lost_slot(struct hw_optical *net) {
    net->free_slot = net->slots[net->free_slot].next_free;
    net->n_free_slots--;
}
static void longer_list(struct hw_optical *net) {
    net->buffers[4].n--;
}
static void shorter_list(struct hw_optical *net) {
    net->buffers[4].n++;
}
static void other_end(struct hw_optical *net) {
    net->buffers[4].last = net->buffers[4].first;
}
static void other_order_in_buffer(struct hw_optical *net) {
    net->nodes[net->buffers[4].first].at = 1000;
}
static void no_node(struct hw_optical *net) {
    net->buffers[4].first = net->n_nodes;
}
static void no_slot(struct hw_optical *net) {
    net->nodes[net->buffers[4].first].slot = net->n_slots;
}
static void other_end_of_queue(struct hw_optical *net) {
    net->lambda[3].last = net->n_nodes;
}
static void no_node_in_queue(struct hw_optical *net) {
    net->lambda[3].first = net->n_nodes;
}
static void no_first_slot_in_queue(struct hw_optical *net) {
    net->lambda[3].slot = net->n_slots;
}
static void no_slot_in_queue(struct hw_optical *net) {
    net->nodes[net->lambda[3].first].slot = net->n_slots;
}
static void other_order_in_log(struct hw_optical *net) {
    net->slots[net->slots[net->last_logged].earlier].sent_cycles = 1000;
}
static void other_link_in_log(struct hw_optical *net) {
    net->slots[net->slots[net->last_logged].earlier].later = HW_OPTICAL_NONE;
}
static void no_slot_in_log(struct hw_optical *net) {
    net->last_logged = net->n_slots;
}
static void other_place(struct hw_optical *net) {
    net->cores[1].next = net->last_logged;
}
static void place_behind_the_end(struct hw_optical *net) {
    net->cores[2].next = net->last_logged;
}
static void more_passed(struct hw_optical *net) {
    net->cores[2].n_passed++;
}
static void other_copies(struct hw_optical *net) {
    net->slots[net->last_logged].n_copies++;
}
static void free_slot(struct hw_optical *net) {
    net->slots[net->last_logged].n_copies = 0;
}
static void other_first_wavelength(struct hw_optical *net) {
    net->slots[net->lambda[3].slot].message.wavelength = 2;
}
static void other_wavelength(struct hw_optical *net) {
    net->slots[net->nodes[net->lambda[3].first].slot].message.wavelength = 2;
}
static void other_channel(struct hw_optical *net) {
    net->slots[net->nodes[net->buffers[2].first].slot].message.channel = 1;
}
static void from_itself(struct hw_optical *net) {
    net->slots[net->lambda[3].slot].message.wavelength = 1;
    net->slots[net->nodes[net->lambda[3].first].slot].message.wavelength = 1;
    net->lambda[4] = net->lambda[3];
    net->lambda[3] = net->lambda[5];
    net->cores[1].waiting[0] = 2;
}
static void not_waiting(struct hw_optical *net) {
    net->cores[1].waiting[0] = 0;
}
static void fewer_waiting(struct hw_optical *net) {
    net->cores[1].n_waiting = 0;
}
static void more_arrived(struct hw_optical *net) {
    net->cores[1].counts.n_arrived++;
}
static void more_received(struct hw_optical *net) {
    net->cores[1].counts.n_received++;
}
static void fewer_held(struct hw_optical *net) {
    net->held[3]--;
}
static void smaller_limit(struct hw_optical *net) {
    net->config.lambda_limit = 3;
}

/*
 * Core 1 has of core 0's five messages one in its buffer, two in the lambda queue and two that are coming; core 2 has
 * all in its buffer.
 */
TEST(a_state_that_cannot_be_is_not_valid) {
    static const struct {
        void (*change)(struct hw_optical *net);
        const char *why;
    } wrongs[] = {
        {more_nodes, "a node or a slot is in no list, or in two"},
        {more_slots, "a node or a slot is in no list, or in two"},
        {lost_slot, "a node or a slot is in no list, or in two"},
        {other_copies, "a node or a slot is in no list, or in two"},
        {longer_list, "a list is longer than it says"},
        {shorter_list, "a list ends where it does not say"},
        {other_end, "a list ends where it does not say"},
        {other_order_in_buffer, "a list is not in the order of its times"},
        {no_node, "a list is longer than it says"},
        {no_slot, "a node has a free slot"},
        {other_end_of_queue, "a list ends where it does not say"},
        {no_node_in_queue, "a list is longer than it says"},
        {no_first_slot_in_queue, "a lambda queue has a free slot"},
        {no_slot_in_queue, "a lambda queue has a free slot"},
        {other_order_in_log, "the log is not in the order of sending"},
        {other_link_in_log, "the log is not in the order of sending"},
        {no_slot_in_log, "a message of the log has a free slot"},
        {free_slot, "a message of the log has a free slot"},
        {other_place, "a core's place in the log is another one"},
        {place_behind_the_end, "a core's place in the log is another one"},
        {more_passed, "a core has passed more than was sent"},
        {other_first_wavelength, "a message is in another's queue"},
        {other_wavelength, "a message is in another's queue"},
        {other_channel, "a message is in another's queue"},
        {not_waiting, "the controller does not know which queues have messages"},
        {from_itself, "the controller does not know which queues have messages"},
        {fewer_waiting, "the counts of a core do not agree with its queues"},
        {more_arrived, "the counts of a core do not agree with its queues"},
        {more_received, "the counts of a core do not agree with its queues"},
        {fewer_held, "the places of a lambda queue are not counted right"},
        {smaller_limit, "the places of a lambda queue are not counted right"},
    };
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct bench b;
        struct hw_optical_config config = small(3);
        const char *why = NULL;
        config.lambda_limit = 5;
        open_net(&b, &config, true);
        for (uint64_t at = 0; at < 5; at++)
            ck_assert_int_eq(send(&b, 0, 1, at), HW_OPTICAL_OK);
        hw_optical_advance(&b.net, 1, 7);
        hw_optical_advance(&b.net, 2, 100);
        ck_assert(hw_optical_is_valid(&b.net, &why));
        wrongs[i].change(&b.net);
        ck_assert(!hw_optical_is_valid(&b.net, &why));
        ck_assert_str_eq(why, wrongs[i].why);
        free_net(&b);
    }
}

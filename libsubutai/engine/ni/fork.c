/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A forked child has network interfaces of its own: copies of its parent's, without the parent's waiters.
 *
 * Before a fork the forking thread waits until its own requests have been served, and that is all: nobody else is
 * stopped, because handlers that run between ours and the fork may need locks that other threads hold. So the copy may
 * catch any other request and any step half done, and pages a moment apart. The child rebuilds what a step can leave
 * half done (hw_ni_forget_waiters), serves the requests in its mailboxes whose threads do not wait for an answer (an
 * unlock served twice frees what a thread would hold that is not in this process), and drops the others.
 *
 * After _Fork or a raw clone, which tell nobody, all this happens at the child's first operation.
 */
#include "core/thread.h"
#include "engine/ni/ni.h"

void ni_fork_prepare(void) {
    struct ni_thread *t = ni_enter(false);
    if (t == NULL)
        return;
    ni_fence(t, t->tile);
    ni_leave(t);
}

static bool has_answer(enum hw_op op) {
    return op != HW_OP_UNLOCK && op != HW_OP_SIGNAL && op != HW_OP_BROADCAST && op != HW_OP_DEALLOC;
}

/* Serve what a mailbox still has, oldest first. There is nobody to answer to. */
static void empty_mailbox(struct ni_tile *tile) {
    struct ni_mailbox *box = &tile->mailbox;
    for (uint32_t i = 0; i < NI_RING; i++) {
        struct ni_request *r = &box->ring[(box->tail + i) % NI_RING];
        struct hw_message message = hw_packet_decode(&ni_machine.layout, &r->packet);
        if (r->state != NI_SLOT_FREE && !has_answer(message.op) && message.destination < ni_machine.n_tiles) {
            struct ni_tile *home = &ni_machine.tiles[message.destination];
            struct hw_step step;
            hw_fsm_step(&home->ni, &r->packet, &step, home->outputs);
        }
        r->state = NI_SLOT_FREE;
    }
    box->head = box->tail;
    box->guard = 0;
}

void ni_child_begins(void) {
    struct ni_machine *m = &ni_machine;
    struct hw_mesh_config mesh = m->mesh.config;
    ni_service_fork_child();
    m->mesh_lock = 0;
    hw_mesh_init(&m->mesh, &mesh, m->mesh.ports);
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        struct ni_tile *tile = &m->tiles[i];
        tile->lock = 0;
        tile->held = tile->held_last = tile->pending = NULL;
        tile->next_cycles = UINT64_MAX;
        tile->n_direct = tile->n_stepped = tile->n_withdrawn_held = tile->n_evicted = tile->mailbox.n_pushed = 0;
        __cds_wfcq_init(&tile->queue_head, &tile->queue_tail);
        hw_ni_forget_waiters(&tile->ni);
    }
    for (uint32_t i = 0; i < m->n_tiles; i++)
        empty_mailbox(&m->tiles[i]);
    for (uint32_t i = 0; i < m->n_tiles; i++)
        m->tiles[i].n_used = m->tiles[i].ni.n_control_used;
    ni_thread_fork_child();
    ni_stats_fork_child();
    ni_requests_fork_child();
}

void ni_fork_child(void) {
    uint32_t generation = sbt_thread_process_generation();
    if (ni_machine.generation == generation)
        return; /* an atfork handler before ours has used an object */
    ni_child_begins();
    ni_machine.generation = generation;
}

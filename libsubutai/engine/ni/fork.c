/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A forked child has its own network interfaces: copies of its parent's, without the parent's waiters.
 *
 * Before a fork the forking thread waits until its own requests have been served. It stops no other thread, because
 * atfork handlers that run between ours and the fork may need locks that other threads hold. So the copy may catch
 * requests of other threads, and any step, half done, and its pages may be a moment apart. The child does three things:
 *  1. It rebuilds what a step can leave half done (hw_ni_forget_waiters).
 *  2. It serves those requests in its mailboxes that have no answer. An unlock may be served twice by that. It then
 *     frees a mutex of a new owner that does not exist in this process.
 *  3. It drops the other requests.
 *
 * _Fork and a raw clone run no handlers. After them all this happens at the child's first operation, and before the
 * child creates a thread.
 *
 * The child has one thread, so what is atomic elsewhere is written plainly here.
 */
#include "engine/ni/fork.h"

#include "engine/ni/broadcast.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/requests.h"
#include "engine/ni/service.h"
#include "engine/ni/stats.h"
#include "engine/ni/thread.h"
#include "engine/ni/tile.h"
#include "os/fork.h"

void ni_fork_prepare(void) {
    struct ni_thread *t = ni_enter(false);
    if (t == NULL)
        return;
    ni_fence(t, t->tile);
    ni_leave(t);
}

/* No thread waits for an answer, so a request that has an answer is dropped. */
static void serve_forgotten(const struct hw_packet *packet) {
    struct hw_message message = hw_packet_decode(&ni_machine.layout, packet);
    if (ni_has_answer(message.op) || message.destination >= ni_machine.n_tiles)
        return;
    struct ni_tile *home = &ni_machine.tiles[message.destination];
    struct hw_step step;
    hw_fsm_step(&home->ni, packet, &step, home->outputs);
}

/*
 * A handler that forked has interrupted the thread while it waited for an answer. The child has forgotten its request,
 * so it gets another answer: a condition wait is woken spuriously, a lock asks again. Only at a barrier does the thread
 * go on waiting, because it has arrived.
 */
void ni_fork_answer_forgotten(struct ni_thread *t, int which) {
    enum hw_op op;
    switch (t->posted[which]) {
    case HW_OP_COND_WAIT:
        op = t->posted[NI_ANSWER_WITHDRAW] != 0 ? HW_OP_NONE : HW_OP_WOKEN;
        break;
    case HW_OP_LOCK:
        op = t->posted[NI_ANSWER_WITHDRAW] != 0 ? HW_OP_NONE : HW_OP_BUSY;
        break;
    case HW_OP_TRYLOCK:
    case HW_OP_EVICT:
        op = HW_OP_BUSY;
        break;
    case HW_OP_WITHDRAW:
        op = HW_OP_WITHDRAWN;
        break;
    case HW_OP_ALLOC_MUTEX:
    case HW_OP_ALLOC_CONDITION:
    case HW_OP_ALLOC_BARRIER:
        op = HW_OP_NO_SPACE;
        break;
    default:
        op = HW_OP_NONE;
        break;
    }
    if (op == HW_OP_NONE || (t->state & NI_ANSWERED(which)) != 0)
        return;
    struct hw_message message = {.destination = t->tile, .op = op, .thread = t->id, .core = t->tile};
    t->answer[which].packet = hw_packet_encode(&ni_machine.layout, &message);
    t->answer[which].at_cycles = 0;
    t->state |= NI_ANSWERED(which);
}

void ni_child_begins(void) {
    struct ni_machine *m = &ni_machine;
    ni_service_fork_child();
    ni_machine_clear_mesh();
    ni_broadcast_fork_child();
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        struct ni_tile *tile = &m->tiles[i];
        tile->lock = 0;
        ni_held_clear(&tile->held, m->config.n_control);
        tile->pending = NULL;
        tile->next_cycles = UINT64_MAX;
        tile->n_direct = tile->n_stepped = tile->n_withdrawn_held = tile->n_evicted = 0;
        __cds_wfcq_init(&tile->queue_head, &tile->queue_tail);
        hw_ni_forget_waiters(&tile->ni);
    }
    for (uint32_t i = 0; i < m->n_tiles; i++)
        ni_mailbox_fork_child(&m->tiles[i], serve_forgotten);
    m->n_full = 0;
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        m->tiles[i].n_used = m->tiles[i].ni.n_control_used;
        m->n_full += m->tiles[i].n_used == m->config.n_control;
    }
    ni_thread_fork_child();
    ni_stats_fork_child();
    ni_requests_fork_child();
}

void ni_fork_child(void) {
    uint32_t generation = sbt_fork_generation();
    if (ni_machine.generation == generation)
        return; /* an atfork handler before ours has used an object */
    ni_child_begins();
    ni_machine.generation = generation;
}

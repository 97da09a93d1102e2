/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Barriers. A released waiter does not touch the object, because the object may be gone. So the threads' records
 * remember how long waits at barriers last. A barrier for more threads than there are queue elements is served in
 * software.
 */
#include "engine/ni/barrier.h"

#include <errno.h>

#include "core/object.h"
#include "engine/direct/direct.h"
#include "engine/ni/await.h"
#include "engine/ni/broadcast.h"
#include "engine/ni/ids.h"
#include "engine/ni/mailbox.h"

#define MAX_COUNT 65535 /* the field has 16 bits */

/* A thread that ends in a signal handler while it waits: its record stays, for the answer that will come. */
static void abandon(void *argument) {
    ni_abandon(argument);
}

static void await(struct ni_thread *t, uint32_t id, struct hw_message *answer) {
    pthread_cleanup_push(abandon, t);
    ni_await_barrier(t, id, answer);
    pthread_cleanup_pop(0);
}

/* ---- on the optical network ---- */

/*
 * A released waiter does not touch the object: the network knows its arrival by the channel. A wait that is let go by a
 * handler's exit leaves its arrival there; its barrier is of no use any longer. A handler that has interrupted its
 * thread inside waits without a message: the thread may hold the network's lock.
 */
static int wait_by_messages(pthread_barrier_t *b) {
    struct ni_thread *t = ni_machine.timed ? ni_enter(false) : NULL;
    if (t == NULL)
        return direct_barrier_wait(b);
    struct ni_tile *tile = &ni_machine.tiles[t->tile];
    uint32_t number = t->tile;
    uint64_t rest_ns;
    ni_go_inside(t);
    uint64_t called = ni_call_cycles(&rest_ns);
    struct ni_arrival arrival = ni_broadcast_arrive(number, ni_barrier_word(b), sbt_barrier_of(b)->count, called);
    ni_leave_inside(t);
    ni_leave(t);
    int r = direct_barrier_wait(b);
    t = ni_enter(true);
    ni_go_inside(t);
    uint64_t gone = ni_broadcast_leave(number, &arrival);
    ni_leave_inside(t);
    ni_leave(t);
    if (ni_machine.time_scale != 0)
        ni_tile_delay(tile, gone, rest_ns);
    return r;
}

static int destroy_by_messages(pthread_barrier_t *b) {
    int r = direct_barrier_destroy(b);
    struct ni_thread *t = r == 0 ? ni_enter(false) : NULL;
    if (t == NULL)
        return r;
    ni_go_inside(t);
    ni_broadcast_forget(ni_barrier_word(b));
    ni_leave_inside(t);
    ni_leave(t);
    return r;
}

/* ---- on the mesh ---- */

/* As ni_mutex_init. */
int ni_barrier_init(pthread_barrier_t *b, unsigned count) {
    int r = direct_barrier_init(b, count);
    struct ni_thread *t = r == 0 && count <= MAX_COUNT && !ni_machine.optical ? ni_enter(false) : NULL;
    if (t == NULL)
        return r;
    ni_obtain_early(t, ni_barrier_word(b), HW_OP_ALLOC_BARRIER, count);
    ni_leave(t);
    return r;
}

/* The barrier's ID, or NI_SOFTWARE. A barrier for more threads than the field has numbers for never had an ID. */
static uint32_t obtain(struct ni_thread *t, uint32_t *word, uint32_t stale, uint32_t count) {
    if (count <= MAX_COUNT)
        return ni_obtain(t, word, stale, HW_OP_ALLOC_BARRIER, count);
    __atomic_store_n(word, NI_SOFTWARE, __ATOMIC_RELEASE);
    return NI_SOFTWARE;
}

int ni_barrier_wait(pthread_barrier_t *b) {
    if (ni_machine.optical)
        return wait_by_messages(b);
    struct sbt_barrier *bx = sbt_barrier_of(b);
    uint32_t *word = ni_barrier_word(b), id = __atomic_load_n(word, __ATOMIC_ACQUIRE), count = bx->count;
    if (id == NI_SOFTWARE)
        return direct_barrier_wait(b);
    struct ni_thread *t = ni_enter(true);
    for (;;) {
        if (!ni_is_id(id))
            id = obtain(t, word, 0, count);
        if (id == NI_SOFTWARE) {
            ni_leave(t);
            return direct_barrier_wait(b);
        }
        struct hw_message answer;
        ni_post(t, HW_OP_BARRIER_WAIT, id, word);
        await(t, id, &answer);
        if (answer.op == HW_OP_RELEASE || answer.op == HW_OP_AGAIN) {
            ni_leave(t);
            return answer.op == HW_OP_AGAIN ? EAGAIN : answer.argument == 1 ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
        }
        id = obtain(t, word, id, count); /* evicted while no thread waited */
    }
}

int ni_barrier_destroy(pthread_barrier_t *b) {
    if (ni_machine.optical)
        return destroy_by_messages(b);
    uint32_t *word = ni_barrier_word(b), id = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (id == NI_SOFTWARE)
        return direct_barrier_destroy(b);
    if (id == 0)
        return 0;
    struct ni_thread *t = ni_enter(true);
    struct hw_message answer = {.op = HW_OP_EVICTED};
    if (ni_is_id(id = ni_settled(t, word)))
        answer = ni_ask(t, HW_OP_EVICT, id, word);
    ni_leave(t);
    if (answer.op == HW_OP_BUSY)
        return EBUSY;
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    return 0;
}

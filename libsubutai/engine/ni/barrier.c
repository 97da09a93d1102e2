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

int ni_barrier_init(pthread_barrier_t *b, unsigned count) {
    return direct_barrier_init(b, count);
}

int ni_barrier_wait(pthread_barrier_t *b) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    uint32_t *word = ni_barrier_word(b), id = __atomic_load_n(word, __ATOMIC_ACQUIRE), count = bx->count;
    if (id == NI_SOFTWARE)
        return direct_barrier_wait(b);
    struct ni_thread *t = ni_enter(true);
    for (;;) {
        if (!ni_is_id(id)) {
            if (id == 0 && count <= MAX_COUNT)
                id = ni_obtain(t, word, 0, HW_OP_ALLOC_BARRIER, count);
            else if (id == 0 &&
                     __atomic_compare_exchange_n(word, &id, NI_SOFTWARE, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                id = NI_SOFTWARE;
            if (id == NI_SOFTWARE) {
                ni_leave(t);
                return direct_barrier_wait(b);
            }
            continue;
        }
        struct hw_message answer;
        ni_post(t, HW_OP_BARRIER_WAIT, id, word);
        await(t, id, &answer);
        if (answer.op == HW_OP_RELEASE || answer.op == HW_OP_AGAIN) {
            ni_leave(t);
            return answer.op == HW_OP_AGAIN ? EAGAIN : answer.argument == 1 ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
        }
        uint32_t stale = id; /* evicted while no thread waited */
        id = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (id == stale)
            id = ni_obtain(t, word, stale, HW_OP_ALLOC_BARRIER, count);
    }
}

int ni_barrier_destroy(pthread_barrier_t *b) {
    uint32_t *word = ni_barrier_word(b), id = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (id == NI_SOFTWARE)
        return direct_barrier_destroy(b);
    if (id == 0)
        return 0;
    struct ni_thread *t = ni_enter(true);
    struct hw_message answer = ni_ask(t, HW_OP_EVICT, id, word);
    ni_leave(t);
    if (answer.op == HW_OP_BUSY)
        return EBUSY;
    __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions. A single request unlocks the mutex and queues the thread; the answer is the grant of the mutex. From its
 * first wait on a condition lives where its mutex lives. If it is used with another mutex, it moves.
 *
 * Some waits go through the software engine's queue:
 *  - waits with a mutex of glibc's, with a mutex that stays held, and with a mutex that is served in software;
 *  - waits for which the condition gets no control element;
 *  - the wait of a thread that was WOKEN in its wait before for want of a queue element. The thread has looked at its
 *    predicate with the mutex held, and would find no element again. It must not ask until there is one: the elements
 *    may all belong to waits that last, and hundreds of threads that ask would leave the other threads no time.
 *
 * A signal looks at both queues. If both have waiters it wakes a waiter of each, which POSIX allows.
 */
#include "engine/ni/cond.h"

#include <errno.h>

#include "core/object.h"
#include "core/probes.h"
#include "engine/direct/direct.h"
#include "engine/ni/await.h"
#include "engine/ni/ids.h"
#include "engine/ni/machine.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/mutex.h"
#include "wait/park.h"

/* A wait, for the clean-up if it is cancelled. */
struct wait {
    struct ni_thread *t;
    pthread_mutex_t *m;
    uint32_t id;
    const void *object; /* an address only: the condition may be gone */
};

/*
 * Take the mutex at the end of a wait. Without a free queue element the paper's choice is EAGAIN, but a wait may not
 * return without the mutex, so this asks again.
 */
static int take_again(struct wait *wait) {
    int r;
    while ((r = ni_mutex_take(wait->t, wait->m, NULL, false)) == EAGAIN)
        sbt_wait_yield(false);
    return r;
}

/*
 * The wait has ended without an answer: leave the queue, or take the answer that was on its way. Afterwards the thread
 * holds the mutex. True: it has left the queue.
 */
static bool leave(struct wait *wait, struct hw_message *answer) {
    answer->op = HW_OP_COND_WAIT;
    bool left = ni_withdraw(wait->t, wait->id, answer);
    if (left || answer->op == HW_OP_WOKEN)
        take_again(wait);
    else if (answer->op == HW_OP_GRANT)
        ni_mutex_own(wait->t, wait->m);
    return left;
}

static void cancelled(void *argument) {
    struct wait *wait = argument;
    struct hw_message answer;
    if (!leave(wait, &answer) && answer.op == HW_OP_GRANT)
        ni_post(wait->t, HW_OP_SIGNAL, wait->id, wait->object); /* the signal was meant for a thread that waits */
    ni_leave(wait->t);
}

/* EAGAIN: the condition's ID is stale, ask again. */
static int wait_once(struct wait *wait, const struct sbt_deadline *deadline) {
    struct hw_message answer;
    int r;
    ni_post(wait->t, HW_OP_COND_WAIT, wait->id, wait->object);
    pthread_cleanup_push(cancelled, wait);
    r = ni_await(wait->t, NI_ANSWER_MAIN, deadline, &wait->t->conditions, true, &answer);
    pthread_cleanup_pop(0);
    if (r == ETIMEDOUT && leave(wait, &answer))
        return ETIMEDOUT;
    switch (answer.op) {
    case HW_OP_GRANT:
        return ni_mutex_own(wait->t, wait->m);
    case HW_OP_WOKEN:
        wait->t->woken = true;
        return r == ETIMEDOUT ? 0 : take_again(wait); /* after a timeout leave() has taken the mutex */
    case HW_OP_AGAIN:
        return ENOBUFS;
    default:
        return EAGAIN;
    }
}

static uint32_t id_for(struct ni_thread *t, pthread_cond_t *c, uint32_t mutex) {
    uint32_t id = __atomic_load_n(ni_cond_word(c), __ATOMIC_ACQUIRE);
    return ni_is_id(id) && hw_id_is_bound_to(&ni_machine.layout, id, mutex)
               ? id
               : ni_obtain_condition(t, ni_cond_word(c), mutex);
}

/* As take_again, if there is no queue element. */
static int lock_in_any_case(pthread_mutex_t *m) {
    int r;
    while ((r = ni_mutex_lock(m)) == EAGAIN)
        sbt_wait_yield(false);
    return r;
}

static int in_software(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                       const struct sbt_deadline *deadline) {
    static const struct direct_released ours = {lock_in_any_case, ni_mutex_unlock, false};
    __atomic_fetch_add(&ni_machine.n_software_waits, 1, __ATOMIC_RELAXED);
    if (released == SBT_RELEASE_OURS && ni_is_id(__atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED)))
        return direct_cond_wait_by(c, m, &ours, deadline);
    return direct_cond_wait(c, m, released, deadline);
}

int ni_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                 const struct sbt_deadline *deadline) {
    /* the mutex is held, so its word does not change */
    uint32_t mutex = __atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED);
    int type, r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    if (released != SBT_RELEASE_OURS || !ni_is_id(mutex))
        return in_software(c, m, released, deadline);

    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    pthread_testcancel();
    struct wait wait = {.t = ni_enter(true), .m = m, .object = ni_cond_word(c)};
    bool woken = wait.t->woken;
    wait.t->woken = false;
    do {
        if (woken || (wait.id = id_for(wait.t, c, mutex)) == 0)
            break;
        r = wait_once(&wait, deadline);
        if (r == EAGAIN) { /* evicted meanwhile, or the element of its mutex has been given to another mutex */
            uint32_t stale = wait.id;
            __atomic_compare_exchange_n(ni_cond_word(c), &stale, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        }
    } while (r == EAGAIN);
    ni_leave(wait.t);
    if (wait.id != 0)
        SBT_PROBE_THREADS1(mutex_acquired, m);
    else
        r = in_software(c, m, released, deadline);
    pthread_setcanceltype(type, NULL);
    return r == ENOBUFS ? EAGAIN : r;
}

static int wake_by(pthread_cond_t *c, enum hw_op op) {
    struct sbt_cond *cx = sbt_cond_of(c);
    uint32_t id = __atomic_load_n(ni_cond_word(c), __ATOMIC_RELAXED); /* set before the waiter released the mutex */
    bool software = __atomic_load_n(&cx->state, __ATOMIC_RELAXED) != 0;
    if (ni_is_id(id)) {
        struct ni_thread *t = ni_enter(false);
        if (SBT_LIKELY(t != NULL)) {
            ni_post(t, op, id, ni_cond_word(c));
            ni_leave(t);
        } else {
            ni_defer(op, id);
        }
    }
    if (software)
        return op == HW_OP_SIGNAL ? direct_cond_signal(c) : direct_cond_broadcast(c);
    return 0;
}

int ni_cond_signal(pthread_cond_t *c) {
    return wake_by(c, HW_OP_SIGNAL);
}

int ni_cond_broadcast(pthread_cond_t *c) {
    return wake_by(c, HW_OP_BROADCAST);
}

int ni_cond_destroy(pthread_cond_t *c) {
    uint32_t *word = ni_cond_word(c), id = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (ni_is_id(id)) {
        struct ni_thread *t = ni_enter(false);
        if (t != NULL) {
            ni_post(t, HW_OP_DEALLOC, id, word);
            ni_leave(t);
        } else {
            ni_defer(HW_OP_DEALLOC, id);
        }
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    }
    return direct_cond_destroy(c);
}

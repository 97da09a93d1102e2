/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Conditions. One request unlocks the mutex and queues; the answer is the mutex's grant. A condition is homed where its
 * mutex is, at its first wait, and moves when it is used with another one.
 *
 * Waits that the hardware does not know go through the software engine's queue: with glibc's own mutexes, with mutexes
 * that stay held or are served in software, and when there is no control element for the condition. A signal looks at
 * both; where both have waiters it wakes one of each, which POSIX allows.
 *
 * So does the wait after one that was WOKEN for want of a queue element: its thread has looked at its predicate with
 * the mutex held and would find no element again. It must not ask until there is one, for the elements may all belong
 * to waits that last, and hundreds of threads that ask leave the others no time.
 */
#include <errno.h>

#include "core/thread.h"
#include "engine/direct/direct.h"
#include "engine/ni/ni.h"
#include "wait/park.h"

/* One wait, for the clean-up of a cancelled one. */
struct wait {
    struct ni_thread *t;
    pthread_mutex_t *m;
    uint32_t id;
    const void *object; /* an address only: the condition may be gone */
};

/*
 * The mutex for a wait that is over. Without a free queue element the paper's choice is EAGAIN, but a wait may not
 * return without the mutex: it asks again.
 */
static int take_again(struct wait *wait) {
    int r;
    while ((r = ni_mutex_take(wait->t, wait->m, NULL)) == EAGAIN)
        sbt_give_way(false);
    return r;
}

/* The wait has ended without an answer: leave the queue, or take the answer that was on its way. Holds the mutex. */
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
        ni_post(wait->t, HW_OP_SIGNAL, wait->id, wait->object); /* the signal was for somebody */
    ni_leave(wait->t);
}

/* EAGAIN: ask again, the condition's ID is stale. */
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
        return r == ETIMEDOUT ? 0 : take_again(wait); /* after the time leave() has taken the mutex */
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

static int in_software(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                       const struct sbt_deadline *deadline) {
    if (released == SBT_RELEASE_OURS && ni_is_id(__atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED)))
        released = SBT_RELEASE_BY_ENGINE;
    __atomic_fetch_add(&ni_machine.n_software_waits, 1, __ATOMIC_RELAXED);
    return direct_cond_wait(c, m, released, deadline);
}

int ni_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                 const struct sbt_deadline *deadline) {
    uint32_t mutex = __atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED); /* held, so it stays what it is */
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
        if (r == EAGAIN) { /* evicted meanwhile, or its mutex's element has another mutex now */
            uint32_t stale = wait.id;
            __atomic_compare_exchange_n(ni_cond_word(c), &stale, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
        }
    } while (r == EAGAIN);
    ni_leave(wait.t);
    if (wait.id == 0)
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
            ni_put_off(op, id);
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
            ni_put_off(HW_OP_DEALLOC, id);
        }
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    }
    return direct_cond_destroy(c);
}

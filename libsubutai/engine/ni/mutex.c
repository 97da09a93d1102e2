/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mutexes: one request to lock, one to unlock. A mutex with the ID NI_SOFTWARE is the software engine's.
 *
 * A thread that has not seen the word with the ID before reads it with acquire (pairs with publish_id, ids.c). An owner
 * has seen it, and reads it relaxed. `hw_tile` is the owner's, relaxed: for a trylock it is a hint which mailbox to
 * look at, and the trylock asks the hardware in any case.
 */
#include "engine/ni/mutex.h"

#include <errno.h>

#include "core/object.h"
#include "core/probes.h"
#include "engine/direct/direct.h"
#include "engine/direct/trylock.h"
#include "engine/ni/await.h"
#include "engine/ni/ids.h"
#include "engine/ni/mailbox.h"
#include "wait/park.h"

/* The mutex's ID, allocated if need be; or NI_SOFTWARE. */
static uint32_t id_of(struct ni_thread *t, pthread_mutex_t *m) {
    uint32_t *word = ni_mutex_word(m), id = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    return SBT_LIKELY(ni_is_id(id)) ? id : ni_obtain(t, word, 0, HW_OP_ALLOC_MUTEX, 0);
}

/* The ID was stale: get a new one. */
static uint32_t renewed(struct ni_thread *t, pthread_mutex_t *m, uint32_t stale) {
    return ni_obtain(t, ni_mutex_word(m), stale, HW_OP_ALLOC_MUTEX, 0);
}

/* Of ni_mutex_take: the software engine serves the mutex, and the caller is to call it. */
#define SOFTWARE (-1)

static int in_software(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    return deadline != NULL ? direct_mutex_timedlock(m, deadline) : direct_mutex_lock(m);
}

int ni_mutex_own(const struct ni_thread *t, pthread_mutex_t *m) {
    uint32_t *tile = &sbt_mutex_of(m)->hw_tile;
    if (__atomic_load_n(tile, __ATOMIC_RELAXED) != t->tile)
        __atomic_store_n(tile, t->tile, __ATOMIC_RELAXED);
    return 0;
}

/*
 * Take the mutex if it is free; otherwise return `otherwise`. The mutex also counts as free if its owner's unlock is
 * still in a mailbox, that of the owner's tile. The owner may have returned from the unlock long ago, and the caller
 * may know that, for instance because the owner has ended.
 *
 * `destroys`: the mutex will not be used again. If it has been evicted it was idle, and needs no ID: its word becomes
 * 0.
 */
static int take_if_free(struct ni_thread *t, pthread_mutex_t *m, uint32_t id, int otherwise, bool destroys) {
    for (bool fenced = false;;) {
        if (!ni_is_id(id)) {
            int r = direct_mutex_trylock(m);
            return r == EBUSY ? otherwise : r;
        }
        uint32_t tile = __atomic_load_n(&sbt_mutex_of(m)->hw_tile, __ATOMIC_RELAXED);
        bool outstanding = !fenced && ni_outstanding(tile);
        struct hw_message answer = ni_ask(t, HW_OP_TRYLOCK, id, ni_mutex_word(m));
        if (answer.op == HW_OP_GRANT)
            return ni_mutex_own(t, m);
        if (answer.op == HW_OP_NACK && destroys) {
            __atomic_store_n(ni_mutex_word(m), 0, __ATOMIC_RELAXED);
            return 0;
        }
        if (answer.op == HW_OP_NACK) {
            id = renewed(t, m, id);
        } else if (outstanding) {
            ni_fence(t, tile);
            fenced = true;
        } else {
            return otherwise;
        }
    }
}

/* For a thread that ends in a signal handler during its wait, or is cancelled in it. */
struct wait {
    struct ni_thread *t;
    pthread_mutex_t *m;
    uint32_t id;
};

static void abandon(void *argument) {
    struct wait *wait = argument;
    struct hw_message answer = {.op = HW_OP_LOCK};
    if (!ni_withdraw(wait->t, wait->id, &answer) && answer.op == HW_OP_GRANT) {
        ni_mutex_own(wait->t, wait->m); /* a trylock looks for the unlock in this mailbox */
        ni_post(wait->t, HW_OP_UNLOCK, wait->id, NULL);
    }
    ni_leave(wait->t);
}

static int await(struct ni_thread *t, pthread_mutex_t *m, uint32_t id, const struct sbt_deadline *deadline,
                 bool cancelable, struct hw_message *answer) {
    struct wait wait = {t, m, id};
    int r;
    pthread_cleanup_push(abandon, &wait);
    r = ni_await(t, NI_ANSWER_MAIN, deadline, &sbt_mutex_of(m)->adapt, cancelable, answer);
    pthread_cleanup_pop(0);
    return r;
}

int ni_mutex_take(struct ni_thread *t, pthread_mutex_t *m, const struct sbt_deadline *deadline, bool cancelable) {
    struct hw_message answer;
    uint32_t id = id_of(t, m);
    if (deadline != NULL && sbt_deadline_check(deadline) != 0)
        return take_if_free(t, m, id, EINVAL, false);
    for (;;) {
        if (!ni_is_id(id))
            return cancelable ? SOFTWARE : in_software(m, deadline);
        ni_post(t, HW_OP_LOCK, id, ni_mutex_word(m));
        if (await(t, m, id, deadline, cancelable, &answer) == ETIMEDOUT) {
            answer.op = HW_OP_LOCK;
            if (ni_withdraw(t, id, &answer))
                return take_if_free(t, m, id, ETIMEDOUT, false);
        }
        if (answer.op == HW_OP_GRANT)
            return ni_mutex_own(t, m);
        if (answer.op == HW_OP_AGAIN)
            return EAGAIN;
        if (answer.op == HW_OP_BUSY) /* the request was forgotten in a forked child */
            continue;
        id = renewed(t, m, id);
    }
}

/* A handler that has interrupted its thread inside the engine leaves the mutex without an ID, until its first use. */
void ni_mutex_init(pthread_mutex_t *m, const void *site) {
    (void)site;
    struct ni_thread *t = ni_enter(false);
    if (t == NULL)
        return;
    ni_obtain_early(t, ni_mutex_word(m), HW_OP_ALLOC_MUTEX, 0);
    ni_leave(t);
}

static void unlock_held(void *mutex) {
    ni_mutex_unlock(mutex);
}

/*
 * With asynchronous cancellation a waiter can be cancelled while it sleeps, as under glibc. At any other time it would
 * strike between the grant and the return, and leave the mutex with a thread that has ended. The software engine sees
 * to that by itself: it is called with the type as it was, outside of the operation, which the thread could not end.
 */
static int take(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    int type;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    bool is_async = SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS);
    struct ni_thread *t = ni_enter(true);
    int r = ni_mutex_take(t, m, deadline, is_async);
    ni_leave(t);
    if (is_async)
        direct_be_asynchronous_again(unlock_held, r == 0 ? m : NULL);
    return SBT_UNLIKELY(r == SOFTWARE) ? in_software(m, deadline) : r;
}

int ni_mutex_lock(pthread_mutex_t *m) {
    int r = take(m, NULL);
    if (r == 0 && ni_is_id(__atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED))) /* else `direct` has said so */
        SBT_PROBE_THREADS1(mutex_acquired, m);
    return r;
}

int ni_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline) {
    return take(m, deadline);
}

int ni_mutex_trylock(pthread_mutex_t *m) {
    struct ni_thread *t = ni_enter(false);
    if (t == NULL)
        return EBUSY;
    int r = take_if_free(t, m, id_of(t, m), EBUSY, false);
    ni_leave(t);
    if (r == 0) {
        direct_self.trylock_last = NULL;
    } else if (ni_is_id(__atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED)) && direct_trylock_spins(m)) {
        /* The hardware hands the mutex to the first waiter in its queue, and that waiter must get a CPU to use it. */
        __atomic_store_n(&sbt_mutex_of(m)->spun_credit, DIRECT_SPUN_UNLOCKS, __ATOMIC_RELAXED);
        sbt_wait_yield(direct_self.trylock_fails <= DIRECT_TRYLOCKS_BEFORE_YIELD);
    }
    return r;
}

/*
 * Does another thread wait for the mutex by spinning? Then an unlock yields, as in `direct`. The credit is a hint:
 * relaxed.
 */
static bool spun(pthread_mutex_t *m) {
    uint8_t *credit = &sbt_mutex_of(m)->spun_credit, n = __atomic_load_n(credit, __ATOMIC_RELAXED);
    if (SBT_LIKELY(n == 0))
        return false;
    __atomic_store_n(credit, (uint8_t)(n - 1), __ATOMIC_RELAXED);
    return !sbt_cores_to_spare();
}

int ni_mutex_unlock(pthread_mutex_t *m) {
    uint32_t id = __atomic_load_n(ni_mutex_word(m), __ATOMIC_RELAXED); /* relaxed: the owner has seen it */
    if (!ni_is_id(id))
        return id == NI_SOFTWARE ? direct_mutex_unlock(m) : 0;
    struct ni_thread *t = ni_enter(false);
    if (SBT_UNLIKELY(t == NULL)) {
        ni_defer(HW_OP_UNLOCK, id);
        return 0;
    }
    /* another thread may have locked: from here on a trylock must look at this thread's mailbox */
    ni_mutex_own(t, m);
    bool yield = spun(m);
    ni_post(t, HW_OP_UNLOCK, id, ni_mutex_word(m));
    ni_leave(t);
    if (SBT_UNLIKELY(yield))
        sbt_wait_yield_to_fibers();
    return 0;
}

int ni_mutex_destroy(pthread_mutex_t *m) {
    uint32_t *word = ni_mutex_word(m), id = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (id == NI_SOFTWARE) {
        int r = direct_mutex_destroy(m);
        if (r == 0)
            __atomic_store_n(word, 0, __ATOMIC_RELAXED);
        return r;
    }
    if (id == 0)
        return 0;
    struct ni_thread *t = ni_enter(true);
    int r = take_if_free(t, m, id_of(t, m), EBUSY, true);
    if (r == 0) {
        id = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (ni_is_id(id)) {
            ni_post(t, HW_OP_UNLOCK, id, ni_mutex_word(m));
            ni_post(t, HW_OP_DEALLOC, id, ni_mutex_word(m));
        } else if (id == NI_SOFTWARE) {
            direct_mutex_unlock(m);
        }
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
    }
    ni_leave(t);
    return r;
}

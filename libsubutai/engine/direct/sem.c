/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* clang-format off */
/*
 * Semaphores: value and number of sleepers in one 64-bit word. Sleepers are in the kernel's queue and not in the parking
 * lot, because a post must be possible in a signal handler that has interrupted anything at all, the parking lot
 * included. A post touches the semaphore once: the thread that takes the token may destroy it.
 *
 * | bits   | meaning                                            | set and cleared by                                   |
 * |--------|----------------------------------------------------|------------------------------------------------------|
 * | 0..31  | value                                              | post, and a thread that takes a token                |
 * | 32..62 | how many sleep, or are about to                    | the sleepers                                         |
 * | 63     | ACTIVE: an awake thread looks once more, so one    | a waiter that looks again and again, while others    |
 * |        | post need not wake a sleeper                       | sleep; the post that relies on it, a thread that     |
 * |        |                                                    | goes to sleep                                        |
 *
 * ACTIVE may be stale in a forked child; the next sleeper clears it.
 */
/* clang-format on */
#include <errno.h>

#include "core/object.h"
#include "engine/direct/direct.h"
#include "os/arch.h"
#include "os/futex.h"
#include "wait/park.h"

#define ONE_WAITER ((uint64_t)1 << 32)
#define ACTIVE ((uint64_t)1 << 63)

static bool has_sleepers(uint64_t seen) {
    return (seen & ~ACTIVE) >= ONE_WAITER;
}

/* The half that holds the value, for the kernel. */
static uint32_t *value_word(struct sbt_sem *sx) {
    return (uint32_t *)(void *)&sx->value_and_waiters + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

int direct_sem_init(sem_t *s, unsigned value) {
    struct sbt_sem *sx = sbt_sem_of(s);
    *sx = (struct sbt_sem){.value_and_waiters = value};
    return 0;
}

int direct_sem_destroy(sem_t *s) {
    (void)s;
    return 0;
}

/*
 * Take a token if there is one, and leave the waiters at the same time if `also` is ONE_WAITER. A thread that has
 * set ACTIVE and gets a token must not leave the bit behind: the next post would rely on a look that does not come.
 */
static bool take(struct sbt_sem *sx, uint64_t also) {
    uint64_t seen = __atomic_load_n(&sx->value_and_waiters, __ATOMIC_RELAXED);
    while ((uint32_t)seen != 0)
        if (__atomic_compare_exchange_n(&sx->value_and_waiters, &seen, (seen & ~ACTIVE) - 1 - also, true,
                                        __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) /* acquire pairs with the release in post */
            return true;
    return false;
}

int direct_sem_trywait(sem_t *s) {
    return take(sbt_sem_of(s), 0) ? 0 : EAGAIN;
}

/*
 * A sleeper leaves without a token. If a post has woken it all the same (and it timed out, was interrupted or cancelled
 * just then), the token is there and no other sleeper was woken: wake the next.
 */
static void leave(void *argument) {
    struct sbt_sem *sx = argument;
    uint32_t *word = value_word(sx);
    uint64_t now = __atomic_sub_fetch(&sx->value_and_waiters, ONE_WAITER, __ATOMIC_RELAXED);
    if ((uint32_t)now != 0 && has_sleepers(now))
        sbt_wake(word, 1);
}

static int sleep_for_token(struct sbt_sem *sx, const struct sbt_deadline *deadline) {
    int r = 0;
    uint64_t seen = __atomic_load_n(&sx->value_and_waiters, __ATOMIC_RELAXED);
    /* Relaxed: the tokens of posts that relied on this thread are seen by take, later ones by the futex call. */
    while (!__atomic_compare_exchange_n(&sx->value_and_waiters, &seen, (seen & ~ACTIVE) + ONE_WAITER, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    pthread_cleanup_push(leave, sx);
    while (!take(sx, ONE_WAITER)) {
        r = sbt_park_cancelable(value_word(sx), 0, deadline);
        if (r != 0)
            break;
    }
    pthread_cleanup_pop(0);
    if (r != 0 && take(sx, ONE_WAITER))
        return 0;
    if (r != 0)
        leave(sx);
    return r;
}

static void put_back(void *s) {
    direct_sem_post(s);
}

int direct_sem_wait(sem_t *s, const struct sbt_deadline *deadline) {
    struct sbt_sem *sx = sbt_sem_of(s);
    struct sbt_active active;
    int type;
    if (SBT_LIKELY(take(sx, 0)))
        return 0;
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type); /* a post may rely on this thread: it must not vanish */
    sbt_active_begin(&active, &sx->adapt);
    for (;;) {
        uint64_t seen = __atomic_load_n(&sx->value_and_waiters, __ATOMIC_RELAXED);
        /* Only while there is no token: with one there, the next post's would be a second, and this thread takes one.
         */
        if ((uint32_t)seen == 0 && has_sleepers(seen) && (seen & ACTIVE) == 0)
            __atomic_compare_exchange_n(&sx->value_and_waiters, &seen, seen | ACTIVE, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        if (take(sx, 0))
            break;
        if (!sbt_active_step(&active)) {
            r = sleep_for_token(sx, deadline);
            break;
        }
    }
    sbt_active_end(&active, &sx->adapt);
    if (SBT_UNLIKELY(type == PTHREAD_CANCEL_ASYNCHRONOUS))
        direct_be_asynchronous_again(put_back, r == 0 ? s : NULL);
    return r;
}

int direct_sem_post(sem_t *s) {
    struct sbt_sem *sx = sbt_sem_of(s);
    uint32_t *word = value_word(sx);
    uint64_t seen = __atomic_load_n(&sx->value_and_waiters, __ATOMIC_RELAXED);
    do {
        if ((uint32_t)seen == SEM_VALUE_MAX)
            return EOVERFLOW;
    } while (!__atomic_compare_exchange_n(&sx->value_and_waiters, &seen, (seen & ~ACTIVE) + 1, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
    if (has_sleepers(seen) && (seen & ACTIVE) == 0)
        sbt_wake(word, 1);
    return 0;
}

int direct_sem_getvalue(sem_t *s, int *value) {
    *value = (int)(uint32_t)__atomic_load_n(&sbt_sem_of(s)->value_and_waiters, __ATOMIC_RELAXED);
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Futexes: the queue of the word's address, and nothing in the word but the program's own value.
 *
 * The value is compared with the turn, and the waiter is in the queue before the turn is passed. A waker has written
 * the word before it asks for the turn:
 *  - If its operation comes before the waiter's, the waiter reads what it has written, since turns are in order.
 *  - If it comes after, it finds the waiter in the queue.
 * So no wake-up is lost. Waiters that abi/ has left to the kernel are there, and abi/ asks the kernel for them.
 *
 * The order of these operations is the engine's. Whether a program makes one is not: a runtime asks for the kernel only
 * if it finds a word in memory that another thread has changed, and that happens without the turn. So they are counted
 * (det_round.n_futexes). With `serial` threads run one at a time, and then that is as repeatable as the rest.
 *
 * Keys are odd, as in engine/direct/futex.c: no object of pthreads has such an address. A word has no room for a
 * number, and its address may be another in the next run. So the object of an operation is the wait that found no other
 * waiter: it gets a new number, which all waits behind it share, and each wake-up that finds them. A wake-up without
 * waiters has no object.
 */
#include <errno.h>

#include "engine/det/det.h"
#include "os/mapped.h"

static const void *key_of(const uint32_t *word, bool shared) {
    return (const char *)word + (shared ? 3 : 1);
}

static void begin(enum det_op op) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* abi/futex.c looks for waiters in the kernel afterwards */
    det_take(op);
    det_round->n_futexes++;
}

/* With the turn: the object of those that wait for the key; 0: none waits. */
static uint32_t object_of(const void *key) {
    struct det_round *r = det_round;
    sbt_lock_take(&r->lock);
    uint32_t first = turn_first(&r->turn, (uintptr_t)key);
    sbt_lock_drop(&r->lock);
    return first == TURN_NO_THREAD ? 0 : r->thread[first].futex;
}

static void tell_object(const void *key) {
    uint32_t object = object_of(key);
    if (object != 0)
        det_object(&object);
}

static int result_of(enum turn_reason reason) {
    return reason == TURN_TIMED_OUT ? ETIMEDOUT : reason == TURN_INTERRUPTED ? EINTR : 0;
}

/* A wait with a deadline fails with EINTR after any handler, as in the kernel; another one may be restarted. */
static bool looks_again(enum turn_reason reason, const struct sbt_deadline *deadline) {
    return reason == TURN_INTERRUPTED && det_self.is_restarted && deadline == NULL;
}

/*
 * 0, EAGAIN or EFAULT. abi/ has found the word mapped. Other threads and handlers have run since, until the turn came,
 * and may have unmapped it: the kernel, which compares at once, would have been there before.
 */
int det_futex_compare(const uint32_t *word, uint32_t expected) {
    return !sbt_mapped_now(word, sizeof *word)                   ? EFAULT
           : __atomic_load_n(word, __ATOMIC_SEQ_CST) != expected ? EAGAIN
                                                                 : 0;
}

int det_futex_wait(uint32_t *word, bool shared, uint32_t expected, uint32_t bits, const struct sbt_deadline *deadline,
                   uint64_t in_ns) {
    const void *key = key_of(word, shared);
    const struct det_wait wait = {.deadline = deadline,
                                  .ns = in_ns,
                                  .tag = TURN_EXACT,
                                  .op = DET_FUTEX_WAIT,
                                  .can_interrupt = true,
                                  .looks_again = true,
                                  .bits = bits,
                                  .word = word,
                                  .expected = expected};
    enum turn_reason reason = TURN_WOKEN;
    int r;
    begin(DET_FUTEX_WAIT);
    bool was_restarted = det_self.is_restarted; /* a handler's wait does not hide that from the interrupted one */
    uint32_t object = object_of(key);
    det_object(&object);
    do {
        r = det_futex_compare(word, expected);
        if (r != 0)
            break;
        det_round->thread[det_self.number].futex = object;
        reason = det_block(key, &wait);
        r = result_of(reason);
    } while (looks_again(reason, deadline));
    det_self.is_restarted = was_restarted;
    det_pass();
    return r;
}

uint32_t det_futex_wake(uint32_t *word, bool shared, uint32_t n, uint32_t bits) {
    struct det_round *r = det_round;
    const void *key = key_of(word, shared);
    begin(DET_FUTEX_WAKE);
    tell_object(key);
    sbt_lock_take(&r->lock);
    uint32_t woken = turn_wake_bits(&r->turn, (uintptr_t)key, n, bits);
    sbt_lock_drop(&r->lock);
    det_pass();
    return woken;
}

int det_futex_requeue(uint32_t *from, uint32_t *to, bool shared, struct sbt_futex_moved *most,
                      const uint32_t *expected) {
    struct det_round *r = det_round;
    uintptr_t from_key = (uintptr_t)key_of(from, shared), to_key = (uintptr_t)key_of(to, shared);
    struct sbt_futex_moved done = {0, 0};
    begin(DET_FUTEX_REQUEUE);
    tell_object(key_of(from, shared));
    int result = expected != NULL ? det_futex_compare(from, *expected) : 0;
    if (result == 0) {
        sbt_lock_take(&r->lock);
        done.woken = turn_wake_bits(&r->turn, from_key, most->woken, UINT32_MAX);
        done.moved = turn_move(&r->turn, from_key, to_key, most->moved);
        sbt_lock_drop(&r->lock);
    }
    det_pass();
    *most = done;
    return result;
}

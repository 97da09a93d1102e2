/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Conditions: the queue of the condition's address, and no state in the object but its number. */
#include <errno.h>

#include "core/object.h"
#include "engine/det/det.h"
#include "os/real.h"

static void object(struct sbt_cond *cx) {
    det_object(&cx->hw_id);
}

static inline void take(enum det_op op, struct sbt_cond *cx) {
    det_take_object(op, &cx->hw_id);
}

int det_cond_destroy(pthread_cond_t *c) {
    (void)c;
    return 0;
}

static int result_of(enum turn_reason reason) {
    return reason == TURN_TIMED_OUT ? ETIMEDOUT : 0;
}

/* A spurious wake-up, if the thread ends already. */
static void act_if(enum turn_reason reason) {
    if (reason != TURN_CANCELLED)
        return;
    pthread_testcancel();
    det_cancel_has_acted();
}

/*
 * A mutex of glibc's: another process may hold it, so it is taken outside. The cancellation is acted upon when the
 * caller has the mutex again.
 */
static int wait_theirs(pthread_cond_t *c, pthread_mutex_t *m, const struct det_wait *wait) {
    struct _pthread_cleanup_buffer left;
    int r = sbt_real.pthread_mutex_unlock(m);
    if (r != 0) {
        det_pass();
        return r;
    }
    enum turn_reason reason = det_block(c, wait);
    det_pass();
    bool has_left = det_outside_begin(&left);
    r = sbt_real.pthread_mutex_lock(m);
    if (has_left)
        det_outside_end(&left);
    act_if(reason);
    return r != 0 ? r : result_of(reason);
}

int det_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                  const struct sbt_deadline *deadline) {
    const struct det_wait wait = {.deadline = deadline, .tag = TURN_EXACT, .op = DET_COND_WAIT, .can_cancel = true};
    int r = sbt_deadline_check(deadline);
    if (r != 0)
        return r;
    det_take_cancelable(DET_COND_WAIT);
    object(sbt_cond_of(c));
    if (released == SBT_RELEASE_THEIRS)
        return wait_theirs(c, m, &wait);
    if (released == SBT_RELEASE_OURS)
        det_mutex_release(m);
    enum turn_reason reason = det_block(c, &wait);
    if (released == SBT_RELEASE_OURS)
        det_mutex_acquire(m);
    det_pass();
    act_if(reason);
    return result_of(reason);
}

int det_cond_signal(pthread_cond_t *c) {
    take(DET_COND_SIGNAL, sbt_cond_of(c));
    det_wake(c, 1);
    det_pass();
    return 0;
}

int det_cond_broadcast(pthread_cond_t *c) {
    take(DET_COND_BROADCAST, sbt_cond_of(c));
    det_wake(c, UINT32_MAX);
    det_pass();
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Semaphores: the value alone is in the object. A post in a signal handler is an operation like any other (det.h). */
#include <errno.h>
#include <limits.h>

#include "core/object.h"
#include "engine/det/det.h"

static void object(struct sbt_sem *sx) {
    det_object(&sx->unused);
}

static inline void take(enum det_op op, struct sbt_sem *sx) {
    det_take_object(op, &sx->unused);
}

int det_sem_init(sem_t *s, unsigned value) {
    *sbt_sem_of(s) = (struct sbt_sem){.value_and_waiters = value};
    return 0;
}

int det_sem_destroy(sem_t *s) {
    (void)s;
    return 0;
}

int det_sem_wait(sem_t *s, const struct sbt_deadline *deadline) {
    const struct det_wait wait = {.deadline = deadline, .op = DET_SEM_WAIT, .can_cancel = true, .can_interrupt = true};
    struct sbt_sem *sx = sbt_sem_of(s);
    int r = 0;
    for (;;) {
        det_take_cancelable(DET_SEM_WAIT);
        object(sx);
        enum turn_reason reason = TURN_WOKEN;
        while (sx->value_and_waiters == 0 && reason == TURN_WOKEN)
            reason = det_block(s, &wait);
        if (sx->value_and_waiters != 0)
            sx->value_and_waiters--;
        else
            r = reason == TURN_TIMED_OUT ? ETIMEDOUT : reason == TURN_INTERRUPTED ? EINTR : EAGAIN;
        det_pass();
        if (r != EAGAIN)
            return r;
        pthread_testcancel();
        det_cancel_has_acted();
        r = 0;
    }
}

int det_sem_trywait(sem_t *s) {
    struct sbt_sem *sx = sbt_sem_of(s);
    take(DET_SEM_TRYWAIT, sx);
    int r = sx->value_and_waiters != 0 ? 0 : EAGAIN;
    if (r == 0)
        sx->value_and_waiters--;
    det_pass();
    return r;
}

int det_sem_post(sem_t *s) {
    struct sbt_sem *sx = sbt_sem_of(s);
    take(DET_SEM_POST, sx);
    int r = sx->value_and_waiters >= SEM_VALUE_MAX ? EOVERFLOW : 0;
    if (r == 0) {
        sx->value_and_waiters++;
        det_wake(s, 1);
    }
    det_pass();
    return r;
}

int det_sem_getvalue(sem_t *s, int *value) {
    struct sbt_sem *sx = sbt_sem_of(s);
    take(DET_SEM_TRYWAIT, sx);
    *value = (int)sx->value_and_waiters;
    det_pass();
    return 0;
}

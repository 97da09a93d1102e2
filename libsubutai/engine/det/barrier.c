/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Barriers. The low half of `rounds` counts the threads that have arrived. A woken thread does not touch the object. */
#include "core/object.h"
#include "engine/det/det.h"

int det_barrier_init(pthread_barrier_t *b, unsigned count) {
    *sbt_barrier_of(b) = (struct sbt_barrier){.count = count, .glibc_mark = sbt_barrier_of(b)->glibc_mark};
    return 0;
}

int det_barrier_destroy(pthread_barrier_t *b) {
    (void)b;
    return 0;
}

int det_barrier_wait(pthread_barrier_t *b) {
    struct sbt_barrier *bx = sbt_barrier_of(b);
    int r = 0;
    if (!det_has_turn() && det_offer(DET_BARRIER, b, &r))
        return r;
    det_take_object(DET_BARRIER, &bx->hw_id);
    if (++bx->rounds == bx->count) {
        bx->rounds = 0;
        det_release(b);
        r = PTHREAD_BARRIER_SERIAL_THREAD;
    } else if (det_await_release(b)) {
        sbt_handlers_release();
        return 0;
    }
    det_pass();
    return r;
}

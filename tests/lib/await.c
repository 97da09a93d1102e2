/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "await.h"

#include "clock.h"

#include <pthread.h>
#include <sched.h>

void await(const atomic_int *counter, int value) {
    while (atomic_load(counter) < value)
        sleep_ms(1);
}

void let_threads_block(void) {
    sleep_ms(30);
}

void begin_together(atomic_int *absent) {
    atomic_fetch_sub(absent, 1);
    while (atomic_load(absent) > 0)
        sched_yield();
}

/* Asleep, so that others have the CPU whatever else the machine does: after a yield they may not. */
void let_others_in(int round) {
    int state;
    if (round % 256 != 0)
        return;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    sleep_us(200);
    pthread_setcancelstate(state, NULL);
}

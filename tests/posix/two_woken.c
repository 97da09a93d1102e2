/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A waiter that was woken to take a mutex is held up in a signal handler before it has looked. Another waiter has slept
 * since before that. Under glibc the other waiter sleeps until the first goes on, whatever the owner does: not for that
 * oracle.
 */
#include "held_up.h"

/*
 * Two wait. Neither gets on while its owner takes it again and again, so that first one and then the other is woken;
 * then the first finds it taken, and the second is held up before it looks. The first has it all the same.
 */
TEST(two_woken__one_held_up_keeps_not_the_other_out, "20 times the other has it, unless one was too quick") {
    stay_on_one_cpu();
    int too_quick = 0;
    for (int i = 0; i < 20; i++) {
        pthread_t two[2];
        begin_round();
        OK(pthread_mutex_lock(&mutex));
        for (int k = 0; k < 2; k++) {
            two[k] = thread_start(lock_mutex, NULL);
            await(&waiting, k + 1);
            let_threads_block();
        }
        struct timespec begin, now;
        SYS(clock_gettime(CLOCK_MONOTONIC, &begin));
        do {
            OK(pthread_mutex_unlock(&mutex));
            OK(pthread_mutex_lock(&mutex));
            SYS(clock_gettime(CLOCK_MONOTONIC, &now));
        } while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 2500000);
        if (atomic_load(&passed) != 0) { /* one was too quick */
            OK(pthread_mutex_unlock(&mutex));
            thread_join(two[0]);
            thread_join(two[1]);
            too_quick++;
            continue;
        }
        hold_up(two[1]);
        let_others_run(); /* the first looks, and sleeps */
        OK(pthread_mutex_unlock(&mutex));
        while (atomic_load(&passed) == 0) {
            OK(pthread_mutex_lock(&mutex));
            OK(pthread_mutex_unlock(&mutex));
        }
        let_go(two[1]);
        thread_join(two[0]);
        CHECK_INT(atomic_load(&passed), 2);
    }
    SKIP_IF(too_quick == 20, "the waiter always has it at once");
}

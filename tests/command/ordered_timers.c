/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads of the C library's own, which a timer makes. */
#include <errno.h>
#include <signal.h>

#include "ordered.h"

enum { PERIOD_NS = 20000, POSTS = 10 };

static sem_t notified;

static void notify(union sigval unused) {
    (void)unused;
    locked_add(1);
    sem_post(&notified);
}

int notified_often(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify};
    pthread_t thread;
    timer_t timer;
    sem_init(&notified, 0, 0);
    pthread_create(&thread, NULL, counter, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return 1;
    timer_settime(timer, 0, &(struct itimerspec){{0, PERIOD_NS}, {0, PERIOD_NS}}, NULL);
    for (int i = 0; i < POSTS; i++)
        while (sem_wait(&notified) != 0 && errno == EINTR)
            ;
    timer_delete(timer);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

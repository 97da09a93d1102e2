/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signals to threads, apart as topic_kernel.c. */
#include "topic.h"

#include <signal.h>

void signal_thread(pthread_t thread, int signo, int times) {
    for (int i = 0; i < times; i++) {
        int before = atomic_load(&signals_seen);
        OK(pthread_kill(thread, signo));
        await(&signals_seen, before + 1);
    }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "topic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

const struct timespec time_nsec_too_big = {0, 1000000000}, time_nsec_negative = {0, -1},
                      time_seconds_negative = {-1, 0}, time_epoch = {0, 0};
atomic_int signals_seen;

/* A busy machine may do the least so slowly that the suite's time limit ends the test: 60 s. */
enum { MOST_MS = 2000, LEAST_MS = 20000 };

/* Hundreds of runs find in a part of the rounds what one run finds in all of them: `repeat` says which part. */
int rounds(int n) {
    const char *part = getenv("TOPIC_PART");
    const int of = part != NULL ? atoi(part) : 1;
    return of > 1 ? (n + of - 1) / of : n;
}

bool another_round(int done, int least, int most) {
    static struct timespec begin;
    if (done == 0) {
        begin = time_now(CLOCK_MONOTONIC);
        return true;
    }
    bool goes_on = done < most && time_since_ms(CLOCK_MONOTONIC, begin) < (done < least ? LEAST_MS : rounds(MOST_MS));
    if (!goes_on && done < least)
        fprintf(stderr, "# %d of %d rounds in %d ms\n", done, least, (int)LEAST_MS);
    return goes_on;
}

static void count_signal(int signo) {
    (void)signo;
    atomic_fetch_add(&signals_seen, 1);
}

void signal_counter(int signo, bool restart) {
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = restart ? SA_RESTART : 0};
    sigemptyset(&action.sa_mask);
    SYS(sigaction(signo, &action, NULL));
    atomic_store(&signals_seen, 0);
}

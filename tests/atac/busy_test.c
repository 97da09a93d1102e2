/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A machine on which other processes have the cores most of the time: a thread that yields is without one for as long
 * as their turns take. Here each yield takes that long, whatever else runs.
 */
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "programs.h"

static atomic_int n_yields;

int sched_yield(void) {
    struct timespec turns = {.tv_nsec = 5000000};
    n_yields++;
    return nanosleep(&turns, NULL);
}

TEST_EACH(each_task_is_run_once, ATAC_N_PILES, "with the model's delays, nine threads on two cores") {
    int kind = number;
    ATAC_options o = options_of(2, 2);
    o.number_of_threads = n = 9;
    passes_stealing(&o, &kind);
}

/* 6 ms of waits of 3 us each. */
static void poll(void *argument) {
    VirtualChannelPort *port = port_when_all_are_ready();
    Message m;
    n_yields = 0;
    for (int i = 0; i < 2000; i++)
        CHECK(!VirtualChannelPort_receive_message(port, &m));
    *(int *)argument = n_yields;
    VirtualChannelPort_delete(port);
}

TEST(a_thread_that_only_polls, "gives its core away now and then: what it waits for may need that core") {
    int yields = 0;
    ATAC_options o = options_of(2, n = 1);
    o.time_scale = 1000;
    passes(&o, make, poll, &yields);
    drop();
    CHECK(yields >= 2 && yields <= 20);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A switch between two threads that wait for each other in turn: each posts the other's semaphore and waits for its
 * own. The process keeps to one CPU, so under --wait switch both are fibers of one carrier. An operation is a post, a
 * wait, and the switch.
 */
#include "calibrate.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

static _Alignas(CALIBRATE_LINE) sem_t mine;
static _Alignas(CALIBRATE_LINE) sem_t others;
static bool over; /* written before a post, read after the wait for it */
static uint64_t n_others;

static void wait_for(sem_t *s) {
    while (sem_wait(s) != 0)
        if (errno != EINTR)
            must(errno, "sem_wait");
}

static void *other(void *unused) {
    for (wait_for(&others); !over; wait_for(&others)) {
        n_others++;
        must(sem_post(&mine) != 0 ? errno : 0, "sem_post");
    }
    return unused;
}

static void switches(uint64_t n) {
    uint64_t before = n_others, rounds = (n + 1) / 2;
    for (uint64_t i = 0; i < rounds; i++) {
        must(sem_post(&others) != 0 ? errno : 0, "sem_post");
        wait_for(&mine);
    }
    if (n_others != before + rounds)
        fail("a turn was lost");
}

static double seconds_in_all;

static void *measure(void *unused) {
    samples_of_batches("fiber_switch_ns", seconds_in_all, switches);
    over = true;
    must(sem_post(&others) != 0 ? errno : 0, "sem_post");
    return unused;
}

void measure_fibers(double seconds) {
    pthread_t thread, second;
    if (cpus_usable()->n > 1) { /* the library counts the CPUs when the program starts, so it starts once more */
        pin_to(cpus_usable()->cpu[0]);
        execv("/proc/self/exe", arguments);
        fail("/proc/self/exe: %s", strerror(errno));
    }
    seconds_in_all = seconds;
    must(sem_init(&mine, 0, 0) != 0 ? errno : 0, "sem_init");
    must(sem_init(&others, 0, 0) != 0 ? errno : 0, "sem_init");
    must(pthread_create(&second, NULL, other, NULL), "pthread_create");
    must(pthread_create(&thread, NULL, measure, NULL), "pthread_create");
    must(pthread_join(thread, NULL), "pthread_join");
    must(pthread_join(second, NULL), "pthread_join");
}

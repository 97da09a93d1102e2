/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * When a thread leaves a request to its NI thread (engine/ni/service.h, ni_service_leave): the number of runnable
 * threads and the NI thread's state are made up.
 */
#include "engine/ni/service.h"
#include "lib/suite.h"

enum { N_CPUS = 4 };

struct ni_machine ni_machine;
uint32_t sbt_n_runnable, sbt_n_cpus = N_CPUS;
bool sbt_fence_asymmetric;
static struct ni_tile tile;
static struct ni_thread thread;
static struct ni_service *const service = &ni_services.service[0];

/* The test is a single thread, so its locks are free and wake no thread. */
void sbt_lock_take_slow(struct sbt_lock *lock) {
    (void)lock;
    ck_abort_msg("a lock is taken");
}

void sbt_lock_wake(struct sbt_lock *lock) {
    (void)lock;
    ck_abort_msg("a lock has sleepers");
}

/* An NI thread that runs, and one thread of the program. */
static void setup(uint32_t state, uint32_t n_runnable) {
    static struct sbt_options options;
    options.value[SBT_OPT_NI_SERVICE].u = SBT_NI_SERVICE_DEDICATED;
    options.value[SBT_OPT_NI_THREADS].u = 1;
    ni_machine.tiles = &tile;
    ni_machine.n_tiles = 1;
    ni_machine.time_scale = 0;
    ni_service_start(&options);
    ni_services.state = NI_SERVICES_RUNNING;
    service->state = state;
    thread.trust = (struct ni_trust){0};
    sbt_n_runnable = n_runnable;
}

/* So many requests in a row, and then one more, are served by the thread itself, or not. */
static void serves_itself(uint32_t n, bool next) {
    for (uint32_t i = 0; i < n; i++)
        if (ni_service_leave(&thread)) /* a passed assertion is a system call */
            ck_abort_msg("request %u of %u is left", i, n);
    ck_assert_int_eq(!ni_service_leave(&thread), next);
    ck_assert_int_eq(thread.trust.left, !next);
}

TEST(awake__left_while_there_is_a_core_for_it) {
    setup(NI_AWAKE, N_CPUS);
    serves_itself(0, false);
    setup(NI_AWAKE, N_CPUS + 1);
    serves_itself(10, true);
    sbt_n_runnable = N_CPUS;
    serves_itself(0, false);
}

TEST(asleep__is_a_further_thread, "it is not among the runnable threads, and would be") {
    setup(NI_DOZES, N_CPUS);
    serves_itself(10, true);
    ck_assert_uint_eq(service->state, NI_DOZES);
    sbt_n_runnable = N_CPUS - 1;
    serves_itself(0, true);
    ck_assert_uint_eq(service->state, NI_CALLED);
}

TEST(asleep__called_and_given_time_to_wake_up) {
    setup(NI_DOZES, 1);
    serves_itself(0, true);
    ck_assert_uint_eq(service->state, NI_CALLED);
    service->state = NI_AWAKE;
    serves_itself(NI_OWN, false);
}

TEST(called__not_on_a_core_yet) {
    setup(NI_CALLED, 1);
    serves_itself(NI_OWN, true);
    service->state = NI_AWAKE;
    serves_itself(0, false);
}

TEST(asleep_again__called_less_often, "requests are too rare for it: twice as many own ones each time") {
    setup(NI_DOZES, 1);
    serves_itself(0, true);
    for (uint32_t times = 1; times <= NI_LATE_MOST + 2; times++) {
        service->state = NI_DOZES;
        serves_itself(NI_OWN, true);
        ck_assert_uint_eq(service->state, NI_DOZES); /* it is not called at once */
        serves_itself(NI_OWN << (times < NI_LATE_MOST ? times : NI_LATE_MOST), true);
        ck_assert_uint_eq(service->state, NI_CALLED);
    }
}

TEST(late__trusted_less_each_time_and_forgiven) {
    setup(NI_AWAKE, 1);
    for (uint32_t times = 1; times <= NI_LATE_MOST + 2; times++) {
        ni_service_judge(&thread, true);
        serves_itself(NI_OWN << (times < NI_LATE_MOST ? times : NI_LATE_MOST), false);
    }
    ni_service_judge(&thread, false);
    serves_itself(0, false);
    ni_service_judge(&thread, true);
    serves_itself(NI_OWN << 1, false);
}

TEST(with_a_time_scale_always_left) {
    setup(NI_DOZES, 2 * N_CPUS);
    ni_machine.time_scale = 1;
    serves_itself(0, false);
    ni_service_judge(&thread, true);
    serves_itself(0, false);
}

TEST(stopped__never_left) {
    setup(NI_AWAKE, 1);
    ni_services.state = NI_SERVICES_STOPPED;
    serves_itself(10, true);
    ni_services.state = NI_SERVICES_CHANGING;
    serves_itself(10, true);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* When a trylock that fails again and again gives the core away (engine/direct/trylock.c): what yields is the test's.
 */
#include <errno.h>
#include <pthread.h>

#include "core/thread.h"
#include "engine/direct/mutex.h"
#include "engine/direct/self.h"
#include "engine/direct/trylock.h"
#include "lib/suite.h"
#include "switch/switch.h"
#include "wait/park.h"

_Thread_local struct sbt_thread sbt_self;
_Thread_local struct direct_self direct_self;
uint32_t sbt_n_runnable, sbt_n_cpus = 2, sbt_n_cpus_at_once = 2;
union sbt_fork_page sbt_fork_page = {.known = 1};

static bool roams, pays; /* a fiber away from home; yields are not in vain */
static int n_spared, n_yields;

void sbt_fork_notice(void) {
    ck_abort_msg("not the test's");
}

bool sbt_switch_roams(void) {
    return roams;
}

bool sbt_switch_among_carriers(void) {
    return false;
}

bool sbt_switch_others_runnable(void) {
    return false;
}

bool sbt_spared_yield(struct sbt_spared *spared) {
    ck_assert_ptr_eq(spared, &direct_self.spared);
    n_spared++;
    return pays;
}

void sbt_wait_yield(bool goes_on) {
    (void)goes_on;
    n_yields++;
}

bool sbt_lot_ask(const void *key, bool (*ask)(const struct sbt_lot_queue *queue)) {
    (void)key, (void)ask;
    return false;
}

static pthread_mutex_t mutex;

/* n of them, of a mutex that another thread has. */
static void fail_often(uint32_t n_runnable, int n) {
    mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    sbt_mutex_of(&mutex)->state = DIRECT_LOCKED;
    direct_self = (struct direct_self){0};
    sbt_n_runnable = n_runnable;
    n_spared = n_yields = 0;
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(direct_mutex_trylock(&mutex), EBUSY);
}

static bool is_spun(void) {
    return (sbt_mutex_of(&mutex)->state & DIRECT_SPUN) != 0;
}

TEST(with_as_many_cores_yields_are_spared) {
    roams = pays = false;
    for (uint32_t n_runnable = 1; n_runnable <= 3; n_runnable++) { /* the third may be asleep in the kernel */
        fail_often(n_runnable, 20);
        ck_assert_int_eq(n_spared, 20 - DIRECT_TRYLOCKS_BEFORE_YIELD);
        ck_assert_int_eq(n_yields, 0);
        ck_assert(!is_spun()); /* or each unlock would yield, in vain */
    }
}

TEST(the_owner_yields_where_that_is_not_in_vain) {
    roams = false;
    pays = true;
    fail_often(3, 20);
    ck_assert_int_eq(n_spared, 20 - DIRECT_TRYLOCKS_BEFORE_YIELD);
    ck_assert(is_spun());
}

TEST(with_more_threads_each_trylock_yields) {
    roams = pays = false;
    fail_often(4, 20);
    ck_assert_int_eq(n_spared, 0);
    ck_assert_int_eq(n_yields, 20 - DIRECT_TRYLOCKS_BEFORE_YIELD);
    ck_assert(is_spun());
}

TEST(under_a_quota_threads_have_the_cores_that_they_may_run_on) {
    roams = pays = false;
    sbt_n_cpus = 1;
    fail_often(3, 20);
    ck_assert_int_eq(n_spared, 20 - DIRECT_TRYLOCKS_BEFORE_YIELD);
    ck_assert_int_eq(n_yields, 0);
    sbt_n_cpus_at_once = 1;
    fail_often(3, 20);
    ck_assert_int_eq(n_spared, 0);
    ck_assert_int_eq(n_yields, 20 - DIRECT_TRYLOCKS_BEFORE_YIELD);
    sbt_n_cpus = sbt_n_cpus_at_once = 2;
}

TEST(so_does_each_of_a_fiber) {
    pays = false;
    roams = true;
    fail_often(2, 20);
    ck_assert_int_eq(n_spared, 0);
    ck_assert_int_eq(n_yields, 20 - DIRECT_TRYLOCKS_BEFORE_YIELD);
}

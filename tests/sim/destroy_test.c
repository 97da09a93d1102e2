/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects that are destroyed, and others use them or come later: lock order is free. */
#include <string.h>

#include "build.h"
#include "lib/suite.h"

#define US UINT64_C(1000)

static uint32_t owner[1024]; /* of each mutex: a thread and 1 */
static bool one_owner(void *context, uint32_t application, uint32_t mutex, uint32_t thread) {
    (void)context;
    (void)application;
    if (owner[mutex] != 0)
        ck_abort_msg("mutex %u: given to thread %u, and %u has it", mutex, thread, owner[mutex] - 1);
    owner[mutex] = thread + 1;
    return true;
}
static void no_owner(void *context, uint32_t application, uint32_t mutex, uint32_t thread) {
    (void)context;
    (void)application;
    if (owner[mutex] != thread + 1)
        ck_abort_msg("mutex %u: released for thread %u, and %u has it", mutex, thread, owner[mutex] - 1);
    owner[mutex] = 0;
}

static struct sim *simulate_owners(int sync, bool recorded, const struct sbt_trace *trace) {
    struct sim_config config = config_of((enum sim_sync)sync);
    memset(owner, 0, sizeof owner);
    config.on_grant = one_owner;
    config.on_release = no_owner;
    config.recorded_order = recorded;
    return simulate(&config, trace, 1);
}

/* Counted references: B's was the last when it was recorded, here it destroys what A1 holds and A2 waits for, or what
 * A2 will want. */
TEST(destroyed_while_others_use_it) {
    for (int later = 0; later < 2; later++) {
        struct build b;
        build_open(&b);
        create_all(&b, 4);
        call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 0);
        call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 500 * US);
        call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, later ? 300 * US : 100 * US);
        call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        call(&b, 3, SBT_TRACE_MUTEX_LOCK, 1, 200 * US);
        destroy(&b, 3, SBT_TRACE_MUTEX, 0);
        call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 1, 0);
        end_all(&b, 4);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim *sim = simulate_owners(sync, false, trace);
            ck_assert_uint_ge(result_of(sim, 0, 2).to_ns, 500 * US);
            sim_free(sim);
        }
    }
}

TEST(a_condition_destroyed_while_threads_wait) {
    for (int broadcast = 0; broadcast < 2; broadcast++) {
        struct build b;
        build_open(&b);
        create_all(&b, 4);
        for (uint32_t i = 1; i < 3; i++) {
            call(&b, i, SBT_TRACE_MUTEX_LOCK, 0, 0);
            wait(&b, i, 1, 0, broadcast ? 1 : i, 0);
            call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
        }
        call(&b, 3, SBT_TRACE_MUTEX_LOCK, 2, 500 * US);
        destroy(&b, 3, SBT_TRACE_COND, 1);
        call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 2, 0);
        signal_(&b, 0, broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, 1, 1, MS);
        if (!broadcast)
            signal_(&b, 0, SBT_TRACE_COND_SIGNAL, 1, 2, MS);
        end_all(&b, 4);
        const struct sbt_trace *trace = build_close(&b);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
            struct sim *sim = simulate_owners(sync, false, trace);
            ck_assert_uint_ge(result_of(sim, 0, 1).to_ns, MS);
            sim_free(sim);
        }
    }
}

/* All objects of a page are destroyed, and one of them is in use again by then. */
TEST(a_page_stays_while_one_of_its_objects_is_used) {
    struct build b;
    build_open(&b);
    create_all(&b, 4);
    for (uint32_t i = 0; i < 256; i++)
        call(&b, 3, SBT_TRACE_MUTEX_LOCK, i, 0), call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, i, 0);
    destroy(&b, 3, SBT_TRACE_MUTEX, 0);
    call(&b, 1, SBT_TRACE_MUTEX_LOCK, 0, 2 * MS); /* late */
    call(&b, 1, SBT_TRACE_MUTEX_UNLOCK, 0, 10 * MS);
    call(&b, 3, SBT_TRACE_SPIN_LOCK, 300, 5 * MS), call(&b, 3, SBT_TRACE_SPIN_UNLOCK, 300, 0);
    for (uint32_t i = 1; i < 256; i++)
        destroy(&b, 3, SBT_TRACE_MUTEX, i);
    call(&b, 2, SBT_TRACE_MUTEX_LOCK, 0, 8 * MS);
    call(&b, 2, SBT_TRACE_MUTEX_UNLOCK, 0, 0);
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++) {
        struct sim *sim = simulate_owners(sync, false, trace);
        ck_assert_uint_ge(result_of(sim, 0, 2).to_ns, 12 * MS);
        sim_free(sim);
    }
}

/* All objects have been destroyed, and what they were is forgotten: threads that come then do not wait for them. */
TEST(late_users_of_what_is_forgotten) {
    struct build b;
    build_open(&b);
    init(&b, 0, SBT_TRACE_BARRIER, 0, 2);
    init(&b, 0, SBT_TRACE_SEM, 1, 1);
    create_all(&b, 4);
    signal_(&b, 3, SBT_TRACE_COND_SIGNAL, 2, 1, 0);
    signal_(&b, 3, SBT_TRACE_COND_SIGNAL, 2, 2, 0);
    lock_nth(&b, 3, 3, 1, 0);
    call(&b, 3, SBT_TRACE_MUTEX_UNLOCK, 3, 0);
    static const enum sbt_trace_type types[] = {SBT_TRACE_BARRIER, SBT_TRACE_SEM, SBT_TRACE_COND};
    for (uint32_t i = 0; i < 256; i++)
        destroy(&b, 3, i < 3 ? types[i] : SBT_TRACE_MUTEX, i);
    for (uint32_t i = 1; i < 3; i++) {
        lock_nth(&b, i, 3, i + 1, MS);
        wait(&b, i, 2, 3, i, 0);
        call(&b, i, SBT_TRACE_MUTEX_UNLOCK, 3, 0);
        call(&b, i, SBT_TRACE_SEM_WAIT, 1, 0);
        call(&b, i, SBT_TRACE_SEM_POST, 1, 0);
        call(&b, i, SBT_TRACE_BARRIER_WAIT, 0, 0);
    }
    end_all(&b, 4);
    const struct sbt_trace *trace = build_close(&b);
    for (int sync = 0; sync < SIM_N_SYNCS; sync++)
        for (int recorded = 0; recorded < 2; recorded++)
            sim_free(simulate_owners(sync, recorded, trace));
}

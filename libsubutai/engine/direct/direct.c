/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The software engine, put together. Its state is in the objects and in the parking lot. */
#include "engine/direct/direct.h"
#include "engine/direct/delegate_auto.h"
#include "engine/direct/delegate_list.h"
#include "engine/direct/self.h"
#include "engine/functions.h"
#include "os/fork.h"

#include "wait/adapt.h"

_Thread_local struct direct_self direct_self __attribute__((tls_model("initial-exec")));

static int start(const struct sbt_options *options) {
    direct_delegate_start(options->value[SBT_OPT_DELEGATE].s, (uint32_t)options->value[SBT_OPT_SERVERS].u);
    sbt_adapt_start((uint32_t)options->value[SBT_OPT_SPIN_NS].u, (uint32_t)options->value[SBT_OPT_YIELDS].u);
    return 0;
}

static void nothing(void) {}

/*
 * Called before each thread is created, too. A process that is no child keeps what it knows. In a child this is the
 * only thread.
 */
static void fork_child(void) {
    static uint32_t known;
    uint32_t generation = sbt_fork_generation();
    if (generation == known)
        return;
    known = generation;
    direct_auto_fork_child();
}

const struct sbt_engine sbt_engine_direct = {
    .name = "direct",
    .start = start,
    .thread_enter = direct_delegate_thread_enter,
    .thread_exit = nothing,
    .stop = direct_delegate_stop,
    .fork_child = fork_child,
    .weighs_switching = true,
    .each_look = direct_auto_look,
    .mutex_init = direct_mutex_init,
    SBT_MUTEXES_OF(direct),
    SBT_CONDS_OF(direct),
    SBT_BARRIERS_OF(direct),
    SBT_RWLOCKS_OF(direct),
    SBT_SEMS_OF(direct),
    SBT_FUTEXES_OF(direct),
    SBT_SPINS_OF(direct),
};

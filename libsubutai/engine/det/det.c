/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The deterministic engine, put together (det.h). */
#include <errno.h>

#include "core/handlers.h"
#include "core/log.h"
#include "decimal.h"
#include "engine/det/det.h"
#include "engine/det/site.h"
#include "os/memory.h"
#include "wait/adapt.h"

static int start(const struct sbt_options *options) {
    sbt_adapt_start((uint32_t)options->value[SBT_OPT_SPIN_NS].u, (uint32_t)options->value[SBT_OPT_YIELDS].u);
    det_round = sbt_memory_map(sizeof *det_round);
    if (det_round == NULL)
        return ENOMEM;
    det_thread_start();
    det_site_start();
    const char *schedule = options->value[SBT_OPT_SCHEDULE].s;
    return schedule == NULL || det_schedule_start(schedule) ? 0 : ENOMEM;
}

static void once_begin(void) {
    det_take(DET_ONCE);
}

static bool in_operation(void) {
    return det_self.in_op != 0;
}

static void yield(void) {
    det_take(DET_YIELD);
    det_pass();
}

static void once_wait(const void *key) {
    det_block(key, &(struct det_wait){.deadline = NULL});
}

static void once_wake(const void *key) {
    det_wake(key, UINT32_MAX);
}

/* The turn is kept, and handlers are deferred, until the fork has been made. */
static void fork_begin(void) {
    det_take(DET_FORK);
    det_self.in_fork = true;
}

static void fork_parent(void) {
    det_self.in_fork = false;
    det_pass();
}

/* The child's round begins with its first operation. */
static void fork_child(void) {
    if (!det_self.in_fork)
        return;
    det_self.in_fork = false;
    sbt_handlers_release();
}

static void hex_of(char text[17], uint64_t u) {
    for (int i = 0; i < 16; i++)
        text[i] = "0123456789abcdef"[u >> (60 - 4 * i) & 15];
    text[16] = '\0';
}

static void stop(void) {
    char hash[17], ops[DECIMAL_SIZE], outside[DECIMAL_SIZE];
    struct det_round *r = det_round;
    if (r->generation != sbt_fork_generation() + 1)
        return;
    if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
        det_schedule_end(&(struct schedule_totals){
            .hash = r->hash, .n_ops = r->n_ops, .n_outside = r->n_outside, .n_objects = r->n_objects});
    hex_of(hash, det_round->hash);
    sbt_log(2, "schedule ", hash, ", ", decimal_of(ops, det_round->n_ops), " operations, ",
            decimal_of(outside, det_round->n_outside), " returns from outside", NULL);
}

static const struct sbt_order order = {
    .create_begin = det_create_begin,
    .create_end = det_create_end,
    .created = det_created,
    .join = det_join,
    .detach = det_detach,
    .cancel = det_cancel,
    .in_operation = in_operation,
    .turn_take = once_begin,
    .turn_wait = once_wait,
    .turn_wake = once_wake,
    .turn_pass = det_pass,
    .yield = yield,
    .fork_begin = fork_begin,
    .fork_parent = fork_parent,
    .sleep = det_sleep,
    .outside_begin = det_outside_begin,
    .outside_end = det_outside_end,
    .clock_read = det_clock_read,
};

const struct sbt_engine sbt_engine_det = {
    .name = "det",
    .start = start,
    .thread_enter = det_thread_enter,
    .thread_exit = det_abandon_wait,
    .stop = stop,
    .fork_child = fork_child,
    .order = &order,
    .mutex_destroy = det_mutex_destroy,
    .mutex_lock = det_mutex_lock,
    .mutex_trylock = det_mutex_trylock,
    .mutex_timedlock = det_mutex_timedlock,
    .mutex_unlock = det_mutex_unlock,
    .cond_destroy = det_cond_destroy,
    .cond_wait = det_cond_wait,
    .cond_signal = det_cond_signal,
    .cond_broadcast = det_cond_broadcast,
    .barrier_init = det_barrier_init,
    .barrier_destroy = det_barrier_destroy,
    .barrier_wait = det_barrier_wait,
    .rwlock_destroy = det_rwlock_destroy,
    .rwlock_rdlock = det_rwlock_rdlock,
    .rwlock_tryrdlock = det_rwlock_tryrdlock,
    .rwlock_wrlock = det_rwlock_wrlock,
    .rwlock_trywrlock = det_rwlock_trywrlock,
    .rwlock_unlock = det_rwlock_unlock,
    .sem_init = det_sem_init,
    .sem_destroy = det_sem_destroy,
    .sem_wait = det_sem_wait,
    .sem_trywait = det_sem_trywait,
    .sem_post = det_sem_post,
    .sem_getvalue = det_sem_getvalue,
    .spin_lock = det_spin_lock,
    .spin_trylock = det_spin_trylock,
    .spin_unlock = det_spin_unlock,
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The engine det: which cancellations make all operations take the slow way. */
#include "core/log.h"
#include "engine/det/det.h"
#include "engine/det/hints.h"
#include "lib/suite.h"
#include "os/real.h"

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));
_Thread_local struct det_self det_self __attribute__((tls_model("initial-exec")));
struct det_round det_round[1];
struct sbt_real sbt_real;
union sbt_fork_page sbt_fork_page = {.known = 1};
bool sbt_fence_asymmetric, det_is_serial;

enum { CALLER, OTHER };
static int n_cancelled;

static int cancel(pthread_t thread) {
    (void)thread;
    n_cancelled++;
    return 0;
}

/* Two threads; the caller has the turn. */
static pthread_t begin(enum turn_state state) {
    static int other;
    const pthread_t thread = (pthread_t)(uintptr_t)&other;
    *det_round = (struct det_round){.generation = 1};
    turn_begin(&det_round->turn, 0);
    CHECK_INT(turn_create(&det_round->turn), OTHER);
    det_round->turn.thread[OTHER].state = state;
    det_round->thread[OTHER].handle = thread;
    det_round->thread[OTHER].has_handle = true;
    det_self = (struct det_self){.number = CALLER, .generation = 1};
    sbt_real.pthread_cancel = cancel;
    return thread;
}

TEST(det_cancel__of_a_thread, "operations take the slow way, until it has ended") {
    pthread_t thread = begin(TURN_RUNNABLE);
    CHECK_INT(det_cancel(thread), 0);
    CHECK_INT(det_cancel(thread), 0);
    CHECK_INT(n_cancelled, 2);
    CHECK_INT(det_round->n_cancelled, 1);
    CHECK(det_round->is_watched && det_round->thread[OTHER].is_cancelled);
}

TEST(det_cancel__of_a_thread_that_has_ended, "its end is over, and would never make operations fast again") {
    pthread_t thread = begin(TURN_ENDED);
    CHECK_INT(det_cancel(thread), 0);
    CHECK_INT(n_cancelled, 1);
    CHECK_INT(det_round->n_cancelled, 0);
    CHECK(!det_round->is_watched && !det_round->thread[OTHER].is_cancelled);
}

/* ---- the rest of the engine ---- */

void det_take_watched(enum det_op op) {
    (void)op;
}
void det_pass_slow(void) {}
void det_make_way(void) {}
void sbt_handlers_find_cancellation(void) {}
void sbt_handlers_defer_cancellation(void) {}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NOT_CALLED(result, name, ...)                                                                                  \
    result name(__VA_ARGS__) {                                                                                         \
        ck_abort_msg("%s is called", #name);                                                                           \
    }
NOT_CALLED(void, det_adopt, uint32_t number)
NOT_CALLED(enum turn_reason, det_block, const void *key, const struct det_wait *wait)
NOT_CALLED(void, det_cancel_has_acted, void)
NOT_CALLED(void, det_end_thread, void)
NOT_CALLED(void, det_hints_create, uint32_t number, uintptr_t routine)
NOT_CALLED(void, det_schedule_other, uint32_t thread)
NOT_CALLED(void, det_take_cancelable, enum det_op op)
NOT_CALLED(void, det_take_slow, void)
NOT_CALLED(void, sbt_fork_notice, void)
NOT_CALLED(void, sbt_handlers_deliver, void)
NOT_CALLED(void, sbt_lock_take_slow, struct sbt_lock *g)
NOT_CALLED(void, sbt_lock_wake, struct sbt_lock *g)
NOT_CALLED(void, sbt_log, unsigned verbosity, const char *first, ...)
NOT_CALLED(uint32_t, sbt_thread_tid, void)

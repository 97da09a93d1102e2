/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sleeping in the kernel: what is left behind when a signal handler leaves the sleep by a jump. */
#include "wait/park.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "core/cpus.h"
#include "core/handlers.h"
#include "core/priority.h"
#include "core/thread.h"
#include "lib/suite.h"
#include "os/futex.h"
#include "wait/wake_gap.h"
#include "wait/yield_gate.h"

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));
uint32_t sbt_n_runnable = 1;
bool sbt_switch_wanted = true, sbt_switch_weighs, sbt_switch_interrupts, sbt_wake_gap_on;
struct sbt_yield_gate sbt_yield_gate;
static int n_pins;
static sigjmp_buf way_out;

void sbt_cpus_look(void) {}
void sbt_pin_hold(void) {
    n_pins++;
}
void sbt_pin_release(void) {
    n_pins--;
}
uint32_t sbt_switch_running_load(void) {
    return 1;
}
long sbt_switch_wake(uint32_t *word, int n) {
    (void)word, (void)n;
    return 0;
}

static void jump(int signal) {
    (void)signal;
    siglongjmp(way_out, 1);
}

/* The signal may be late: then the thread sleeps longer. */
static void sleep_until_jump(int (*park)(uint32_t *, uint32_t, const struct sbt_deadline *)) {
    struct sigaction action = {.sa_handler = jump};
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    uint32_t word = 0;
    OK_ERRNO(sigaction(SIGALRM, &action, NULL));
    if (sigsetjmp(way_out, 1) == 0) {
        OK_ERRNO(setitimer(ITIMER_REAL, &soon, NULL));
        for (;;)
            park(&word, 0, NULL);
    }
}

static void check_nothing_is_left(int wanted_type) {
    int type;
    CHECK_INT(sbt_n_runnable, 1);
    CHECK_INT(n_pins, 0);
    CHECK_INT(sbt_wake(NULL, 1), 0); /* the kernel, if it is asked, knows no such word */
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
    CHECK_INT(type, wanted_type);
}

TEST(park__left_by_a_jump, "the thread is runnable, not asleep and not pinned") {
    sleep_until_jump(sbt_park);
    check_nothing_is_left(PTHREAD_CANCEL_DEFERRED);
}

TEST(park_cancelable__left_by_a_jump, "and cancellation is deferred again") {
    sleep_until_jump(sbt_park_cancelable);
    check_nothing_is_left(PTHREAD_CANCEL_DEFERRED);
}

TEST(park_cancelable__asynchronous_left_by_a_jump, "and cancellation is asynchronous, as it was") {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    sleep_until_jump(sbt_park_cancelable);
    check_nothing_is_left(PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void *sleeps(void *word) {
    sbt_park_cancelable(word, 0, NULL);
    return NULL;
}

TEST(park_cancelable__cancelled, "the clean-up is made once") {
    uint32_t word = 0;
    pthread_t thread;
    void *result;
    OK(pthread_create(&thread, NULL, sleeps, &word));
    OK(pthread_cancel(thread));
    OK(pthread_join(thread, &result));
    CHECK(result == PTHREAD_CANCELED);
    check_nothing_is_left(PTHREAD_CANCEL_DEFERRED);
}

/* ---- a call in which the thread sleeps ---- */

static uint32_t n_in_call;

static int sleep_in_call(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    struct sbt_asleep_in_call asleep;
    (void)deadline;
    sbt_asleep_in_call(&asleep, &n_in_call);
    CHECK_INT(n_pins, 1);
    CHECK_INT(n_in_call, 1);
    sbt_futex_wait_frame(word, expected, NULL);
    sbt_awake_after_call(&asleep);
    return 0;
}

TEST(call__left_by_a_jump, "the thread is runnable, not pinned and not counted") {
    sleep_until_jump(sleep_in_call);
    CHECK_INT(n_in_call, 0);
    CHECK_INT(sbt_self.handlers_held, 0);
    check_nothing_is_left(PTHREAD_CANCEL_DEFERRED);
}

static void *sleeps_in_call(void *word) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    sleep_in_call(word, 0, NULL);
    return NULL;
}

TEST(call__cancelled, "the clean-up is made once") {
    uint32_t word = 0;
    pthread_t thread;
    void *result;
    OK(pthread_create(&thread, NULL, sleeps_in_call, &word));
    while (__atomic_load_n(&n_in_call, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    OK(pthread_cancel(thread));
    OK(pthread_join(thread, &result));
    CHECK(result == PTHREAD_CANCELED);
    CHECK_INT(n_in_call, 0);
    check_nothing_is_left(PTHREAD_CANCEL_DEFERRED);
}

/* ---- the rest: nothing of it is called ---- */

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NOT_CALLED(result, name, ...)                                                                                  \
    result name(__VA_ARGS__) {                                                                                         \
        ck_abort_msg("%s is called", #name);                                                                           \
    }
NOT_CALLED(bool, sbt_fiber_is_word, const uint32_t *word)
NOT_CALLED(int, sbt_fiber_park, const struct sbt_deadline *deadline)
NOT_CALLED(bool, sbt_fiber_unpark, uint32_t *word)
NOT_CALLED(uint32_t *, sbt_fiber_word, void)
NOT_CALLED(void, sbt_handlers_deliver, void)
NOT_CALLED(uint8_t, sbt_priority_read, void)
NOT_CALLED(bool, sbt_switch_begins_wait, void)
NOT_CALLED(void, sbt_switch_note_waits, bool are_yields)
NOT_CALLED(bool, sbt_switch_roams, void)
NOT_CALLED(int, sbt_switch_wait, uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline)
NOT_CALLED(bool, sbt_switch_yield, bool goes_on)
NOT_CALLED(long, sbt_wake_gap_wake, uint32_t *word, int n, uint32_t bits)
NOT_CALLED(void, sbt_wake_gap_woken, const uint32_t *word)
NOT_CALLED(bool, sbt_yield_gate_offer, struct sbt_yield_gate *gate)
NOT_CALLED(void, sbt_yield_gate_offer_or_pause, struct sbt_yield_gate *gate)

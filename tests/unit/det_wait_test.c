/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine det: what a thread leaves behind when it waits or looks for a call site no more. The scenes are moments
 * between two threads, which a run meets once in a million waits: other threads' steps are made in the functions that
 * stand here for the engine's others.
 */
#include <setjmp.h>

#include "engine/det/hints.h"
#include "engine/det/site.h"
#include "lib/suite.h"
#include "switch/switch.h"
#include "wait/adapt.h"
#include "wait/park.h"

_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));
struct sbt_options sbt_options;
union sbt_fork_page sbt_fork_page = {.known = 1};
bool sbt_fence_asymmetric, sbt_switch_wanted, sbt_switch_interrupts;

/* ---- a looker that looks no more ---- */

enum { HOLDER, SERVED, CALLABLE };
static uint32_t n_called, n_asleep;
static bool serves;

/* The thread that passes the turn serves the offer of the thread that begins to look, and sees a looker. */
void det_look(uint32_t number) {
    det_round->thread[number].looks = 1;
    if (serves)
        det_round->turn.thread[number].state = TURN_BLOCKED;
}

void det_look_no_more(uint32_t number) {
    det_round->thread[number].looks = 0;
}

void det_call_looker(uint32_t holder) {
    CHECK_INT(holder, HOLDER);
    CHECK_INT(det_round->thread[SERVED].looks, 0);
    n_called++;
}

int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    (void)word, (void)expected, (void)deadline;
    n_asleep++;
    det_round->thread[SERVED].release = DET_RELEASED; /* all have come to the barrier */
    return 0;
}

bool sbt_active_step(struct sbt_active *a) {
    (void)a;
    return false;
}

static uint32_t calls_of_a_wait(bool served) {
    static const struct det_wait wait = {.tag = TURN_EXACT, .goes_on = true, .is_offer = true};
    *det_round = (struct det_round){.generation = 1};
    turn_begin(&det_round->turn, 0);
    turn_create(&det_round->turn);
    turn_create(&det_round->turn);
    det_self = (struct det_self){.number = DET_NO_NUMBER, .generation = 1, .offers = SERVED + 1};
    sbt_self.handlers_held = 1;
    n_called = n_asleep = 0;
    serves = served;
    CHECK(det_await_woken(&wait, SERVED, 1));
    CHECK_INT(n_asleep, 1);
    return n_called;
}

TEST(det_wait__served_as_it_begins_to_look,
     "it calls another looker: the thread that passed the turn has called none") {
    ck_assert_uint_ge(calls_of_a_wait(true), 1);
}

/* ---- a child that is forked while a thread looks for a call site ---- */

static jmp_buf forks;
static bool is_interrupted;
static uint32_t n_mutexes_forked;

struct det_call det_site(struct det_site_ways *ways, const uintptr_t *frame) {
    (void)frame;
    for (size_t i = 0; i < sizeof *ways; i++)
        CHECK_INT(((const unsigned char *)ways)[i], 0); /* or a way that is half written */
    memset(ways, 1, sizeof *ways);
    if (is_interrupted)
        longjmp(forks, 1);
    return (struct det_call){.site = 7};
}

void det_mutex_forked(void) {
    n_mutexes_forked++;
}

TEST(det_wait__forked_in_a_look_for_a_site, "in the child operations are offered again, with ways of its own") {
    uintptr_t site;
    *det_round = (struct det_round){.generation = 1, .is_logged = true};
    is_interrupted = true;
    if (setjmp(forks) == 0) {
        det_watch_offer(&site);
        FAIL("no look");
    }
    is_interrupted = false;
    CHECK(!det_watch_offer(&site)); /* as for the parent's other threads */
    det_watch_forked();
    CHECK_INT(n_mutexes_forked, 1);
    CHECK(det_watch_offer(&site));
    CHECK_INT(site, 7);
}

/* ---- the rest of the engine: nothing of it is called, or nothing depends on it ---- */

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NOT_CALLED(result, name, ...)                                                                                  \
    result name(__VA_ARGS__) {                                                                                         \
        ck_abort_msg("%s is called", #name);                                                                           \
    }
bool det_is_stuck(uint64_t *logical) {
    return false;
}
NOT_CALLED(int, det_futex_compare, const uint32_t *word, uint32_t expected)
NOT_CALLED(void, det_begin_round, void)
NOT_CALLED(void, det_be_asynchronous_again, void)
NOT_CALLED(bool, det_hints_pass, void)
NOT_CALLED(unsigned, det_hints_need_callers, uintptr_t site)
NOT_CALLED(bool, det_hints_need_turn, uintptr_t site)
NOT_CALLED(void, det_hints_op, uintptr_t site, const uintptr_t *chain)
NOT_CALLED(void, det_hints_resume, void)
NOT_CALLED(void, det_hints_served, uint32_t number, uintptr_t site)
NOT_CALLED(void, det_join_round, void)
NOT_CALLED(void, det_left_wait, void *aside)
NOT_CALLED(void, det_look_at_cancellation, void)
NOT_CALLED(void, det_look_at_offer, void)
NOT_CALLED(void, det_newcomer_has_turn, void)
NOT_CALLED(void, det_look_for_deadlock, uint64_t logical)
NOT_CALLED(void, det_look_for_late, uint32_t number, const struct sbt_deadline *deadline)
NOT_CALLED(bool, det_look_for_stall, void)
NOT_CALLED(void, det_schedule_object, uint32_t object)
NOT_CALLED(void, det_schedule_op, enum schedule_op op, uint32_t thread, uintptr_t site, const uintptr_t *chain)
NOT_CALLED(void, det_schedule_resume, uint32_t thread, enum schedule_reason reason)
NOT_CALLED(void, det_schedule_return, uint32_t thread, enum schedule_return how)
NOT_CALLED(uint32_t, det_serve, uint32_t holder)
NOT_CALLED(uint64_t, det_stuck_ns, unsigned n_looks)
NOT_CALLED(void, det_take_back_deadlock, void)
NOT_CALLED(void, det_chain, struct det_callers *callers, const struct det_call *call, unsigned n, uintptr_t *chain)
NOT_CALLED(void, sbt_clock_read, clockid_t clock, struct timespec *now)
NOT_CALLED(void, sbt_fork_notice, void)
NOT_CALLED(void, sbt_handlers_deliver, void)
NOT_CALLED(void, sbt_lock_take_slow, struct sbt_lock *g)
NOT_CALLED(void, sbt_lock_wake, struct sbt_lock *g)
NOT_CALLED(bool, sbt_switch_yield, bool goes_on)
NOT_CALLED(long, sbt_wake, uint32_t *word, int n)
NOT_CALLED(int, sbt_park_own, uint32_t *word, uint32_t expected, const uint32_t *wake_word,
           const struct sbt_deadline *deadline, bool cancelable)

bool det_hints_need_sites(void) {
    return false;
}
unsigned det_schedule_callers(void) {
    return 0;
}
uint64_t det_look_every_ns(void) {
    return 1;
}
void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory) {
    (void)a, (void)memory;
}
void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory) {
    (void)a, (void)memory;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting for an answer (engine/ni/await.h), with servers of the test's: they answer when the thread serves in their
 * place, or when it sleeps.
 */
#include "engine/ni/await.h"

#include <pthread.h>

#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "lib/suite.h"
#include "wait/park.h"

enum { N_RUNNABLE = 3 };

struct ni_machine ni_machine;
uint32_t sbt_n_runnable, sbt_n_cpus = 1;
_Thread_local struct sbt_thread sbt_self;

static struct ni_tile tile;
static struct ni_thread thread;
static uint32_t word_of_waiter;
static uint32_t n_served, n_late, n_in_time, n_parked, runnable_asleep;
static bool answers_if_served, inside, ends;
static enum hw_op posted;
static uint32_t *wake_word_asleep;

static void answer(int which, enum hw_op op) {
    struct hw_message message = {.op = op};
    thread.answer[which].packet = hw_packet_encode(&ni_machine.layout, &message);
    thread.state |= NI_ANSWERED(which);
}

void ni_serve_instead(struct ni_thread *t) {
    n_served++;
    inside = t->inside != 0 && sbt_self.handlers_held != 0;
    if (answers_if_served)
        answer(NI_ANSWER_MAIN, HW_OP_GRANT);
}

void ni_service_judge(struct ni_thread *t, bool late) {
    (void)t;
    *(late ? &n_late : &n_in_time) += 1;
}

/* The server answers a thread that sleeps. */
int sbt_park_own(uint32_t *word, uint32_t expected, const uint32_t *wake_word, const struct sbt_deadline *deadline,
                 bool cancelable) {
    (void)deadline, (void)cancelable;
    n_parked++;
    ck_assert_ptr_eq(word, &thread.state);
    ck_assert_uint_eq(*word, expected);
    ck_assert_uint_ne(expected & NI_PARKED, 0);
    ck_assert_ptr_eq(wake_word, &word_of_waiter);
    wake_word_asleep = thread.wake_word;
    runnable_asleep = sbt_n_runnable;
    if (ends)
        pthread_exit(NULL);
    answer(posted == HW_OP_WITHDRAW ? NI_ANSWER_WITHDRAW : NI_ANSWER_MAIN, HW_OP_GONE);
    return 0;
}

uint32_t *sbt_waiter_word(void) {
    return &word_of_waiter;
}

int sbt_park(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline) {
    (void)word, (void)expected, (void)deadline;
    ck_abort_msg("not at a barrier");
}

void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory) {
    (void)memory;
    *a = (struct sbt_active){0};
}

bool sbt_active_step(struct sbt_active *a) {
    (void)a;
    return false;
}

void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory) {
    (void)a, (void)memory;
}

bool ni_eager_pays(struct ni_eager *e) {
    (void)e;
    return false;
}

void ni_eager_done(struct ni_eager *e, bool paid) {
    (void)e, (void)paid;
}

void ni_tile_delay(struct ni_tile *at, uint64_t cycles, uint64_t rest_ns) {
    (void)at, (void)cycles, (void)rest_ns;
    ck_abort_msg("there is no time scale");
}

void ni_deliver_deferred(struct ni_thread *t) {
    (void)t;
    ck_abort_msg("no handler has deferred a request");
}

void sbt_handlers_deliver(void) {
    ck_abort_msg("no handler is deferred");
}

void ni_post(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object) {
    (void)id, (void)object;
    posted = op;
    t->posted[ni_answer_of(op)] = (uint8_t)op;
}

static void setup(bool left) {
    ni_machine.tiles = &tile;
    ni_machine.n_tiles = 1;
    ck_assert(hw_layout_init(&ni_machine.layout, 1, 4));
    thread = (struct ni_thread){.trust.left = left, .posted[NI_ANSWER_MAIN] = HW_OP_LOCK};
    sbt_n_runnable = N_RUNNABLE;
    n_served = n_late = n_in_time = n_parked = 0;
    answers_if_served = inside = ends = false;
    posted = HW_OP_LOCK;
}

static int wait_for(struct sbt_adapt *memory) {
    struct hw_message message;
    return ni_await(&thread, NI_ANSWER_MAIN, NULL, memory, false, &message);
}

TEST(left__answered_in_time) {
    setup(true);
    answer(NI_ANSWER_MAIN, HW_OP_GRANT);
    ck_assert_int_eq(wait_for(NULL), 0);
    ck_assert_uint_eq(n_in_time, 1);
    ck_assert_uint_eq(n_served + n_parked, 0);
    ck_assert_uint_eq(thread.posted[NI_ANSWER_MAIN], 0);
}

TEST(left__served_by_the_thread_before_it_sleeps, "with its handlers deferred: it holds an NI") {
    setup(true);
    answers_if_served = true;
    ck_assert_int_eq(wait_for(NULL), 0);
    ck_assert_uint_eq(n_served, 1);
    ck_assert(inside);
    ck_assert_uint_eq(n_parked, 0);
    ck_assert_uint_eq(thread.inside + sbt_self.handlers_held, 0);
}

TEST(not_left__serves_no_more) {
    setup(false);
    ck_assert_int_eq(wait_for(NULL), 0);
    ck_assert_uint_eq(n_served, 0);
    ck_assert_uint_eq(n_parked, 1);
}

TEST(sleep__a_server_finds_the_word_to_wake) {
    setup(false);
    ck_assert_int_eq(wait_for(NULL), 0);
    ck_assert_ptr_eq(wake_word_asleep, &word_of_waiter);
    ck_assert_uint_eq(thread.state, 0);
}

TEST(sleep__counts_as_runnable_if_it_waits_for_a_server, "it takes itself off the count as it sleeps") {
    struct sbt_adapt memory = {0};
    setup(false);
    ck_assert_int_eq(wait_for(NULL), 0);
    ck_assert_uint_eq(runnable_asleep, N_RUNNABLE + 1);
    ck_assert_uint_eq(sbt_n_runnable, N_RUNNABLE);
    setup(false);
    ck_assert_int_eq(wait_for(&memory), 0);
    ck_assert_uint_eq(runnable_asleep, N_RUNNABLE);
    ck_assert_uint_eq(sbt_n_runnable, N_RUNNABLE);
}

static void *end_in_handler(void *unused) {
    (void)unused;
    wait_for(NULL);
    return &thread;
}

TEST(sleep__ended_in_a_handler, "the thread is not counted any more") {
    pthread_t id;
    void *result = &thread;
    setup(false);
    ends = true;
    ck_assert_int_eq(pthread_create(&id, NULL, end_in_handler, NULL), 0);
    ck_assert_int_eq(pthread_join(id, &result), 0);
    ck_assert_ptr_null(result);
    ck_assert_uint_eq(sbt_n_runnable, N_RUNNABLE);
}

TEST(withdraw__keeps_the_answer_that_was_on_its_way) {
    struct hw_message message = {.op = HW_OP_LOCK};
    setup(false);
    answer(NI_ANSWER_MAIN, HW_OP_GRANT);
    ck_assert(!ni_withdraw(&thread, 0, &message));
    ck_assert_int_eq(message.op, HW_OP_GRANT);
    ck_assert_uint_eq(n_parked, 1);
    ck_assert_uint_eq(thread.state, 0);
}

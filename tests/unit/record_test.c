/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records of threads under the engine ni (engine/ni/thread.h): which record and tile a thread has over its life,
 * what a handler leaves for later, and what a forked child keeps. What is below the records is the test's.
 */
#include "engine/ni/thread.h"

#include <stdlib.h>

#include "core/log.h"
#include "engine/ni/fork.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/service_thread.h"
#include "lib/suite.h"
#include "os/fork.h"

enum { TID = 1234, N_TILES = 4 };

struct ni_machine ni_machine;
bool sbt_fence_asymmetric;
union sbt_fork_page sbt_fork_page = {.known = 1};
_Thread_local struct sbt_thread sbt_self;

static struct ni_tile tiles[N_TILES];
static uint32_t n_mapped, n_posted, n_fenced, fenced_tile, n_begun, n_ended;
static enum hw_op posted[8];
static bool handler_forks;
static const struct ni_thread *of_handler;

void *ni_get_memory(size_t bytes) {
    return calloc(1, bytes);
}

uint32_t ni_map(uint32_t n) {
    n_mapped++;
    return n % N_TILES;
}

void ni_post(struct ni_thread *t, enum hw_op op, uint32_t id, const void *object) {
    (void)object;
    posted[n_posted++] = op;
    t->home = (uint16_t)id;
    t->trust.left = !t->trust.left;
}

void ni_fence(struct ni_thread *t, uint32_t number) {
    ck_assert_uint_eq(t->busy, 1); /* a handler that comes now gets a record of its own */
    n_fenced++;
    fenced_tile = number;
}

void ni_child_begins(void) {
    ni_thread_fork_child();
}

void ni_fork_answer_forgotten(struct ni_thread *t, int which) {
    (void)t, (void)which;
}

/* A handler that could not be deferred forks while its thread gets a record, and the child goes on to use objects. */
void ni_service_occupy(uint32_t tile) {
    (void)tile;
    if (!handler_forks)
        return;
    handler_forks = false;
    ck_assert_ptr_null(ni_enter(false));
    sbt_fork_page.known++;
    ni_thread_fork_child();
    struct ni_thread *t = ni_enter(false);
    of_handler = t;
    if (t != NULL)
        ni_leave(t);
}

void ni_serve(struct ni_tile *tile) {
    (void)tile;
    ck_abort_msg("nothing is to be served");
}

void ni_service_thread_begin(void) {
    n_begun++;
}

void ni_service_thread_end(void) {
    n_ended++;
}

void sbt_fork_notice(void) {
    ck_abort_msg("the generation is known");
}

uint32_t sbt_thread_tid(void) {
    return TID;
}

void sbt_lock_take_slow(struct sbt_lock *lock) {
    (void)lock;
    ck_abort_msg("a lock is held");
}

void sbt_lock_wake(struct sbt_lock *lock) {
    (void)lock;
    ck_abort_msg("a lock has sleepers");
}

void sbt_handlers_deliver(void) {
    ck_abort_msg("no handler is deferred");
}

void sbt_log(unsigned verbosity, const char *first, ...) {
    (void)verbosity;
    ck_abort_msg("%s", first);
}

/* Each test is a process of its own: its thread has no record yet. */
static void setup(void) {
    ni_machine.tiles = tiles;
    ni_machine.n_tiles = N_TILES;
    ck_assert_int_eq(ni_thread_start(), 0);
}

static struct ni_thread *use(void) {
    struct ni_thread *t = ni_enter(true);
    ni_leave(t);
    return t;
}

TEST(record__the_same_for_each_operation) {
    setup();
    const struct ni_thread *t = use();
    ck_assert_ptr_eq(use(), t);
    ck_assert_uint_eq(t->use, NI_USED);
    ck_assert_uint_eq(n_mapped, 1);
    ck_assert_uint_eq(n_fenced, 0);
}

TEST(record__a_handler_has_its_own, "on the same tile, for as long as it lasts") {
    setup();
    struct ni_thread *t = ni_enter(true);
    struct ni_thread *nested = ni_enter(true);
    ck_assert_ptr_ne(nested, t);
    ck_assert_uint_eq(nested->tile, t->tile);
    ni_leave(nested);
    ck_assert_uint_eq(nested->use, NI_UNUSED);
    ni_leave(t);
    ck_assert_ptr_eq(use(), t);
}

TEST(end__destructors_stay_on_the_tile, "and the requests before them have been served") {
    setup();
    ni_thread_enter();
    const struct ni_thread *t = use();
    uint16_t tile = t->tile;
    ni_thread_exit();
    ck_assert_uint_eq(t->use, NI_UNUSED);
    ck_assert_uint_eq(n_ended, 1);
    ck_assert_uint_eq(n_fenced, 0);
    const struct ni_thread *later = use();
    ck_assert_uint_eq(later->tile, tile);
    ck_assert_uint_eq(n_mapped, 1);
    ck_assert_uint_eq(n_fenced, 1);
    ck_assert_uint_eq(fenced_tile, tile);
    use();
    ck_assert_uint_eq(n_fenced, 1);
}

TEST(end__the_last_request_stays_in_the_record, "it may not have been served, and has the record's number") {
    setup();
    ni_thread_enter();
    struct ni_thread *t = use();
    t->last = 17;
    t->last_tile = 3;
    ni_thread_exit();
    ck_assert_ptr_eq(use(), t);
    ck_assert_uint_eq(t->last, 17);
    ck_assert_uint_eq(t->last_tile, 3);
}

TEST(inside__a_handler_leaves_its_requests, "what its thread is about to wait for stays as it is") {
    setup();
    struct ni_thread *t = ni_enter(true);
    ni_go_inside(t);
    ck_assert_ptr_null(ni_enter(false));
    ni_defer(HW_OP_UNLOCK, 1);
    ck_assert_ptr_null(ni_enter(false));
    ni_defer(HW_OP_SIGNAL, 2);
    t->home = 3;
    t->trust.left = true;
    ni_leave_inside(t);
    ck_assert_uint_eq(n_posted, 2);
    ck_assert_int_eq(posted[0], HW_OP_UNLOCK);
    ck_assert_int_eq(posted[1], HW_OP_SIGNAL);
    ck_assert_uint_eq(t->home, 3);
    ck_assert(t->trust.left);
    ck_assert_uint_eq(t->deferred, 0);
    n_posted = 0;
    t->trust.left = true;
    ni_go_inside(t);
    ni_defer(HW_OP_UNLOCK, 1);
    ni_leave_inside(t);
    ck_assert_uint_eq(n_posted, 1);
    ck_assert(t->trust.left);
}

TEST(child__is_not_parked_by_what_its_parent_waited_for) {
    setup();
    struct ni_thread *t = ni_enter(true);
    t->state = NI_PARKED;
    t->wake_word = &t->state;
    sbt_fork_page.known++;
    ni_thread_fork_child();
    ck_assert_uint_eq(t->state, 0);
    ck_assert_ptr_null(t->wake_word);
    ck_assert_uint_eq(t->use, NI_USED);
}

TEST(child__of_a_handler_while_a_record_is_made) {
    setup();
    handler_forks = true;
    const struct ni_thread *t = use();
    ck_assert(!handler_forks);
    ck_assert_ptr_nonnull(of_handler);
    ck_assert_ptr_nonnull(t);
}

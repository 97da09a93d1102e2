/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls where there is no thread of a run, threads that end where they should not, and what there is not enough of. */
#include <errno.h>
#include <pthread.h>

#include "ways.h"

static VirtualChannel *channel;
static DWorkPileMaster *piles;
static DWorkPile *pile;

static void nothing(void *argument) {
    (void)argument;
}

/* ---- calls ---- */

/* By a thread that neither is the run's nor runs prepare. */
static void makes_nothing(void) {
    errno = 0;
    CHECK(VirtualChannel_create() == NULL && errno == EPERM);
    errno = 0;
    CHECK(BarrierMaster_new(1) == NULL && errno == EPERM);
    errno = 0;
    CHECK(DWorkPileMaster_new(ATAC_CILK, 1, 1) == NULL && errno == EPERM);
}

static void are_refused(void) {
    errno = 0;
    CHECK(VirtualChannelPort_new(channel) == NULL && errno == EPERM);
    errno = 0;
    CHECK(ATAC_cycles() == 0 && errno == EPERM);
    errno = 0;
    ATAC_compute(1000);
    CHECK(errno == EPERM);
    errno = 0;
    ATAC_ready();
    CHECK(errno == EPERM);
    CHECK_INT(ATAC_self(), -1);
}

static void *makes_nothing_elsewhere(void *unused) {
    (void)unused;
    makes_nothing();
    return NULL;
}

static void make(void *argument) {
    pthread_t thread;
    (void)argument;
    CHECK((channel = VirtualChannel_create()) != NULL);
    CHECK((piles = DWorkPileMaster_new(ATAC_CILK, 2, 4)) != NULL);
    are_refused();
    CHECK(pthread_create(&thread, NULL, makes_nothing_elsewhere, NULL) == 0 && pthread_join(thread, NULL) == 0);
    errno = 0;
    CHECK(DWorkPileMaster_generateLocalWorkPile(piles) == NULL && errno == EPERM);
}

static void *foreign(void *unused) {
    (void)unused;
    are_refused();
    makes_nothing();
    errno = 0;
    CHECK(DWorkPile_get(pile) == NULL && errno == EPERM);
    return NULL;
}

static void starts_a_thread(void *argument) {
    pthread_t thread;
    (void)argument;
    if (ATAC_self() != 0)
        return;
    CHECK((pile = DWorkPileMaster_generateLocalWorkPile(piles)) != NULL);
    CHECK(pthread_create(&thread, NULL, foreign, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK_INT(ATAC_self(), 0);
}

TEST_EACH(calls_outside_a_run, WAYS, "of prepare, and of threads that are not the run's, are refused") {
    ATAC_options o = options_of(number, 2);
    IWorkTask task = {NULL};
    makes_nothing();
    are_refused();
    passes(&o, make, starts_a_thread, NULL);
    are_refused();
    errno = 0;
    CHECK(DWorkPile_get(pile) == NULL && errno == EPERM);
    errno = 0;
    DWorkPile_put(pile, &task);
    CHECK(errno == EPERM);
    DWorkPile_delete(pile);
    DWorkPileMaster_delete(piles);
    VirtualChannel_delete(channel);
}

/* ---- threads that end ---- */

static void *leaves_prepare(void *argument) {
    ATAC_run(argument, pthread_exit, nothing, NULL, NULL);
    ck_abort_msg("pthread_exit has returned");
}

TEST_EACH(a_prepare_that_does_not_return, WAYS, "ends its run, and the next one runs") {
    ATAC_options o = options_of(number, 2);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, leaves_prepare, &o) == 0 && pthread_join(thread, NULL) == 0);
    makes_nothing();
    passes(&o, NULL, nothing, NULL);
}

/* With an argument thread 0 waits for the others. */
static void leaves(void *argument) {
    Message m;
    VirtualChannelPort *port = VirtualChannelPort_new(channel);
    if (argument != NULL && ATAC_self() == 0)
        VirtualChannelPort_wait_and_receive_message(port, &m);
    VirtualChannelPort_delete(port);
    pthread_exit(NULL);
}

TEST_EACH(a_thread_that_leaves_its_body, WAYS - 1, "live by pthread_exit has ended, and others may wait for ever") {
    ATAC_options o = options_of(1 + number, 3);
    passes(&o, make, leaves, NULL);
    VirtualChannel_delete(channel);
    DWorkPileMaster_delete(piles);
    const char *error = ATAC_run(&o, make, leaves, &o, NULL);
    ck_assert_msg(error != NULL && strcmp(error, "thread 0 waits for a message of channel 0 for ever") == 0, "%s",
                  error);
    VirtualChannel_delete(channel);
    DWorkPileMaster_delete(piles);
}

static void all_but_one_are_ready(void *argument) {
    (void)argument;
    if (ATAC_self() != 0)
        ATAC_ready();
}

TEST_EACH(a_thread_that_is_never_ready, WAYS, "is an error that names ATAC_ready") {
    ATAC_options o = options_of(number, 3);
    fails(&o, NULL, all_but_one_are_ready, "thread 1 waits in ATAC_ready for ever");
}

/* Thread 0 would compute for years. */
static void fails_meanwhile(void *argument) {
    (void)argument;
    DWorkPile *own = DWorkPileMaster_generateLocalWorkPile(piles);
    ATAC_ready();
    if (ATAC_self() == 0)
        ATAC_compute(UINT64_C(100000000000));
    DWorkPile_put(own, NULL);
}

TEST(a_run_that_fails, "live ends the wait of a thread that computes") {
    ATAC_options o = options_of(1, 2);
    o.time_scale = 1000000;
    o.software_cycles = 0;
    fails(&o, make, fails_meanwhile, "thread 1 puts no task");
    VirtualChannel_delete(channel);
    DWorkPileMaster_delete(piles);
}

/* ---- what there is not enough of ---- */

enum { CHANNELS = 8 };
static int n_made;

static void takes_channels(void *argument) {
    (void)argument;
    ATAC_ready();
    for (int i = 0; i < CHANNELS; i++) {
        VirtualChannel *made = VirtualChannel_create();
        if (made != NULL)
            __atomic_fetch_add(&n_made, 1, __ATOMIC_RELAXED);
        else
            CHECK_INT(errno, ENOSPC);
        VirtualChannel_delete(made);
    }
}

TEST_EACH(channels_too_many, WAYS, "by all threads at once are refused, and the run goes on") {
    ATAC_options o = options_of(number, 16);
    o.channels = CHANNELS;
    for (int i = 0; i < 50; i++) {
        n_made = 0;
        passes(&o, NULL, takes_channels, NULL);
        CHECK_INT(n_made, CHANNELS);
    }
}

static void makes_large_piles(void *argument) {
    DWorkPileMaster *large;
    (void)argument;
    for (int kind = 0; kind < ATAC_N_PILES; kind++) {
        errno = 0;
        large = DWorkPileMaster_new(kind, 1024, 65536);
        if (kind == ATAC_GLOBAL_QUEUE)
            CHECK(large != NULL);
        else
            CHECK(large == NULL && errno == ENOMEM);
        if (large != NULL)
            DWorkPileMaster_delete(large);
    }
}

TEST_EACH(piles_too_large, WAYS, "are refused, and the run goes on") {
    ATAC_options o = options_of(number, 2);
    passes(&o, makes_large_piles, nothing, NULL);
}

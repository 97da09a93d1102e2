/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Looks at the loaded objects, and forks: one waits for the other, but not for ever. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/suite.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/objects.h"

union sbt_fork_page sbt_fork_page = {.known = 1};

#define LIMIT_NS 100000000
#define SOON_NS (LIMIT_NS / 2)

static atomic_int looking, may_end, forked, looked;

static int look(struct dl_phdr_info *info, size_t size, void *signals) {
    (void)info;
    (void)size;
    pthread_sigmask(SIG_BLOCK, NULL, signals);
    atomic_store(&looking, 1);
    while (!atomic_load(&may_end))
        sched_yield();
    return 7;
}

static void *iterate(void *signals) {
    sigset_t here;
    CHECK_INT(sbt_objects_iterate(look, signals != NULL ? signals : &here), 7);
    atomic_store(&looked, 1);
    return NULL;
}

static void *prepare(void *unused) {
    (void)unused;
    sbt_objects_fork_prepare();
    atomic_store(&forked, 1);
    return NULL;
}

static pthread_t start(void *(*routine)(void *), void *argument) {
    pthread_t t;
    CHECK_INT(pthread_create(&t, NULL, routine, argument), 0);
    return t;
}

static void join(pthread_t t) {
    CHECK_INT(pthread_join(t, NULL), 0);
}

TEST(objects__a_look_blocks_signals, "all that can be, and the mask is back afterwards") {
    sigset_t inside, before, after;
    memset(&inside, 0, sizeof inside);
    atomic_store(&may_end, 1);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    iterate(&inside);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    CHECK_INT(sigismember(&inside, SIGUSR1), 1);
    CHECK_INT(sigismember(&inside, SIGXFSZ), 1);
    CHECK_INT(sigismember(&inside, SIGRTMIN), 1); /* the highest ones are an emulator's own */
    CHECK(!sigismember(&before, SIGUSR1) && !sigismember(&after, SIGUSR1));
    CHECK_INT(sbt_fork_page.inside, 0);
}

TEST(objects__a_fork_waits_for_a_look, "while another thread is inside, and goes on when it has come out") {
    pthread_t looker = start(iterate, NULL);
    while (!atomic_load(&looking))
        sched_yield();
    uint64_t began = sbt_now_ns();
    pthread_t forker = start(prepare, NULL);
    while (!atomic_load(&forked) && sbt_now_ns() - began < SOON_NS)
        sched_yield();
    CHECK(!atomic_load(&forked) || sbt_now_ns() - began >= LIMIT_NS);
    atomic_store(&may_end, 1);
    join(looker);
    join(forker);
    CHECK_INT(sbt_fork_page.forks, 1);
    sbt_objects_fork_parent();
    CHECK_INT(sbt_fork_page.forks, 0);
    CHECK_INT(sbt_fork_page.inside, 0);
}

TEST(objects__a_look_waits_for_a_fork, "a thread goes inside when the fork is over") {
    atomic_store(&may_end, 1);
    sbt_objects_fork_prepare();
    uint64_t began = sbt_now_ns();
    pthread_t looker = start(iterate, NULL);
    while (!atomic_load(&looking) && sbt_now_ns() - began < SOON_NS)
        sched_yield();
    CHECK(!atomic_load(&looking) || sbt_now_ns() - began >= LIMIT_NS);
    sbt_objects_fork_parent();
    join(looker);
    CHECK_INT(atomic_load(&looked), 1);
    CHECK_INT(sbt_fork_page.inside, 0);
}

TEST(objects__neither_waits_for_ever, "a look that does not end, a fork that does not end: the other one goes on") {
    pthread_t looker = start(iterate, NULL);
    while (!atomic_load(&looking))
        sched_yield();
    uint64_t began = sbt_now_ns();
    sbt_objects_fork_prepare();
    CHECK(sbt_now_ns() - began >= LIMIT_NS);
    atomic_store(&may_end, 1);
    join(looker);
    began = sbt_now_ns();
    iterate(NULL);
    CHECK(sbt_now_ns() - began >= LIMIT_NS);
    sbt_objects_fork_parent();
}

TEST(objects__a_child_begins_anew, "whatever was under way in the parent") {
    sbt_fork_page.inside = 3;
    sbt_fork_page.forks = 2;
    sbt_objects_fork_child();
    CHECK_INT(sbt_fork_page.inside, 0);
    CHECK_INT(sbt_fork_page.forks, 0);
}

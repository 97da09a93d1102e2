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

/* How long a fork waits for a look that has the dynamic linker's lock, and for one that has not; and a look for a fork.
 */
#define HELD_LIMIT_NS 3000000000u
#define LIMIT_NS 1000000000
#define FORK_LIMIT_NS 3000000000u
#define LATER_NS 300000000 /* long before any of them */

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
    while (!atomic_load(&forked) && sbt_now_ns() - began < LATER_NS)
        sched_yield();
    CHECK(!atomic_load(&forked) || sbt_now_ns() - began >= HELD_LIMIT_NS);
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
    while (!atomic_load(&looking) && sbt_now_ns() - began < LATER_NS)
        sched_yield();
    CHECK(!atomic_load(&looking) || sbt_now_ns() - began >= FORK_LIMIT_NS);
    sbt_objects_fork_parent();
    join(looker);
    CHECK_INT(atomic_load(&looked), 1);
    CHECK_INT(sbt_fork_page.inside, 0);
}

static atomic_int n_inside, stop;
static int be_inside(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)info, (void)size, (void)unused;
    atomic_fetch_add(&n_inside, 1);
    for (volatile int i = 0; i < 200; i++)
        ;
    atomic_fetch_sub(&n_inside, 1);
    return 7;
}
static void *look_again_and_again(void *unused) {
    while (!atomic_load(&stop))
        CHECK_INT(sbt_objects_iterate(be_inside, NULL), 7);
    return unused;
}
TEST(objects__fork_after_fork, "30000 forks in a row, at varied distances, and two threads that look: none is inside") {
    pthread_t lookers[] = {start(look_again_and_again, NULL), start(look_again_and_again, NULL)};
    for (int i = 0; i < 30000; i++) {
        uint64_t began = sbt_now_ns();
        sbt_objects_fork_prepare();
        for (volatile int k = 0; k < 500; k++)
            CHECK(atomic_load(&n_inside) == 0 || sbt_now_ns() - began >= LATER_NS); /* patience may be over then */
        sbt_objects_fork_parent();
        for (volatile int k = 0; k < i % 300; k++)
            ;
    }
    atomic_store(&stop, 1);
    join(lookers[0]);
    join(lookers[1]);
}

TEST(objects__neither_waits_for_ever, "a look that does not end, a fork that does not end: the other one goes on") {
    pthread_t looker = start(iterate, NULL);
    while (!atomic_load(&looking))
        sched_yield();
    uint64_t began = sbt_now_ns();
    sbt_objects_fork_prepare();
    CHECK(sbt_now_ns() - began >= HELD_LIMIT_NS);
    atomic_store(&may_end, 1);
    join(looker);
    began = sbt_now_ns();
    iterate(NULL);
    CHECK(sbt_now_ns() - began >= FORK_LIMIT_NS);
    sbt_objects_fork_parent();
    CHECK_INT(sbt_fork_page.holding, 0);
}

TEST(objects__a_fork_waits_less_for_a_look_without_the_lock, "the lock's owner may be the thread that forks") {
    uint64_t took;
    do { /* a busy machine may add to it; a wait for longer hangs here */
        uint64_t began = sbt_now_ns();
        sbt_fork_page.inside = 1;
        sbt_objects_fork_prepare();
        took = sbt_now_ns() - began;
        CHECK(took >= LIMIT_NS);
        sbt_objects_fork_parent();
        sbt_fork_page.inside = 0;
    } while (took >= HELD_LIMIT_NS);
}

/* By how many were left: one came out after the first time and before the second. The last one stays. */
enum { INSIDE = 4 };
static struct { uint64_t after, before; } came_out[INSIDE + 1] = {[0] = {UINT64_MAX, UINT64_MAX}};
static void *come_out(void *unused) {
    for (int left = INSIDE - 1; left > 0; left--) {
        struct timespec pause = {0, LIMIT_NS / 10 * 6};
        nanosleep(&pause, NULL);
        came_out[left].after = sbt_now_ns();
        __atomic_fetch_sub(&sbt_fork_page.inside, 1, __ATOMIC_SEQ_CST);
        came_out[left].before = sbt_now_ns();
    }
    return unused;
}
/* For as long as the limit none came out, or was seen to, until then. On a busy machine that may be before the last. */
static bool is_patience_over(uint64_t at) {
    for (int left = INSIDE; left > 0; left--) {
        uint64_t next = came_out[left - 1].before < at ? came_out[left - 1].before : at;
        if (came_out[left].after <= next && next - came_out[left].after >= LIMIT_NS)
            return true;
    }
    return false;
}
TEST(objects__a_fork_waits_anew_when_a_look_is_over, "three of four threads take most of the limit each") {
    sbt_fork_page.inside = INSIDE;
    came_out[INSIDE].after = sbt_now_ns();
    pthread_t t = start(come_out, NULL);
    sbt_objects_fork_prepare();
    uint64_t over = sbt_now_ns();
    join(t);
    CHECK(is_patience_over(over));
    sbt_objects_fork_parent();
    sbt_fork_page.inside = 0;
}

TEST(objects__a_child_begins_anew, "whatever was under way in the parent") {
    sbt_fork_page.inside = sbt_fork_page.holding = 3;
    sbt_fork_page.forks = 2;
    sbt_objects_fork_child();
    CHECK_INT(sbt_fork_page.inside, 0);
    CHECK_INT(sbt_fork_page.holding, 0);
    CHECK_INT(sbt_fork_page.forks, 0);
}

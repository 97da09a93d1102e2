/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Futexes by syscall() beside futexes by instructions of a module that is loaded later: whichever way a thread waits
 * and another wakes, none is missed, counts are right. Source: futex(2).
 */
#include "topic.h"

#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "futex_unseen.h"

static uint32_t word, word2;
static atomic_int n_left;
static unseen_function *by_instruction, *module_by_syscall;

static long by_syscall(uint32_t *at, int op, uint32_t val, unsigned long val2, uint32_t *at2, uint32_t val3) {
    long r = syscall(SYS_futex, at, op, val, val2, at2, val3);
    return r == -1 ? -errno : r;
}
static void *load_module(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
    CHECK(n > 0);
    path[n] = '\0';
    strcpy(strrchr(path, '/'), "/posix_unseen.so");
    void *module = dlopen(path, RTLD_NOW);
    if (module == NULL)
        FAIL("%s", dlerror());
    return module;
}
static void look_up(void *module) {
    *(void **)(void *)&by_instruction = dlsym(module, "unseen_futex");
    *(void **)(void *)&module_by_syscall = dlsym(module, "unseen_futex_by_syscall");
    CHECK(by_instruction != NULL && module_by_syscall != NULL);
}
static void load(void) {
    look_up(load_module());
}

static long wake_by(unseen_function *way, uint32_t *at, uint32_t n) {
    return way(at, FUTEX_WAKE_PRIVATE, n, 0, NULL, 0);
}
static void *wait_once(void *way) {
    unseen_function *call = *(unseen_function **)way;
    CHECK_INT(call(&word, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0), 0);
    atomic_fetch_add(&n_left, 1);
    return NULL;
}
/* A thread that is about to wait is no waiter yet. A word's waiters moved to the word itself stay, and are counted. */
static long n_waiters(void) {
    return by_syscall(&word, FUTEX_REQUEUE_PRIVATE, 0, INT_MAX, &word, 0);
}
static pthread_t start(unseen_function **way) {
    long before = n_waiters();
    pthread_t thread = thread_start(wait_once, way);
    while (n_waiters() <= before)
        sleep_ms(1);
    let_threads_block();
    return thread;
}

static unseen_function *syscall_way = by_syscall;

TEST(futex_unseen__waits_by_instruction_woken_by_syscall) {
    load();
    pthread_t threads[2] = {start(&by_instruction), start(&by_instruction)};
    CHECK_INT(wake_by(by_syscall, &word, 1), 1);
    CHECK_INT(wake_by(by_syscall, &word, INT_MAX), 1);
    for (int i = 0; i < 2; i++)
        thread_join(threads[i]);
}
TEST(futex_unseen__loaded_after_a_wait, "waits by syscall() first, so the loaded code was looked at before") {
    pthread_t first = start(&syscall_way);
    load();
    pthread_t second = start(&by_instruction);
    CHECK_INT(wake_by(by_syscall, &word, INT_MAX), 2);
    thread_join(first);
    thread_join(second);
}
TEST(futex_unseen__both_kinds_on_one_word, "2 and 2: the sum is woken; 3 of 4, then the last") {
    load();
    pthread_t threads[4] = {start(&syscall_way), start(&by_instruction), start(&syscall_way), start(&by_instruction)};
    CHECK_INT(wake_by(by_syscall, &word, 3), 3);
    CHECK_INT(wake_by(by_syscall, &word, 3), 1);
    for (int i = 0; i < 4; i++)
        thread_join(threads[i]);
}
TEST(futex_unseen__module_waits_by_syscall_and_wakes_by_instruction, "its waits are where its instructions find them") {
    load();
    pthread_t threads[2] = {start(&module_by_syscall), start(&module_by_syscall)};
    CHECK_INT(wake_by(by_instruction, &word, INT_MAX), 2);
    for (int i = 0; i < 2; i++)
        thread_join(threads[i]);
}

/*
 * The same behind threads that are runnable: the shortest way of a wait that is switched. The program has made many
 * waits on the word itself.
 */
enum { SEEN = 1000, RUNNABLE = 4, WAITERS = 4, ROUNDS = 20 };
static atomic_bool may_end;
static atomic_uint n_waited;

static void *yield(void *unused) {
    while (!atomic_load(&may_end))
        sched_yield();
    return unused;
}
static void *wait_often(void *unused) {
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 10; i++)
            sched_yield();
        while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == round)
            module_by_syscall(&word, FUTEX_WAIT_PRIVATE, round, 0, NULL, 0);
        atomic_fetch_add(&n_waited, 1);
    }
    return unused;
}
/* The load is not over before this returns. */
static void *load_and_stay(void *module) {
    atomic_store((void *_Atomic *)module, load_module());
    while (!atomic_load(&may_end))
        sleep_ms(1);
    return NULL;
}
static pthread_t load_meanwhile(void) {
    static void *_Atomic module;
    pthread_t thread = thread_start(load_and_stay, &module);
    while (atomic_load(&module) == NULL)
        sleep_ms(1);
    look_up(atomic_load(&module));
    return thread;
}
TEST_EACH(futex_unseen__module_waits_behind_runnable_threads, 2, "when it has been loaded, and while a load lasts") {
    pthread_t threads[RUNNABLE + WAITERS], loader = 0;
    for (int i = 0; i < SEEN; i++)
        CHECK_INT(by_syscall(&word, FUTEX_WAIT_PRIVATE, 1, 0, NULL, 0), -EAGAIN);
    if (number == 0)
        load();
    else
        loader = load_meanwhile();
    for (int i = 0; i < RUNNABLE + WAITERS; i++)
        threads[i] = thread_start(i < RUNNABLE ? yield : wait_often, NULL);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        while (n_waiters() < WAITERS)
            sleep_ms(1);
        __atomic_store_n(&word, round + 1, __ATOMIC_RELEASE);
        wake_by(by_instruction, &word, INT_MAX);
        while (atomic_load(&n_waited) < (round + 1) * WAITERS)
            sleep_ms(1);
    }
    atomic_store(&may_end, true);
    for (int i = 0; i < RUNNABLE + WAITERS; i++)
        thread_join(threads[i]);
    if (number != 0)
        thread_join(loader);
}
TEST(futex_unseen__requeued_by_syscall, "waiters of both kinds are moved; a wake-up at the second word finds them") {
    load();
    pthread_t threads[3] = {start(&by_instruction), start(&syscall_way), start(&by_instruction)};
    CHECK_INT(by_syscall(&word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 2, &word2, 0), 3);
    CHECK_INT(wake_by(by_syscall, &word, INT_MAX), 0);
    CHECK_INT(wake_by(by_syscall, &word2, INT_MAX), 2);
    for (int i = 0; i < 3; i++)
        thread_join(threads[i]);
}
TEST(futex_unseen__wake_op_by_syscall, "finds the waiter at the second word") {
    load();
    pthread_t thread = start(&by_instruction);
    CHECK_INT(by_syscall(&word2, FUTEX_WAKE_OP_PRIVATE, 1, 1, &word, FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)), 1);
    thread_join(thread);
    CHECK_INT(word, 1);
}

/* A turn goes round between threads of both kinds. */
enum { RING = 4, TURNS = 2000 };
struct player {
    uint32_t me;
    unseen_function **way;
};
static void *take_turns(void *argument) {
    const struct player *p = argument;
    unseen_function *call = *p->way;
    for (;;) {
        uint32_t seen;
        while ((seen = __atomic_load_n(&word, __ATOMIC_ACQUIRE)) < TURNS && seen % RING != p->me)
            call(&word, FUTEX_WAIT_PRIVATE, seen, 0, NULL, 0);
        if (seen >= TURNS)
            return NULL;
        __atomic_store_n(&word, seen + 1, __ATOMIC_RELEASE);
        wake_by(by_syscall, &word, INT_MAX);
    }
}
TEST(futex_unseen__a_turn_goes_round, "waits of both kinds, wake-ups by syscall()") {
    load();
    struct player players[RING];
    pthread_t threads[RING];
    for (uint32_t i = 0; i < RING; i++) {
        players[i] = (struct player){i, i % 2 == 0 ? &by_instruction : &syscall_way};
        threads[i] = thread_start(take_turns, &players[i]);
    }
    for (int i = 0; i < RING; i++)
        thread_join(threads[i]);
    CHECK_INT(word, TURNS);
}

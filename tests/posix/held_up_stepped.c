/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A signal handler holds up a waiter at any instruction of its wait, by single steps (x86-64). Another thread has slept
 * behind the lock since before that. The owner unlocks once, just before the handler or while it lasts. The sleeper has
 * the lock, or the test never ends.
 */
#include "topic.h"

#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
#define STRIDE 11        /* instructions from one point to the next; odd, so that loops are met at all places */
#define UNREACHED_MOST 4 /* points in a row that the waiter does not come to, because it sleeps or has the lock */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock;
static bool writers;

enum { STEPPING, REACHED, GIVEN_UP };
static atomic_int state, unlocked, in_handler, was_deferred, leave_handler, waiting, sleeper_passed;
static bool unlock_first;
static long steps, point; /* the stepped thread's */
static greg_t stopped_at;

static void take(void) {
    if (writers)
        OK(pthread_rwlock_wrlock(&rwlock));
    else
        OK(pthread_mutex_lock(&mutex));
}
static void give(void) {
    if (writers)
        OK(pthread_rwlock_unlock(&rwlock));
    else
        OK(pthread_mutex_unlock(&mutex));
}

/* After each instruction. The unlock is not awaited for ever: the stepped thread may hold a lock that it needs. */
static void on_step(int signo, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int stepping = STEPPING;
    (void)signo, (void)info;
    if (steps++ < point)
        return;
    registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    stopped_at = registers[REG_RIP];
    if (!atomic_compare_exchange_strong(&state, &stepping, REACHED))
        return;
    for (int i = 0; unlock_first && i < 5 && atomic_load(&unlocked) == 0; i++)
        sleep_ms(1);
    pthread_kill(pthread_self(), SIGUSR2);
}
static void linger(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)info;
    if (((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] != stopped_at)
        atomic_store(&was_deferred, 1);
    atomic_store(&in_handler, 1);
    while (atomic_load(&leave_handler) == 0)
        sleep_ms(1);
}

static void *stepped(void *unused) {
    (void)unused;
    __asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
    take();
    __asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
    give();
    return NULL;
}
static void *sleeper(void *unused) {
    (void)unused;
    atomic_store(&waiting, 1);
    take();
    atomic_store(&sleeper_passed, 1);
    give();
    return NULL;
}

/* False: the waiter did not come to that point. */
static bool hold_up_at(long n) {
    int stepping = STEPPING;
    atomic_store(&state, STEPPING);
    atomic_store(&unlocked, 0);
    atomic_store(&in_handler, 0);
    atomic_store(&was_deferred, 0);
    atomic_store(&leave_handler, 0);
    atomic_store(&waiting, 0);
    atomic_store(&sleeper_passed, 0);
    steps = 0;
    point = n;
    take();
    pthread_t behind = thread_start(sleeper, NULL);
    await(&waiting, 1);
    sleep_ms(2); /* it sleeps, as a rule */
    pthread_t waiter = thread_start(stepped, NULL);
    for (int i = 0; i < 60 && atomic_load(&state) == STEPPING; i++)
        sleep_ms(1);
    bool reached = !atomic_compare_exchange_strong(&state, &stepping, GIVEN_UP);
    if (reached && !unlock_first)
        await(&in_handler, 1);
    give();
    atomic_store(&unlocked, 1);
    /* A handler that was deferred may have come when the waiter had the lock. */
    while (atomic_load(&sleeper_passed) == 0) {
        if (unlock_first && atomic_load(&was_deferred) != 0)
            atomic_store(&leave_handler, 1);
        sleep_ms(1);
    }
    atomic_store(&leave_handler, 1);
    thread_join(waiter);
    thread_join(behind);
    return reached;
}

static void hold_up_anywhere(bool of_writers, bool unlocks_first) {
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction signalled = {.sa_sigaction = linger, .sa_flags = SA_SIGINFO};
    sigfillset(&step.sa_mask);
    SYS(sigaction(SIGTRAP, &step, NULL));
    SYS(sigaction(SIGUSR2, &signalled, NULL));
    writers = of_writers;
    unlock_first = unlocks_first;
    OK(pthread_rwlock_init(&rwlock, NULL));
    int unreached = 0, reached = 0;
    for (long n = 0; unreached < UNREACHED_MOST; n += STRIDE) {
        bool there = hold_up_at(n);
        reached += there;
        unreached = there ? 0 : unreached + 1;
    }
    CHECK(reached > 0);
}
TEST(held_up_stepped__mutex_unlocked_before, "at each 11th instruction of a lock, which the owner has just unlocked") {
    hold_up_anywhere(false, true);
}
TEST(held_up_stepped__mutex_unlocked_meanwhile, "the same, and the owner unlocks while the handler runs") {
    hold_up_anywhere(false, false);
}
TEST(held_up_stepped__rwlock_unlocked_before, "a writer before a writer, as the first") {
    hold_up_anywhere(true, true);
}
TEST(held_up_stepped__rwlock_unlocked_meanwhile, "the same, as the second") {
    hold_up_anywhere(true, false);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads: create, exit, join and its variants, detach. Cancellation of joins: cancel.c; numbers: thread_many.c.
 * Source: POSIX.1-2017 pthread_create, _exit, _join, _detach; pthread_tryjoin_np(3) for the variants.
 */
#include "topic.h"

#include "lib/cpus.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_int release, started, finished, order;

static void *give_back(void *argument) {
    return argument;
}
static void *wait_for_release(void *argument) {
    atomic_fetch_add(&started, 1);
    await(&release, 1);
    atomic_fetch_add(&finished, 1);
    return argument;
}
static const struct way {
    clockid_t clock;
    bool clocked;
} ways[] = {{CLOCK_REALTIME, false}, {CLOCK_REALTIME, true}, {CLOCK_MONOTONIC, true}};
#define EACH_WAY(w) (const struct way *w = ways; w < ways + 3; w++)
static int join_until(const struct way *w, pthread_t t, void **value, const struct timespec *end) {
    return w->clocked ? pthread_clockjoin_np(t, value, w->clock, end) : pthread_timedjoin_np(t, value, end);
}

/* --- create ------------------------------------------------------------------------------------------------------- */
TEST(thread_create__passes_the_argument, "the routine gets its argument, NULL and all-ones included") {
    void *const arguments[] = {NULL, (void *)1, (void *)-2, &order};
    for (int i = 0; i < 4; i++)
        CHECK(thread_join(thread_start(give_back, arguments[i])) == arguments[i]);
}
static pthread_t self_seen;
static void *note_self(void *unused) {
    (void)unused;
    self_seen = pthread_self();
    return NULL;
}
TEST(thread_create__stores_the_id, "the id stored by create equals pthread_self in the thread, not the creator's") {
    pthread_t t = thread_start(note_self, NULL);
    thread_join(t);
    CHECK(pthread_equal(t, self_seen));
    CHECK(!pthread_equal(t, pthread_self()));
}
static void *mask_holds(void *unused) {
    (void)unused;
    sigset_t mask;
    OK(pthread_sigmask(SIG_SETMASK, NULL, &mask));
    return (void *)(long)(sigismember(&mask, SIGUSR2) + 2 * sigismember(&mask, SIGUSR1));
}
TEST(thread_create__inherits_the_signal_mask, "a thread starts with its creator's mask: SIGUSR2 blocked, SIGUSR1 not") {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    OK(pthread_sigmask(SIG_SETMASK, &mask, NULL));
    CHECK_INT((long)thread_join(thread_start(mask_holds, NULL)), 1);
}
static void *cancel_state(void *unused) {
    (void)unused;
    int state, type;
    OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state));
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
    return (void *)(long)(state == PTHREAD_CANCEL_ENABLE && type == PTHREAD_CANCEL_DEFERRED);
}
TEST(thread_create__starts_cancellable_and_deferred,
     "a new thread is cancellable and deferred, whatever its creator is") {
    OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    CHECK_INT((long)thread_join(thread_start(cancel_state, NULL)), 1);
}
static void *add_one(void *plain) {
    ++*(int *)plain;
    return plain;
}
TEST(thread_create__and_join_order_memory, "2000 threads in a row add to a plain variable of the creator's") {
    int plain = 0;
    for (int i = 0; i < 2000; i++) {
        CHECK(thread_join(thread_start(add_one, &plain)) == &plain);
        CHECK_INT(plain, i + 1);
    }
}
static void *use_stack(void *unused) {
    (void)unused;
    volatile char block[600000];
    memset((void *)block, 1, sizeof block);
    return (void *)(long)block[sizeof block - 1];
}
TEST(thread_create__honours_the_stack_size,
     "a thread of 1 MiB stack uses 600 kB of it; getattr_np tells at least 1 MiB") {
    pthread_attr_t attr, actual;
    pthread_t t;
    size_t size = 0;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, 1 << 20));
    OK(pthread_create(&t, &attr, use_stack, NULL));
    CHECK_INT((long)thread_join(t), 1);
    OK(pthread_create(&t, &attr, wait_for_release, NULL));
    OK(pthread_getattr_np(t, &actual));
    OK(pthread_attr_getstacksize(&actual, &size));
    CHECK(size >= 1 << 20);
    atomic_store(&release, 1);
    thread_join(t);
    OK(pthread_attr_destroy(&actual));
    OK(pthread_attr_destroy(&attr));
}
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *lock_unlock(void *unused) {
    (void)unused;
    OK(pthread_mutex_lock(&mutex));
    atomic_fetch_add(&finished, 1);
    OK(pthread_mutex_unlock(&mutex));
    return NULL;
}
TEST(thread_create__minimal_stack_can_lock, "4 threads of PTHREAD_STACK_MIN block at a mutex and get it") {
    pthread_attr_t attr;
    pthread_t t[4];
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN));
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < 4; i++)
        OK(pthread_create(&t[i], &attr, lock_unlock, NULL));
    let_threads_block();
    OK(pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 4; i++)
        thread_join(t[i]);
    CHECK_INT(atomic_load(&finished), 4);
}
static char own_stack[1 << 18] __attribute__((aligned(4096)));
static void *address_of_frame(void *unused) {
    (void)unused;
    return __builtin_frame_address(0);
}
TEST(thread_create__runs_on_a_given_stack, "pthread_attr_setstack: the thread's frames lie in the given memory") {
    pthread_attr_t attr;
    pthread_t t;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstack(&attr, own_stack, sizeof own_stack));
    OK(pthread_create(&t, &attr, address_of_frame, NULL));
    char *frame = thread_join(t);
    CHECK(frame > own_stack && frame < own_stack + sizeof own_stack);
}
TEST(thread_create__scheduling_not_permitted_returns_EPERM, "explicit SCHED_FIFO without privilege: EPERM, no thread") {
    pthread_attr_t attr;
    pthread_t t;
    struct sched_param fifo = {.sched_priority = 1};
    SKIP_IF(geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0), "privileges cannot be given up");
    SKIP_IF(!no_realtime(), "SCHED_FIFO is allowed without privilege");
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
    OK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
    OK(pthread_attr_setschedparam(&attr, &fifo));
    CHECK_RC(pthread_create(&t, &attr, give_back, NULL), EPERM);
    CHECK(thread_join(thread_start(give_back, &order)) == &order);
}
TEST(thread_create__no_memory_returns_EAGAIN,
     "a stack larger than the address space: EAGAIN, and creation still works") {
    pthread_attr_t attr;
    pthread_t t;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setstacksize(&attr, (size_t)1 << 60));
    CHECK_RC(pthread_create(&t, &attr, give_back, NULL), EAGAIN);
    CHECK(thread_join(thread_start(give_back, &order)) == &order);
}

/* --- join --------------------------------------------------------------------------------------------------------- */
TEST(thread_join__waits_for_the_end, "join does not return before the thread has ended") {
    pthread_t t = thread_start(wait_for_release, NULL);
    await(&started, 1);
    CHECK_RC(pthread_tryjoin_np(t, NULL), EBUSY);
    atomic_store(&release, 1);
    OK(pthread_join(t, NULL));
    CHECK_INT(atomic_load(&finished), 1);
}
TEST(thread_join__of_an_ended_thread, "join of a thread that ended long ago gives its value") {
    pthread_t t = thread_start(give_back, (void *)5);
    let_threads_block();
    CHECK(thread_join(t) == (void *)5);
}
TEST(thread_join__null_value_pointer, "join without a place for the value: 0") {
    OK(pthread_join(thread_start(give_back, (void *)5), NULL));
}
TEST(thread_join__self_returns_EDEADLK, "join of oneself: EDEADLK") {
    CHECK_RC(pthread_join(pthread_self(), NULL), EDEADLK);
}
TEST(thread_join__detached_returns_EINVAL, "join, timedjoin, clockjoin of a detached thread that runs: EINVAL") {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    pthread_t t = thread_start(wait_for_release, NULL);
    await(&started, 1);
    OK(pthread_detach(t));
    CHECK_RC(pthread_join(t, NULL), EINVAL);
    CHECK_RC(pthread_tryjoin_np(t, NULL), EBUSY); /* glibc looks at the thread's end first */
    CHECK_RC(pthread_timedjoin_np(t, NULL, &end), EINVAL);
    CHECK_RC(pthread_clockjoin_np(t, NULL, CLOCK_MONOTONIC, &end), EINVAL);
    atomic_store(&release, 1);
    await(&finished, 1);
}
static void *join_it(void *thread) {
    return (void *)(long)pthread_join(*(pthread_t *)thread, NULL);
}
TEST(thread_join__by_a_third_thread, "a thread is joined by one that did not create it") {
    pthread_t t = thread_start(wait_for_release, NULL), joiner = thread_start(join_it, &t);
    let_threads_block();
    atomic_store(&release, 1);
    OK((int)(long)thread_join(joiner));
}
/*
 * Not tested, because glibc 2.36 hangs: two joiners of one thread (undefined in POSIX), two threads that join each
 * other (POSIX: EDEADLK "may" be returned), a timed join with a bad nsec (spins for ever instead of EINVAL).
 */

/* --- tryjoin, timedjoin, clockjoin -------------------------------------------------------------------------------- */
TEST(thread_tryjoin__running_returns_EBUSY, "tryjoin of a running thread: EBUSY; of an ended one: its value") {
    void *value = NULL;
    pthread_t t = thread_start(wait_for_release, (void *)9);
    CHECK_RC(pthread_tryjoin_np(t, &value), EBUSY);
    atomic_store(&release, 1);
    int rc;
    while ((rc = pthread_tryjoin_np(t, &value)) == EBUSY)
        sleep_ms(1);
    OK(rc);
    CHECK(value == (void *)9);
}
TEST(thread_timedjoin__past_deadline_returns_ETIMEDOUT, "a running thread, deadline passed or before the epoch") {
    pthread_t t = thread_start(wait_for_release, NULL);
    for
        EACH_WAY(w) {
            struct timespec end = time_in_ms(w->clock, -10);
            CHECK_RC(join_until(w, t, NULL, &end), ETIMEDOUT);
            CHECK_RC(join_until(w, t, NULL, &time_seconds_negative), ETIMEDOUT);
        }
    atomic_store(&release, 1);
    thread_join(t);
}
TEST(thread_timedjoin__waits_until_the_deadline,
     "a running thread: ETIMEDOUT, not before the deadline, and it can still "
     "be joined") {
    pthread_t t = thread_start(wait_for_release, (void *)3);
    for
        EACH_WAY(w) {
            struct timespec end = time_in_ms(w->clock, SHORT_MS);
            CHECK_RC(join_until(w, t, NULL, &end), ETIMEDOUT);
            CHECK(time_since_ms(w->clock, end) >= 0);
        }
    atomic_store(&release, 1);
    CHECK(thread_join(t) == (void *)3);
}
TEST(thread_timedjoin__returns_the_value_in_time, "a thread that ends in time: 0 and its value, each clock") {
    for
        EACH_WAY(w) {
            void *value = NULL;
            struct timespec end = time_in_ms(w->clock, LONG_MS);
            pthread_t t = thread_start(give_back, (void *)11);
            OK(join_until(w, t, &value, &end));
            CHECK(value == (void *)11);
        }
}
TEST(thread_clockjoin__other_clock_returns_EINVAL, "clockjoin with CPU-time and unknown clocks: EINVAL") {
    pthread_t t = thread_start(wait_for_release, NULL);
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    CHECK_RC(pthread_clockjoin_np(t, NULL, CLOCK_PROCESS_CPUTIME_ID, &end), EINVAL);
    CHECK_RC(pthread_clockjoin_np(t, NULL, 12345, &end), EINVAL);
    atomic_store(&release, 1);
    thread_join(t);
}

/* --- detach ------------------------------------------------------------------------------------------------------- */
TEST(thread_detach__twice_returns_EINVAL, "the second detach of a running thread: EINVAL (glibc)") {
    pthread_t t = thread_start(wait_for_release, NULL);
    OK(pthread_detach(t));
    CHECK_RC(pthread_detach(t), EINVAL);
    atomic_store(&release, 1);
    await(&finished, 1);
}
static void *detach_self(void *unused) {
    OK(pthread_detach(pthread_self()));
    return wait_for_release(unused);
}
TEST(thread_detach__by_itself, "200 threads detach themselves and all run to their end") {
    atomic_store(&release, 1);
    for (int i = 0; i < 200; i++)
        thread_start(detach_self, NULL);
    await(&finished, 200);
}
TEST(thread_detach__of_an_ended_thread, "detach of a thread that has ended but not been joined: 0") {
    pthread_t t = thread_start(give_back, NULL);
    let_threads_block();
    OK(pthread_detach(t));
}
TEST(thread_create__detached, "a thread created detached runs; join of it: EINVAL") {
    pthread_attr_t attr;
    pthread_t t;
    OK(pthread_attr_init(&attr));
    OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
    OK(pthread_create(&t, &attr, wait_for_release, NULL));
    CHECK_RC(pthread_join(t, NULL), EINVAL);
    atomic_store(&release, 1);
    await(&finished, 1);
}

/* --- exit --------------------------------------------------------------------------------------------------------- */
static int places[8];
static void note_place(void *argument) {
    places[(long)argument] = atomic_fetch_add(&order, 1) + 1;
}
static void exit_deep(void *value) {
    pthread_exit(value);
}
static void *exit_with(void *value) {
    exit_deep(value);
    FAIL("pthread_exit returned");
}
TEST(thread_exit__value_reaches_join, "the value given to pthread_exit in a nested call is what join returns") {
    CHECK(thread_join(thread_start(exit_with, &order)) == &order);
}
static void *exit_through_handlers(void *unused) {
    (void)unused;
    pthread_cleanup_push(note_place, (void *)1);
    pthread_cleanup_push(note_place, (void *)2);
    pthread_cleanup_push(note_place, (void *)3);
    pthread_cleanup_pop(0);
    pthread_exit(NULL);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return NULL;
}
TEST(thread_exit__runs_the_handlers_in_reverse,
     "exit runs the pushed clean-up handlers, last first, and no popped one") {
    thread_join(thread_start(exit_through_handlers, NULL));
    CHECK_INT(places[2], 1);
    CHECK_INT(places[1], 2);
    CHECK_INT(places[3], 0);
}
static pthread_key_t key;
static void *exit_with_key(void *unused) {
    OK(pthread_setspecific(key, (void *)4));
    return exit_through_handlers(unused);
}
TEST(thread_exit__runs_destructors_after_the_handlers,
     "thread-specific data is destroyed after the clean-up handlers") {
    OK(pthread_key_create(&key, note_place));
    thread_join(thread_start(exit_with_key, NULL));
    CHECK_INT(places[1], 2);
    CHECK_INT(places[4], 3);
}
static void *outlive_main(void *out) {
    sleep_ms(2 * SHORT_MS);
    if (write((int)(long)out, "x", 1) != 1)
        _exit(5);
    return NULL;
}
static void exit_main(void *out) {
    thread_start(outlive_main, out);
    pthread_exit(NULL);
}
TEST(thread_exit__of_the_main_thread_keeps_the_process, "the main thread exits, another goes on; the process then ends "
                                                        "with 0") {
    int ends[2];
    char byte;
    SYS(pipe(ends));
    pid_t child = child_start(exit_main, (void *)(long)ends[1]);
    SYS(close(ends[1]));
    CHECK_INT(read(ends[0], &byte, 1), 1);
    child_join(child);
}
TEST(thread_cancel__ended_unjoined_thread_returns_0, "cancel of a thread that has ended and waits to be joined: 0; its "
                                                     "value stays") {
    pthread_t t = thread_start(give_back, (void *)8);
    let_threads_block();
    OK(pthread_cancel(t));
    CHECK(thread_join(t) == (void *)8);
}

/* --- yield -------------------------------------------------------------------------------------------------------- */
static void set_flag(void *flag) {
    atomic_store((atomic_int *)flag, 1);
}
TEST(thread_yield__lets_another_process_run, "SCHED_FIFO, one CPU: a process of the same priority runs while the only "
                                             "thread yields") {
    enum { N_YIELDS = 1000 };
    const struct sched_param fifo = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    SKIP_IF(no_realtime(), "SCHED_FIFO is refused");
    atomic_int *flag = mmap(NULL, sizeof *flag, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(flag != MAP_FAILED);
    stay_on_one_cpu();
    SYS(sched_setscheduler(0, SCHED_FIFO, &fifo));
    pid_t child = child_start(set_flag, flag);
    for (int n = 0; n < N_YIELDS && atomic_load(flag) == 0; n++)
        sched_yield();
    CHECK_INT(atomic_load(flag), 1);
    child_join(child);
}

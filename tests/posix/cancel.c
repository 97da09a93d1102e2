/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancellation points among the calls that wait. Each is tried blocked, with a request pending at entry, with
 * cancellation disabled and of asynchronous type; the clean-up handler finds the mutex held, and no wake-up is lost.
 * The functions that are no cancellation points: cancel_not.c. Built twice: clean-up handlers work by setjmp without
 * -fexceptions and by unwinding with it, through the frames of whatever implements the call.
 * Source: POSIX.1-2017 2.9.5, pthread_cond_wait.
 */
#include "topic.h"

#include <semaphore.h>
#include <threads.h>

/* One object of each kind, and how its waits are made and ended without cancellation. */
static pthread_mutex_t mutex = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static mtx_t mtx;
static cnd_t cnd;
static pthread_t target;
static atomic_int in_wait, release_target, cleaned, returned;

static void do_cond_wait(void) {
    OK(pthread_cond_wait(&cond, &mutex));
}
static void do_cond_timedwait(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_cond_timedwait(&cond, &mutex, &end));
}
static void do_cond_clockwait(void) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, LONG_MS);
    OK(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &end));
}
static void do_cnd_wait(void) {
    CHECK_INT(cnd_wait(&cnd, &mtx), thrd_success);
}
static void do_cnd_timedwait(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    CHECK_INT(cnd_timedwait(&cnd, &mtx, &end), thrd_success);
}
static void do_sem_wait(void) {
    SYS(sem_wait(&sem));
}
static void do_sem_timedwait(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    SYS(sem_timedwait(&sem, &end));
}
static void do_sem_clockwait(void) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, LONG_MS);
    SYS(sem_clockwait(&sem, CLOCK_MONOTONIC, &end));
}
static void do_join(void) {
    OK(pthread_join(target, NULL));
}
static void do_timedjoin(void) {
    struct timespec end = time_in_ms(CLOCK_REALTIME, LONG_MS);
    OK(pthread_timedjoin_np(target, NULL, &end));
}
static void do_clockjoin(void) {
    struct timespec end = time_in_ms(CLOCK_MONOTONIC, LONG_MS);
    OK(pthread_clockjoin_np(target, NULL, CLOCK_MONOTONIC, &end));
}
static void do_thrd_join(void) {
    CHECK_INT(thrd_join(target, NULL), thrd_success);
}

enum kind { COND, CND, SEM, JOIN };
struct point {
    void (*wait)(void);
    enum kind kind;
    bool takes_token_first; /* glibc 2.36: sem_clockwait alone acts upon a pending request only when it blocks */
};

static void lock(enum kind kind) {
    if (kind == COND)
        OK(pthread_mutex_lock(&mutex));
    if (kind == CND)
        CHECK_INT(mtx_lock(&mtx), thrd_success);
}
static void unlock(enum kind kind) {
    if (kind == COND)
        OK(pthread_mutex_unlock(&mutex)); /* EPERM if it were not held by this thread */
    if (kind == CND)
        CHECK_INT(mtx_unlock(&mtx), thrd_success);
}
/* Ends the wait of one waiter as its kind provides. */
static void wake(enum kind kind) {
    lock(kind);
    if (kind == COND)
        OK(pthread_cond_signal(&cond));
    if (kind == CND)
        CHECK_INT(cnd_signal(&cnd), thrd_success);
    if (kind == SEM)
        SYS(sem_post(&sem));
    if (kind == JOIN)
        atomic_store(&release_target, 1);
    unlock(kind);
}
static void *run_until_released(void *unused) {
    (void)unused;
    await(&release_target, 1);
    return NULL;
}
static void prepare(void) {
    SYS(sem_init(&sem, 0, 0));
    CHECK_INT(mtx_init(&mtx, mtx_plain | mtx_recursive), thrd_success);
    CHECK_INT(cnd_init(&cnd), thrd_success);
    target = thread_start(run_until_released, NULL);
}
/* After a cancelled wait the object serves the next waiter as if nothing had happened. */
static void *wait_again(void *argument) {
    const struct point *p = argument;
    lock(p->kind);
    atomic_fetch_add(&in_wait, 1);
    p->wait();
    unlock(p->kind);
    return NULL;
}
static void check_usable(const struct point *p) {
    atomic_store(&in_wait, 0);
    pthread_t t = thread_start(wait_again, (void *)p);
    await(&in_wait, 1);
    wake(p->kind);
    thread_join(t);
    if (p->kind == SEM) {
        int value = -1;
        SYS(sem_getvalue(&sem, &value));
        CHECK_INT(value, 0);
    }
}

static void clean_up(void *argument) {
    const struct point *p = argument;
    unlock(p->kind); /* fails unless the mutex is held */
    atomic_fetch_add(&cleaned, 1);
}
static void *wait_cancelled(void *argument) {
    const struct point *p = argument;
    lock(p->kind);
    pthread_cleanup_push(clean_up, argument);
    atomic_fetch_add(&in_wait, 1);
    for (;;) /* a wait may end spuriously */
        p->wait();
    pthread_cleanup_pop(0);
    return NULL;
}
static void blocked(const struct point *p) {
    prepare();
    pthread_t t = thread_start(wait_cancelled, (void *)p);
    await(&in_wait, 1);
    lock(p->kind); /* the waiter of a condition has let go: it is in the wait proper */
    unlock(p->kind);
    let_threads_block();
    CHECK_RC(pthread_tryjoin_np(t, NULL), EBUSY);
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&cleaned), 1);
    check_usable(p);
}
static void *wait_pending(void *argument) {
    OK(pthread_cancel(pthread_self()));
    return wait_cancelled(argument);
}
/* The request is there before the call; for semaphores so is a token, which must stay. */
static void pending(const struct point *p) {
    int value = 0;
    prepare();
    if (p->kind == SEM && !p->takes_token_first)
        SYS(sem_post(&sem));
    thread_join_cancelled(thread_start(wait_pending, (void *)p));
    CHECK_INT(atomic_load(&cleaned), 1);
    if (p->kind == SEM && !p->takes_token_first) {
        SYS(sem_getvalue(&sem, &value));
        CHECK_INT(value, 1);
        SYS(sem_wait(&sem));
    }
    check_usable(p);
}
static void *wait_disabled(void *argument) {
    const struct point *p = argument;
    OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
    lock(p->kind);
    pthread_cleanup_push(clean_up, argument);
    atomic_fetch_add(&in_wait, 1);
    p->wait();
    atomic_fetch_add(&returned, 1);
    pthread_cleanup_pop(1);
    OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
    pthread_testcancel();
    FAIL("the pending cancel was forgotten");
}
static void disabled(const struct point *p) {
    prepare();
    pthread_t t = thread_start(wait_disabled, (void *)p);
    await(&in_wait, 1);
    let_threads_block();
    OK(pthread_cancel(t));
    let_threads_block();
    CHECK_INT(atomic_load(&cleaned), 0);
    wake(p->kind);
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&returned), 1);
    CHECK_INT(atomic_load(&cleaned), 1);
}
static void *wait_asynchronous(void *argument) {
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    return wait_cancelled(argument);
}
/*
 * No function but three may be called with asynchronous type, says POSIX; programs do wait so, and glibc cancels them
 * in the wait. Only for waits without a mutex: a clean-up handler of a condition wait that is interrupted anywhere
 * cannot know whether the mutex is held.
 */
static void asynchronous(const struct point *p) {
    prepare();
    pthread_t t = thread_start(wait_asynchronous, (void *)p);
    await(&in_wait, 1);
    let_threads_block();
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&cleaned), 1);
}
static void *wait_and_report_type(void *argument) {
    const struct point *p = argument;
    int type = -1, state = -1;
    lock(p->kind);
    atomic_fetch_add(&in_wait, 1);
    p->wait();
    unlock(p->kind);
    OK(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type));
    OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state));
    return (void *)(long)(type == PTHREAD_CANCEL_DEFERRED && state == PTHREAD_CANCEL_ENABLE);
}
/* However a wait is made cancellable inside, the caller's type and state are what they were. */
static void type_kept(const struct point *p) {
    prepare();
    pthread_t t = thread_start(wait_and_report_type, (void *)p);
    await(&in_wait, 1);
    let_threads_block();
    wake(p->kind);
    CHECK_INT((long)thread_join(t), 1);
}

#define POINT(name, function, kind_of, token_first)                                                                    \
    static const struct point name##_point = {function, kind_of, token_first};                                         \
    TEST(cancel_##name##__blocked,                                                                                     \
         "cancelled in the wait: handler runs (mutex held), object serves the next waiter") {                          \
        blocked(&name##_point);                                                                                        \
    }                                                                                                                  \
    TEST(cancel_##name##__pending_at_entry,                                                                            \
         "request pending at entry: handler runs (mutex held), no token is taken") {                                   \
        pending(&name##_point);                                                                                        \
    }                                                                                                                  \
    TEST(cancel_##name##__disabled, "cancellation disabled: the wait ends by its wake-up, the cancel comes later") {   \
        disabled(&name##_point);                                                                                       \
    }                                                                                                                  \
    TEST(cancel_##name##__type_is_kept, "after a wait that ended normally type and state are unchanged") {             \
        type_kept(&name##_point);                                                                                      \
    }
#define ASYNCHRONOUS(name)                                                                                             \
    TEST(cancel_##name##__asynchronous, "cancelled in the wait with asynchronous type: handler runs") {                \
        asynchronous(&name##_point);                                                                                   \
    }

POINT(cond_wait, do_cond_wait, COND, false)
POINT(cond_timedwait, do_cond_timedwait, COND, false)
POINT(cond_clockwait, do_cond_clockwait, COND, false)
POINT(cnd_wait, do_cnd_wait, CND, false)
POINT(cnd_timedwait, do_cnd_timedwait, CND, false)
POINT(sem_wait, do_sem_wait, SEM, false)
POINT(sem_timedwait, do_sem_timedwait, SEM, false)
POINT(sem_clockwait, do_sem_clockwait, SEM, true)
POINT(join, do_join, JOIN, false)
POINT(timedjoin, do_timedjoin, JOIN, false)
POINT(clockjoin, do_clockjoin, JOIN, false)
POINT(thrd_join, do_thrd_join, JOIN, false)
ASYNCHRONOUS(sem_wait)
ASYNCHRONOUS(sem_timedwait)
ASYNCHRONOUS(join)

/* --- more about conditions ---------------------------------------------------------------------------------------- */
static void unlock_it(void *m) {
    OK(pthread_mutex_unlock(m));
}
static void *wait_with_mutex(void *argument) {
    pthread_mutex_t *m = argument;
    OK(pthread_mutex_lock(m));
    pthread_cleanup_push(unlock_it, m);
    atomic_fetch_add(&in_wait, 1);
    for (;;)
        OK(pthread_cond_wait(&cond, m));
    pthread_cleanup_pop(0);
    return NULL;
}
static void cancel_with_mutex(pthread_mutex_t *m) {
    pthread_t threads[8];
    atomic_store(&in_wait, 0);
    for (int i = 0; i < 8; i++)
        threads[i] = thread_start(wait_with_mutex, m);
    await(&in_wait, 8);
    for (int i = 0; i < 8; i++)
        OK(pthread_cancel(threads[i]));
    for (int i = 0; i < 8; i++)
        thread_join_cancelled(threads[i]);
    OK(pthread_mutex_trylock(m));
    OK(pthread_mutex_unlock(m));
}
TEST(cancel_cond_wait__eight_at_once, "8 waiters cancelled at once, mutex of each type: each held it, it ends free") {
    pthread_mutex_t m[] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                           PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};
    for (int i = 0; i < 4; i++)
        cancel_with_mutex(&m[i]);
}
TEST(cancel_cond_wait__robust_mutex, "8 waiters with a robust mutex cancelled at once: each held it, it ends free") {
    pthread_mutexattr_t attr;
    pthread_mutex_t m;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutex_init(&m, &attr));
    cancel_with_mutex(&m);
}
TEST(cancel_cond_wait__waits_for_the_owner, "the handler does not run while another thread holds the mutex") {
    prepare();
    pthread_t t = thread_start(wait_cancelled, (void *)&cond_wait_point);
    await(&in_wait, 1);
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_cancel(t));
    let_threads_block();
    CHECK_INT(atomic_load(&cleaned), 0);
    OK(pthread_mutex_unlock(&mutex));
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&cleaned), 1);
}

static int tickets, waiters;
static void leave(void *unused) {
    (void)unused;
    waiters--;
    OK(pthread_mutex_unlock(&mutex));
}
/*
 * *took tells what became of the waiter. The value that join gives does not: glibc 2.36 makes it PTHREAD_CANCELED also
 * when the cancel's signal comes just too late, to a thread that has returned from its routine.
 */
static void *wait_for_ticket(void *took) {
    OK(pthread_mutex_lock(&mutex));
    waiters++;
    pthread_cleanup_push(leave, NULL);
    while (tickets == 0)
        OK(pthread_cond_wait(&cond, &mutex));
    tickets--;
    *(bool *)took = true;
    pthread_cleanup_pop(1);
    return NULL;
}
static void await_waiters(int wanted) {
    for (int now = -1; now != wanted;) {
        OK(pthread_mutex_lock(&mutex));
        now = waiters;
        OK(pthread_mutex_unlock(&mutex));
        if (now != wanted)
            sleep_ms(1);
    }
}
/*
 * A signal and a cancel meet at one of two waiters. If the cancel wins, the signal is not used up: the other waiter
 * gets it. A lost signal shows as a hang. On a busy machine the cancel may win in no round, so in some rounds the
 * cancelled thread has left the wait when the signal comes. It has not left its clean-up: the mutex is held.
 */
static void signal_meets_cancel(bool cancel_first) {
    enum { ROUNDS = 200, LEAVES_FIRST = 8 };
    int n_cancelled = 0;
    for (int round = 0; round < ROUNDS; round++) {
        bool first_took = false, second_took = false;
        pthread_t first = thread_start(wait_for_ticket, &first_took);
        await_waiters(1);
        pthread_t second = thread_start(wait_for_ticket, &second_took);
        await_waiters(2);
        OK(pthread_mutex_lock(&mutex));
        tickets = 1;
        if (cancel_first)
            OK(pthread_cancel(first));
        if (cancel_first && round % LEAVES_FIRST == 0)
            sleep_ms(2);
        OK(pthread_cond_signal(&cond));
        OK(pthread_mutex_unlock(&mutex));
        if (!cancel_first)
            OK(pthread_cancel(first));
        thread_join(first);
        if (!first_took) {
            n_cancelled++;
        } else { /* it took the ticket; the second one needs another */
            OK(pthread_mutex_lock(&mutex));
            tickets++;
            OK(pthread_cond_signal(&cond));
            OK(pthread_mutex_unlock(&mutex));
        }
        CHECK(thread_join(second) == NULL && second_took);
        CHECK_INT(tickets, 0);
    }
    CHECK(!cancel_first || n_cancelled > 0);
}
TEST(cancel_cond_wait__signal_after_cancel_is_passed_on, "200 times cancel, then signal: the other waiter is woken") {
    signal_meets_cancel(true);
}
TEST(cancel_cond_wait__signal_before_cancel_is_passed_on, "200 times signal, then cancel: used by one, or passed on") {
    signal_meets_cancel(false);
}
static void *take_token(void *took) {
    SYS(sem_wait(&sem));
    *(bool *)took = true;
    return NULL;
}
/*
 * Tokens, not wake-ups, are counted: glibc 2.36 loses the wake-up when the waiter that it chose is cancelled on its way
 * out, and the other waiter sleeps beside a value of 1. The second post wakes it.
 */
TEST(cancel_sem_wait__no_token_is_lost, "200 times post and cancel race at one of two waiters: tokens add up") {
    SYS(sem_init(&sem, 0, 0));
    for (int round = 0; round < 200; round++) {
        int value = -1;
        bool a_took = false, b_took = false;
        pthread_t a = thread_start(take_token, &a_took), b = thread_start(take_token, &b_took);
        if (round % 2 == 0)
            sleep_ms(1);
        SYS(sem_post(&sem));
        OK(pthread_cancel(a));
        thread_join(a);
        SYS(sem_post(&sem));
        CHECK(thread_join(b) == NULL && b_took);
        SYS(sem_getvalue(&sem, &value));
        CHECK_INT(value, a_took ? 0 : 1);
        if (!a_took)
            SYS(sem_wait(&sem));
    }
}
TEST(cancel_join__target_stays_joinable, "after a cancelled join another thread joins the target and gets its value") {
    prepare();
    for (int i = 0; i < 3; i++) {
        atomic_store(&in_wait, 0);
        pthread_t joiner = thread_start(wait_cancelled, (void *)&join_point);
        await(&in_wait, 1);
        OK(pthread_cancel(joiner));
        thread_join_cancelled(joiner);
    }
    atomic_store(&release_target, 1);
    CHECK(thread_join(target) == NULL);
}

/* --- cancel itself ------------------------------------------------------------------------------------------------ */
static void *test_forever(void *unused) {
    (void)unused;
    atomic_store(&in_wait, 1);
    for (;;)
        pthread_testcancel();
    return NULL;
}
TEST(cancel_testcancel__acts, "testcancel in a loop acts upon the request") {
    pthread_t t = thread_start(test_forever, NULL);
    await(&in_wait, 1);
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
}
static void *compute_forever(void *unused) {
    (void)unused;
    OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
    atomic_store(&in_wait, 1);
    for (;;)
        __asm__ volatile("");
    return NULL;
}
TEST(cancel_asynchronous__ends_a_computation, "asynchronous type: a loop without any call is cancelled") {
    pthread_t t = thread_start(compute_forever, NULL);
    await(&in_wait, 1);
    OK(pthread_cancel(t));
    thread_join_cancelled(t);
}
static void *compute_deferred(void *unused) {
    (void)unused;
    do_sem_wait();
    atomic_store(&in_wait, 1);
    for (volatile long i = 0; atomic_load(&release_target) == 0; i++)
        ;
    atomic_fetch_add(&returned, 1);
    pthread_testcancel();
    return NULL;
}
TEST(cancel_deferred__does_not_end_a_computation, "deferred type after a semaphore wait: a loop goes on to the next "
                                                  "cancellation point") {
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(compute_deferred, NULL);
    let_threads_block();
    SYS(sem_post(&sem));
    await(&in_wait, 1);
    OK(pthread_cancel(t));
    let_threads_block();
    atomic_store(&release_target, 1);
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&returned), 1);
}
static void handler_locks(void *unused) {
    (void)unused;
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(&mutex));
        OK(pthread_cond_broadcast(&cond));
        struct timespec end = time_in_ms(CLOCK_REALTIME, 1);
        CHECK_RC(pthread_cond_timedwait(&cond, &mutex, &end), ETIMEDOUT);
        OK(pthread_mutex_unlock(&mutex));
    }
    atomic_fetch_add(&cleaned, 1);
}
static void *wait_with_busy_handler(void *unused) {
    (void)unused;
    pthread_cleanup_push(handler_locks, NULL);
    atomic_fetch_add(&in_wait, 1);
    do_sem_wait();
    pthread_cleanup_pop(0);
    return NULL;
}
/* A second request during the clean-up must not start another: the thread is already ending. */
TEST(cancel__handler_may_lock_and_wait,
     "clean-up handlers lock, signal and wait on a condition; more cancels are ignored") {
    SYS(sem_init(&sem, 0, 0));
    pthread_t t = thread_start(wait_with_busy_handler, NULL);
    await(&in_wait, 1);
    for (int i = 0; i < 3; i++)
        OK(pthread_cancel(t));
    thread_join_cancelled(t);
    CHECK_INT(atomic_load(&cleaned), 1);
}

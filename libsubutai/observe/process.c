/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creation, end and join of threads, and the process's end without exit handlers. A thread's number is given by whoever
 * creates it, together with its record, which also carries what it is to run.
 */
/* Registered clean-ups, for programs without unwind tables; as in abi/thread.c. */
#undef __EXCEPTIONS

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "observe/observe.h"

static void ended(void *unused) {
    (void)unused;
    rec_thread_ended();
}

static void know(pthread_t thread, uint32_t number) {
    struct rec_node *node = rec_node_at((uintptr_t)thread);
    if (node == NULL)
        return;
    node->number = number;
    __atomic_store_n(&node->type, REC_PTHREAD, __ATOMIC_RELEASE);
}

/*
 * The number behind a pthread_t is noted by the thread or by its creator, whichever comes first; the other waits for
 * that. So it is there when either goes on, and *handle, which may be freed by what the thread runs, is read only while
 * that does not run. No note is late either: the same pthread_t may be another thread's when this one has ended.
 */
static void introduce(struct rec_thread *t, uint32_t number, const pthread_t *handle) {
    enum { NOTING = 1, NOTED = 2 };
    uint64_t mine = REC_UNKNOWN(number), seen = mine, signals = rec_block_signals();
    if (__atomic_compare_exchange_n(&t->known, &seen, mine | NOTING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        know(*handle, number);
        __atomic_store_n(&t->known, mine | NOTED, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; __atomic_load_n(&t->known, __ATOMIC_ACQUIRE) == (mine | NOTING); i++)
        rec_wait_a_moment(i);
    rec_unblock_signals(signals);
}

static void run(struct rec_thread *t) {
    pthread_t self = pthread_self();
    rec_thread_run(t);
    introduce(t, t->number, &self);
}

static void *begin(void *record) {
    struct rec_thread *t = record;
    void *result, *argument = t->argument;
    void *(*routine)(void *) = t->routine.posix;
    run(t);
    pthread_cleanup_push(ended, NULL);
    result = routine(argument);
    pthread_cleanup_pop(1);
    return result;
}

static int begin_c11(void *record) {
    struct rec_thread *t = record;
    void *argument = t->argument;
    thrd_start_t routine = t->routine.c11;
    int result;
    run(t);
    pthread_cleanup_push(ended, NULL);
    result = routine(argument);
    pthread_cleanup_pop(1);
    return result;
}

/* The record of a thread to be, and the event of its creation; NULL: not recorded. */
static struct rec_thread *enter_create(struct rec_call *c, const void *site) {
    if (!rec_enter(c, SBT_TRACE_THREAD_CREATE, SBT_TRACE_NO_OBJECT, NULL, site))
        return NULL;
    struct rec_thread *t = c->nested ? NULL : rec_thread_new();
    if (t == NULL) {
        rec_drop(c);
        return NULL;
    }
    c->event.other = t->number;
    return t;
}

/* The record may be another thread's by now. */
static void created(struct rec_call *c, struct rec_thread *t, uint32_t number, const pthread_t *handle, int r) {
    if (r == 0)
        introduce(t, number, handle);
    else
        __atomic_store_n(&t->state, REC_FREE, __ATOMIC_RELEASE);
    rec_leave(c, r);
}

OBSERVED(int, pthread_create,
         (pthread_t * thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument)) {
    struct rec_call c;
    struct rec_thread *t = enter_create(&c, REC_SITE_HERE);
    if (t == NULL)
        return ABI(pthread_create)(thread, attr, routine, argument);
    uint32_t number = t->number;
    t->routine.posix = routine;
    t->argument = argument;
    int r = ABI(pthread_create)(thread, attr, begin, t);
    created(&c, t, number, thread, r);
    return r;
}

OBSERVED(int, thrd_create, (thrd_t * thread, thrd_start_t routine, void *argument)) {
    struct rec_call c;
    struct rec_thread *t = enter_create(&c, REC_SITE_HERE);
    if (t == NULL)
        return ABI(thrd_create)(thread, routine, argument);
    uint32_t number = t->number;
    t->routine.c11 = routine;
    t->argument = argument;
    int r = ABI(thrd_create)(thread, begin_c11, t);
    created(&c, t, number, thread, rec_errno_of_c11(r));
    return r;
}

/* The number of a thread that can be joined; SBT_TRACE_NONE if it has none. */
static uint32_t number_of(pthread_t thread) {
    struct rec_node *node = rec_node_at((uintptr_t)thread);
    return node != NULL && __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) == REC_PTHREAD ? node->number
                                                                                         : SBT_TRACE_NONE;
}

static void dropped(void *call) {
    rec_drop(call);
}

static void joined(struct rec_call *c, int r) {
    if (r == 0 && c->event.other != SBT_TRACE_NONE)
        rec_thread_joined(c->event.other);
    rec_leave(c, r);
}

#define OBSERVE_JOIN(call, errno_of)                                                                                   \
    struct rec_call c;                                                                                                 \
    int r;                                                                                                             \
    if (!rec_enter(&c, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NO_OBJECT, NULL, REC_SITE_HERE))                               \
        return call;                                                                                                   \
    c.event.other = number_of(thread);                                                                                 \
    pthread_cleanup_push(dropped, &c);                                                                                 \
    r = call;                                                                                                          \
    pthread_cleanup_pop(0);                                                                                            \
    joined(&c, errno_of(r));                                                                                           \
    return r

#define AS_IT_IS(r) (r)

OBSERVED(int, pthread_join, (pthread_t thread, void **result)) {
    OBSERVE_JOIN(ABI(pthread_join)(thread, result), AS_IT_IS);
}

OBSERVED(int, pthread_timedjoin_np, (pthread_t thread, void **result, const struct timespec *at)) {
    OBSERVE_JOIN(ABI(pthread_timedjoin_np)(thread, result, at), AS_IT_IS);
}

OBSERVED(int, pthread_clockjoin_np, (pthread_t thread, void **result, clockid_t clock, const struct timespec *at)) {
    OBSERVE_JOIN(ABI(pthread_clockjoin_np)(thread, result, clock, at), AS_IT_IS);
}

OBSERVED(int, thrd_join, (thrd_t thread, int *result)) {
    OBSERVE_JOIN(ABI(thrd_join)(thread, result), rec_errno_of_c11);
}

/* Not events: what waits there are is the C library's or the engine's own. */
OBSERVED(int, pthread_once, (pthread_once_t * once, void (*initialise)(void))) {
    return ABI(pthread_once)(once, initialise);
}
SBT_ALIAS(__pthread_once, pthread_once);

OBSERVED(void, call_once, (once_flag * flag, void (*initialise)(void))) {
    ABI(call_once)(flag, initialise);
}

/* No event: only time passes. */
OBSERVED(int, sched_yield, (void)) {
    return ABI(sched_yield)();
}

OBSERVED(void, thrd_yield, (void)) {
    ABI(thrd_yield)();
}

/* A forked child often ends so. abort and exec end the trace as a kill would. */
OBSERVED(void, _exit, (int status)) {
    rec_finish();
    for (;;)
        sbt_syscall3(SYS_exit_group, status, 0, 0);
}
SBT_ALIAS(_Exit, _exit);

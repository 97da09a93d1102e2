/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creation, end and join of threads, and the end of the process without exit handlers. A thread gets its number from
 * its creator, together with its record, which also carries what the thread is to run.
 */
/* Clean-ups are registered, for programs without unwind tables; as in abi/thread.c. */
#undef __EXCEPTIONS

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <sys/syscall.h>

#include "observe/observe.h"

#include "os/signals.h"

static void ended(void *unused) {
    (void)unused;
    rec_thread_ended();
}

static void know(pthread_t thread, uint32_t number) {
    struct rec_node *node = rec_node_at((uintptr_t)thread);
    if (node == NULL)
        return;
    __atomic_store_n(&node->number, number, __ATOMIC_RELAXED); /* the C library orders the lives of a pthread_t */
    __atomic_store_n(&node->type, REC_PTHREAD, __ATOMIC_RELEASE);
}

/*
 * The thread and its creator: the first of them notes the number behind the pthread_t, the second waits for that.
 *  1. The first takes `known` from REC_UNKNOWN to NOTING (acquire).
 *  2. It writes the note, and stores NOTED (release).
 *  3. The second waits until it sees NOTED (acquire, pairs with step 2), and goes on.
 *
 * So the number is noted before either of them goes on. The function that the thread runs may free *handle, so *handle
 * is read only while that function does not run. And no note is late: after the thread's end the same pthread_t may be
 * another thread's.
 */
static void introduce(struct rec_thread *t, uint32_t number, const pthread_t *handle) {
    enum { NOTING = 1, NOTED = 2 };
    uint64_t mine = REC_UNKNOWN(number), seen = mine, signals = sbt_signals_block();
    if (__atomic_compare_exchange_n(&t->known, &seen, mine | NOTING, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        know(*handle, number);
        __atomic_store_n(&t->known, mine | NOTED, __ATOMIC_RELEASE);
    }
    for (unsigned i = 0; __atomic_load_n(&t->known, __ATOMIC_ACQUIRE) == (mine | NOTING); i++)
        rec_wait_a_moment(i);
    sbt_signals_restore(signals);
}

/*
 * In a child that a handler has forked before the thread came here there is no creator to be introduced to, and the
 * record is the parent's: the thread gets one at its first event.
 */
static void run(struct rec_thread *t) {
    pthread_t self = pthread_self();
    if (SBT_UNLIKELY(t->generation != sbt_fork_generation()))
        return;
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

/* The record of a thread that is about to be created, and the event of its creation; NULL: not recorded. */
static struct rec_thread *enter_create(struct rec_call *c, const void *site) {
    if (!rec_enter(c, SBT_TRACE_THREAD_CREATE, SBT_TRACE_NO_OBJECT, NULL, site))
        return NULL;
    struct rec_thread *t = c->nested ? NULL : rec_thread_new();
    if (t == NULL) {
        rec_drop(c);
        return NULL;
    }
    c->event.other = t->number;
    c->thread->creating = t;
    return t;
}

/* The record may be another thread's already. */
static void created(struct rec_call *c, struct rec_thread *t, uint32_t number, const pthread_t *handle,
                    const void *routine, int r) {
    c->thread->creating = NULL;
    if (r == 0)
        introduce(t, number, handle);
    else
        __atomic_store_n(&t->state, REC_FREE, __ATOMIC_RELEASE);
    rec_leave(c, r);
    if (r == 0)
        rec_routine(number, routine);
}

SBT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    struct rec_call c;
    struct rec_thread *t = enter_create(&c, REC_SITE_HERE);
    if (t == NULL)
        return sbt_pthread_create(thread, attr, routine, argument);
    uint32_t number = t->number;
    t->routine.posix = routine;
    t->argument = argument;
    int r = sbt_pthread_create(thread, attr, begin, t);
    created(&c, t, number, thread, (const void *)(uintptr_t)routine, r);
    return r;
}

SBT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
    struct rec_call c;
    struct rec_thread *t = enter_create(&c, REC_SITE_HERE);
    if (t == NULL)
        return sbt_thrd_create(thread, routine, argument);
    uint32_t number = t->number;
    t->routine.c11 = routine;
    t->argument = argument;
    int r = sbt_thrd_create(thread, begin_c11, t);
    created(&c, t, number, thread, (const void *)(uintptr_t)routine, rec_errno_of_c11(r));
    return r;
}

/* The number of a thread that can be joined; SBT_TRACE_NONE: it has none. */
static uint32_t number_of(pthread_t thread) {
    struct rec_node *node = rec_node_at((uintptr_t)thread);
    return node != NULL && __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) == REC_PTHREAD ? rec_life_of(node)
                                                                                         : SBT_TRACE_NONE;
}

static void dropped(void *call) {
    rec_drop(call);
}

static void joined(struct rec_call *c, int r) {
    if (c->thread != NULL && r == 0 && c->event.other != SBT_TRACE_NONE)
        rec_thread_joined(c->event.other);
    rec_leave(c, r);
}

/* A call of a join function. `at`: NULL waits for ever. */
struct join {
    union {
        pthread_t posix;
        thrd_t c11;
    } thread;
    void **result_posix;
    int *result_c11;
    clockid_t clock;
    const struct timespec *at;
};

static int join_observed(int (*call)(const struct join *), const struct join *j, int (*errno_of)(int),
                         const void *site) {
    struct rec_call c;
    int r;
    if (rec_enter(&c, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NO_OBJECT, NULL, site))
        c.event.other = number_of(j->thread.posix);
    if (c.thread != NULL && !c.nested && rec_busy_begin(c.thread)) { /* the end of the trace reads it */
        c.thread->call_waits.other = c.event.other;
        rec_busy_end(c.thread);
    }
    pthread_cleanup_push(dropped, &c);
    r = call(j);
    pthread_cleanup_pop(0);
    joined(&c, errno_of(r));
    return r;
}

static int join_posix(const struct join *j) {
    return sbt_pthread_join(j->thread.posix, j->result_posix);
}

static int join_timed(const struct join *j) {
    return sbt_pthread_timedjoin_np(j->thread.posix, j->result_posix, j->at);
}

static int join_clock(const struct join *j) {
    return sbt_pthread_clockjoin_np(j->thread.posix, j->result_posix, j->clock, j->at);
}

static int join_c11(const struct join *j) {
    return sbt_thrd_join(j->thread.c11, j->result_c11);
}

SBT_EXPORT int pthread_join(pthread_t thread, void **result) {
    struct join j = {.thread.posix = thread, .result_posix = result};
    return join_observed(join_posix, &j, rec_result, REC_SITE_HERE);
}

SBT_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *at) {
    struct join j = {.thread.posix = thread, .result_posix = result, .at = at};
    return join_observed(join_timed, &j, rec_result, REC_SITE_HERE);
}

SBT_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *at) {
    struct join j = {.thread.posix = thread, .result_posix = result, .clock = clock, .at = at};
    return join_observed(join_clock, &j, rec_result, REC_SITE_HERE);
}

SBT_EXPORT int thrd_join(thrd_t thread, int *result) {
    struct join j = {.thread.c11 = thread, .result_c11 = result};
    return join_observed(join_c11, &j, rec_errno_of_c11, REC_SITE_HERE);
}

/* No events: the waits in them are the C library's or the engine's own. */
SBT_EXPORT int pthread_once(pthread_once_t *once, void (*initialise)(void)) {
    return sbt_pthread_once(once, initialise);
}
SBT_ALIAS(__pthread_once, pthread_once);

SBT_EXPORT void call_once(once_flag *flag, void (*initialise)(void)) {
    sbt_call_once(flag, initialise);
}

/* No event: only time passes. */
SBT_EXPORT int sched_yield(void) {
    return sbt_sched_yield();
}

SBT_EXPORT void thrd_yield(void) {
    sbt_thrd_yield();
}

/* A forked child often ends like this. abort and exec end the trace as a kill would. */
SBT_EXPORT void _exit(int status) {
    rec_finish();
    sbt_process_leaves();
    for (;;)
        sbt_syscall3(SYS_exit_group, status, 0, 0);
}
SBT_ALIAS(_Exit, _exit);

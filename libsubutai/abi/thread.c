/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Creation and join of threads, by glibc's functions. The engine learns when a thread begins and ends, and a joining
 * thread does not count as runnable.
 *
 * Threads end by returning, by pthread_exit or by cancellation. A clean-up frame at their root sees all three, before
 * the destructors of thread-specific data run. pthread_detach and pthread_exit stay glibc's. pthread_cancel recalls a
 * fiber: it is in kernel_thread/pinned.c.
 */
/*
 * Clean-ups are registered, not unwound: a program without unwind tables is not unwound down to the root of its
 * threads, where ours is.
 */
#undef __EXCEPTIONS

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/abi.h"
#include "abi/kernel_thread/site.h"
#include "abi/unseen.h"
#include "core/cpus.h"
#include "core/priority.h"
#include "core/probes.h"
#include "core/sites.h"
#include "os/futex.h"
#include "switch/switch.h"
#include "wait/park.h"
#include "wait/yield_gate.h"

/* What a thread is to run: from the creating thread to the new thread. */
struct start {
    union {
        void *(*posix)(void *);
        thrd_start_t c11;
    } routine;
    void *argument;
    struct start *next;
    void *record;  /* the engine's, if it keeps an order */
    uint8_t pin;   /* enum sbt_pin, given by its creator */
    uint8_t stack; /* enum stack */
    bool of_site;  /* created by a library with sites */
};
/*
 * What a thread's stack is large enough for: for no fiber, for a fiber, or for a fiber and an offset, which is a
 * sixteenth of the stack at most.
 */
enum stack { STACK_SMALL, STACK_USUAL, STACK_LARGE };
#define USUAL_BYTES ((size_t)64 << 10)
#define LARGE_BYTES ((size_t)256 << 10)

/*
 * Records that new threads have read. A new thread must not free its record: a thread's first free gives the thread a
 * malloc arena, some 64 MiB of address space, even if the thread never allocates. The next thread that creates a thread
 * takes the whole list at once. So no record can be taken and put back while another thread is taking it. The release
 * of put_back pairs with the acquire of start_new.
 */
static struct start *spent;

static void put_back(struct start *first, struct start *last) {
    last->next = __atomic_load_n(&spent, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&spent, &last->next, first, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

static struct start *start_new(void) {
    struct start *start = __atomic_exchange_n(&spent, NULL, __ATOMIC_ACQUIRE), *last;
    if (start == NULL)
        return malloc(sizeof *start);
    if (start->next != NULL) {
        for (last = start->next; last->next != NULL;)
            last = last->next;
        put_back(start->next, last);
    }
    return start;
}

/* In the new thread: read what to run, and give the record back. */
static struct start take(void *argument) {
    struct start start = *(struct start *)argument;
    put_back(argument, argument);
    sbt_self.pin = start.pin;
    sbt_self.of_site = start.of_site;
    sbt_thread_tid(); /* read now: a vfork child shares this memory, and must not be the first to ask */
    return start;
}

void sbt_thread_ended(void *unused) {
    (void)unused;
    abi_unseen_thread_ends();
    sbt_switch_thread_end(); /* the rest, down to the kernel's part, must be done by the thread's own kernel thread */
    sbt_engine.thread_exit();
    sbt_runnable_add(-1);
    if (SBT_UNLIKELY(sbt_self.of_site))
        sbt_sites_crowd(-1);
    if (SBT_UNLIKELY(sbt_switch_wanted))
        sbt_switch_thread_gone();
}

/*
 * Bytes that the frames of a thread lie deeper in its stack than they would.
 *
 * Stacks are mapped at similar addresses. Without offsets all fibers would save and load their registers in the same
 * few sets of the cache, and at the same offset in a page, where the processor mistakes a load for one of what was just
 * stored (barrier, 16 threads: a tenth of a round). STACK_STEP is more than a frame of a switch, and 16 steps are less
 * than a page.
 */
#define STACK_STEP 192
#define STACK_STEPS 8
#define STACK_ALIGN_BITS 128

static inline size_t offset_bytes(const struct start *start) {
    return start->stack == STACK_LARGE ? sbt_thread_tid() % STACK_STEPS * STACK_STEP : 0;
}

/* The frame's room is not used. The compiler must not know that. */
static inline void begin_fiber(const struct start *start, void *offset) {
    __asm__ volatile("" : : "r"(offset) : "memory");
    if (SBT_UNLIKELY(start->stack != STACK_SMALL))
        sbt_switch_thread_begin();
}

static inline void enter(const struct start *start) {
    if (SBT_UNLIKELY(start->record != NULL))
        sbt_engine.order->created(start->record);
    sbt_engine.thread_enter();
}

static void *begin(void *argument) {
    struct start start = take(argument);
    void *result;
    begin_fiber(&start, __builtin_alloca_with_align(offset_bytes(&start), STACK_ALIGN_BITS));
    pthread_cleanup_push(sbt_thread_ended, NULL);
    enter(&start);
    SBT_PROBE_THREADS3(pthread_start, (void *)pthread_self(), start.routine.posix, start.argument);
    result = start.routine.posix(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

static int begin_c11(void *argument) {
    struct start start = take(argument);
    int result;
    begin_fiber(&start, __builtin_alloca_with_align(offset_bytes(&start), STACK_ALIGN_BITS));
    pthread_cleanup_push(sbt_thread_ended, NULL);
    enter(&start);
    result = start.routine.c11(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

/*
 * The new thread inherits from the kernel thread that creates it, and glibc blocks signals during the creation. So the
 * creator's own kernel thread makes the whole call.
 */
static int before_create(struct start *start, const void *caller) {
    /* A child of _Fork or of a raw clone begins here, before it has a second thread: no atfork handler has run. */
    sbt_fork_generation();
    sbt_engine.fork_child();
    if (SBT_UNLIKELY(sbt_engine.order != NULL)) {
        start->record = sbt_engine.order->create_begin((uintptr_t)start->routine.posix);
        if (start->record == NULL)
            return EAGAIN;
    }
    sbt_runnable_add(1);
    sbt_cpus_look();
#ifndef SBT_PREFIX
    abi_sites_serve();
#endif
    if (SBT_UNLIKELY(sbt_engine.order != NULL))
        abi_unseen_before_threads();
    start->of_site = sbt_sites_have(caller);
    if (SBT_UNLIKELY(start->of_site))
        sbt_sites_crowd(1);
    if (SBT_UNLIKELY(sbt_switch_wanted))
        sbt_switch_before_create();
    sbt_pin_hold();
    return 0;
}

static void not_created(const struct start *start) {
    sbt_runnable_add(-1);
    if (start->of_site)
        sbt_sites_crowd(-1);
    if (SBT_UNLIKELY(sbt_switch_wanted))
        sbt_switch_thread_gone();
}

static bool is_detached(const pthread_attr_t *attr) {
    int state;
    return attr != NULL && pthread_attr_getdetachstate(attr, &state) == 0 && state == PTHREAD_CREATE_DETACHED;
}

/* `thread` has been written if the thread was created. */
static void after_create(const struct start *start, void *record, const pthread_t *thread, bool is_created,
                         const pthread_attr_t *attr) {
    sbt_pin_release();
    if (!is_created)
        not_created(start);
    if (SBT_UNLIKELY(record != NULL))
        sbt_engine.order->create_end(record, is_created ? *thread : 0, is_created, is_detached(attr));
}

/*
 * A policy in the attributes counts only if the new thread does not inherit its policy. An inherited policy is known
 * already.
 */
static void note_policy(const pthread_attr_t *attr) {
    int inherit, policy;
    if (attr != NULL && pthread_attr_getinheritsched(attr, &inherit) == 0 && inherit == PTHREAD_EXPLICIT_SCHED &&
        pthread_attr_getschedpolicy(attr, &policy) == 0)
        sbt_priority_note(policy);
}

/*
 * How the new thread is pinned from its beginning. It inherits from its creator, unless the attributes say how or where
 * it is scheduled.
 */
static enum sbt_pin pin_for(const pthread_attr_t *attr) {
    int inherit;
    cpu_set_t cpus, all;
    if (SBT_LIKELY(!sbt_switch_wanted))
        return SBT_PIN_NOT;
    if (attr != NULL && pthread_attr_getinheritsched(attr, &inherit) == 0 && inherit == PTHREAD_EXPLICIT_SCHED)
        return SBT_PIN_HERITABLY;
    memset(&all, 0xff, sizeof all); /* glibc's answer for attributes without an affinity */
    if (attr != NULL && (pthread_attr_getaffinity_np(attr, sizeof cpus, &cpus) != 0 || !CPU_EQUAL(&cpus, &all)))
        return SBT_PIN_HERITABLY;
    return sbt_pin_inherited();
}

/* A thread that is not switched counts as small. */
static enum stack stack(const pthread_attr_t *attr) {
    pthread_attr_t by_default;
    size_t bytes = 0;
    if (SBT_LIKELY(!sbt_switch_wanted))
        return STACK_SMALL;
    if (attr != NULL) {
        pthread_attr_getstacksize(attr, &bytes);
    } else if (pthread_getattr_default_np(&by_default) == 0) {
        pthread_attr_getstacksize(&by_default, &bytes);
        pthread_attr_destroy(&by_default);
    }
    return bytes < USUAL_BYTES ? STACK_SMALL : bytes < LARGE_BYTES ? STACK_USUAL : STACK_LARGE;
}

SBT_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *argument) {
    sbt_init();
    if (sbt_all_theirs != 0)
        return sbt_real.pthread_create(thread, attr, routine, argument);
    struct start *start = start_new();
    if (start == NULL)
        return EAGAIN;
    note_policy(attr);
    *start = (struct start){{.posix = routine}, argument, NULL, NULL, pin_for(attr), stack(attr), false};
    int r = before_create(start, __builtin_return_address(0));
    if (r == 0) {
        void *record = start->record;
        r = sbt_real.pthread_create(thread, attr, begin, start);
        after_create(start, record, thread, r == 0, attr);
    }
    if (r != 0)
        put_back(start, start);
    SBT_PROBE_THREADS4(pthread_create, thread, attr, routine, argument);
    return r;
}

SBT_EXPORT int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument) {
    sbt_init();
    if (sbt_all_theirs != 0)
        return sbt_real.thrd_create(thread, routine, argument);
    struct start *start = start_new();
    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){{.c11 = routine}, argument, NULL, NULL, pin_for(NULL), stack(NULL), false};
    int r = before_create(start, __builtin_return_address(0)) != 0 ? thrd_nomem : thrd_success;
    if (r == thrd_success) {
        void *record = start->record;
        r = sbt_real.thrd_create(thread, begin_c11, start);
        after_create(start, record, thread, r == thrd_success, NULL);
    }
    if (r != thrd_success)
        put_back(start, start);
    return r;
}

/* One call of a join function. `at`: NULL waits for ever. */
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

/* The join blocks, and it is a cancellation point. */
static int join_while_not_runnable(int (*join)(const struct join *), const struct join *j) {
    struct sbt_asleep_in_call asleep;
    sbt_asleep_in_call(&asleep, NULL);
    int result = join(j);
    sbt_awake_after_call(&asleep);
    return result;
}

static int join_in_order(int (*join)(const struct join *), const struct join *j) {
    struct sbt_deadline deadline = {j->clock, {0, 0}};
    bool is_outside;
    if (j->at != NULL)
        deadline.at = *j->at;
    int r = sbt_engine.order->join(j->thread.posix, j->at != NULL ? &deadline : NULL, &is_outside);
    if (r != 0)
        return r;
    if (!is_outside)
        return join_while_not_runnable(join, j);
    ABI_OUTSIDE;
    return join_while_not_runnable(join, j);
}

static int while_not_runnable(int (*join)(const struct join *), const struct join *j) {
    sbt_init();
    return SBT_LIKELY(sbt_engine.order == NULL) ? join_while_not_runnable(join, j) : join_in_order(join, j);
}

static int join_posix(const struct join *j) {
    return sbt_real.pthread_join(j->thread.posix, j->result_posix);
}

static int join_timed(const struct join *j) {
    return sbt_real.pthread_timedjoin_np(j->thread.posix, j->result_posix, j->at);
}

static int join_clock(const struct join *j) {
    return sbt_real.pthread_clockjoin_np(j->thread.posix, j->result_posix, j->clock, j->at);
}

static int join_c11(const struct join *j) {
    return sbt_real.thrd_join(j->thread.c11, j->result_c11);
}

SBT_EXPORT int pthread_join(pthread_t thread, void **result) {
    SBT_PROBE_THREADS1(pthread_join, (void *)thread);
    int r = while_not_runnable(join_posix, &(struct join){.thread.posix = thread, .result_posix = result});
    SBT_PROBE_THREADS3(pthread_join_ret, (void *)thread, r, r == 0 && result != NULL ? *result : NULL);
    return r;
}

SBT_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *at) {
    return while_not_runnable(join_timed, &(struct join){.thread.posix = thread, .result_posix = result, .at = at});
}

SBT_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *at) {
    return while_not_runnable(join_clock,
                              &(struct join){.thread.posix = thread, .result_posix = result, .clock = clock, .at = at});
}

SBT_EXPORT int thrd_join(thrd_t thread, int *result) {
    int r = while_not_runnable(join_c11, &(struct join){.thread.c11 = thread, .result_c11 = result});
    return r == EDEADLK ? thrd_error : r;
}

/*
 * A fiber gives its carrier to another runnable fiber. If there is none, or the caller has no fiber, the kernel
 * chooses, whatever that costs: the program has asked for it. The exception is a thread that yields a few times before
 * each wait on a futex.
 */
static void yield_as_asked(void) {
    if (SBT_UNLIKELY(sbt_engine.order != NULL)) {
        sbt_engine.order->yield();
        return;
    }
    sbt_progress_undo();
    sbt_switch_about_to_wait();
    sbt_self.has_yielded = true;
    if (sbt_self.fiber != NULL && sbt_switch_yield_asked())
        return;
    sbt_switch_note_yield();
    sbt_yield_gate_asked(&sbt_yield_gate, &sbt_self.spare_yields);
}

SBT_EXPORT int sched_yield(void) {
    yield_as_asked();
    return 0;
}

SBT_EXPORT void thrd_yield(void) {
    yield_as_asked();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Thread creation and join: glibc's, with the engine told when a thread begins and ends, and a joining thread not
 * counted as runnable. Threads end by returning, pthread_exit or cancellation; a clean-up frame at their root sees all
 * three, before the TSD destructors run. detach, exit and cancel need nothing from us and are not defined here.
 */
/*
 * Clean-ups of the registered kind, not of the unwound kind: a program without unwind tables is not unwound down to the
 * root of its threads, where ours is.
 */
#undef __EXCEPTIONS

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/abi.h"
#include "switch/switch.h"
#include "wait/futex.h"
#include "wait/park.h"

/* What a thread is to run: from the creating thread to the new one. */
struct start {
    union {
        void *(*posix)(void *);
        thrd_start_t c11;
    } routine;
    void *argument;
    struct start *next;
    uint8_t stays; /* enum sbt_stays, from its creator */
    uint8_t stack; /* enum stack */
};
/* What of it switching may have: nothing, the husk, or a colour too, each a sixteenth at most. */
enum stack { STACK_SMALL, STACK_USUAL, STACK_LARGE };
#define USUAL_BYTES ((size_t)64 << 10)
#define LARGE_BYTES ((size_t)256 << 10)

/*
 * Records that new threads have read. They must not free them: a thread's first free gives it a malloc arena, some 64
 * MiB of address space, even if it never allocates. The next thread that creates one takes the whole list at once, so
 * that there is no record to be confused with one that was taken and put back. Release and acquire pair in the two.
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

/* In the new thread: what to run, and its record given back. */
static struct start take(void *argument) {
    struct start start = *(struct start *)argument;
    put_back(argument, argument);
    sbt_self.stays_home = start.stays;
    sbt_thread_tid(); /* now: a vfork child, which shares this memory, must not be the first to ask */
    return start;
}

static void ended(void *unused) {
    (void)unused;
    sbt_switch_thread_end(); /* what follows, down to the kernel's part, is its own kernel thread's to do */
    sbt_engine.thread_exit();
    sbt_runnable_add(-1);
    if (SBT_UNLIKELY(sbt_switch_wanted))
        sbt_switch_thread_gone();
}

/*
 * In the frame of the thread's root, so that its home has it for as long as it has a context; none where not wanted.
 * Stacks are mapped at like addresses, so that all contexts would have what a switch saves and loads in the same few
 * sets of the cache, and at the same offset in a page, where the processor takes a load for one of what was just
 * stored (barrier, 16 threads: a tenth of a round). The step is more than a frame of a switch, times 16 less than a
 * page.
 */
#define STACK_STEP 192
#define STACK_STEPS 16
#define SWITCHABLE                                                                                                     \
    do {                                                                                                               \
        sbt_self.counted = sbt_switch_wanted;                                                                          \
        if (SBT_UNLIKELY(start.stack != STACK_SMALL)) {                                                                \
            size_t apart = start.stack == STACK_LARGE ? sbt_thread_tid() % STACK_STEPS * STACK_STEP : 0;               \
            sbt_switch_thread_begin(__builtin_alloca_with_align(sizeof(struct sbt_husk) + apart, 128 /* bits */));     \
        }                                                                                                              \
    } while (0)

static void *begin(void *argument) {
    struct start start = take(argument);
    void *result;
    SWITCHABLE;
    pthread_cleanup_push(ended, NULL);
    sbt_engine.thread_enter();
    result = start.routine.posix(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

static int begin_c11(void *argument) {
    struct start start = take(argument);
    int result;
    SWITCHABLE;
    pthread_cleanup_push(ended, NULL);
    sbt_engine.thread_enter();
    result = start.routine.c11(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

/*
 * The new thread inherits from the kernel thread that creates it, and glibc blocks signals meanwhile: the creator's own
 * does it, to the end.
 */
static void before_create(void) {
    sbt_thread_process_generation(); /* a child made by _Fork notices here, in its first thread */
    sbt_runnable_add(1);
    if (SBT_UNLIKELY(sbt_switch_wanted))
        sbt_switch_before_create();
    sbt_switch_hold_home();
}

static void not_created(void) {
    sbt_runnable_add(-1);
    if (SBT_UNLIKELY(sbt_switch_wanted))
        sbt_switch_thread_gone();
}

/* Is the new thread's kernel thread one like others? It inherits from its creator's, unless the attributes say more. */
static enum sbt_stays stays(const pthread_attr_t *attr) {
    int inherit;
    cpu_set_t cpus, all;
    if (SBT_LIKELY(!sbt_switch_wanted))
        return SBT_STAYS_NOT;
    if (attr != NULL && pthread_attr_getinheritsched(attr, &inherit) == 0 && inherit == PTHREAD_EXPLICIT_SCHED)
        return SBT_STAYS_HERITABLY;
    memset(&all, 0xff, sizeof all); /* what glibc gives for attributes without an affinity */
    if (attr != NULL && (pthread_attr_getaffinity_np(attr, sizeof cpus, &cpus) != 0 || !CPU_EQUAL(&cpus, &all)))
        return SBT_STAYS_HERITABLY;
    return sbt_switch_stays_heritably();
}

/* Small too if it is not switched. */
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

SBT_EXPORT int ABI(pthread_create)(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *),
                                   void *argument) {
    sbt_init();
    if (sbt_all_theirs != 0)
        return sbt_real.pthread_create(thread, attr, routine, argument);
    struct start *start = start_new();
    if (start == NULL)
        return EAGAIN;
    *start = (struct start){{.posix = routine}, argument, NULL, stays(attr), stack(attr)};
    before_create();
    int r = sbt_real.pthread_create(thread, attr, begin, start);
    sbt_switch_release();
    if (r != 0) {
        not_created();
        put_back(start, start);
    }
    return r;
}

SBT_EXPORT int ABI(thrd_create)(thrd_t *thread, thrd_start_t routine, void *argument) {
    sbt_init();
    if (sbt_all_theirs != 0)
        return sbt_real.thrd_create(thread, routine, argument);
    struct start *start = start_new();
    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){{.c11 = routine}, argument, NULL, stays(NULL), stack(NULL)};
    before_create();
    int r = sbt_real.thrd_create(thread, begin_c11, start);
    sbt_switch_release();
    if (r != thrd_success) {
        not_created();
        put_back(start, start);
    }
    return r;
}

static void runnable_again(void *unused) {
    (void)unused;
    sbt_runnable_add(1);
    sbt_switch_release();
}

/* `call` blocks and is a cancellation point. It blocks at home: a carrier would be missed by others. */
#define WHILE_NOT_RUNNABLE(call)                                                                                       \
    do {                                                                                                               \
        int result;                                                                                                    \
        sbt_init();                                                                                                    \
        sbt_switch_hold_home();                                                                                        \
        sbt_runnable_add(-1);                                                                                          \
        pthread_cleanup_push(runnable_again, NULL);                                                                    \
        result = call;                                                                                                 \
        pthread_cleanup_pop(1);                                                                                        \
        return result;                                                                                                 \
    } while (0)

SBT_EXPORT int ABI(pthread_join)(pthread_t thread, void **result_of_thread) {
    WHILE_NOT_RUNNABLE(sbt_real.pthread_join(thread, result_of_thread));
}

SBT_EXPORT int ABI(pthread_timedjoin_np)(pthread_t thread, void **result_of_thread, const struct timespec *at) {
    WHILE_NOT_RUNNABLE(sbt_real.pthread_timedjoin_np(thread, result_of_thread, at));
}

SBT_EXPORT int ABI(pthread_clockjoin_np)(pthread_t thread, void **result_of_thread, clockid_t clock,
                                         const struct timespec *at) {
    WHILE_NOT_RUNNABLE(sbt_real.pthread_clockjoin_np(thread, result_of_thread, clock, at));
}

SBT_EXPORT int ABI(thrd_join)(thrd_t thread, int *result_of_thread) {
    WHILE_NOT_RUNNABLE(sbt_real.thrd_join(thread, result_of_thread));
}

/*
 * A context gives its carrier to others that are ready; without any, as without a context, the kernel chooses, whatever
 * it costs: the program has asked for it.
 */
static void yield_as_asked(void) {
    if (sbt_self.context == NULL || !sbt_switch_yield(false))
        sbt_yield();
}

SBT_EXPORT int ABI(sched_yield)(void) {
    yield_as_asked();
    return 0;
}

SBT_EXPORT void ABI(thrd_yield)(void) {
    yield_as_asked();
}

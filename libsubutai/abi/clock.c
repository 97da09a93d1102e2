/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Readings of clocks. An engine that keeps an order sees those of the time of day and of the monotonic clock, whichever
 * function makes them: programs make deadlines from them. Other engines do not see any.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <time.h>

#include "abi/abi.h"
#include "switch/switch.h"

/*
 * ---- readings of a thread's own CPU time ----
 *
 * The kernel counts for the kernel thread. Programs look at the difference of two readings, so the thread goes home for
 * the first and stays there: from then on its kernel thread's time is its own. What it has used on carriers before is
 * missing from each reading, and not from differences.
 *
 * clock_gettime is called very often, and before the library has started: for any other clock it is a comparison and a
 * jump.
 */
static int (*plain_clock)(clockid_t, struct timespec *); /* NULL: not known yet, or the engine keeps an order */

static SBT_NOINLINE int other_clock(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = __atomic_load_n(&sbt_real.clock_gettime, __ATOMIC_RELAXED);
    if (real == NULL) {
        long r = sbt_syscall3(SYS_clock_gettime, clock, now, 0);
        if (r == 0)
            return 0;
        errno = (int)-r;
        return -1;
    }
    if (sbt_engine.order == NULL) {
        if (sbt_init_done()) /* before, the engine may not be the one that it will be */
            __atomic_store_n(&plain_clock, real, __ATOMIC_RELAXED);
        return real(clock, now);
    }
    int r = real(clock, now);
    if (r == 0)
        sbt_engine.order->clock_read(clock, now);
    return r;
}

SBT_EXPORT int clock_gettime(clockid_t clock, struct timespec *now) {
    if (SBT_UNLIKELY(clock == CLOCK_THREAD_CPUTIME_ID))
        sbt_pin_self(false);
    int (*real)(clockid_t, struct timespec *) = __atomic_load_n(&plain_clock, __ATOMIC_RELAXED);
    return SBT_LIKELY(real != NULL) ? real(clock, now) : other_clock(clock, now);
}

/*
 * ---- the time of day, by its other functions ----
 *
 * In an order they show what clock_gettime shows. They are called before the library has started, too: then the C
 * library's functions may not be known.
 */
static SBT_NOINLINE struct timespec time_of_day(void) {
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    return now;
}

#define PLAINLY(name)                                                                                                  \
    (SBT_LIKELY(sbt_engine.order == NULL) && __atomic_load_n(&sbt_real.name, __ATOMIC_RELAXED) != NULL)

SBT_EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    if (PLAINLY(gettimeofday))
        return sbt_real.gettimeofday(now, zone);
    const struct timespec t = time_of_day();
    struct timeval *at = now;
    __asm__("" : "+r"(at)); /* the header says that it is not NULL; the kernel's does without */
    if (at != NULL)
        *at = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    if (zone != NULL) /* obsolete: the C library's too says that */
        *(struct timezone *)zone = (struct timezone){0, 0};
    return 0;
}
SBT_ALIAS_AS("", __gettimeofday, gettimeofday);

SBT_EXPORT int ftime(struct timeb *now) {
    const struct timespec t = time_of_day();
    *now = (struct timeb){.time = t.tv_sec, .millitm = (unsigned short)(t.tv_nsec / 1000000)};
    return 0;
}

SBT_EXPORT time_t time(time_t *now) {
    if (PLAINLY(time))
        return sbt_real.time(now);
    const time_t t = time_of_day().tv_sec;
    if (now != NULL)
        *now = t;
    return t;
}

SBT_EXPORT int timespec_get(struct timespec *now, int base) {
    if (PLAINLY(timespec_get) || (base != TIME_UTC && THEIRS(timespec_get) != NULL))
        return sbt_real.timespec_get(now, base);
    *now = time_of_day();
    return base;
}

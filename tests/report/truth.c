/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that know by their own clock how long they held and waited for what. Each prints a line per lock: its name,
 * and nanoseconds.
 *
 * truth holds: `seldom` is held for long, seldom, beside a lock that is taken very often; so is `outer`, and another
 * lock is taken often within; `kept` is held so long that the counts are written meanwhile. truth sleeps: `often`
 * itself is held for long once in 1500 times, while its thread sleeps, and so is `around` around it. What is printed is
 * the long holds only: all others together take a hundredth of that. truth relocks: threads take turns at a condition,
 * and each holds the mutex for long after its broadcast. What they wait then they wait for the mutex `relocked`. What
 * they wait before it, if the machine lets the thread run late that has the turn, they wait for the condition.
 */
#include <stdio.h>
#include <string.h>

#include "disease.h"

enum { ROUNDS = 20, SHORT = 1500, LONG_US = 3000, THREADS = 3, TURNS = 20 };

static pthread_mutex_t often = PTHREAD_MUTEX_INITIALIZER, seldom = PTHREAD_MUTEX_INITIALIZER,
                       outer = PTHREAD_MUTEX_INITIALIZER, kept = PTHREAD_MUTEX_INITIALIZER,
                       inner = PTHREAD_MUTEX_INITIALIZER, around = PTHREAD_MUTEX_INITIALIZER,
                       relocked = PTHREAD_MUTEX_INITIALIZER, sums = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static long turn;
static uint64_t broadcast_ns[THREADS * TURNS]; /* when the turn was given; protected by relocked */
static uint64_t relock_ns, cond_ns;            /* protected by sums */

static void take(pthread_mutex_t *mutex, int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(mutex);
        pthread_mutex_unlock(mutex);
    }
}

static uint64_t cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int holds(void) {
    uint64_t seldom_ns = 0, outer_ns = 0;
    for (int i = 0; i < ROUNDS; i++) {
        take(&often, 20000);
        pthread_mutex_lock(&seldom);
        uint64_t begin = now_ns();
        pause_us(LONG_US);
        seldom_ns += now_ns() - begin;
        pthread_mutex_unlock(&seldom);
        take(&often, 20000);
        pthread_mutex_lock(&outer);
        begin = now_ns();
        take(&inner, 20000);
        outer_ns += now_ns() - begin;
        pthread_mutex_unlock(&outer);
    }
    pthread_mutex_lock(&kept);
    uint64_t begin = now_ns();
    for (int i = 0; i < 8; i++) {
        pause_us(100000);
        take(&often, 1000);
    }
    uint64_t kept_ns = now_ns() - begin;
    pthread_mutex_unlock(&kept);
    printf("seldom %ju\nouter %ju\nkept %ju\n", (uintmax_t)seldom_ns, (uintmax_t)outer_ns, (uintmax_t)kept_ns);
    return 0;
}

/* One call site for all holds of `often`, and one for those of `around`: what is new at a site is timed anyway. */
static __attribute__((noinline)) void sleep_in(pthread_mutex_t *mutex, unsigned us) {
    pthread_mutex_lock(mutex);
    if (us > 0)
        pause_us(us);
    pthread_mutex_unlock(mutex);
}

static __attribute__((noinline)) void sleep_within(unsigned us) {
    pthread_mutex_lock(&around);
    sleep_in(&often, us);
    pthread_mutex_unlock(&around);
}

/* The thread may lose its core within a short hold, which is a long one then: `most` is with all such time. */
static int sleeps(void) {
    uint64_t ns = 0, lost_ns = 0;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        uint64_t begin = now_ns(), cpu = cpu_ns();
        for (int k = 0; k < SHORT; k++)
            sleep_within(0);
        lost_ns += now_ns() - begin - (cpu_ns() - cpu);
        begin = now_ns();
        sleep_within(LONG_US);
        ns += now_ns() - begin;
    }
    uint64_t most = ns + lost_ns;
    printf("often %ju %ju\naround %ju %ju\n", (uintmax_t)ns, (uintmax_t)most, (uintmax_t)ns, (uintmax_t)most);
    return 0;
}

static void *take_turns(void *id) {
    uint64_t relock = 0, cond = 0;
    for (int i = 0; i < TURNS; i++) {
        uint64_t begin = now_ns();
        pthread_mutex_lock(&relocked);
        relock += now_ns() - begin;
        while (turn % THREADS != (long)id) {
            long of = turn;
            begin = now_ns();
            pthread_cond_wait(&changed, &relocked);
            cond += broadcast_ns[of] - begin;
            relock += now_ns() - broadcast_ns[of];
        }
        broadcast_ns[turn++] = now_ns();
        pthread_cond_broadcast(&changed);
        pause_us(LONG_US);
        pthread_mutex_unlock(&relocked);
    }
    pthread_mutex_lock(&sums);
    relock_ns += relock;
    cond_ns += cond;
    pthread_mutex_unlock(&sums);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "holds") == 0)
        return holds();
    if (argc == 2 && strcmp(argv[1], "sleeps") == 0)
        return sleeps();
    run(THREADS, take_turns);
    printf("relocked %ju\nchanged %ju\n", (uintmax_t)relock_ns, (uintmax_t)cond_ns);
    return 0;
}

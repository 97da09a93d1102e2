/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See objects.h. Which errors are legal is checked here, once for all tortures. */
#include "objects.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const pthread_mutex_t initialisers[] = {
    [MUTEX_STATIC] = PTHREAD_MUTEX_INITIALIZER,
    [MUTEX_STATIC_RECURSIVE] = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
    [MUTEX_STATIC_ERRORCHECK] = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
    [MUTEX_STATIC_ADAPTIVE] = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
};

bool mutex_is_recursive(enum mutex_kind kind) {
    return kind == MUTEX_RECURSIVE || kind == MUTEX_STATIC_RECURSIVE;
}

bool mutex_is_errorcheck(enum mutex_kind kind) {
    return kind == MUTEX_ERRORCHECK || kind == MUTEX_STATIC_ERRORCHECK;
}

bool mutex_is_adaptive(enum mutex_kind kind) {
    return kind == MUTEX_ADAPTIVE || kind == MUTEX_STATIC_ADAPTIVE;
}

void mutex_make(pthread_mutex_t *mutex, enum mutex_kind kind) {
    if (kind >= MUTEX_STATIC && kind < N_OUR_MUTEX_KINDS) {
        memcpy(mutex, &initialisers[kind], sizeof *mutex);
        return;
    }
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    if (kind == MUTEX_RECURSIVE)
        OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE));
    if (kind == MUTEX_ERRORCHECK)
        OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
    if (kind == MUTEX_ADAPTIVE)
        OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP));
    if (kind == MUTEX_PSHARED)
        OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
    if (kind == MUTEX_ROBUST)
        OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    if (kind == MUTEX_INHERIT)
        OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
    OK(pthread_mutex_init(mutex, &attr));
    OK(pthread_mutexattr_destroy(&attr));
}

enum mutex_kind mutex_any(struct rng *rng) {
    /* Mostly what the library serves. */
    return (enum mutex_kind)rng_below(rng, rng_chance(rng, 85) ? N_OUR_MUTEX_KINDS : N_MUTEX_KINDS);
}

clockid_t clock_any(struct rng *rng) {
    return rng_chance(rng, 50) ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

/* A timed call may give up only after its deadline, and never on a far one. */
static void check_timeout(int error, clockid_t clock, const struct timespec *deadline, enum reach reach) {
    if (error != ETIMEDOUT)
        return;
    CHECK(reach != REACH_FAR);
    CHECK(time_is_past(clock, deadline));
}

int mutex_try_any(struct worker *w, pthread_mutex_t *mutex, enum mutex_kind kind) {
    struct timespec deadline;
    clockid_t clock = CLOCK_REALTIME;
    enum reach reach;
    int error = 0;
    switch (rng_below(&w->rng, 8)) {
    default:
        AT("lock");
        OK(error = pthread_mutex_lock(mutex));
        return error;
    case 0:
        AT("trylock");
        error = pthread_mutex_trylock(mutex);
        CHECK(error == 0 || error == EBUSY);
        return error;
    case 1:
        reach = random_deadline(w, clock, &deadline);
        AT("timedlock");
        error = pthread_mutex_timedlock(mutex, &deadline);
        break;
    case 2:
        /* glibc offers CLOCK_MONOTONIC for priority inheritance only with a newer kernel call. */
        clock = kind == MUTEX_INHERIT ? CLOCK_REALTIME : clock_any(&w->rng);
        reach = random_deadline(w, TSAN_OF_GLIBC ? CLOCK_REALTIME : clock, &deadline);
        AT("clocklock");
#if TSAN_OF_GLIBC
        clock = CLOCK_REALTIME;
        error = pthread_mutex_timedlock(mutex, &deadline);
#else
        error = pthread_mutex_clocklock(mutex, clock, &deadline);
#endif
        break;
    }
    CHECK(error == 0 || error == ETIMEDOUT);
    check_timeout(error, clock, &deadline, reach);
    return error;
}

void mutex_take(struct worker *w, pthread_mutex_t *mutex, enum mutex_kind kind) {
    while (mutex_try_any(w, mutex, kind) != 0)
        think(w);
}

void cond_make(pthread_cond_t *cond, clockid_t clock) {
    pthread_condattr_t attr;
    OK(pthread_condattr_init(&attr));
    OK(pthread_condattr_setclock(&attr, clock));
    OK(pthread_cond_init(cond, &attr));
    OK(pthread_condattr_destroy(&attr));
}

int cond_wait_any(struct worker *w, pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                  enum patience patience) {
    struct timespec deadline;
    enum reach reach = REACH_FAR;
    int error = 0;
    unsigned how = rng_below(&w->rng, 4);
    if (how < 2 && patience == FOREVER) {
        AT("cond_wait");
        OK(error = pthread_cond_wait(cond, mutex));
        return error;
    }
    if (how == 3)
        clock = clock_any(&w->rng);
    deadline = time_in_ns(clock, FAR_NS);
    if (patience != FOREVER)
        reach = random_deadline(w, clock, &deadline);
    if (reach == REACH_FAR && patience == BRIEF) {
        deadline = time_in_ns(clock, rng_below(&w->rng, 2000000));
        reach = REACH_SHORT;
    }
    if (how == 3) {
        AT("cond_clockwait");
        error = pthread_cond_clockwait(cond, mutex, clock, &deadline);
    } else {
        AT("cond_timedwait");
        error = pthread_cond_timedwait(cond, mutex, &deadline);
    }
    CHECK(error == 0 || error == ETIMEDOUT);
    check_timeout(error, clock, &deadline, reach);
    return error;
}

int sem_take_any(struct worker *w, sem_t *sem, bool timed) {
    struct timespec deadline;
    clockid_t clock = CLOCK_REALTIME;
    enum reach reach = REACH_FAR;
    int result;
    switch (rng_below(&w->rng, 6)) {
    default:
        if (!timed || rng_chance(&w->rng, 50)) {
            AT("sem_wait");
            result = sem_wait(sem);
            CHECK(result == 0 || errno == EINTR);
            return result == 0 ? 0 : errno;
        }
        AT("sem_trywait");
        result = sem_trywait(sem);
        CHECK(result == 0 || errno == EAGAIN);
        return result == 0 ? 0 : errno;
    case 0:
        deadline = time_in_ns(clock, FAR_NS);
        if (timed)
            reach = random_deadline(w, clock, &deadline);
        AT("sem_timedwait");
        result = sem_timedwait(sem, &deadline);
        break;
    case 1:
        clock = TSAN_OF_GLIBC ? CLOCK_REALTIME : clock_any(&w->rng);
        deadline = time_in_ns(clock, FAR_NS);
        if (timed)
            reach = random_deadline(w, clock, &deadline);
        AT("sem_clockwait");
#if TSAN_OF_GLIBC
        result = sem_timedwait(sem, &deadline);
#else
        result = sem_clockwait(sem, clock, &deadline);
#endif
        break;
    }
    int error = result == 0 ? 0 : errno;
    CHECK(error == 0 || error == EINTR || error == ETIMEDOUT);
    check_timeout(error, clock, &deadline, reach);
    return error;
}

void sem_take(struct worker *w, sem_t *sem) {
    while (sem_take_any(w, sem, false) != 0)
        ;
}

struct side {
    int (*lock)(pthread_rwlock_t *), (*trylock)(pthread_rwlock_t *);
    int (*timedlock)(pthread_rwlock_t *, const struct timespec *);
    int (*clocklock)(pthread_rwlock_t *, clockid_t, const struct timespec *);
    const char *at[4];
};

static int rwlock_any(struct worker *w, pthread_rwlock_t *lock, const struct side *side) {
    struct timespec deadline;
    clockid_t clock = CLOCK_REALTIME;
    enum reach reach;
    int error;
    switch (rng_below(&w->rng, 8)) {
    default:
        torture_at(side->at[0]);
        OK(error = side->lock(lock));
        return error;
    case 0:
        torture_at(side->at[1]);
        error = side->trylock(lock);
        CHECK(error == 0 || error == EBUSY);
        return error;
    case 1:
        reach = random_deadline(w, clock, &deadline);
        torture_at(side->at[2]);
        error = side->timedlock(lock, &deadline);
        break;
    case 2:
        clock = TSAN_OF_GLIBC ? CLOCK_REALTIME : clock_any(&w->rng);
        reach = random_deadline(w, clock, &deadline);
        torture_at(side->at[3]);
        error = TSAN_OF_GLIBC ? side->timedlock(lock, &deadline) : side->clocklock(lock, clock, &deadline);
        break;
    }
    CHECK(error == 0 || error == ETIMEDOUT);
    check_timeout(error, clock, &deadline, reach);
    return error;
}

int rwlock_read_any(struct worker *w, pthread_rwlock_t *lock) {
    static const struct side read = {pthread_rwlock_rdlock,
                                     pthread_rwlock_tryrdlock,
                                     pthread_rwlock_timedrdlock,
                                     pthread_rwlock_clockrdlock,
                                     {"rdlock", "tryrdlock", "timedrdlock", "clockrdlock"}};
    return rwlock_any(w, lock, &read);
}

int rwlock_write_any(struct worker *w, pthread_rwlock_t *lock) {
    static const struct side write = {pthread_rwlock_wrlock,
                                      pthread_rwlock_trywrlock,
                                      pthread_rwlock_timedwrlock,
                                      pthread_rwlock_clockwrlock,
                                      {"wrlock", "trywrlock", "timedwrlock", "clockwrlock"}};
    return rwlock_any(w, lock, &write);
}

/* ---- guard ---- */
static uint64_t name_of(const struct worker *w) {
    return (uint64_t)(uintptr_t)w;
}

void guard_enter(struct guard *guard, const struct worker *w) {
    CHECK(guard->owner == 0);
    CHECK(guard->before == guard->after);
    guard->owner = name_of(w);
    guard->before++;
}

void guard_leave(struct guard *guard, const struct worker *w) {
    CHECK(guard->owner == name_of(w));
    guard->after++;
    CHECK(guard->before == guard->after);
    guard->owner = 0;
}

void guard_section(struct guard *guard, struct worker *w) {
    guard_enter(guard, w);
    think_cs(w);
    guard_leave(guard, w);
}

/* ---- pages ---- */
#define N_DEAD_PAGES 4096
static _Atomic(void *) dead[N_DEAD_PAGES];
static atomic_uint n_dead;

void *page_map(void) {
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    return page;
}

void page_unmap(void *page, struct rng *rng) {
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    if (rng_chance(rng, 50)) {
        unsigned at = atomic_fetch_add_explicit(&n_dead, 1, memory_order_relaxed);
        if (at < N_DEAD_PAGES) {
            OK_ERRNO(mprotect(page, size, PROT_NONE));
            atomic_store_explicit(&dead[at], page, memory_order_relaxed);
            return;
        }
    }
    OK_ERRNO(munmap(page, size));
}

void pages_flush(void) {
    unsigned n = atomic_load_explicit(&n_dead, memory_order_relaxed);
    for (unsigned i = 0; i < n && i < N_DEAD_PAGES; i++)
        OK_ERRNO(munmap(atomic_load_explicit(&dead[i], memory_order_relaxed), (size_t)sysconf(_SC_PAGESIZE)));
    atomic_store_explicit(&n_dead, 0, memory_order_relaxed);
}

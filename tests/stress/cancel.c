/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancellation. Victims wait beside bystanders that are never cancelled: a wake-up that a cancelled victim consumed
 * and did not pass on leaves a token in and a bystander asleep, a hang. Nothing between the end of a wait and the
 * counting of its token is a cancellation point, so tokens in must equal tokens out.
 */
#include "objects.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "lib/asleep.h"

#define MAX_VICTIMS 64

static void start(struct worker *w, struct run *run, unsigned index, uint64_t stream, void (*body)(struct worker *),
                  void *shared) {
    *w = (struct worker){.index = index, .run = run, .shared = shared, .body = body};
    rng_seed(&w->rng, run->seed, stream * MAX_VICTIMS + index);
    worker_start(w);
}

/* ---- condition variables ---- */
struct ward {
    pthread_mutex_t mutex; /* of a type that fails the handler's unlock if it is not held */
    pthread_cond_t cond;
    clockid_t clock;
    unsigned tokens, taken, burst;
    atomic_uint n_handlers;
};

static void ward_handler(void *argument) {
    struct ward *ward = argument;
    atomic_fetch_add_explicit(&ward->n_handlers, 1, memory_order_relaxed);
    OK(pthread_mutex_unlock(&ward->mutex));
}

static bool ward_step(struct worker *w, struct ward *ward) {
    int state = PTHREAD_CANCEL_ENABLE;
    if (rng_chance(&w->rng, 10))
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    OK(pthread_mutex_lock(&ward->mutex));
    pthread_cleanup_push(ward_handler, ward);
    while (ward->tokens == 0 && ward->taken != ward->burst)
        cond_wait_any(w, &ward->cond, &ward->mutex, ward->clock, FOREVER);
    if (ward->taken == ward->burst) {
        w->n[1] = 1; /* not a local: those are not kept across the jump of a cancellation */
    } else {
        ward->tokens--;
        if (++ward->taken == ward->burst)
            OK(pthread_cond_broadcast(&ward->cond));
    }
    pthread_cleanup_pop(0);
    OK(pthread_mutex_unlock(&ward->mutex));
    pthread_setcancelstate(state, NULL);
    return w->n[1] == 0;
}

static void ward_body(struct worker *w) {
    while (ward_step(w, w->shared)) {
        w->n[0]++;
        DID();
    }
    w->n[2] = 1;
}

static void cancel_cond(struct run *run) {
    unsigned n = run->threads > MAX_VICTIMS ? MAX_VICTIMS : run->threads < 3 ? 3 : run->threads;
    uint64_t rounds = run->ops / n + 1, cancelled = 0, handlers = 0, late = 0, tokens = 0;
    struct rng rng;
    rng_seed(&rng, run->seed, 4);
    for (uint64_t round = 0; round < rounds && !run->stop; round++) {
        struct ward ward = {.clock = clock_any(&rng), .burst = 1 + rng_below(&rng, 2 * n)};
        struct worker workers[MAX_VICTIMS];
        bool asked[MAX_VICTIMS] = {false};
        unsigned n_victims = 1 + rng_below(&rng, n - 1), next = 0, n_cancelled = 0, n_late = 0;
        mutex_make(&ward.mutex, rng_chance(&rng, 50) ? MUTEX_ERRORCHECK : MUTEX_RECURSIVE);
        cond_make(&ward.cond, ward.clock);
        for (unsigned i = 0; i < n; i++)
            start(&workers[i], run, i, round, ward_body, &ward);
        for (unsigned i = 0; i < ward.burst; i++) {
            if (rng_chance(&rng, 50))
                sleep_ns(rng_below(&rng, 60000));
            if (next < n_victims && rng_chance(&rng, 40)) {
                asked[next] = true;
                OK(pthread_cancel(workers[next++].id));
            }
            bool inside = rng_chance(&rng, 50);
            OK(pthread_mutex_lock(&ward.mutex));
            ward.tokens++;
            if (inside)
                OK(pthread_cond_signal(&ward.cond));
            OK(pthread_mutex_unlock(&ward.mutex));
            if (!inside)
                OK(pthread_cond_signal(&ward.cond));
            if (next < n_victims && rng_chance(&rng, 40)) {
                asked[next] = true;
                OK(pthread_cancel(workers[next++].id));
            }
        }
        for (unsigned i = n; i-- > 0;) { /* bystanders first: they end by themselves */
            AT("join");
            void *result = worker_join(&workers[i]);
            CHECK(result == NULL || (result == PTHREAD_CANCELED && asked[i]));
            n_cancelled += result == PTHREAD_CANCELED;
            n_late += result == PTHREAD_CANCELED && workers[i].n[2] != 0;
        }
        CHECK_INT(ward.tokens, 0);
        CHECK_INT(ward.taken, ward.burst);
        /* The wait is a victim's only cancellation point. But glibc marks the result of a thread that is cancelled when
         * it has just returned, if that thread had been cancellable asynchronously a moment before. */
        CHECK_INT(ward.n_handlers + n_late, n_cancelled);
        OK(pthread_mutex_trylock(&ward.mutex));
        OK(pthread_mutex_unlock(&ward.mutex));
        OK(pthread_cond_destroy(&ward.cond));
        OK(pthread_mutex_destroy(&ward.mutex));
        cancelled += n_cancelled;
        handlers += ward.n_handlers;
        late += n_late;
        tokens += ward.taken;
        DID();
    }
    torture_note("%llu tokens in and out, %llu threads cancelled, %llu of them in a wait, %llu when they had returned",
                 (unsigned long long)tokens, (unsigned long long)cancelled, (unsigned long long)handlers,
                 (unsigned long long)late);
}

/* ---- semaphores ---- */
struct yard {
    sem_t sem;
    atomic_uint taken;
    atomic_bool over;
};

static void yard_victim(struct worker *w) {
    struct yard *yard = w->shared;
    for (;;) {
        sem_take(w, &yard->sem);
        atomic_fetch_add_explicit(&yard->taken, 1, memory_order_relaxed);
        DID();
    }
}

static void yard_bystander(struct worker *w) {
    struct yard *yard = w->shared;
    for (;;) {
        sem_take(w, &yard->sem);
        if (atomic_load(&yard->over))
            return;
        atomic_fetch_add_explicit(&yard->taken, 1, memory_order_relaxed);
        DID();
    }
}

static void cancel_sem(struct run *run) {
    unsigned n = run->threads > MAX_VICTIMS ? MAX_VICTIMS : run->threads;
    uint64_t rounds = run->ops / n + 1, taken = 0, left = 0;
    struct rng rng;
    rng_seed(&rng, run->seed, 5);
    for (uint64_t round = 0; round < rounds && !run->stop; round++) {
        struct yard yard = {.taken = 0};
        struct worker workers[MAX_VICTIMS];
        unsigned posts = rng_below(&rng, 2 * n), cancelled = 0;
        int value = -1;
        OK_ERRNO(sem_init(&yard.sem, 0, 0));
        for (unsigned i = 0; i < n; i++)
            start(&workers[i], run, i, round, yard_victim, &yard);
        for (unsigned i = 0; i < posts || cancelled < n;) {
            if (rng_chance(&rng, 20))
                sleep_ns(rng_below(&rng, 60000));
            if (i < posts && (cancelled == n || rng_chance(&rng, 60))) {
                OK_ERRNO(sem_post(&yard.sem));
                i++;
            } else if (cancelled < n) {
                OK(pthread_cancel(workers[cancelled++].id));
            }
        }
        for (unsigned i = 0; i < n; i++) {
            AT("join");
            CHECK(worker_join(&workers[i]) == PTHREAD_CANCELED);
        }
        OK_ERRNO(sem_getvalue(&yard.sem, &value));
        CHECK_INT((unsigned)value + yard.taken, posts); /* a cancelled wait has taken nothing */
        for (int i = 0; i < value; i++)
            OK_ERRNO(sem_trywait(&yard.sem));
        OK_ERRNO(sem_destroy(&yard.sem));
        taken += yard.taken;
        left += (unsigned)value;
        DID();
    }
    torture_note("%llu rounds: %llu tokens taken, %llu left by cancelled waiters", (unsigned long long)rounds,
                 (unsigned long long)taken, (unsigned long long)left);
}

/* Bystanders sleep beside the victims: a wake-up that goes to a victim as it is cancelled must go on to one of them. */
static void cancel_sem_passes(struct run *run) {
    unsigned n = run->threads > MAX_VICTIMS ? MAX_VICTIMS : run->threads < 4 ? 4 : run->threads;
    uint64_t rounds = run->ops / n + 1, tokens = 0;
    struct rng rng;
    rng_seed(&rng, run->seed, 12);
    for (uint64_t round = 0; round < rounds && !run->stop; round++) {
        struct yard yard = {.taken = 0};
        struct worker workers[MAX_VICTIMS];
        unsigned n_victims = n - 1 - rng_below(&rng, n / 2), posts = n_victims;
        OK_ERRNO(sem_init(&yard.sem, 0, 0));
        for (unsigned i = 0; i < n; i++)
            start(&workers[i], run, i, round, i < n_victims ? yard_victim : yard_bystander, &yard);
        if (rng_chance(&rng, 80))
            sleep_ns(rng_below(&rng, 300000)); /* let them fall asleep, victims first */
        for (unsigned i = 0; i < posts; i++) {
            bool post_first = rng_chance(&rng, 50);
            if (post_first)
                OK_ERRNO(sem_post(&yard.sem));
            OK(pthread_cancel(workers[i].id));
            if (!post_first)
                OK_ERRNO(sem_post(&yard.sem));
        }
        for (unsigned i = 0; i < n_victims; i++) {
            AT("join");
            CHECK(worker_join(&workers[i]) == PTHREAD_CANCELED);
        }
        AT("waiting for the bystanders to take what is left");
        for (unsigned taken; (taken = atomic_load(&yard.taken)) != posts;) {
            CHECK(taken < posts); /* one reading: a second could already be the end that the loop waits for */
            sleep_ns(50000);
        }
        atomic_store(&yard.over, true);
        for (unsigned i = n_victims; i < n; i++)
            OK_ERRNO(sem_post(&yard.sem));
        for (unsigned i = n_victims; i < n; i++) {
            AT("join a bystander");
            CHECK(worker_join(&workers[i]) == NULL);
        }
        OK_ERRNO(sem_destroy(&yard.sem));
        tokens += posts;
        DID();
    }
    torture_note("%llu tokens, %llu rounds", (unsigned long long)tokens, (unsigned long long)rounds);
}

/* ---- join ---- */
struct joint {
    struct worker target, joiner;
    sem_t release;
};

static void joint_target(struct worker *w) {
    struct joint *joint = w->shared;
    sem_take(w, &joint->release);
}

static void joint_joiner(struct worker *w) {
    struct joint *joint = w->shared;
    AT("join, to be cancelled");
    OK(pthread_join(joint->target.id, NULL));
}

static void cancel_join(struct run *run) {
    uint64_t cancelled = 0;
    struct rng rng;
    rng_seed(&rng, run->seed, 6);
    for (uint64_t round = 0; round < run->ops && !run->stop; round++) {
        struct joint joint;
        OK_ERRNO(sem_init(&joint.release, 0, 0));
        start(&joint.target, run, 0, round, joint_target, &joint);
        start(&joint.joiner, run, 1, round, joint_joiner, &joint);
        bool race = rng_chance(&rng, 50); /* the target ends while the joiner is cancelled */
        if (rng_chance(&rng, 70))
            sleep_ns(rng_below(&rng, 150000));
        if (race)
            OK_ERRNO(sem_post(&joint.release));
        if (rng_chance(&rng, 50))
            sleep_ns(rng_below(&rng, 30000));
        OK(pthread_cancel(joint.joiner.id));
        AT("join the joiner");
        bool was_cancelled = worker_join(&joint.joiner) == PTHREAD_CANCELED;
        CHECK(race || was_cancelled);
        if (!race)
            OK_ERRNO(sem_post(&joint.release));
        if (was_cancelled) { /* so the target has not been detached */
            AT("join the target");
            CHECK(worker_join(&joint.target) == NULL);
            cancelled++;
        }
        OK_ERRNO(sem_destroy(&joint.release));
        DID();
    }
    torture_note("%llu rounds, %llu joins cancelled, their targets joined after", (unsigned long long)run->ops,
                 (unsigned long long)cancelled);
}

/* ---- what is no cancellation point: mutex, rwlock, barrier ---- */
struct stubborn {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    struct guard guard;
    atomic_uint n_through;
};

static void patience_body(struct worker *w) {
    struct stubborn *p = w->shared;
    AT("mutex_lock with a cancel pending");
    OK(pthread_mutex_lock(&p->mutex));
    guard_enter(&p->guard, w);
    guard_leave(&p->guard, w);
    OK(pthread_mutex_unlock(&p->mutex));
    AT("rdlock with a cancel pending");
    OK(pthread_rwlock_rdlock(&p->rwlock));
    OK(pthread_rwlock_unlock(&p->rwlock));
    AT("wrlock with a cancel pending");
    OK(pthread_rwlock_wrlock(&p->rwlock));
    OK(pthread_rwlock_unlock(&p->rwlock));
    AT("barrier_wait with a cancel pending");
    pthread_barrier_wait(&p->barrier);
    atomic_fetch_add_explicit(&p->n_through, 1, memory_order_relaxed);
    pthread_testcancel();
    CHECK(!"a thread asked to cancel passed testcancel");
}

static void cancel_not_points(struct run *run) {
    unsigned n = run->threads > MAX_VICTIMS ? MAX_VICTIMS : run->threads;
    uint64_t rounds = run->ops / n + 1;
    struct rng rng;
    rng_seed(&rng, run->seed, 7);
    for (uint64_t round = 0; round < rounds && !run->stop; round++) {
        struct stubborn p = {.n_through = 0};
        struct worker workers[MAX_VICTIMS];
        OK(pthread_mutex_init(&p.mutex, NULL));
        OK(pthread_rwlock_init(&p.rwlock, NULL));
        OK(pthread_barrier_init(&p.barrier, NULL, n + 1));
        OK(pthread_mutex_lock(&p.mutex));
        OK(pthread_rwlock_wrlock(&p.rwlock));
        for (unsigned i = 0; i < n; i++)
            start(&workers[i], run, i, round, patience_body, &p);
        for (unsigned i = 0; i < n; i++)
            while (atomic_load(&workers[i].tid) == 0) /* not before it runs: starting is not what is tested */
                sleep_ns(10000);
        sleep_ns(rng_below(&rng, 200000));
        bool late = rng_chance(&rng, 30);
        for (unsigned i = 0; i < n && !late; i++)
            OK(pthread_cancel(workers[i].id));
        OK(pthread_mutex_unlock(&p.mutex));
        OK(pthread_rwlock_unlock(&p.rwlock));
        for (unsigned i = 0; i < n && late; i++)
            OK(pthread_cancel(workers[i].id));
        AT("barrier_wait");
        pthread_barrier_wait(&p.barrier);
        for (unsigned i = 0; i < n; i++)
            CHECK(worker_join(&workers[i]) == PTHREAD_CANCELED);
        CHECK_INT(p.n_through, n);
        CHECK_INT(p.guard.after, n);
        OK(pthread_barrier_destroy(&p.barrier));
        OK(pthread_rwlock_destroy(&p.rwlock));
        OK(pthread_mutex_destroy(&p.mutex));
        DID();
    }
    torture_note("%llu rounds of %u threads, all served although cancelled", (unsigned long long)rounds, n);
}

/* ---- asynchronous: in a computation that holds a lock, and asleep in a wait ---- */
enum sleep_in { IN_COMPUTATION, IN_COND, IN_COND_TIMED, IN_SEM, IN_JOIN, N_SLEEPS };
struct bed {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    sem_t sem;
    pthread_t other;
    enum sleep_in where;
    atomic_uint n_handlers;
    atomic_bool ready;
};

static void bed_handler(void *argument) {
    struct bed *bed = argument;
    atomic_fetch_add_explicit(&bed->n_handlers, 1, memory_order_relaxed);
    OK(pthread_mutex_unlock(&bed->mutex));
}

static void bed_body(struct worker *w) {
    struct bed *bed = w->shared;
    struct timespec far = time_in_ns(CLOCK_REALTIME, FAR_NS);
    OK(pthread_mutex_lock(&bed->mutex));
    pthread_cleanup_push(bed_handler, bed);
    AT("cancelled asynchronously");
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    atomic_store_explicit(&bed->ready, true, memory_order_relaxed);
    for (;;) {
        if (bed->where == IN_COMPUTATION)
            busy(1000);
        else if (bed->where == IN_COND)
            pthread_cond_wait(&bed->cond, &bed->mutex);
        else if (bed->where == IN_COND_TIMED)
            pthread_cond_timedwait(&bed->cond, &bed->mutex, &far);
        else if (bed->where == IN_SEM)
            sem_wait(&bed->sem);
        else
            pthread_join(bed->other, NULL);
    }
    pthread_cleanup_pop(1);
}

static void bed_other(struct worker *w) {
    struct bed *bed = w->shared;
    sem_take(w, &bed->sem);
}

static void cancel_async(struct run *run) {
    for (uint64_t round = 0; round < run->ops && !run->stop; round++) {
        struct bed bed = {.where = (enum sleep_in)(round % N_SLEEPS)};
        struct worker victim, other;
        mutex_make(&bed.mutex, MUTEX_ERRORCHECK);
        cond_make(&bed.cond, CLOCK_REALTIME);
        OK_ERRNO(sem_init(&bed.sem, 0, 0));
        if (bed.where == IN_JOIN) {
            start(&other, run, 1, round, bed_other, &bed);
            bed.other = other.id;
        }
        start(&victim, run, 0, round, bed_body, &bed);
        /* Asynchronous cancellation inside a library call is safe only there: before and after, even glibc may be
         * between two steps. */
        AT("waiting for the victim to sleep");
        while (!atomic_load(&bed.ready))
            sched_yield();
        for (unsigned seen = 0; seen < 3 && bed.where != IN_COMPUTATION;) {
            sleep_ns(300000);
            seen = is_asleep(atomic_load(&victim.tid)) ? seen + 1 : 0;
        }
        OK(pthread_cancel(victim.id));
        AT("join");
        CHECK(worker_join(&victim) == PTHREAD_CANCELED);
        CHECK_INT(bed.n_handlers, 1);
        OK(pthread_mutex_trylock(&bed.mutex));
        OK(pthread_mutex_unlock(&bed.mutex));
        if (bed.where == IN_JOIN) {
            OK_ERRNO(sem_post(&bed.sem));
            CHECK(worker_join(&other) == NULL);
        }
        int value = -1;
        OK_ERRNO(sem_getvalue(&bed.sem, &value));
        CHECK_INT(value, 0);
        OK_ERRNO(sem_destroy(&bed.sem));
        OK(pthread_cond_destroy(&bed.cond));
        OK(pthread_mutex_destroy(&bed.mutex));
        DID();
    }
    torture_note("%llu threads cancelled in computation, cond_wait, cond_timedwait, sem_wait and join",
                 (unsigned long long)run->ops);
}

const struct torture cancel_tortures[] = {
    {"cancel-cond", "mutex held in the handler, no signal lost", cancel_cond, 8, 6000, NEEDS_CANCEL},
    {"cancel-sem", "a cancelled wait takes no token", cancel_sem, 8, 4000, NEEDS_CANCEL},
    {"cancel-sem-passes", "a wake-up passes a cancelled waiter", cancel_sem_passes, 8, 8000,
     NEEDS_CANCEL | NEEDS_BETTER},
    {"cancel-join", "the target stays joinable", cancel_join, 2, 800, NEEDS_CANCEL},
    {"cancel-not-points", "locks and barriers do not cancel", cancel_not_points, 8, 2000, NEEDS_CANCEL},
    {"cancel-async", "asynchronous cancellation of computing and sleeping threads", cancel_async, 2, 300, NEEDS_CANCEL},
    {0},
};

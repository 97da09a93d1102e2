/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Semaphores: never more holders than tokens, every post is taken once, posts from signal handlers that interrupt
 * any of the library's slow paths, and EINTR.
 */
#include "objects.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* ---- tokens: holders never exceed the initial value ---- */
#define N_POOLS 3
struct pool {
    sem_t sem;
    int value;
    atomic_int holders;
};

static void tokens_body(struct worker *w) {
    struct pool *pools = w->shared;
    while (worker_more(w)) {
        struct pool *p = &pools[rng_below(&w->rng, N_POOLS)];
        int value;
        if (sem_take_any(w, &p->sem, true) != 0) {
            w->n[1]++;
        } else {
            CHECK(atomic_fetch_add_explicit(&p->holders, 1, memory_order_relaxed) < p->value);
            OK_ERRNO(sem_getvalue(&p->sem, &value));
            CHECK(value >= 0 && value < p->value); /* one token is here */
            think_cs(w);
            atomic_fetch_sub_explicit(&p->holders, 1, memory_order_relaxed);
            AT("sem_post");
            OK_ERRNO(sem_post(&p->sem));
            w->n[0]++;
        }
        think(w);
        DID();
    }
}

static void sem_tokens(struct run *run) {
    struct pool pools[N_POOLS] = {0};
    uint64_t sums[4];
    for (int i = 0; i < N_POOLS; i++) {
        pools[i].value = 1 + i * 2;
        OK_ERRNO(sem_init(&pools[i].sem, GLIBC_KINDS && i == 2, (unsigned)pools[i].value)); /* one process-shared */
    }
    team_whole(run, run->threads, tokens_body, pools, sums);
    for (int i = 0; i < N_POOLS; i++) {
        int value = -1;
        OK_ERRNO(sem_getvalue(&pools[i].sem, &value));
        CHECK_INT(value, pools[i].value);
        OK_ERRNO(sem_destroy(&pools[i].sem));
    }
    torture_note("%llu taken and given back, %llu attempts given up", (unsigned long long)sums[0],
                 (unsigned long long)sums[1]);
}

/* ---- hand-off: quotas of posts and waits; a lost wake-up leaves a thread asleep ---- */
struct handoff {
    sem_t full, room;
    atomic_ullong in, out;
    atomic_ullong sum_in, sum_out;
};

static void handoff_body(struct worker *w) {
    struct handoff *h = w->shared;
    uint64_t quota = w->left;
    for (uint64_t i = 0; i < quota; i++) {
        if (w->index & 1) {
            sem_take(w, &h->full);
            atomic_fetch_add_explicit(&h->out, 1, memory_order_relaxed);
            AT("sem_post");
            OK_ERRNO(sem_post(&h->room));
        } else {
            sem_take(w, &h->room);
            atomic_fetch_add_explicit(&h->in, 1, memory_order_relaxed);
            AT("sem_post");
            OK_ERRNO(sem_post(&h->full));
        }
        if (rng_chance(&w->rng, 10))
            think(w);
        DID();
    }
}

static void sem_handoff(struct run *run) {
    struct handoff h = {0};
    OK_ERRNO(sem_init(&h.full, 0, 0));
    OK_ERRNO(sem_init(&h.room, 0, 3));
    team_whole(run, run->threads & ~1u, handoff_body, &h, NULL);
    int full = -1, room = -1;
    OK_ERRNO(sem_getvalue(&h.full, &full));
    OK_ERRNO(sem_getvalue(&h.room, &room));
    CHECK_INT(full, 0);
    CHECK_INT(room, 3);
    CHECK(h.in == h.out);
    OK_ERRNO(sem_destroy(&h.full));
    OK_ERRNO(sem_destroy(&h.room));
    torture_note("%llu items handed over", (unsigned long long)h.out);
}

/* ---- pairs: plain data ordered by two semaphores only ---- */
struct pair {
    sem_t to, from;
    uint64_t data;
};

static void pair_body(struct worker *w) {
    struct pair *p = (struct pair *)w->shared + w->index / 2;
    uint64_t quota = w->left;
    for (uint64_t i = 0; i < quota; i++) {
        if (w->index & 1) {
            sem_take(w, &p->to);
            CHECK_INT(p->data, 2 * i + 1);
            p->data++;
            AT("sem_post");
            OK_ERRNO(sem_post(&p->from));
        } else {
            CHECK_INT(p->data, 2 * i);
            p->data++;
            AT("sem_post");
            OK_ERRNO(sem_post(&p->to));
            sem_take(w, &p->from);
        }
        w->n[0]++;
        DID();
    }
}

static void sem_pairs(struct run *run) {
    unsigned n = run->threads / 2;
    uint64_t sums[4];
    struct pair *pairs = calloc(n, sizeof *pairs);
    for (unsigned i = 0; i < n; i++) {
        OK_ERRNO(sem_init(&pairs[i].to, 0, 0));
        OK_ERRNO(sem_init(&pairs[i].from, 0, 0));
    }
    team_whole(run, n * 2, pair_body, pairs, sums);
    free(pairs); /* never destroyed */
    torture_note("%llu turns", (unsigned long long)sums[0]);
}

/* ---- race of timeouts with posts: a waiter that leaves must not take a wake-up with it ---- */
struct race {
    sem_t sem;
    struct meeting meeting;
    unsigned n, n_timed, burst;
    atomic_uint taken, timed_out;
    uint64_t rounds;
};

static void race_take(struct race *r) {
    if (atomic_fetch_add_explicit(&r->taken, 1, memory_order_relaxed) + 1 == r->burst)
        for (unsigned i = r->n_timed + 1; i < r->n; i++)
            OK_ERRNO(sem_post(&r->sem)); /* one for each untimed waiter, to see that it is over */
}

/* Once a round, then off to the meeting: coming back it would rescue a token that others sleep beside. */
static void race_timed(struct worker *w, struct race *r) {
    clockid_t clock = TSAN_OF_GLIBC ? CLOCK_REALTIME : clock_any(&w->rng);
    struct timespec deadline = time_in_ns(clock, rng_below(&w->rng, 80000));
    AT("sem_timedwait, racing");
    int result = clock == CLOCK_REALTIME ? sem_timedwait(&r->sem, &deadline) : sem_clockwait(&r->sem, clock, &deadline);
    CHECK(result == 0 || errno == ETIMEDOUT);
    if (result != 0) {
        CHECK(time_is_past(clock, &deadline));
        atomic_fetch_add_explicit(&r->timed_out, 1, memory_order_relaxed);
    } else if (atomic_load_explicit(&r->taken, memory_order_relaxed) < r->burst) {
        race_take(r);
    } else {
        OK_ERRNO(sem_post(&r->sem)); /* one of the posts that end the round: not for us */
    }
}

static void race_untimed(struct worker *w, struct race *r) {
    for (;;) {
        sem_take(w, &r->sem);
        if (atomic_load_explicit(&r->taken, memory_order_relaxed) >= r->burst)
            return;
        race_take(r);
    }
}

static void race_body(struct worker *w) {
    struct race *r = w->shared;
    for (uint64_t round = 0; round < r->rounds; round++) {
        meeting_wait(&r->meeting);
        if (w->index > r->n_timed) {
            race_untimed(w, r);
        } else if (w->index > 0) {
            race_timed(w, r);
        } else {
            for (unsigned i = 0; i < r->burst; i++) {
                if (rng_chance(&w->rng, 70))
                    rest_ns(rng_below(&w->rng, 60000));
                AT("sem_post");
                OK_ERRNO(sem_post(&r->sem));
            }
        }
        AT("end of a round: a wake-up was lost if some still wait");
        meeting_wait(&r->meeting);
        if (w->index == 0) {
            int value = -1;
            OK_ERRNO(sem_getvalue(&r->sem, &value));
            CHECK_INT(value, 0);
            CHECK_INT(r->taken, r->burst);
            w->n[0] += r->burst;
            atomic_store_explicit(&r->taken, 0, memory_order_relaxed);
            r->burst = 1 + rng_below(&w->rng, r->n);
        }
        DID();
    }
}

static void sem_race(struct run *run) {
    uint64_t tokens = 0, timed_out = 0, rounds = run->ops / 2;
    for (unsigned part = 0; part < 2 && !run->stop; part++) {
        struct race r = {.burst = 1, .rounds = rounds};
        uint64_t sums[4];
        r.n = run->threads < 4 ? 4 : run->threads;
        r.n_timed = part == 0 ? r.n - 2 : r.n / 2;
        meeting_init(&r.meeting, r.n);
        OK_ERRNO(sem_init(&r.sem, 0, 0));
        team_whole(run, r.n, race_body, &r, sums);
        tokens += sums[0];
        timed_out += r.timed_out;
        OK_ERRNO(sem_destroy(&r.sem));
    }
    torture_note("%llu tokens in and out, %llu waits timed out", (unsigned long long)tokens,
                 (unsigned long long)timed_out);
}

/* ---- rounds: a burst of as many posts as there are waiters, and then none that could rescue one left asleep ---- */
struct burst {
    sem_t sem;
    struct meeting meeting;
    unsigned n;
    uint64_t rounds;
};

static void burst_body(struct worker *w) {
    struct burst *b = w->shared;
    for (uint64_t round = 0; round < b->rounds; round++) {
        if (w->index == 0 && rng_chance(&w->rng, 50)) { /* young again: what it has learnt of its waits is gone */
            OK_ERRNO(sem_destroy(&b->sem));
            OK_ERRNO(sem_init(&b->sem, 0, 0));
        }
        meeting_wait(&b->meeting);
        if (w->index == 0) {
            if (rng_chance(&w->rng, 30))
                rest_ns(rng_below(&w->rng, 100000)); /* some are asleep by then, some on their way */
            AT("sem_post, a burst");
            for (unsigned i = 1; i < b->n; i++) {
                OK_ERRNO(sem_post(&b->sem));
                if (rng_chance(&w->rng, 30))
                    busy(rng_below(&w->rng, 2000));
            }
        } else {
            busy(rng_below(&w->rng, 5000));
            sem_take(w, &b->sem);
            w->n[0]++;
        }
        AT("end of a round: a wake-up was lost if some still wait");
        meeting_wait(&b->meeting);
        DID();
    }
}

static void sem_rounds(struct run *run) {
    struct burst b = {.n = run->threads, .rounds = run->ops};
    uint64_t sums[4];
    int value = -1;
    meeting_init(&b.meeting, b.n);
    OK_ERRNO(sem_init(&b.sem, 0, 0));
    team_whole(run, b.n, burst_body, &b, sums);
    CHECK_INT(sums[0], b.rounds * (b.n - 1));
    OK_ERRNO(sem_getvalue(&b.sem, &value));
    CHECK_INT(value, 0);
    OK_ERRNO(sem_destroy(&b.sem));
    torture_note("%llu rounds, %llu posts taken", (unsigned long long)b.rounds, (unsigned long long)sums[0]);
}

/* ---- posts from signal handlers ---- */
static struct {
    sem_t bell;
    pthread_mutex_t mutex;
    struct guard guard;
    atomic_ullong posted, taken, interrupted;
    atomic_bool over;
} ring;

static void ring_bell(int number) {
    int before = errno;
    (void)number;
    if (sem_post(&ring.bell) == 0)
        atomic_fetch_add_explicit(&ring.posted, 1, memory_order_relaxed);
    errno = before;
}

static void bell_body(struct worker *w) {
    while (!atomic_load_explicit(&ring.over, memory_order_relaxed)) {
        if (rng_chance(&w->rng, 50)) {
            int error = sem_take_any(w, &ring.bell, rng_chance(&w->rng, 30));
            if (error == 0) {
                atomic_fetch_add_explicit(&ring.taken, 1, memory_order_relaxed);
                DID();
            } else if (error == EINTR) {
                atomic_fetch_add_explicit(&ring.interrupted, 1, memory_order_relaxed);
            }
        } else {
            /* Signals arrive inside these slow paths; none of them may return EINTR. */
            mutex_take(w, &ring.mutex, MUTEX_NORMAL);
            guard_section(&ring.guard, w);
            AT("unlock");
            OK(pthread_mutex_unlock(&ring.mutex));
            w->n[0]++;
            if (rng_chance(&w->rng, 10)) {
                atomic_fetch_add_explicit(&ring.posted, 1, memory_order_relaxed);
                AT("sem_post, not in a handler");
                OK_ERRNO(sem_post(&ring.bell));
            }
        }
    }
}

static void bell_handlers(struct sigaction *saved, bool restart_alarm) {
    struct sigaction action = {.sa_handler = ring_bell};
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, &saved[0]);
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, &saved[1]);
    action.sa_flags = restart_alarm ? SA_RESTART : 0;
    sigaction(SIGALRM, &action, &saved[2]);
}

static void sem_signals(struct run *run) {
    struct sigaction saved[3];
    struct itimerval timer = {{0, 700}, {0, 700}}, off = {0};
    struct rng rng;
    struct team team;
    memset(&ring, 0, sizeof ring);
    rng_seed(&rng, run->seed, 3);
    OK_ERRNO(sem_init(&ring.bell, 0, 0));
    bell_handlers(saved, rng_chance(&rng, 50));
    team_start(&team, run, run->threads, bell_body, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (uint64_t i = 0; i < run->ops && !run->stop; i++) {
        AT("pthread_kill");
        OK(pthread_kill(team.workers[rng_below(&rng, team.n)].id, rng_chance(&rng, 50) ? SIGUSR1 : SIGUSR2));
        if (rng_chance(&rng, 30))
            sleep_ns(rng_below(&rng, 100000));
    }
    setitimer(ITIMER_REAL, &off, NULL);
    /* All posts are taken without any help; a waiter that slept through its post would stay here. */
    AT("waiting for all posts to be taken");
    while (atomic_load(&ring.taken) != atomic_load(&ring.posted)) {
        CHECK(atomic_load(&ring.taken) <= atomic_load(&ring.posted) + team.n);
        sleep_ns(1000000);
    }
    atomic_store(&ring.over, true);
    for (unsigned i = 0; i < team.n; i++)
        OK_ERRNO(sem_post(&ring.bell));
    team_join(&team);
    for (unsigned i = 0; i < 3; i++)
        sigaction((int[]){SIGUSR1, SIGUSR2, SIGALRM}[i], &saved[i], NULL);
    CHECK_INT(ring.guard.after, team_sum(&team, 0));
    torture_note("%llu posts (most from handlers) all taken, %llu waits ended by EINTR, %llu sections",
                 (unsigned long long)ring.posted, (unsigned long long)ring.interrupted,
                 (unsigned long long)team_sum(&team, 0));
    team_free(&team);
    OK_ERRNO(sem_destroy(&ring.bell));
    OK(pthread_mutex_destroy(&ring.mutex));
}

/* ---- EINTR: a wait without a post ends when a handler without SA_RESTART has run ---- */
static atomic_ullong handled;

static void handle(int number) {
    (void)number;
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}

struct never {
    sem_t sem;
    atomic_uint n_done;
};

static void eintr_body(struct worker *w) {
    struct never *n = w->shared;
    uint64_t quota = w->left;
    for (uint64_t i = 0; i < quota; i++) {
        struct timespec far = time_in_ns(CLOCK_REALTIME, FAR_NS), far_mono = time_in_ns(CLOCK_MONOTONIC, FAR_NS);
        int result;
        AT("a sem_wait that only EINTR ends");
        if (i % 3 == 0)
            result = sem_wait(&n->sem);
        else if (i % 3 == 1)
            result = sem_timedwait(&n->sem, &far);
        else
            result = TSAN_OF_GLIBC ? sem_wait(&n->sem) : sem_clockwait(&n->sem, CLOCK_MONOTONIC, &far_mono);
        CHECK_INT(result, -1);
        CHECK_INT(errno, EINTR);
        DID();
    }
    atomic_fetch_add_explicit(&n->n_done, 1, memory_order_relaxed);
}

static void sem_eintr(struct run *run) {
    struct sigaction action = {.sa_handler = handle}, saved;
    struct never never = {0};
    struct team team;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR2, &action, &saved);
    OK_ERRNO(sem_init(&never.sem, 0, 0));
    team_start(&team, run, run->threads, eintr_body, &never);
    while (atomic_load_explicit(&never.n_done, memory_order_relaxed) < team.n) {
        for (unsigned i = 0; i < team.n; i++)
            OK(pthread_kill(team.workers[i].id, SIGUSR2));
        sleep_ns(100000);
    }
    team_join(&team);
    team_free(&team);
    int value = -1;
    OK_ERRNO(sem_getvalue(&never.sem, &value));
    CHECK_INT(value, 0);
    sigaction(SIGUSR2, &saved, NULL);
    OK_ERRNO(sem_destroy(&never.sem));
    torture_note("%llu waits ended by EINTR", (unsigned long long)run->ops);
}

const struct torture sem_tortures[] = {
    {"sem-tokens", "never more holders than tokens", sem_tokens, 8, 40000, 0},
    {"sem-handoff", "each post is taken once, none left asleep", sem_handoff, 8, 40000, 0},
    {"sem-rounds", "a burst of posts wakes all it should", sem_rounds, 6, 4000, 0},
    {"sem-race", "timeouts against posts, no wake-up lost", sem_race, 8, 800, 0},
    {"sem-pairs", "a post orders plain data", sem_pairs, 16, 30000, 0},
    {"sem-signals", "posts from signal handlers all arrive", sem_signals, 6, 6000, NEEDS_SIGNALS},
    {"sem-eintr", "a handler ends a wait with EINTR", sem_eintr, 4, 400, NEEDS_SIGNALS},
    {0},
};

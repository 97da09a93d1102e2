/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every torture uses over tests/lib: random numbers, teams of threads, the record of what each thread does, time.
 *
 * Nothing here may synchronise what is watched: everything in here is relaxed atomics on the thread's own line
 * (or a futex-free yield loop where said), so that a missing edge between two threads of a torture stays missing
 * and ThreadSanitizer still finds it.
 */
#ifndef STRESS_TORTURE_H
#define STRESS_TORTURE_H

#include "api.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

#define MAX_THREADS 2048        /* that exist at once */
#define FAR_NS (600 * NS_PER_S) /* a deadline that no run reaches: ETIMEDOUT on it is a failure */

/* What a torture needs and some build cannot give; driver.c says which build lacks what, and why. */
enum {
    NEEDS_FORK = 1,
    NEEDS_CANCEL = 2,
    NEEDS_SIGNALS = 4,
    NEEDS_C11 = 8,
    NEEDS_MANY = 16,
    NEEDS_EARLY_DESTROY = 32,
    NEEDS_BETTER = 64
};

struct run {
    const struct torture *torture;
    uint64_t seed;
    uint64_t ops;     /* operations over all threads, roughly */
    unsigned threads; /* at least 2 */
    atomic_bool stop; /* set when the torture's time is over */
};

struct torture {
    const char *name;
    const char *what; /* the invariant, one line */
    void (*run)(struct run *);
    unsigned threads; /* default */
    uint64_t ops;     /* default: the short form */
    unsigned needs;
};

/* Each list ends with a zero name. */
extern const struct torture mutex_tortures[], cond_tortures[], barrier_tortures[], rwlock_tortures[], sem_tortures[],
    spin_tortures[], once_tortures[], cancel_tortures[], mixed_tortures[], fork_tortures[], churn_tortures[],
    memory_tortures[], release_tortures[], c11_tortures[], futex_tortures[];

/* ---- random numbers: xorshift, one state per thread, never shared ---- */
struct rng {
    uint64_t state;
};
void rng_seed(struct rng *rng, uint64_t seed, uint64_t stream);
uint64_t rng_next(struct rng *rng);
unsigned rng_below(struct rng *rng, unsigned n); /* 0 .. n-1 */
bool rng_chance(struct rng *rng, unsigned percent);

/* ---- threads ---- */
struct worker {
    pthread_t id;
    unsigned index; /* 0 .. n-1 in its team */
    uint64_t left;  /* operations still to do */
    struct rng rng;
    struct run *run;
    void *shared; /* the torture's state */
    void (*body)(struct worker *);
    uint64_t n[4];       /* the body's own counts, summed by team_sum */
    atomic_int tid;      /* kernel thread, 0 before it runs */
    atomic_bool running; /* until just before the thread ends */
};

struct team {
    struct worker *workers;
    unsigned n;
    struct run *run;
};

/* n threads that share run->ops; the calling thread is none of them. */
void team_start(struct team *team, struct run *run, unsigned n, void (*body)(struct worker *), void *shared);
void team_join(struct team *team); /* joins; counts stay readable */
uint64_t team_sum(const struct team *team, unsigned count);
void team_free(struct team *team);
void team_whole(struct run *run, unsigned n, void (*body)(struct worker *), void *shared, uint64_t *sums);
/* One thread for a worker filled in by the caller (run, body, shared, index, rng). */
void worker_start(struct worker *worker);
void *worker_join(struct worker *worker);     /* what the thread returned, PTHREAD_CANCELED for a cancelled one */
bool worker_more(struct worker *worker);      /* one operation less left; false at the end */
void thread_attr_small(pthread_attr_t *attr); /* initialised with the stack size of the suite's threads */

/* ---- what a thread does, for the watchdog ---- */
void torture_at(const char *where);
void torture_did(uint64_t n); /* n operations completed: progress */
#define STRESS_STR2(x) #x
#define STRESS_STR(x) STRESS_STR2(x)
#define AT(what) torture_at(__FILE_NAME__ ":" STRESS_STR(__LINE__) " " what)
#define DID() torture_did(1)
#ifndef __FILE_NAME__
#define __FILE_NAME__ __FILE__
#endif

/* A thread that is not a worker's takes a record with torture_enter and gives it back with torture_leave. */
void torture_enter(void);
void torture_leave(void);
/* In the child of fork: only the caller is left. */
void torture_forked(void);

/* ---- checks: a failed one (lib/checks.h) is counted, and the torture goes on ---- */
void torture_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports what hangs (pid), then freezes for a debugger if the run was asked to. */
void torture_hung(int pid, const char *what);
unsigned torture_failures(void);
uint64_t torture_checks(void); /* made by the caller, and by threads that are gone */

/* ---- time ---- */
void busy(unsigned turns);       /* a critical section's worth of nothing */
void think(struct worker *w);    /* mostly nothing, sometimes a yield, rarely a sleep */
void think_cs(struct worker *w); /* the same inside a critical section: sleeps rarer still */

/* A random deadline: already over, within some 100 us, or far. */
enum reach { REACH_PAST, REACH_SHORT, REACH_FAR };
enum reach random_deadline(struct worker *w, clockid_t clock, struct timespec *deadline);

/*
 * A sleep. The build for sanitizers serves no plain one: an engine that keeps an order would take the thread for one
 * that keeps the turn, and wait. There it is a wait of the engine's.
 */
void rest_ns(int64_t ns);

/* ---- a rendezvous that uses nothing under test, but rest_ns ---- */
struct meeting {
    atomic_uint arrived, round;
    unsigned n;
};
void meeting_init(struct meeting *meeting, unsigned n);
void meeting_wait(struct meeting *meeting); /* acquire/release like a barrier, by yielding */

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that time each hold of theirs, most of them of a microsecond, while threads that compute take the processors
 * from them, or while they sleep. held KIND prints a line for each lock: its name; nanoseconds it was held; nanoseconds
 * that may be the hold's or not, because the thread was away between its clock and the call; holds; the longest; and
 * how long all but a hundredth of them were at most.
 *
 * own, rwlock, spin: each thread has its own. shared: one for all. mixed: one hold in fifty sleeps. late: the
 * thread has computed for long before the holds in which it sleeps. pipe: one hold in some hundred waits for input.
 * nested: holds within holds, of which some sleep. gate: one hold in some hundred has a wait for a condition within.
 * sem, sems, turns, among, futex: other objects as locks; sems: one within the other; turns: nine in turn; among: one
 * among semaphores by which threads give each other work.
 */
#include <linux/futex.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "disease.h"

enum { MOST_HOLDS = 100000, THREADS = 5, COMPUTING = 3, AWAY_NS = 2000 };

struct times {
    const char *name;
    uint64_t ns, doubt_ns, max_ns;
    uint32_t n, each_ns[MOST_HOLDS];
};

/* A hold's four moments: before and behind the call that takes the lock, and the one that releases it. */
struct hold {
    uint64_t taking, taken, releasing;
};

static struct times times[4];
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER, own[THREADS] = {PTHREAD_MUTEX_INITIALIZER},
                       shared = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER,
                       middle = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER,
                       gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock[THREADS] = {PTHREAD_RWLOCK_INITIALIZER};
static pthread_spinlock_t spin[THREADS];
static sem_t sem, nested_sems[9], lock_sem, given_sems[12], got_sems[12];
static uint32_t futex;
static volatile bool is_over, is_open, is_wanted;
static int pipes[2][2];
static const char *kind;

/* Half of the reading behind the lock is in the hold, and half of that before the unlock: what one takes, at least. */
static uint64_t reading_ns = UINT64_MAX;

static void measure_reading(void) {
    enum { N = 100 };
    for (int k = 0; k < 100; k++) {
        uint64_t begin = now_ns();
        for (int i = 1; i < N; i++)
            now_ns();
        uint64_t each_ns = (now_ns() - begin) / N;
        reading_ns = each_ns < reading_ns ? each_ns : reading_ns;
    }
}

static void add(struct times *t, const struct hold *h) {
    uint64_t released = now_ns(), ns = h->releasing - h->taken + reading_ns, before = h->taken - h->taking,
             behind = released - h->releasing;
    t->ns += ns;
    t->doubt_ns += (before > AWAY_NS ? before : 0) + (behind > AWAY_NS ? behind : 0);
    t->max_ns = ns > t->max_ns ? ns : t->max_ns;
    if (t->n < MOST_HOLDS)
        t->each_ns[t->n] = (uint32_t)ns;
    t->n++;
}

/* A microsecond, or some. */
static void work(int n) {
    for (volatile int i = 0; i < 4000 * n; i++)
        ;
}

static void take_futex(void) {
    uint32_t v = 0;
    if (__atomic_compare_exchange_n(&futex, &v, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&futex, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &futex, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

static void release_futex(void) {
    if (__atomic_exchange_n(&futex, 0, __ATOMIC_RELEASE) == 2)
        syscall(SYS_futex, &futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static struct times *begin_times(void) {
    struct times *t = calloc(1, sizeof *t);
    return t != NULL ? t : (abort(), NULL);
}

static void end_times(struct times *to, struct times *t) {
    pthread_mutex_lock(&adding);
    for (uint32_t i = 0; i < t->n && to->n + i < MOST_HOLDS; i++)
        to->each_ns[to->n + i] = t->each_ns[i];
    to->ns += t->ns;
    to->doubt_ns += t->doubt_ns;
    to->max_ns = t->max_ns > to->max_ns ? t->max_ns : to->max_ns;
    to->n += t->n;
    pthread_mutex_unlock(&adding);
    free(t);
}

/* ---- threads that hold; one call site of each lock ---- */

#define HOLD(t, take, inside, release)                                                                                 \
    do {                                                                                                               \
        struct hold hold = {.taking = now_ns()};                                                                       \
        take;                                                                                                          \
        hold.taken = now_ns();                                                                                         \
        inside;                                                                                                        \
        hold.releasing = now_ns();                                                                                     \
        release;                                                                                                       \
        add(t, &hold);                                                                                                 \
    } while (0)
#define HOLD_SHARED(t, take, inside, release)                                                                          \
    do {                                                                                                               \
        struct hold hold;                                                                                              \
        take;                                                                                                          \
        hold.taken = hold.taking = now_ns();                                                                           \
        inside;                                                                                                        \
        hold.releasing = now_ns();                                                                                     \
        release;                                                                                                       \
        add(t, &hold);                                                                                                 \
    } while (0)

static void *hold_own(void *id) {
    struct times *t = begin_times();
    pthread_mutex_t *mine = &own[(long)id];
    for (int i = 0; i < 15000; i++) {
        HOLD(t, pthread_mutex_lock(mine), work(1), pthread_mutex_unlock(mine));
        work(1);
    }
    end_times(&times[0], t);
    return NULL;
}

static void *hold_rwlock(void *id) {
    struct times *t = begin_times();
    pthread_rwlock_t *mine = &rwlock[(long)id];
    for (int i = 0; i < 7500; i++) {
        HOLD(t, pthread_rwlock_rdlock(mine), work(1), pthread_rwlock_unlock(mine));
        HOLD(t, pthread_rwlock_wrlock(mine), work(1), pthread_rwlock_unlock(mine));
        work(1);
    }
    end_times(&times[0], t);
    return NULL;
}

static void *hold_spin(void *id) {
    struct times *t = begin_times();
    pthread_spinlock_t *mine = &spin[(long)id];
    for (int i = 0; i < 15000; i++) {
        HOLD(t, pthread_spin_lock(mine), work(1), pthread_spin_unlock(mine));
        work(1);
    }
    end_times(&times[0], t);
    return NULL;
}

static void *hold_shared(void *id) {
    struct times *t = begin_times();
    for (int i = 0; i < 10000; i++) {
        HOLD_SHARED(t, pthread_mutex_lock(&shared), work(1), pthread_mutex_unlock(&shared));
        work(5);
    }
    end_times(&times[0], t);
    return id;
}

static void *hold_sem(void *id) {
    struct times *t = begin_times();
    for (int i = 0; i < 3000; i++) {
        HOLD_SHARED(t, sem_wait(&sem), work(50), sem_post(&sem));
        work(5);
    }
    end_times(&times[0], t);
    return id;
}

static void *hold_sem_short(void *id) {
    struct times *t = begin_times();
    for (int i = 0; i < 10000; i++) {
        HOLD_SHARED(t, sem_wait(&sem), work(1), sem_post(&sem));
        work(5);
    }
    end_times(&times[0], t);
    return id;
}

/* Two semaphores that are eight apart, the one within the other. */
static void *hold_sems(void *id) {
    for (int i = 0; i < 3000; i++) {
        sem_wait(&nested_sems[0]);
        sem_wait(&nested_sems[8]);
        work(20);
        sem_post(&nested_sems[8]);
        sem_post(&nested_sems[0]);
    }
    return id;
}

static void *hold_turns(void *id) {
    for (int i = 0; i < 9000; i++) {
        sem_wait(&nested_sems[i % 9]);
        work(5);
        sem_post(&nested_sems[i % 9]);
    }
    return id;
}

static void *hold_among(void *id) {
    for (int i = 0; i < 1200; i++) {
        sem_wait(&lock_sem);
        work(20);
        sem_post(&lock_sem);
        sem_wait(&given_sems[i % 12]);
        sem_post(&got_sems[i % 12]);
    }
    return id;
}

static void *hold_futex(void *id) {
    struct times *t = begin_times();
    for (int i = 0; i < 3000; i++) {
        HOLD_SHARED(t, take_futex(), work(50), release_futex());
        work(5);
    }
    end_times(&times[0], t);
    return id;
}

static void rest(int us) {
    if (us > 0)
        pause_us(us);
    else
        work(1);
}

static __attribute__((noinline)) void hold_one(int us) {
    HOLD(&times[0], pthread_mutex_lock(&shared), rest(us), pthread_mutex_unlock(&shared));
    work(1);
}

static void hold_mixed(void) {
    for (int i = 0; i < 10000; i++)
        hold_one(i % 50 == 49 ? 1000 : 0);
}

static void hold_late(void) {
    for (int i = 0; i < 60; i++) {
        for (int k = 0; k < 4000; k++)
            hold_one(0);
        work(1000);
        hold_one(400);
    }
}

static void *echo(void *unused) {
    char c;
    while (read(pipes[0][0], &c, 1) == 1) {
        pause_us(300);
        if (write(pipes[1][1], &c, 1) != 1)
            abort();
    }
    return unused;
}

static void ask(bool asks) {
    char c = 0;
    if (asks && (write(pipes[0][1], &c, 1) != 1 || read(pipes[1][0], &c, 1) != 1))
        abort();
}

static void hold_pipe(void) {
    pthread_t echoing;
    if (pipe(pipes[0]) != 0 || pipe(pipes[1]) != 0 || pthread_create(&echoing, NULL, echo, NULL) != 0)
        abort();
    for (int i = 0; i < 240000; i++) {
        HOLD(&times[0], pthread_mutex_lock(&shared), ask(i % 600 == 599), pthread_mutex_unlock(&shared));
        work(1);
    }
    close(pipes[0][1]);
    pthread_join(echoing, NULL);
}

static void hold_inner(int us) {
    HOLD(&times[2], pthread_mutex_lock(&inner), rest(us), pthread_mutex_unlock(&inner));
}

static void hold_middle(int us) {
    HOLD(&times[1], pthread_mutex_lock(&middle), hold_inner(us), pthread_mutex_unlock(&middle));
}

static void hold_nested(void) {
    for (int i = 0; i < 400000; i++)
        HOLD(&times[0], pthread_mutex_lock(&outer), hold_middle(i % 8000 == 7999 ? 500 : 0),
             pthread_mutex_unlock(&outer));
}

static void *open_gate(void *unused) {
    while (!is_over) {
        pause_us(100);
        pthread_mutex_lock(&gate);
        if (is_wanted) {
            is_open = true;
            is_wanted = false;
            pthread_cond_signal(&opened);
        }
        pthread_mutex_unlock(&gate);
    }
    return unused;
}

static void pass(bool waits) {
    if (!waits) {
        work(1);
        return;
    }
    pthread_mutex_lock(&gate);
    is_wanted = true;
    while (!is_open)
        pthread_cond_wait(&opened, &gate);
    is_open = false;
    pthread_mutex_unlock(&gate);
}

static void hold_gate(void) {
    pthread_t opening;
    if (pthread_create(&opening, NULL, open_gate, NULL) != 0)
        abort();
    for (int i = 0; i < 240000; i++) {
        HOLD(&times[0], pthread_mutex_lock(&outer), pass(i % 2400 == 2399), pthread_mutex_unlock(&outer));
        work(1);
    }
    is_over = true;
    pthread_join(opening, NULL);
}

/* ---- beside threads that compute ---- */

static void *take_time(void *unused) {
    while (!is_over)
        work(100);
    return unused;
}

static void run_beside(void *(*routine)(void *)) {
    pthread_t computing[COMPUTING];
    for (int i = 0; i < COMPUTING; i++)
        if (pthread_create(&computing[i], NULL, take_time, NULL) != 0)
            abort();
    run(THREADS, routine);
    is_over = true;
    for (int i = 0; i < COMPUTING; i++)
        pthread_join(computing[i], NULL);
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void tell(const char *name, struct times *t) {
    uint32_t n = t->n < MOST_HOLDS ? t->n : MOST_HOLDS;
    qsort(t->each_ns, n, sizeof t->each_ns[0], compare);
    printf("%s %ju %ju %u %ju %u\n", name, (uintmax_t)t->ns, (uintmax_t)t->doubt_ns, t->n, (uintmax_t)t->max_ns,
           n > 0 ? t->each_ns[n - n / 100 - 1] : 0);
}

static const struct {
    const char *name, *lock;
    void *(*threads)(void *);
    void (*alone)(void);
} kinds[] = {{"own", "own", hold_own, NULL},         {"rwlock", "rwlock", hold_rwlock, NULL},
             {"spin", "spin", hold_spin, NULL},      {"shared", "shared", hold_shared, NULL},
             {"sem", "sem", hold_sem, NULL},         {"sem-short", "sem", hold_sem_short, NULL},
             {"futex", "futex", hold_futex, NULL},   {"mixed", "shared", NULL, hold_mixed},
             {"late", "shared", NULL, hold_late},    {"pipe", "shared", NULL, hold_pipe},
             {"nested", "outer", NULL, hold_nested}, {"gate", "outer", NULL, hold_gate},
             {"sems", "sems", hold_sems, NULL},      {"turns", "sems", hold_turns, NULL},
             {"among", "lock_sem", hold_among, NULL}};

int main(int argc, char **argv) {
    measure_reading();
    kind = argc == 2 ? argv[1] : "";
    sem_init(&sem, 0, 1);
    for (size_t i = 0; i < sizeof nested_sems / sizeof nested_sems[0]; i++)
        sem_init(&nested_sems[i], 0, 1);
    sem_init(&lock_sem, 0, 1);
    for (size_t i = 0; i < sizeof given_sems / sizeof given_sems[0]; i++) {
        sem_init(&given_sems[i], 0, 1000); /* as if other threads had given */
        sem_init(&got_sems[i], 0, 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_init(&own[i], NULL);
        pthread_rwlock_init(&rwlock[i], NULL);
        pthread_spin_init(&spin[i], PTHREAD_PROCESS_PRIVATE);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        if (kinds[i].threads != NULL)
            run_beside(kinds[i].threads);
        else
            kinds[i].alone();
        tell(kinds[i].lock, &times[0]);
        if (strcmp(kind, "nested") == 0) {
            tell("middle", &times[1]);
            tell("inner", &times[2]);
        }
        return 0;
    }
    return 2;
}

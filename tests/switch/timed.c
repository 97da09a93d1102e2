/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting by switching with deadlines, in scenes of what could go wrong. A program that the library does not step aside
 * for, as subject.c: one scene per run, exit status 0, a hang is ended by the test's time limit.
 */
#include "scene.h"

#include <semaphore.h>
#include <stdint.h>
#include <sys/resource.h>

#define MANY THREADS_MAX

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond[2];
static sem_t sem;
static atomic_int posted, taken, turn, n_moved;

static clockid_t clock_of(long id) {
    return id % 2 == 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

static void leave_home(void) {
    for (int i = 0; i < 20; i++)
        meet();
}

/* Wait on nothing, on the condition of that clock. */
static void doze(long id, int64_t us) {
    clockid_t clock = clock_of(id);
    struct timespec at = time_in_us(clock, us);
    int r;
    OK(pthread_mutex_lock(&mutex));
    while ((r = pthread_cond_clockwait(&cond[id % 2], &mutex, clock, &at)) == 0)
        ;
    OK(pthread_mutex_unlock(&mutex));
    CHECK(r == ETIMEDOUT);
    CHECK(time_is_past(clock, &at));
}

/* ---- hundreds of deadlines at a time, in every order, on both clocks; spurious wake-ups meanwhile ---- */
static void *doze_often(void *number) {
    long id = (long)number;
    leave_home();
    for (int i = 0; i < 10; i++) {
        doze(id, (id * 7919 + i * 104729) % 20000);
        if (id % 16 == i)
            OK(pthread_cond_broadcast(&cond[i % 2]));
        if (i % 3 == 0)
            meet(); /* and away again */
    }
    return NULL;
}

static void many(void) {
    run(MANY, doze_often);
}

/* ---- not late: as precise as the same wait of a thread that never was away, give or take what a machine does ---- */
static void *doze_precisely(void *number) {
    static int64_t late[400];
    for (int i = 0; i < 400; i++) {
        meet();
        if (number == NULL) {
            clockid_t clock = clock_of(i);
            struct timespec at = time_in_us(clock, 1000);
            OK(pthread_mutex_lock(&mutex));
            while (pthread_cond_clockwait(&cond[i % 2], &mutex, clock, &at) == 0)
                ;
            late[i] = now_ns(clock) - time_to_ns(&at);
            OK(pthread_mutex_unlock(&mutex));
        }
    }
    if (number == NULL) {
        int n = 0;
        for (int i = 0; i < 400; i++) {
            CHECK(late[i] >= 0);
            n += late[i] < 1000000;
        }
        printf("%d of 400 within a millisecond of the deadline\n", n);
        CHECK(n >= 200);
    }
    return NULL;
}

static void precision(void) {
    run(4, doze_precisely);
}

/* ---- deadline and wake-up at the same moment: none is lost, none is taken twice ---- */
static void *take_or_give_up(void *number) {
    long id = (long)number;
    unsigned random = (unsigned)id * 2654435761u + 1;
    leave_home();
    for (int i = 0; i < 2000; i++) {
        random = random * 1664525 + 1013904223;
        if (id % 2 == 0) {
            atomic_fetch_add(&posted, 1);
            OK_ERRNO(sem_post(&sem));
        }
        struct timespec at = time_in_us(clock_of(id), (random >> 16) % 300);
        if (sem_clockwait(&sem, clock_of(id), &at) == 0)
            atomic_fetch_add(&taken, 1);
        else
            CHECK(errno == ETIMEDOUT);
    }
    return NULL;
}

static void race(void) {
    int left;
    OK_ERRNO(sem_init(&sem, 0, 0));
    run(12, take_or_give_up);
    OK_ERRNO(sem_getvalue(&sem, &left));
    CHECK(posted == taken + left);
}

/* ---- the same with a mutex that is handed over, and locks that are given up ---- */
static void *lock_or_give_up(void *number) {
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
    static int shared, shared_rw;
    long id = (long)number;
    unsigned random = (unsigned)id * 2654435761u + 1;
    leave_home();
    for (int i = 0; i < 2000; i++) {
        random = random * 1664525 + 1013904223;
        clockid_t clock = clock_of(random >> 8);
        struct timespec at = time_in_us(clock, (random >> 16) % 200);
        int r = pthread_mutex_clocklock(&mutex, clock, &at);
        CHECK(r == 0 || r == ETIMEDOUT);
        if (r == 0) {
            CHECK(shared++ == 0);
            if (i % 8 == 0)
                for (int64_t end = now_ns(clock) + 50000; now_ns(clock) < end;)
                    ;
            shared--;
            OK(pthread_mutex_unlock(&mutex));
        }
        r = id % 3 == 0 ? pthread_rwlock_clockwrlock(&rwlock, clock, &at)
                        : pthread_rwlock_clockrdlock(&rwlock, clock, &at);
        CHECK(r == 0 || r == ETIMEDOUT);
        if (r == 0) {
            CHECK(id % 3 == 0 ? shared_rw++ == 0 : shared_rw == 0);
            shared_rw -= id % 3 == 0;
            OK(pthread_rwlock_unlock(&rwlock));
        }
    }
    return NULL;
}

static void give_up_locks(void) {
    run(12, lock_or_give_up);
}

/* ---- a wait that is over in time is a switch, however near the deadline of the one before ---- */
static void *take_turns(void *number) {
    long id = (long)number, first = proc_kernel_thread(), n = 0;
    OK(pthread_mutex_lock(&mutex));
    for (int i = 0; i < 300; i++) {
        struct timespec at = time_in_us(clock_of(i), i % 3 == 0 ? 60000000 : 10000000);
        while (turn != id)
            OK(pthread_cond_clockwait(&cond[i % 2], &mutex, clock_of(i), &at));
        turn = (int)(id + 1) % 8;
        OK(pthread_cond_broadcast(&cond[0]));
        OK(pthread_cond_broadcast(&cond[1]));
        n += proc_kernel_thread() != first;
    }
    OK(pthread_mutex_unlock(&mutex));
    atomic_fetch_add(&n_moved, n > 0);
    return NULL;
}

static void in_time(void) {
    run(8, take_turns);
    printf("%d threads ran on another's kernel thread\n", n_moved);
    CHECK(getenv("SWITCHED") == NULL || n_moved > 0);
}

/* ---- no thread wakes up while nothing is due ---- */
static void *sleep_long(void *number) {
    leave_home();
    doze((long)number, 300000);
    doze((long)number, 1200000);
    return NULL;
}

static void quiet(void) {
    struct rusage usage;
    run(8, sleep_long);
    OK_ERRNO(getrusage(RUSAGE_SELF, &usage));
    printf("%ld times asleep\n", usage.ru_nvcsw);
    CHECK(usage.ru_nvcsw < 400); /* a look every 2 ms would be 750; going quiet takes 50 of them */
}

/* ---- the child of a thread among such waits has none of them; its own work, and the parent's go on ---- */
static void *doze_in_child(void *number) {
    leave_home();
    for (int i = 0; i < 3; i++)
        doze((long)number, 1000);
    return NULL;
}

static void *fork_among_waits(void *number) {
    long id = (long)number;
    leave_home();
    for (int i = 0; i < 8; i++) {
        if (id != 0) {
            doze(id, 5000);
            continue;
        }
        pid_t pid = fork();
        SYS(pid);
        if (pid == 0) {
            /* Another thread may have held it at the fork: the child's copy is made new. */
            pthread_mutex_init(&mutex, NULL);
            memset(cond, 0, sizeof cond);
            doze(1, 3000);
            run(4, doze_in_child);
            _exit(0);
        }
        child_join(pid);
    }
    return NULL;
}

static void forks(void) {
    run(8, fork_among_waits);
}

/* ---- a thread ends with a deadline behind it that its home was told of; another takes its fiber ---- */
static void *wait_and_end(void *number) {
    int64_t limit = (long)number % 3 == 0 ? 2000 : 50;
    struct timespec at = time_in_us(CLOCK_MONOTONIC, limit);
    meet();
    if (sem_clockwait(&sem, CLOCK_MONOTONIC, &at) != 0)
        CHECK(errno == ETIMEDOUT);
    OK_ERRNO(sem_post(&sem));
    return NULL;
}

static void ends(void) {
    OK_ERRNO(sem_init(&sem, 0, 1));
    for (int i = 0; i < 100; i++)
        run(8, wait_and_end);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"timed-many", many},           {"timed-precision", precision}, {"timed-race", race},
        {"timed-locks", give_up_locks}, {"timed-in-time", in_time},     {"timed-quiet", quiet},
        {"timed-forks", forks},         {"timed-ends", ends},           {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program of which a profile is made. usage: profile-subject WHAT
 * It prints what it has counted itself, in the form that profile-check takes: OP=COUNT for each operation.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "profile_subject.h"

enum { N_THREADS = 4, N_ROUNDS = 5000, N_MANY = 70000, N_LIVES = 1000, N_SITES = 24, N_GONE = 4000 };

static pthread_mutex_t mutexes[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t spare = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static mtx_t c11;

static void start(pthread_t *thread, void *(*routine)(void *), void *argument) {
    OK(pthread_create(thread, NULL, routine, argument));
}

/* Every operation that is counted, some of them contended. */
static void *count(void *unused) {
    for (int i = 0; i < N_ROUNDS; i++) {
        for (int m = 0; m < 3; m++) {
            OK(pthread_mutex_lock(&mutexes[m]));
            OK(pthread_mutex_unlock(&mutexes[m]));
        }
        OK(pthread_mutex_lock(&recursive));
        OK(pthread_mutex_lock(&recursive));
        OK(pthread_mutex_trylock(&recursive));
        OK(pthread_mutex_unlock(&recursive));
        OK(pthread_mutex_unlock(&recursive));
        OK(pthread_mutex_unlock(&recursive));
        CHECK_INT(mtx_lock(&c11), thrd_success);
        CHECK_INT(mtx_unlock(&c11), thrd_success);
        CHECK_RC(pthread_mutex_trylock(&held), EBUSY);
        OK(i % 4 == 0 ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        OK(pthread_spin_lock(&spin));
        OK(pthread_spin_unlock(&spin));
        OK_ERRNO(sem_post(&sem));
        OK_ERRNO(sem_wait(&sem));
        OK(pthread_cond_signal(&spare));
    }
    return unused;
}

static void counts(void) {
    pthread_t threads[N_THREADS];
    int n = N_THREADS * N_ROUNDS;
    OK(pthread_spin_init(&spin, 0));
    OK_ERRNO(sem_init(&sem, 0, 0));
    CHECK_INT(mtx_init(&c11, mtx_plain), thrd_success);
    OK(pthread_mutex_lock(&held));
    for (int i = 0; i < N_THREADS; i++)
        start(&threads[i], count, NULL);
    for (int i = 0; i < N_THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    OK(pthread_spin_destroy(&spin));
    printf("mutex_lock=%d mutex_trylock=%d mutex_trylock:failed=%d rwlock_wrlock=%d rwlock_rdlock=%d spin_lock=%d "
           "sem_post=%d sem_wait=%d cond_signal=%d init=3 destroy=1 thread_create=4 thread_join=4 thread_end=5 "
           "mutex_lock:objects=6 mutex_lock:none=0\n",
           5 * n + 1, n, n, n / 4, n * 3 / 4, n, n, n, n);
}

/* More objects than get a number, each locked at two places. */
static void many(void) {
    pthread_mutex_t *all = calloc(N_MANY, sizeof *all);
    CHECK(all != NULL);
    for (int i = 0; i < N_MANY; i++)
        OK(pthread_mutex_init(&all[i], NULL));
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < N_MANY; i++) {
            OK(pthread_mutex_lock(&all[i]));
            OK(pthread_mutex_unlock(&all[i]));
            OK(pthread_mutex_lock(&all[i]));
            OK(pthread_mutex_unlock(&all[i]));
        }
    free(all); /* without destroying them */
    printf("mutex_lock=%d init=%d mutex_lock:some_none=1\n", 6 * N_MANY, N_MANY);
}

/* One address, many lives, in which two threads use it. */
static pthread_mutex_t *reborn;
static pthread_barrier_t turn;

static void *live_beside(void *unused) {
    for (int i = 0; i < N_LIVES; i++) {
        pthread_barrier_wait(&turn);
        OK(pthread_mutex_lock(reborn));
        OK(pthread_mutex_unlock(reborn));
        pthread_barrier_wait(&turn);
    }
    return unused;
}

static void lives(void) {
    pthread_t beside;
    reborn = malloc(sizeof *reborn);
    CHECK(reborn != NULL);
    OK(pthread_barrier_init(&turn, NULL, 2));
    start(&beside, live_beside, NULL);
    for (int i = 0; i < N_LIVES; i++) {
        OK(pthread_mutex_init(reborn, NULL));
        pthread_barrier_wait(&turn);
        for (int k = 0; k < 3; k++) {
            OK(pthread_mutex_lock(reborn));
            OK(pthread_mutex_unlock(reborn));
        }
        pthread_barrier_wait(&turn);
        OK(pthread_mutex_destroy(reborn));
    }
    OK(pthread_join(beside, NULL));
    free(reborn);
    printf("mutex_lock=%d mutex_lock:objects=%d mutex_lock:none=0 init=%d destroy=%d mutex_lock:each=4\n", 4 * N_LIVES,
           N_LIVES, N_LIVES + 1, N_LIVES);
}

/* Handlers that lock, in the midst of whatever their thread is doing. */
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t n_handled;

static void handle(int signo) {
    (void)signo;
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&of_handler);
        pthread_mutex_unlock(&of_handler);
    }
    n_handled++;
}

static void handlers(void) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    long n = 0;
    SYS(sigaction(SIGALRM, &action, NULL));
    SYS(setitimer(ITIMER_REAL, &often, NULL));
    pthread_mutex_t *fresh = malloc(20000 * sizeof *fresh);
    CHECK(fresh != NULL);
    for (; n < 20000 || n_handled < 500; n++) { /* a new object each time: the slow path */
        pthread_mutex_t *m = &fresh[n % 20000];
        if (n < 20000)
            OK(pthread_mutex_init(m, NULL));
        OK(pthread_mutex_lock(m));
        OK(pthread_mutex_unlock(m));
    }
    SYS(setitimer(ITIMER_REAL, &never, NULL));
    printf("mutex_lock=%ld init=20000\n", n + 3L * n_handled);
}

/*
 * A handler that posts at another place each time, in the midst of whatever its thread is doing: many of these places
 * are used for the first time, and for the last, on top of the recorder. The comments keep the calls apart.
 */
static sem_t posted[N_SITES];
static volatile sig_atomic_t n_posted;

#define POST(n)                                                                                                        \
    case n:                                                                                                            \
        sem_post(&posted[n]);                                                                                          \
        __asm__ volatile("/* %c0 */" ::"i"(n));                                                                        \
        break
#define POST_4(n)                                                                                                      \
    POST(n);                                                                                                           \
    POST(n + 1);                                                                                                       \
    POST(n + 2);                                                                                                       \
    POST(n + 3)
#define POST_16(n)                                                                                                     \
    POST_4(n);                                                                                                         \
    POST_4(n + 4);                                                                                                     \
    POST_4(n + 8);                                                                                                     \
    POST_4(n + 12)

static void post(int signo) {
    (void)signo;
    int n = n_posted < N_SITES ? n_posted++ : -1;
    switch (n) {
        POST_16(0);
        POST_4(16);
        POST_4(20);
    default:
        break;
    }
}

static void sites(void) {
    struct sigaction action = {.sa_handler = post, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    pthread_mutex_t m;
    long n = 0;
    SYS(sigaction(SIGALRM, &action, NULL));
    SYS(setitimer(ITIMER_REAL, &often, NULL));
    for (; n_posted < N_SITES; n++) {
        OK(pthread_mutex_init(&m, NULL));
        OK(pthread_mutex_lock(&m));
        OK(pthread_mutex_unlock(&m));
        OK(pthread_mutex_destroy(&m));
    }
    SYS(setitimer(ITIMER_REAL, &never, NULL));
    printf("mutex_lock=%ld sem_post=%d sem_post:objects=%d\n", n, N_SITES, N_SITES);
}

/* A semaphore is gone as soon as its post has been seen, while the poster still is in the call. */
static char *pages;
static atomic_int n_there;

static void *post_each(void *unused) {
    for (int i = 0; i < N_GONE; i++) {
        while (atomic_load(&n_there) <= i)
            sched_yield();
        sem_post((sem_t *)(pages + (size_t)i * 4096));
    }
    return unused;
}

static void gone(void) {
    pthread_t poster;
    pages =
        mmap(NULL, (size_t)N_GONE * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(pages != MAP_FAILED);
    start(&poster, post_each, NULL);
    for (int i = 0; i < N_GONE; i++) {
        sem_t *s = (sem_t *)(pages + (size_t)i * 4096);
        atomic_store(&n_there, i + 1); /* zeroed memory: its value is 0 */
        while (sem_trywait(s) != 0)
            sched_yield();
        OK_ERRNO(sem_destroy(s));
        SYS(munmap(s, 4096));
    }
    OK(pthread_join(poster, NULL));
    printf("sem_post=%d destroy=%d\n", N_GONE, N_GONE);
}

static void lock_often(int n) {
    for (int i = 0; i < n; i++) {
        OK(pthread_mutex_lock(&mutexes[0]));
        OK(pthread_mutex_unlock(&mutexes[0]));
    }
}

static void forks(void) {
    lock_often(1000);
    pid_t child = fork();
    SYS(child);
    if (child == 0) {
        lock_often(77);
        exit(0);
    }
    int status;
    SYS(waitpid(child, &status, 0));
    CHECK_INT(status, 0);
    lock_often(10);
    pthread_mutex_t over = PTHREAD_MUTEX_INITIALIZER; /* over a vfork, of which the child is not recorded */
    OK(pthread_mutex_lock(&over));
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): that is what is tested */
    child = vfork();
    if (child == 0) {
        lock_often(50);
        _exit(0);
    }
    OK(pthread_mutex_unlock(&over));
    SYS(waitpid(child, &status, 0));
    lock_often(10);
    printf("mutex_lock=1021 thread_create=0\n");
}

static void *lock_ten(void *unused) {
    lock_often(10);
    return unused;
}

static void threads(void) {
    enum { N = 300, AT_ONCE = 50 };
    pthread_t all[AT_ONCE];
    for (int i = 0; i < N; i += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++)
            start(&all[k], lock_ten, NULL);
        for (int k = 0; k < AT_ONCE; k++)
            OK(pthread_join(all[k], NULL));
    }
    printf("mutex_lock=%d thread_create=%d thread_join=%d thread_end=%d mutex_lock:objects=1\n", 10 * N, N, N, N + 1);
}

static pid_t sleeper;

static void unlock(void *mutex) {
    OK(pthread_mutex_unlock(mutex));
}

static void *cancelled(void *unused) {
    OK(pthread_mutex_lock(&mutexes[1]));
    pthread_cleanup_push(unlock, &mutexes[1]);
    asleep_from_here(&sleeper);
    pthread_cond_wait(&spare, &mutexes[1]);
    pthread_cleanup_pop(1);
    return unused;
}

static void cancels(void) {
    pthread_t thread;
    start(&thread, cancelled, NULL);
    await_asleep(&sleeper);
    OK(pthread_cancel(thread));
    OK(pthread_join(thread, NULL));
    printf("mutex_lock=1 cond_wait:events=1 cond_wait:result=125\n");
}

/* Killed: what was counted long before is there, because tallies were due at a lock since then. */
static void killed(void) {
    lock_often(1000000);
    SYS(usleep(900000));
    lock_often(1000);
    printf("mutex_lock:least=%d\n", 1000000);
    fflush(stdout);
    raise(SIGKILL);
}

/* One wait, one release that ends it, deep in calls. */
__attribute__((noinline)) static void inner_wait(void) {
    asleep_from_here(&sleeper);
    OK(pthread_mutex_lock(&held));
    __asm__ volatile("");
}

__attribute__((noinline)) static void middle_wait(void) {
    inner_wait();
    __asm__ volatile("");
}

static void *wait_deep(void *unused) {
    middle_wait();
    OK(pthread_mutex_unlock(&held));
    return unused;
}

__attribute__((noinline)) static void inner_release(void) {
    OK(pthread_mutex_unlock(&held));
    __asm__ volatile("");
}

__attribute__((noinline)) static void outer_release(void) {
    inner_release();
    __asm__ volatile("");
}

static void waits(void) {
    pthread_t waiter;
    OK(pthread_mutex_lock(&recursive)); /* no thread waits for this one */
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_lock(&held));
    start(&waiter, wait_deep, NULL);
    await_asleep(&sleeper);
    SYS(usleep(1000));
    outer_release();
    OK(pthread_join(waiter, NULL));
    printf("mutex_lock=3 mutex_lock:events=1 mutex_unlock:events=1 mutex_lock:ended=1\n");
}

/*
 * New locks all the time, beside one that is taken again and again: those of a quarter of a second and of the one
 * before have room in a thread's table, and those of a second have not.
 */
static void fresh(void) {
    enum { WINDOWS = 7, EACH = 600, WINDOW_NS = 260000000 };
    static pthread_mutex_t all[WINDOWS][EACH]; /* zeroed is initialized */
    long n = WINDOWS * EACH;
    for (int w = 0; w < WINDOWS; w++) {
        int64_t end_ns = now_ns(CLOCK_MONOTONIC) + WINDOW_NS;
        for (int i = 0; i < EACH; i++) {
            OK(pthread_mutex_lock(&all[w][i]));
            OK(pthread_mutex_unlock(&all[w][i]));
        }
        for (; now_ns(CLOCK_MONOTONIC) < end_ns; n++) {
            OK(pthread_mutex_lock(&held));
            OK(pthread_mutex_unlock(&held));
        }
    }
    printf("mutex_lock=%ld mutex_lock:none=0\n", n);
}

/*
 * A table that fills up by a few new objects from one writing to the next, each of which is used between any two: it
 * has no room for the last ones, until a writing that comes sooner than where all find room. One object is used far
 * more often than the others, so that these lose their places then.
 */
static void filled(void) {
    enum { PARTS = 5, EACH = 500, PLACES = 2048, OFTEN = 100, AGAIN = 20 };
    static const int until_ms[PARTS] = {300, 1400, 2500, 3600, 3900};
    static pthread_mutex_t all[PARTS * EACH]; /* zeroed is initialized */
    int64_t begin_ns = now_ns(CLOCK_MONOTONIC);
    long n = 0;
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < (part + 1) * EACH; i++, n++) {
            OK(pthread_mutex_lock(&all[i]));
            OK(pthread_mutex_unlock(&all[i]));
        }
        while (now_ns(CLOCK_MONOTONIC) < begin_ns + until_ms[part] * INT64_C(1000000)) {
            for (int i = 0; i < OFTEN; i++, n++) {
                OK(pthread_mutex_lock(&held));
                OK(pthread_mutex_unlock(&held));
            }
            SYS(usleep(1000));
        }
    }
    for (int i = 0; i < AGAIN * EACH; i++, n++) {
        OK(pthread_mutex_lock(&all[(PARTS - 1) * EACH + i % EACH]));
        OK(pthread_mutex_unlock(&all[(PARTS - 1) * EACH + i % EACH]));
    }
    printf("mutex_lock=%ld mutex_lock:none_most=%d\n", n, PARTS * EACH + 1 - PLACES);
}

/* Memory of a mutex that was never given back is used for another one, again and again: one hold has an end. */
static void reused(void) {
    static pthread_mutex_t mutex;
    for (int i = 0; i < 4; i++) {
        mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        OK(pthread_mutex_lock(&mutex));
    }
    OK(pthread_mutex_unlock(&mutex));
    printf("mutex_lock=4 mutex_lock:timed=1\n");
}

/* Held for 2 ms each: seldom enough that each is timed. */
static void holds(void) {
    for (int i = 0; i < 20; i++) {
        OK(pthread_mutex_lock(&held));
        SYS(usleep(2000));
        OK(pthread_mutex_unlock(&held));
    }
    printf("mutex_lock=20 mutex_lock:timed=20 mutex_lock:mean_least=2000000\n");
}

/* Threads lock while another ends the process. */
static void *lock_on(void *unused) {
    for (;;)
        lock_often(100);
    return unused;
}

static void ends(void) {
    pthread_t all[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        start(&all[i], lock_on, NULL);
    SYS(usleep(100000));
    printf("thread_create=4\n");
    exit(3);
}

/*
 * The process ends while the release that ended the last wait is still under way: its thread is off its core, because
 * the waiter is on the same one and goes before it.
 */
static void *release_last(void *unused) {
    struct sched_param none = {0};
    await_asleep(&sleeper);
    SYS(sched_setscheduler(0, SCHED_IDLE, &none));
    OK(pthread_mutex_unlock(&held));
    return unused;
}

static void *own_last(void *owned) {
    OK(pthread_mutex_lock(&held));
    atomic_store((atomic_int *)owned, 1);
    return release_last(NULL);
}

static void *wait_last(void *unused) {
    asleep_from_here(&sleeper);
    OK(pthread_mutex_lock(&held));
    exit(3);
    return unused;
}

static void under_way(void) {
    static atomic_int owned;
    pthread_t owner, waiter;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    SYS(sched_setaffinity(0, sizeof one, &one));
    start(&owner, own_last, &owned);
    while (atomic_load(&owned) == 0)
        sched_yield();
    printf("mutex_lock=2 mutex_lock:events=1 mutex_lock:ended=1\n");
    start(&waiter, wait_last, NULL);
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"counts", counts},   {"many", many},       {"lives", lives},         {"handlers", handlers},
               {"forks", forks},     {"threads", threads}, {"cancels", cancels},     {"killed", killed},
               {"waits", waits},     {"beside", beside},   {"holds", holds},         {"ends", ends},
               {"sites", sites},     {"gone", gone},       {"under_way", under_way}, {"signals", signals},
               {"relocks", relocks}, {"reused", reused},   {"ways", ways},           {"coroutines", coroutines},
               {"fresh", fresh},     {"filled", filled}};
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            all[i].run();
            return 0;
        }
    return 2;
}

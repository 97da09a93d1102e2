/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of this program depends on the order of its synchronization: each thread adds its number to a sum under a
 * lock such that the order counts.
 *
 * usage: ordered counters  threads race for a mutex
 *        ordered all       the same with every kind of object, deadlines, sleeps, creation, ends, locks in destructors
 *        ordered exits    threads end by pthread_exit, which unwinds their stacks
 *        ordered nap       a thread sleeps for no time while another one yields
 *        ordered pipe      a thread waits for another process's bytes
 *        ordered stall     a thread waits for a plain variable that another one writes
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 5
#define ROUNDS 100

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_key_t key;
static sem_t sem;
enum { MUTEX, RWLOCK, SEM, SPIN, N_SUMS };
static uint64_t sums[N_SUMS]; /* each under its own object */
static int tokens;

static void add_to(int which, uint64_t who) {
    sums[which] = (sums[which] ^ who) * 0x100000001B3u;
}

static void add(uint64_t who) {
    add_to(MUTEX, who);
}

static void locked_add(uint64_t who) {
    pthread_mutex_lock(&mutex);
    add(who);
    pthread_mutex_unlock(&mutex);
}

static void compute(uint64_t who) {
    for (volatile uint64_t i = 0; i < who % 7 * 300; i++)
        ;
}

static void *counter(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        compute((uint64_t)(uintptr_t)argument + (uint64_t)i);
        locked_add((uintptr_t)argument);
    }
    return NULL;
}

static void first(void) {
    locked_add(91);
}

static void destroyed(void *value) {
    locked_add((uintptr_t)value + 50);
}

static void wait_a_moment(void) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += 300000;
    at.tv_sec += at.tv_nsec / 1000000000;
    at.tv_nsec %= 1000000000;
    pthread_mutex_lock(&mutex);
    add(pthread_cond_timedwait(&cond, &mutex, &at) == ETIMEDOUT ? 7 : 8);
    pthread_mutex_unlock(&mutex);
}

static void *everything(void *argument) {
    uintptr_t who = (uintptr_t)argument;
    pthread_setspecific(key, argument);
    pthread_once(&once, first);
    for (int i = 0; i < ROUNDS / 10; i++) {
        compute(who);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            locked_add(who + 10);
        pthread_mutex_lock(&mutex);
        tokens++;
        pthread_cond_signal(&cond);
        while (tokens == 0)
            pthread_cond_wait(&cond, &mutex);
        tokens--;
        add(who);
        pthread_mutex_unlock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
        add_to(RWLOCK, who);
        pthread_rwlock_unlock(&rwlock);
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        sem_wait(&sem);
        add_to(SEM, who);
        sem_post(&sem);
        pthread_spin_lock(&spin);
        add_to(SPIN, who);
        pthread_spin_unlock(&spin);
        if (pthread_mutex_trylock(&mutex) == 0) {
            add(who + 60);
            pthread_mutex_unlock(&mutex);
        }
        sched_yield();
        if (i % 4 == 0)
            usleep((useconds_t)(100 * who));
        if (i == 5)
            wait_a_moment();
    }
    return NULL;
}

static void *leaver(void *argument) {
    for (int i = 0; i < ROUNDS / 10; i++) {
        compute((uint64_t)(uintptr_t)argument);
        locked_add((uintptr_t)argument);
    }
    pthread_exit(NULL);
}

static int run(void *(*routine)(void *), uintptr_t n) {
    pthread_t thread[THREADS], late;
    for (uintptr_t i = 0; i < n; i++)
        pthread_create(&thread[i], NULL, routine, (void *)(i + 1));
    for (uintptr_t i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    pthread_create(&late, NULL, counter, (void *)n);
    pthread_join(late, NULL);
    for (int i = 1; i < N_SUMS; i++)
        add(sums[i]);
    printf("%016llx\n", (unsigned long long)sums[MUTEX]);
    return 0;
}

static int fds[2];

static void *reader(void *argument) {
    char c = 0;
    (void)argument;
    if (read(fds[0], &c, 1) == 1)
        locked_add(c == 'x');
    return NULL;
}

/* The writer gets on while the reader waits. */
static int through_pipe(void) {
    pthread_t thread;
    if (pipe(fds) != 0)
        return 1;
    pthread_create(&thread, NULL, reader, NULL);
    for (int i = 0; i < ROUNDS; i++)
        locked_add(0);
    if (write(fds[1], "x", 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static atomic_int flag;

static void *setter(void *argument) {
    (void)argument;
    locked_add(1);
    atomic_store(&flag, 1);
    return NULL;
}

static int stalled(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, setter, NULL);
    while (atomic_load(&flag) == 0)
        ;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static atomic_uint n_yields;

static void *yielder(void *argument) {
    (void)argument;
    while (atomic_load(&flag) == 0) {
        sched_yield();
        atomic_fetch_add(&n_yields, 1);
    }
    return NULL;
}

/* The kernel's time runs ahead of logical time. A sleep of nothing is over after a few turns all the same. */
static int nap(void) {
    pthread_t thread;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (clock_t begin = clock(); clock() - begin < CLOCKS_PER_SEC / 20;)
        ;
    pthread_create(&thread, NULL, yielder, NULL);
    unsigned before = atomic_load(&n_yields);
    nanosleep(&(struct timespec){0, 0}, NULL);
    unsigned after = atomic_load(&n_yields);
    atomic_store(&flag, 1);
    pthread_join(thread, NULL);
    printf("%s\n", after - before < 1000 ? "done" : "overslept");
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    pthread_barrier_init(&barrier, NULL, THREADS);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_key_create(&key, destroyed);
    sem_init(&sem, 0, 1);
    if (strcmp(what, "counters") == 0)
        return run(counter, THREADS);
    if (strcmp(what, "all") == 0)
        return run(everything, THREADS);
    if (strcmp(what, "exits") == 0)
        return run(leaver, THREADS);
    if (strcmp(what, "pipe") == 0)
        return through_pipe();
    if (strcmp(what, "stall") == 0)
        return stalled();
    if (strcmp(what, "nap") == 0)
        return nap();
    fprintf(stderr, "usage: ordered counters|all|exits|nap|pipe|stall\n");
    return 2;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hints of the program's own (<subutai/det.h>), and call sites for those of a file. The output depends on the order of
 * the synchronization.
 *
 * usage: hinted pipeline   a thread that locks often feeds one that computes for long, which gives the turn up
 *        hinted alike      threads compute the same, and meet at a soft barrier before
 *        hinted lone       threads wait at soft barriers to which too few come
 *        hinted pcs        threads count in performance-critical sections, which are in sections
 *        hinted stdio      a thread waits at a soft barrier, and the other in a call that the library does not see
 *        hinted stall      a thread waits at a soft barrier, and the other for a plain variable
 *        hinted ends       a signal handler ends threads that wait at a soft barrier, in a critical section, in a
 * section hinted cancelled  threads at a soft barrier are cancelled hinted handlers   handlers synchronize while their
 * threads wait at a soft barrier hinted forks      the process forks while threads are in sections and wait at a soft
 * barrier hinted sites      no hints of its own: threads call lock_often, lock_and_compute and meet, for those of a
 * file hinted bad        what is refused
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <subutai/det.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 60

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static subutai_soft_barrier_t barrier = SUBUTAI_SOFT_BARRIER_INITIALIZER(THREADS, 500);
static uint64_t sum;
static int items;
static bool is_done;
static atomic_int n_handled;

static void add(uint64_t number) {
    sum = (sum ^ number) * 0x100000001B3u;
}

static void compute(uint64_t number) {
    for (volatile uint64_t i = 0; i < number; i++)
        ;
}

static void locked_add(uint64_t number) {
    pthread_mutex_lock(&mutex);
    add(number);
    pthread_mutex_unlock(&mutex);
}

/* ---- a pipeline: LBDR's example ---- */

static bool take(void) {
    pthread_mutex_lock(&mutex);
    while (items == 0 && !is_done)
        pthread_cond_wait(&cond, &mutex);
    bool has_one = items > 0;
    items -= has_one;
    pthread_mutex_unlock(&mutex);
    return has_one;
}

static void *segment(void *number) {
    while (take()) {
        subutai_give_up_turn(0, 200);
        compute(20000);
        locked_add((uintptr_t)number);
    }
    return NULL;
}

static void *load(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 20; k++)
            locked_add((uintptr_t)number);
        pthread_mutex_lock(&mutex);
        items++;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mutex);
    }
    pthread_mutex_lock(&mutex);
    is_done = true;
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* ---- the others ---- */

static void *alike(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        subutai_soft_barrier_wait(&barrier);
        compute(3000 * (uintptr_t)number);
        locked_add((uintptr_t)number);
    }
    return NULL;
}

static void *lone(void *number) {
    subutai_soft_barrier_t own;
    subutai_soft_barrier_init(&own, 2, 20);
    for (int i = 0; i < ROUNDS; i++) {
        subutai_soft_barrier_wait(&own);
        locked_add((uintptr_t)number);
        if (i % 3 == 0)
            subutai_soft_barrier_wait(&barrier);
        compute((uintptr_t)number * 100);
    }
    return NULL;
}

__attribute__((noinline)) static void count_up(void) {
    pthread_mutex_lock(&mutex);
    add(0);
    pthread_mutex_unlock(&mutex);
}

static void *count(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        subutai_pcs_begin();
        count_up(); /* in any order the same */
        subutai_pcs_begin();
        compute((uintptr_t)number * 100);
        usleep(1);
        count_up();
        subutai_pcs_end();
        count_up();
        subutai_pcs_end();
    }
    return NULL;
}

static void end_thread(int number) {
    (void)number;
    atomic_fetch_add(&n_handled, 1);
    pthread_exit(NULL);
}

static void *wait_and_end(void *number) {
    subutai_soft_barrier_t own = SUBUTAI_SOFT_BARRIER_INITIALIZER(2, 1000000);
    if ((uintptr_t)number == 0)
        for (;;)
            subutai_soft_barrier_wait(&barrier); /* of four: the main thread comes, and does not wait for the others */
    if ((uintptr_t)number == 1)
        subutai_pcs_begin();
    for (;;) {
        subutai_soft_barrier_wait(&own);
        subutai_give_up_turn(1, 0);
        locked_add(0);
    }
    return NULL;
}

static void handle(int number) {
    locked_add(0);
    atomic_fetch_add(&n_handled, number == SIGUSR1);
}

static void *meet_for_ever(void *number) {
    for (int i = 0; i < ROUNDS || (uintptr_t)number % 2 == 0; i++) {
        subutai_soft_barrier_wait(&barrier);
        pthread_testcancel();
    }
    return number;
}

static void *signalled(void *number) {
    for (int i = 0; i < ROUNDS * 4; i++)
        subutai_soft_barrier_wait(&barrier);
    return number;
}

/* ---- call sites ---- */

__attribute__((noinline)) static void lock_often(uint64_t number) {
    pthread_mutex_lock(&mutex);
    add(number);
    pthread_mutex_unlock(&mutex);
}

__attribute__((noinline)) static void lock_and_compute(uint64_t number) {
    pthread_mutex_lock(&mutex);
    add(number + 100);
    pthread_mutex_unlock(&mutex);
    compute(20000);
}

__attribute__((noinline)) static void meet(void) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    compute(3000);
}

__attribute__((noinline)) static int try_elsewhere(void) {
    int r = pthread_mutex_trylock(&mutex);
    __asm__ volatile("" ::: "memory"); /* no jump in the place of the call */
    return r;
}

/* It waits for the mutex by an operation that does not block. */
__attribute__((noinline)) static void try_until_had(void) {
    while (pthread_mutex_trylock(&mutex) != 0)
        ;
    pthread_mutex_unlock(&mutex);
}

/* The same at two sites by turns. */
__attribute__((noinline)) static void try_here_and_there(void) {
    while (pthread_mutex_trylock(&mutex) != 0 && try_elsewhere() != 0)
        ;
    pthread_mutex_unlock(&mutex);
}

static void *tries(void *unused) {
    try_until_had();
    return unused;
}

static void *tries_twice(void *unused) {
    try_here_and_there();
    return unused;
}

static int tried(void *(*how)(void *)) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    pthread_create(&thread, NULL, how, NULL);
    for (int i = 0; i < 20; i++)
        sched_yield();
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static void *at_sites(void *number) {
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 5 && (uintptr_t)number % 2 == 0; k++)
            lock_often((uintptr_t)number);
        if ((uintptr_t)number % 2 == 1)
            lock_and_compute((uintptr_t)number);
        if (i % 5 == 0)
            meet();
    }
    return NULL;
}

/* ---- all ---- */

static void create(pthread_t *thread, void *(*routine)(void *), int first) {
    for (int i = first; i < THREADS; i++)
        pthread_create(&thread[i], NULL, routine, (void *)(uintptr_t)(i + 1));
}

static int join(const pthread_t *thread) {
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%016llx\n", (unsigned long long)sum);
    return 0;
}

static int run(void *(*routine)(void *)) {
    pthread_t thread[THREADS];
    create(thread, routine, 0);
    return join(thread);
}

static int pipeline(void) {
    pthread_t thread[THREADS];
    pthread_create(&thread[0], NULL, load, (void *)99);
    create(thread, segment, 1);
    return join(thread);
}

static int ends(void) {
    pthread_t thread[3];
    struct sigaction action = {.sa_handler = end_thread};
    sigaction(SIGUSR1, &action, NULL);
    for (uintptr_t i = 0; i < 3; i++)
        pthread_create(&thread[i], NULL, wait_and_end, (void *)i);
    for (int i = 0; i < ROUNDS; i++)
        locked_add(1);
    for (int i = 0; i < 3; i++)
        pthread_kill(thread[i], SIGUSR1);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    subutai_soft_barrier_wait(&barrier); /* no thread waits there any more */
    locked_add(1);
    printf("%d\n", atomic_load(&n_handled));
    return 0;
}

static int cancelled(void) {
    pthread_t thread[THREADS];
    void *result;
    int n = 0;
    create(thread, meet_for_ever, 0);
    for (int i = 0; i < 20; i++)
        locked_add(1);
    pthread_cancel(thread[1]);
    pthread_cancel(thread[3]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], &result);
        n += result == PTHREAD_CANCELED;
    }
    printf("%d %016llx\n", n, (unsigned long long)sum);
    return 0;
}

static int handlers(void) {
    pthread_t thread[THREADS];
    struct sigaction action = {.sa_handler = handle};
    sigaction(SIGUSR1, &action, NULL);
    create(thread, signalled, 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_kill(thread[i % THREADS], SIGUSR1);
        usleep(50);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%d\n", atomic_load(&n_handled) > 0);
    return 0;
}

static int forks(void) {
    pthread_t thread[THREADS];
    int status = -1, n = 0;
    create(thread, alike, 0);
    for (int i = 0; i < 10; i++) {
        locked_add(7);
        pid_t child = fork();
        if (child == 0) {
            pthread_mutex_init(&mutex, NULL);
            subutai_soft_barrier_init(&barrier, THREADS, 500);
            sum = 0;
            run(i % 2 == 0 ? alike : lone);
            fflush(stdout);
            _exit(3);
        }
        n += child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("%d\n", n);
    return 0;
}

static int bad(void) {
    subutai_soft_barrier_t b;
    printf("%d", subutai_soft_barrier_init(&b, 0, 5) == EINVAL && subutai_soft_barrier_init(&b, 5, 0) == EINVAL);
    bool is_served = subutai_det_give_up_turn != NULL && subutai_give_up_turn(SUBUTAI_DET_HINTS, 0) == EINVAL;
    printf(" %d", !is_served || (subutai_soft_barrier_wait(&b) == EINVAL &&
                                 subutai_give_up_turn(0, SUBUTAI_DET_MAX_WEIGHT + 1) == EINVAL));
    subutai_pcs_end(); /* of none */
    printf(" %d\n", subutai_give_up_turn(0, SUBUTAI_DET_MAX_WEIGHT));
    return 0;
}

static atomic_int has_met;
static int fds[2];

static void *meet_and_write(void *argument) {
    subutai_soft_barrier_wait(&barrier);
    atomic_store(&has_met, 1);
    return write(fds[1], "x", 1) == 1 ? argument : NULL;
}

/* The only other thread waits at a soft barrier, and this one has the turn. */
static int keeps(bool loops) {
    pthread_t thread;
    FILE *in = pipe(fds) == 0 ? fdopen(fds[0], "r") : NULL;
    pthread_create(&thread, NULL, meet_and_write, NULL);
    for (int i = 0; i < 20; i++)
        sched_yield();
    while (loops && atomic_load(&has_met) == 0)
        ;
    puts(in != NULL && fgetc(in) == 'x' ? "done" : "no byte");
    pthread_join(thread, NULL);
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "pipeline") == 0)
        return pipeline();
    if (strcmp(what, "alike") == 0)
        return run(alike);
    if (strcmp(what, "lone") == 0)
        return run(lone);
    if (strcmp(what, "pcs") == 0)
        return run(count);
    if (strcmp(what, "sites") == 0)
        return run(at_sites);
    if (strcmp(what, "tries") == 0)
        return tried(tries);
    if (strcmp(what, "tries-twice") == 0)
        return tried(tries_twice);
    if (strcmp(what, "ends") == 0)
        return ends();
    if (strcmp(what, "cancelled") == 0)
        return cancelled();
    if (strcmp(what, "handlers") == 0)
        return handlers();
    if (strcmp(what, "forks") == 0)
        return forks();
    if (strcmp(what, "stdio") == 0)
        return keeps(false);
    if (strcmp(what, "stall") == 0)
        return keeps(true);
    if (strcmp(what, "bad") == 0)
        return bad();
    fprintf(stderr, "usage: hinted "
                    "pipeline|alike|lone|pcs|ends|cancelled|handlers|forks|sites|tries|tries-twice|stdio|stall|bad\n");
    return 2;
}

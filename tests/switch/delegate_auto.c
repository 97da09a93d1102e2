/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `--delegate auto!`, in scenes: which mutexes are delegated when their share of the threads' time alone decides. The
 * library says each change in the file that $SUBUTAI_LOG names, at verbosity 3; a scene goes on until it has said what
 * is expected. Without that variable, on the C library alone, nothing is expected. A hang is ended by the test's time
 * limit.
 */
#include "scene.h"

#include <semaphore.h>

#define SLEEP_US 1000
#define N_MANY 49 /* threads: of two mutexes, and one that watches */

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, beside = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cold[2];
static long count;
static atomic_bool over, sleeps;

/* How often, by lines: the log may be long, while a scene goes on. */
static int n_logged(const char *what) {
    const char *name = getenv("SUBUTAI_LOG");
    if (name == NULL)
        return 1;
    FILE *file = fopen(name, "re");
    char line[1000];
    int n = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        n += strstr(line, what) != NULL;
    if (file != NULL)
        fclose(file);
    return n;
}

static bool is_logged(const char *what) {
    return n_logged(what) != 0;
}

/* How often has the library said that of the mutex? */
static int n_said(const pthread_mutex_t *m, const char *what) {
    char line[200];
    snprintf(line, sizeof line, "the mutex at %p %s\n", (const void *)m, what);
    return n_logged(line);
}

static bool has_said(const pthread_mutex_t *m, const char *what) {
    return n_said(m, what) != 0;
}

static void section(pthread_mutex_t *m) {
    OK(pthread_mutex_lock(m));
    count++;
    if (atomic_load(&sleeps))
        sleep_us(SLEEP_US);
    else if (count % 16 == 0)
        sched_yield(); /* others come, and wait */
    OK(pthread_mutex_unlock(m));
}

static void *take_hot(void *number) {
    long self = (long)number, n = 0;
    while (!atomic_load(&over)) {
        section(&hot);
        if (++n % 16 == 0) { /* so that threads seldom collide there */
            OK(pthread_mutex_lock(&cold[self % 2]));
            OK(pthread_mutex_unlock(&cold[self % 2]));
        }
    }
    return number;
}

/* Threads without number 0 take the mutex; that looks what the library has said. */
static void *watch_or_take(void *number) {
    if ((long)number != 0)
        return take_hot(number);
    while (!has_said(&hot, "is delegated"))
        sleep_us(SLEEP_US);
    atomic_store(&over, true);
    return number;
}

static void delegates(void) {
    for (int i = 0; i < 2; i++)
        OK(pthread_mutex_init(&cold[i], NULL));
    run(N, watch_or_take);
    for (int i = 0; i < 2; i++)
        CHECK(getenv("SUBUTAI_LOG") == NULL || !has_said(&cold[i], "is delegated"));
}

static void *nothing(void *unused) {
    return unused;
}

/* What is known of a mutex stays known when threads are created. */
static void *watch_and_create(void *number) {
    if ((long)number != 0)
        return take_hot(number);
    while (!has_said(&hot, "is delegated"))
        sleep_us(SLEEP_US);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        OK(pthread_create(&thread, NULL, nothing, NULL));
        OK(pthread_join(thread, NULL));
        for (int k = 0; k < 20; k++)
            sleep_us(SLEEP_US);
    }
    atomic_store(&over, true);
    return number;
}

static void stays_while_threads_come(void) {
    for (int i = 0; i < 2; i++)
        OK(pthread_mutex_init(&cold[i], NULL));
    run(N, watch_and_create);
    CHECK(getenv("SUBUTAI_LOG") == NULL ||
          n_said(&hot, "is delegated") <= 1 + n_said(&hot, "is not delegated any more"));
}

/* Its sections begin to sleep. Others keep taking another mutex, so that the library goes on to look. */
static void *watch_or_sleep(void *number) {
    if ((long)number >= N / 2) {
        while (!atomic_load(&over)) {
            OK(pthread_mutex_lock(&beside));
            OK(pthread_mutex_unlock(&beside));
            sched_yield();
        }
        return number;
    }
    if ((long)number != 0)
        return take_hot(number);
    while (!has_said(&hot, "is delegated"))
        sleep_us(SLEEP_US);
    atomic_store(&sleeps, true);
    while (!has_said(&hot, "is not delegated any more"))
        sleep_us(SLEEP_US);
    atomic_store(&over, true);
    return number;
}

static void goes_back(void) {
    for (int i = 0; i < 2; i++)
        OK(pthread_mutex_init(&cold[i], NULL));
    run(N, watch_or_sleep);
}

/* The program does what ends switching, and takes the mutex afterwards for a while. */
static void *end_and_take(void *number) {
    meet();
    if ((long)number == 0)
        OK(setuid(getuid()));
    meet();
    if ((long)number != 0)
        return take_hot(number);
    for (int i = 0; i < 300; i++)
        sleep_us(SLEEP_US);
    atomic_store(&over, true);
    return number;
}

static void not_after_the_end(void) {
    for (int i = 0; i < 2; i++)
        OK(pthread_mutex_init(&cold[i], NULL));
    run(N, end_and_take);
    CHECK(getenv("SUBUTAI_LOG") == NULL || !has_said(&hot, "is delegated"));
}

/*
 * Two hot mutexes that are one server's, of two: every other one of a row is, by address. One of them moves. Now and
 * then a section waits until one of the other mutex has begun: so many threads queue for both, and their sections meet
 * at the server, however the kernel schedules that.
 */
static pthread_mutex_t row[3];
static sem_t begun[2];
static long counts[2];

static void *take_one_of_two(void *number) {
    long mine = (long)number % 2;
    while (!atomic_load(&over)) {
        OK(pthread_mutex_lock(&row[mine * 2]));
        if (++counts[mine] % 4 == 0) {
            SYS(sem_post(&begun[mine]));
            SYS(sem_wait(&begun[!mine]));
        }
        OK(pthread_mutex_unlock(&row[mine * 2]));
    }
    return number;
}

static void *watch_or_take_two(void *number) {
    if ((long)number != 0)
        return take_one_of_two(number);
    while (!has_said(&row[0], "has another server") && !has_said(&row[2], "has another server") &&
           !is_logged("servers are more than the CPUs"))
        sleep_us(SLEEP_US);
    atomic_store(&over, true);
    for (int i = 0; i < N_MANY; i++) { /* each thread waits at most once more */
        SYS(sem_post(&begun[0]));
        SYS(sem_post(&begun[1]));
    }
    return number;
}

static void moves(void) {
    for (int i = 0; i < 3; i++)
        OK(pthread_mutex_init(&row[i], NULL));
    for (int i = 0; i < 2; i++)
        SYS(sem_init(&begun[i], 0, 0));
    run(N_MANY, watch_or_take_two);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"delegates", delegates}, {"stays-while-threads-come", stays_while_threads_come},
        {"goes-back", goes_back}, {"not-after-the-end", not_after_the_end},
        {"moves", moves},         {NULL, NULL}};
    return play(argc, argv, scenes);
}

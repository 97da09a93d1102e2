/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that waiting by switching is for, in scenes of what could go wrong there: one scene per run, by name. It
 * imports nothing that the library steps aside for; the kernel thread it is on it learns from /proc/thread-self.
 * Exit status 0: the scene's promises hold. A hang is ended by the test's time limit.
 */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N 12 /* threads, more than most test machines have cores for this to be of interest */
#define ROUNDS 300

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);                                   \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static atomic_int n_moved, turn, flag;
static int channel[2];
static _Thread_local int own;

static long kernel_thread(void) {
    char link[64] = "";
    MUST(readlink("/proc/thread-self", link, sizeof link - 1) > 0);
    const char *last = strrchr(link, '/');
    return atol(last + 1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void meet(void) {
    int r = pthread_barrier_wait(&barrier);
    MUST(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void run(int n, void *(*routine)(void *)) {
    pthread_t threads[64];
    MUST(pthread_barrier_init(&barrier, NULL, (unsigned)n) == 0);
    for (int i = 0; i < n; i++)
        MUST(pthread_create(&threads[i], NULL, routine, (void *)(long)i) == 0);
    for (int i = 0; i < n; i++) {
        void *result;
        MUST(pthread_join(threads[i], &result) == 0);
        MUST(result == (void *)(long)i);
    }
}

/* ---- what is a thread's own goes with it ---- */
static void *carry(void *number) {
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    int id = (int)(long)number, rounding = roundings[id % 4];
    pthread_t self = pthread_self();
    long first = kernel_thread();
    bool moved = false;
    own = id;
    fesetround(rounding);
    for (int i = 0; i < ROUNDS; i++) {
        errno = 1000 + id;
        meet();
        MUST(errno == 1000 + id);
        MUST(own == id);
        MUST(pthread_equal(self, pthread_self()));
        MUST(fegetround() == rounding);
        moved = moved || kernel_thread() != first;
    }
    if (moved)
        atomic_fetch_add(&n_moved, 1);
    return number;
}

static void own_state(void) {
    run(N, carry);
    printf("%d threads ran on another's kernel thread\n", n_moved);
    MUST(getenv("SWITCHED") == NULL || n_moved > 0);
}

/* ---- asleep in the kernel on every carrier: the others go on ---- */
static void *read_or_work(void *number) {
    int id = (int)(long)number;
    char byte;
    for (int i = 0; i < 20; i++)
        meet(); /* away from home by now */
    if (id >= 2) {
        MUST(read(channel[0], &byte, 1) == 1);
    } else {
        for (int i = 0; i < ROUNDS; i++) {
            MUST(pthread_mutex_lock(&mutex) == 0);
            while (turn != id)
                MUST(pthread_cond_wait(&cond, &mutex) == 0);
            turn = 1 - id;
            MUST(pthread_cond_broadcast(&cond) == 0);
            MUST(pthread_mutex_unlock(&mutex) == 0);
        }
        for (int i = 0; id == 0 && i < N - 2; i++)
            MUST(write(channel[1], "", 1) == 1);
    }
    meet();
    return number;
}

static void kernel_sleepers(void) {
    MUST(pipe(channel) == 0);
    run(N, read_or_work);
}

/* ---- everybody but one spins on a variable that the one sets: no call that could let it run ---- */
static void *spin_or_set(void *number) {
    for (int i = 0; i < 20; i++)
        meet();
    if ((long)number == N - 1) {
        MUST(pthread_mutex_lock(&mutex) == 0);
        flag = 1;
        MUST(pthread_mutex_unlock(&mutex) == 0);
    }
    while (!flag)
        ;
    meet();
    return number;
}

static void spinners(void) {
    run(N, spin_or_set);
}

/* ---- the same, politely ---- */
static void *yield_in_turn(void *number) {
    int id = (int)(long)number;
    meet();
    for (int i = 0; i < 20; i++) {
        while (turn != id)
            sched_yield();
        turn = (id + 1) % 32;
    }
    return number;
}

static void yielders(void) {
    run(32, yield_in_turn);
}

/* ---- deadlines ---- */
static void *wait_with_deadline(void *number) {
    for (int i = 0; i < 5; i++) {
        struct timespec at;
        meet();
        double begin = now();
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_nsec += 20000000;
        at.tv_sec += at.tv_nsec / 1000000000;
        at.tv_nsec %= 1000000000;
        pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t c = PTHREAD_COND_INITIALIZER;
        MUST(pthread_mutex_lock(&m) == 0);
        int r;
        while ((r = pthread_cond_timedwait(&c, &m, &at)) == 0)
            ;
        MUST(r == ETIMEDOUT);
        MUST(now() - begin > 0.015);
        MUST(pthread_mutex_unlock(&m) == 0);
    }
    return number;
}

static void deadlines(void) {
    run(N, wait_with_deadline);
}

/* ---- a thread that has moved forks, and the child has threads of its own ---- */
static void *fork_on_the_way(void *number) {
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 20; k++)
            meet();
        pid_t pid = fork();
        MUST(pid >= 0);
        if (pid == 0) {
            MUST(own == 0);
            run(4, carry);
            _exit(0);
        }
        int status;
        MUST(waitpid(pid, &status, 0) == pid);
        MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return number;
}

static void forks(void) {
    run(4, fork_on_the_way);
}

/* ---- threads that have moved end, are joined by others that have, and the last one ends the process ---- */
static void *end_by_exit(void *number) {
    for (int i = 0; i < 20; i++)
        meet();
    if ((long)number % 2 == 0)
        pthread_exit(number);
    return number;
}

static void ends(void) {
    for (int i = 0; i < 20; i++)
        run(N, end_by_exit);
}

static void *end_last(void *main_thread) {
    MUST(pthread_join(*(pthread_t *)main_thread, NULL) == 0);
    for (int i = 0; i < 20; i++)
        meet();
    return NULL;
}

static void main_ends_first(void) {
    static pthread_t self;
    pthread_t thread;
    self = pthread_self();
    MUST(pthread_barrier_init(&barrier, NULL, 1) == 0);
    MUST(pthread_create(&thread, NULL, end_last, &self) == 0);
    MUST(pthread_detach(thread) == 0);
    pthread_exit(NULL);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*scene)(void);
    } scenes[] = {
        {"own-state", own_state}, {"kernel-sleepers", kernel_sleepers},
        {"spinners", spinners},   {"yielders", yielders},
        {"deadlines", deadlines}, {"forks", forks},
        {"ends", ends},           {"main-ends-first", main_ends_first},
    };
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0) {
            scenes[i].scene();
            return 0;
        }
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        puts(scenes[i].name);
    return 2;
}

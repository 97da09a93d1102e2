/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads meet in a barrier every few milliseconds, while the CPUs that they may run on change.
 *
 *   cpus only        they do not change
 *   cpus affinity    all threads are limited to one CPU, and freed again, as by `taskset -a`
 *   cpus busily      the same, and they meet without a pause: when they switch, only the library's own thread looks
 *   cpus bound       each thread limits itself to one CPU: together they have all
 *   cpus quota FILE  "100000" is written to FILE, and then "-1" or "max 100000", whatever it takes
 *
 * The program waits long enough for each change to be noticed.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/checks.h"

enum { THREADS = 3, SECONDS_US = 2500000, STEP_US = 5000, LINE = 256 };
static pthread_barrier_t barrier;
static atomic_bool over;
static bool bound, busily;
static cpu_set_t all;

static void *meet(void *number) {
    const int me = (int)(intptr_t)number;
    if (bound) {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int i = 0, n = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &all) && n++ % CPU_COUNT(&all) == me % CPU_COUNT(&all))
                CPU_SET(i, &one);
        CHECK_INT(sched_setaffinity(0, sizeof one, &one), 0);
    }
    for (bool last = false; !last;) {
        if (me == 0 && !busily)
            usleep(STEP_US);
        static bool said[2];
        static int round;
        if (me == 0)
            said[round & 1] = atomic_load(&over);
        pthread_barrier_wait(&barrier);
        last = said[round & 1];
        pthread_barrier_wait(&barrier);
        if (me == 0)
            round++;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void limit_all(const cpu_set_t *to) {
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *e; (e = readdir(tasks)) != NULL;)
        if (e->d_name[0] != '.')
            CHECK_INT(sched_setaffinity(atoi(e->d_name), sizeof *to, to), 0);
    closedir(tasks);
}

static void put(const char *file, const char *text) {
    FILE *f = fopen(file, "w");
    CHECK(f != NULL);
    CHECK(fputs(text, f) >= 0);
    CHECK_INT(fclose(f), 0);
}

/* Until the library has said so many numbers, in the file that is the standard error output. */
static void await_numbers(int wanted) {
    char line[LINE];
    for (int found = 0; found < wanted; usleep(STEP_US)) {
        FILE *said = fopen("/proc/self/fd/2", "r");
        CHECK(said != NULL);
        for (found = 0; fgets(line, sizeof line, said) != NULL;)
            found += strstr(line, "CPUs that may be used: ") != NULL;
        CHECK_INT(fclose(said), 0);
    }
}

int main(int argc, char **argv) {
    pthread_t thread[THREADS];
    CHECK(argc >= 2);
    CHECK_INT(sched_getaffinity(0, sizeof all, &all), 0);
    bound = strcmp(argv[1], "bound") == 0;
    busily = strcmp(argv[1], "busily") == 0;
    OK(pthread_barrier_init(&barrier, NULL, THREADS));
    for (intptr_t i = 0; i < THREADS; i++)
        OK(pthread_create(&thread[i], NULL, meet, (void *)i));
    if (busily || strcmp(argv[1], "affinity") == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int i = 0; CPU_COUNT(&one) == 0; i++)
            if (CPU_ISSET(i, &all))
                CPU_SET(i, &one);
        await_numbers(1);
        limit_all(&one);
        await_numbers(2);
        limit_all(&all);
        await_numbers(3);
    } else if (argc == 3) {
        await_numbers(1);
        put(argv[2], "100000");
        await_numbers(2);
        put(argv[2], strstr(argv[2], "cpu.max") != NULL ? "max" : "-1");
        await_numbers(3);
    } else {
        usleep(SECONDS_US); /* nothing more is to be said */
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++)
        OK(pthread_join(thread[i], NULL));
    puts("done");
    return 0;
}

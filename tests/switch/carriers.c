/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * carriers N...: for each N it prints "next" and its process and waits for a line on standard input, with which its
 * CPUs have changed; then until N carriers run its threads, and no other: so many kernel threads that are not the
 * program's, in each of some windows in a row. What a server does for it, if mutexes are delegated, is not looked at.
 */
#include "scene.h"

enum { WINDOW_MS = 200, IN_A_ROW = 3, MOST = 64, THREADS = 8 };

static atomic_int seen[MOST]; /* carriers in this window */
static int own[THREADS];
static atomic_bool over;
static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;
static bool inside;

static void note(int tid) {
    for (int i = 0; i < THREADS; i++)
        if (own[i] == tid)
            return;
    for (int i = 0; i < MOST; i++) {
        int none = 0;
        if (atomic_load(&seen[i]) == tid || atomic_compare_exchange_strong(&seen[i], &none, tid) || none == tid)
            return;
    }
    CHECK(!"more carriers than there can be");
}

/* Others come, and queue. */
static void contend(void) {
    OK(pthread_mutex_lock(&hot));
    CHECK(!inside);
    inside = true;
    sched_yield();
    inside = false;
    OK(pthread_mutex_unlock(&hot));
}

static int n_seen(void) {
    int n = 0;
    for (int i = 0; i < MOST; i++)
        n += atomic_exchange(&seen[i], 0) != 0;
    return n;
}

static void *work(void *number) {
    own[(long)number] = (int)proc_kernel_thread();
    meet();
    while (!over) {
        for (volatile int i = 0; i < 30000; i++)
            ;
        note((int)proc_kernel_thread());
        contend();
        meet();
    }
    return number;
}

static void until(int n) {
    char line[8];
    printf("next %d\n", (int)getpid());
    CHECK(fgets(line, sizeof line, stdin) != NULL);
    n_seen();
    for (int row = 0; row < IN_A_ROW; row = n_seen() == n ? row + 1 : 0)
        sleep_ms(WINDOW_MS);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    OK(pthread_barrier_init(&barrier, NULL, THREADS));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&threads[i], NULL, work, (void *)(long)i));
    for (int i = 1; i < argc; i++)
        until(atoi(argv[i]));
    over = true;
    puts("done");
    fflush(stdout);
    exit(0);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a thread that does nothing costs in address space. "limit": how many with stacks of 8 MiB fit under a limit of
 * 400 MB, "narrow": with stacks of 1 MiB under 40 MB (the number on standard output is compared with the plain C
 * library's by the script). "growth": by how much the address space grows for each of 16 with small stacks, after a
 * first one. An allocation that the library makes on a new thread's behalf gives it a malloc arena of 64 MiB, and a
 * program that ran under a limit runs no more.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/proc.h"
#include "lib/threads.h"

enum { N_THREADS = 16, MOST_KIB = 1024 };

static int n_up;

static void *idle(void *arg) {
    __atomic_add_fetch(&n_up, 1, __ATOMIC_SEQ_CST);
    pause();
    return arg;
}

static void until_up(int n) {
    while (__atomic_load_n(&n_up, __ATOMIC_SEQ_CST) < n)
        sleep_ms(1);
}

int main(int argc, char **argv) {
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    CHECK(argc == 2);
    bool narrow = strcmp(argv[1], "narrow") == 0;
    if (narrow || strcmp(argv[1], "limit") == 0) {
        const struct rlimit space = {(narrow ? 40000 : 400000) * 1024L, (narrow ? 40000 : 400000) * 1024L};
        int n = 0;
        setrlimit(RLIMIT_AS, &space);
        pthread_attr_setstacksize(&attr, (narrow ? 1 : 8) << 20);
        /* One after the other: whatever a thread allocates is there before the next one asks for its stack. */
        for (; n < 1000 && pthread_create(&thread, &attr, idle, NULL) == 0; n++)
            until_up(n + 1);
        printf("%d\n", n);
        return 0;
    }
    pthread_attr_setstacksize(&attr, 256 * 1024);
    thread_start_with(&attr, idle, NULL);
    until_up(1);
    long before = proc_kib("VmSize:");
    for (int i = 0; i < N_THREADS; i++)
        thread_start_with(&attr, idle, NULL);
    until_up(1 + N_THREADS);
    long each = (proc_kib("VmSize:") - before) / N_THREADS;
    fprintf(stderr, "address space per thread: %ld KiB\n", each);
    puts(each <= MOST_KIB ? "small" : "large");
    return each > MOST_KIB;
}

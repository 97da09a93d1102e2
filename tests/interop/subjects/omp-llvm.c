/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * LLVM's OpenMP, with the main thread in a team: clang's code for its own run-time library. What belongs to the main
 * thread must be the same wherever that runs: its stack, how large it is, its end. Prints results that depend on no
 * order, and last whether a kernel thread other than its own has ever run the main thread.
 *
 *   teams   a team of 8: reductions, critical and ordered sections, tasks, frames of many sizes across barriers
 *   forks   children that are forked between teams, and have teams of their own
 *   leaves  the main thread ends by pthread_exit, beside a thread that has a team
 */
#include <alloca.h>
#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 200, DEPTH = 12 };

static int n_away;

static void look(void) {
    char link[32];
    ssize_t n = readlink("/proc/thread-self", link, sizeof link - 1);
    if (omp_get_thread_num() != 0 || n <= 0)
        return;
    link[n] = '\0';
    n_away += atoi(strrchr(link, '/') + 1) != getpid();
}

static void say_where(void) {
    printf("main %s\n", n_away > 0 ? "is switched" : "keeps its kernel thread");
}

static bool is_on_main_stack(const void *at) {
    pthread_attr_t attr;
    void *stack;
    size_t bytes;
    if (pthread_getattr_np(pthread_self(), &attr) != 0 || pthread_attr_getstack(&attr, &stack, &bytes) != 0)
        return false;
    pthread_attr_destroy(&attr);
    return (const char *)at >= (char *)stack && (const char *)at < (char *)stack + bytes;
}

/* Each depth has a frame of its own size, meets the others, and looks whether the frame is as it was. */
static long descend(int depth) {
    size_t bytes = 16 + 997 * (size_t)((depth + omp_get_thread_num()) % 5);
    unsigned char *frame = alloca(bytes);
    memset(frame, depth, bytes);
#pragma omp barrier
    long sum = depth < DEPTH ? descend(depth + 1) : 0;
#pragma omp barrier
    for (size_t i = 0; i < bytes; i++)
        sum += frame[i] == depth;
    return sum;
}

static long work(int n_threads) {
    long sum = 0, in_turn = 0, done = 0, depths = 0;
    omp_set_dynamic(0);
#pragma omp parallel num_threads(n_threads) reduction(+ : sum, depths)
    {
        for (int round = 0; round < ROUNDS; round++) {
#pragma omp barrier
            look();
#pragma omp critical
            done++;
        }
#pragma omp for ordered
        for (int i = 0; i < 64; i++) {
            sum += i;
#pragma omp ordered
            in_turn = in_turn * 3 % 1000003 + i;
        }
        depths += descend(1);
#pragma omp single
        for (int i = 0; i < 32; i++)
#pragma omp task firstprivate(i) shared(done)
        {
#pragma omp atomic
            done += i;
        }
    }
    return sum * 7 + in_turn * 5 + done * 3 + depths;
}

static int teams(void) {
    struct rlimit before, after;
    int here;
    bool is_there = true;
    getrlimit(RLIMIT_STACK, &before);
    printf("work: %ld\n", work(THREADS));
#pragma omp parallel num_threads(THREADS) shared(is_there)
    {
#pragma omp barrier
        look();
        if (omp_get_thread_num() == 0)
            is_there = is_on_main_stack(&here) && is_on_main_stack(alloca(64));
    }
    getrlimit(RLIMIT_STACK, &after);
    printf("main's stack: %s, %s\n", is_there ? "its own" : "another",
           before.rlim_cur == after.rlim_cur ? "as large as before" : "of another size");
    say_where();
    return 0;
}

static int forks(void) {
    for (int i = 0; i < 3; i++) {
        printf("parent: %ld\n", work(THREADS));
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            printf("child: %ld\n", work(THREADS - 1));
            exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        printf("status %d\n", status);
    }
    say_where();
    return 0;
}

static void *work_beside(void *unused) {
    printf("beside: %ld\n", work(THREADS));
    exit(3);
    return unused;
}

/* The function is looked up: a program that is linked with it keeps its main thread at home from the beginning. */
static int leaves(void) {
    pthread_t thread;
    void (*leave)(void *);
    printf("work: %ld\n", work(THREADS));
    say_where();
    if (pthread_create(&thread, NULL, work_beside, NULL) != 0)
        return 1;
    *(void **)(void *)&leave = dlsym(RTLD_DEFAULT, "pthread_exit");
    leave(NULL);
    return 2;
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    return strcmp(what, "teams") == 0 ? teams() : strcmp(what, "forks") == 0 ? forks() : leaves();
}

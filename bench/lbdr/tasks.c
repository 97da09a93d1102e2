/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A task queue: THREADS threads take tasks from one stack; a task may put two smaller ones there. No two tasks are
 * alike.
 *
 * usage: tasks THREADS TASKS    so many tasks at first; prints a digest that depends on that number alone
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "work.h"

enum { TASK_US = 100, DEPTH = 2 /* a task of this depth has no others */, MOST_OF_ONE = 7 };

struct task {
    uint64_t seed;
    unsigned depth;
};

static struct amounts amounts;
static struct task *stack;
static unsigned n_tasks, n_busy; /* on the stack; threads that may still put some there */
static uint64_t sum;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* A task begins: the place of hints. */
static SITE void leave_take(void) {
    pthread_mutex_unlock(&mutex);
}

static bool take(struct task *task) {
    pthread_mutex_lock(&mutex);
    while (n_tasks == 0 && n_busy != 0)
        pthread_cond_wait(&changed, &mutex);
    bool has_one = n_tasks != 0;
    if (has_one) {
        *task = stack[--n_tasks];
        n_busy++;
    }
    leave_take();
    return has_one;
}

static void finish_task(const struct task *task, uint64_t result) {
    pthread_mutex_lock(&mutex);
    sum += result;
    n_busy--;
    if (task->depth < DEPTH && result % 2 == 0) {
        for (unsigned i = 0; i < 2; i++)
            stack[n_tasks++] = (struct task){mix(result, i), task->depth + 1};
        pthread_cond_broadcast(&changed);
    } else if (n_tasks == 0 && n_busy == 0) {
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mutex);
}

static void *work(void *unused) {
    for (struct task task; take(&task);)
        finish_task(&task, mix(task.seed, compute_about(task.seed, TASK_US >> task.depth)));
    return unused;
}

int main(int argc, char **argv) {
    amounts = amounts_of(argc, argv);
    pthread_t *threads = calloc(amounts.n_threads, sizeof *threads);
    stack = calloc((size_t)amounts.n_items * MOST_OF_ONE, sizeof *stack);
    if (threads == NULL || stack == NULL)
        return 1;
    for (; n_tasks < amounts.n_items; n_tasks++)
        stack[n_tasks] = (struct task){mix(1, n_tasks), 0};
    begin(threads, amounts.n_threads, work);
    finish(threads, amounts.n_threads);
    printf("%016" PRIx64 "\n", sum);
    free(stack);
    free(threads);
    return 0;
}

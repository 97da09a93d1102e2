/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stealing.h"

#include <stdio.h>
#include <stdlib.h>

const char *distribution_name(enum distribution distribution) {
    static const char *const names[] = {"total skew", "half", "even", "quarter", "random"};
    return names[distribution];
}

const char *pile_name(int kind) {
    static const char *const names[] = {"vc-deque", "vc-cas", "global-queue", "cilk"};
    return names[kind];
}

void distribute(enum distribution distribution, uint32_t n_threads, uint32_t n_tasks, uint32_t *counts) {
    static const uint32_t parts[N_DISTRIBUTIONS] = {[HALF] = 2, [EVEN] = 1, [QUARTER] = 4};
    uint32_t n = distribution == RANDOM ? n_threads : 1, mean = n_tasks / n_threads, sum = 0;
    uint64_t random = 1;
    if (parts[distribution] != 0 && n_threads / parts[distribution] > 0)
        n = n_threads / parts[distribution];
    for (uint32_t i = 0; i < n_threads; i++) {
        int64_t count = i < n ? n_tasks / n : 0;
        if (distribution == RANDOM) {
            int64_t thousandths = -6000;
            for (uint32_t k = 0; k < 12; k++) {
                random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
                thousandths += (int64_t)((random >> 33) % 1000);
            }
            count = mean + thousandths * mean / 3000;
            count = count < 0 ? 0 : count;
        }
        counts[i] = (uint32_t)count < n_tasks - sum ? (uint32_t)count : n_tasks - sum;
        sum += counts[i];
    }
    for (uint32_t i = 0; sum < n_tasks; sum++, i = (i + 1) % n)
        counts[i]++;
}

/* ---- the program ---- */

struct task {
    IWorkTask base;
    struct bench *bench;
    uint32_t n_run, children;
};

struct bench {
    struct stealing *run;
    int kind;
    uint32_t n_threads, counts[SIM_MAX_CORES];
    DWorkPileMaster *master;
    struct task *tasks; /* the first ones, and behind them their children */
    uint32_t n_children;
    DWorkPile *pile[SIM_MAX_CORES];
    uint64_t n_sent;
};

static void run_task(IWorkTask *base) {
    struct task *task = (struct task *)(void *)base;
    struct bench *b = task->bench;
    struct sim_program *p = atac_chip();
    task->n_run++;
    for (uint32_t i = 0; i < b->run->n_looks; i++) {
        sim_compute(p, b->run->task_cycles / (b->run->n_looks + 1));
        DWorkPile_process_pending_request(b->pile[sim_self(p)]);
    }
    sim_compute(p, b->run->task_cycles - b->run->n_looks * (b->run->task_cycles / (b->run->n_looks + 1)));
    for (; task->children > 0; task->children--)
        DWorkPile_put(b->pile[sim_self(p)], &b->tasks[b->run->n_tasks + b->n_children++].base);
}

static void prepare(struct sim_program *p, void *argument) {
    struct bench *b = argument;
    (void)p;
    uint32_t all = b->run->n_tasks * (1 + b->run->children);
    b->master = DWorkPileMaster_new(b->kind, (int)b->n_threads, (int)(all != 0 ? all : 1));
    if (b->master == NULL) {
        perror("stealing");
        exit(1);
    }
}

static void body(struct sim_program *p, void *argument) {
    struct bench *b = argument;
    uint32_t self = sim_self(p), first = 0;
    DWorkPile *pile = DWorkPileMaster_generateLocalWorkPile(b->master);
    b->pile[self] = pile;
    for (uint32_t i = 0; i < self; i++)
        first += b->counts[i];
    for (uint32_t i = first; i < first + b->counts[self]; i++)
        DWorkPile_put(pile, &b->tasks[i].base);
    for (;;) {
        DWorkPile_update_filter(pile);
        DWorkPile_process_pending_request(pile);
        IWorkTask *task = DWorkPile_get(pile);
        if (task == NULL)
            break;
        task->run(task);
    }
    DWorkPile_delete(pile);
    b->n_sent = hw_optical_sum(sim_program_optical(p)).n_sent;
}

void stealing_run(const struct atac_config *config, int kind, enum distribution distribution, struct stealing *run) {
    struct bench *b = calloc(1, sizeof *b);
    uint32_t all = run->n_tasks * (1 + run->children);
    struct sim_error error;
    if (b != NULL)
        b->tasks = calloc(all + 1, sizeof *b->tasks);
    if (b == NULL || b->tasks == NULL) {
        fprintf(stderr, "stealing: no memory\n");
        exit(1);
    }
    b->run = run;
    b->kind = kind;
    b->n_threads = config->chip.n_cores;
    for (uint32_t i = 0; i < all; i++)
        b->tasks[i] = (struct task){.base.run = run_task, .bench = b, .children = i < run->n_tasks ? run->children : 0};
    distribute(distribution, b->n_threads, run->n_tasks, b->counts);
    if (atac_run(config, prepare, body, b, &run->cycles, &error) != SIM_OK) {
        fprintf(stderr, "stealing: %s, %s: %s\n", pile_name(kind), distribution_name(distribution), error.text);
        exit(1);
    }
    run->n_sent = b->n_sent;
    run->n_wrong = 0;
    for (uint32_t i = 0; i < all; i++)
        run->n_wrong += b->tasks[i].n_run != 1;
    DWorkPileMaster_delete(b->master);
    free(b->tasks);
    free(b);
}

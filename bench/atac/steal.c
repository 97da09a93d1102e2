/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fig. 6-8 of the thesis as a table of comma-separated values: five distributions of tasks of 0.12 ms, four systems.
 *
 *   build/bench/atac/steal [--cores N] [--tasks N] [--looks N]    system,distribution,cycles,messages
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stealing.h"

int main(int argc, char **argv) {
    uint32_t n_cores = 64, n_tasks = 640, n_looks = 9;
    for (int i = 1; i < argc; i += 2) {
        uint32_t *value = NULL;
        if (strcmp(argv[i], "--cores") == 0)
            value = &n_cores;
        else if (strcmp(argv[i], "--tasks") == 0)
            value = &n_tasks;
        else if (strcmp(argv[i], "--looks") == 0)
            value = &n_looks;
        if (value != NULL && i + 1 < argc)
            *value = (uint32_t)strtoul(argv[i + 1], NULL, 10);
        if (value == NULL || i + 1 == argc || n_cores == 0 || n_tasks == 0) {
            fprintf(stderr, "usage: %s [--cores N] [--tasks N] [--looks N]\n", argv[0]);
            return 2;
        }
    }
    puts("system,distribution,cycles,messages");
    for (uint32_t d = 0; d < N_DISTRIBUTIONS; d++)
        for (int kind = 0; kind < ATAC_N_PILES; kind++) {
            struct atac_config config = atac_config_default();
            struct stealing run = {.n_tasks = n_tasks, .task_cycles = 120000, .n_looks = n_looks};
            config.chip.n_cores = n_cores;
            stealing_run(&config, kind, (enum distribution)d, &run);
            if (run.n_wrong != 0) {
                fprintf(stderr, "steal: %s: %u tasks were not run once\n", pile_name(kind), run.n_wrong);
                return 1;
            }
            printf("%s,%s,%llu,%llu\n", pile_name(kind), distribution_name((enum distribution)d),
                   (unsigned long long)run.cycles, (unsigned long long)run.n_sent);
        }
    return 0;
}

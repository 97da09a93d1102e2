/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fig. 6-8 of the thesis as a table of comma-separated values: five distributions of tasks of 0.12 ms, four systems.
 *
 *   build/bench/atac/steal [--cores N] [--tasks N] [--looks N] [--set NAME=VALUE]...
 *
 * prints system,distribution,cycles,messages
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"
#include "stealing.h"

enum { MOST_TASKS = 65536 /* of a queue */, MOST_LOOKS = 1000 };

static struct atac_config config;
static uint32_t n_tasks = 640, n_looks = 9;

static bool read_option(const char *name, const char *value) {
    if (value == NULL)
        return false;
    if (strcmp(name, "--set") == 0)
        return atac_set(&config, value);
    if (strcmp(name, "--cores") == 0)
        return atac_number(value, 1, SIM_MAX_CORES, &config.chip.n_cores);
    if (strcmp(name, "--tasks") == 0)
        return atac_number(value, 0, MOST_TASKS, &n_tasks);
    return strcmp(name, "--looks") == 0 && atac_number(value, 0, MOST_LOOKS, &n_looks);
}

int main(int argc, char **argv) {
    config = atac_config_default();
    for (int i = 1; i < argc; i += 2)
        if (!read_option(argv[i], argv[i + 1])) {
            fprintf(stderr, "usage: %s [--cores N] [--tasks N] [--looks N] [--set NAME=VALUE]...\nNAME is one of%s\n",
                    argv[0], atac_settings);
            return 2;
        }
    puts("system,distribution,cycles,messages");
    for (uint32_t d = 0; d < N_DISTRIBUTIONS; d++)
        for (int kind = 0; kind < ATAC_N_PILES; kind++) {
            struct stealing run = {.n_tasks = n_tasks, .task_cycles = 120000, .n_looks = n_looks};
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

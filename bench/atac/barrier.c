/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Figs. 6-1 to 6-6 of the thesis as tables of comma-separated values, in cycles of 1 ns: a loop of barriers, and
 * streamcluster.
 *
 *   build/bench/atac/barrier [--loops N] [--most CORES] [--set NAME=VALUE]... [--only loop|server]
 *
 * prints, with `--only loop` of Figs. 6-1 and 6-2 alone, figure,barrier,cores or value,end to end,median exit latency;
 * with `--only server` the same of a barrier that the server of system calls counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barriers.h"
#include "clustering.h"
#include "settings.h"

enum { MOST_LOOPS = 1000000 };

static uint32_t n_loops = 1000, most = 64;
static bool only_loop, only_server;
static struct atac_config base;

static void print(const char *figure, const char *name, uint32_t x, const struct barrier_loop *loop) {
    if (loop->n_overlapping != 0) {
        fprintf(stderr, "barrier: %s: a thread left a barrier before all had come\n", name);
        exit(1);
    }
    printf("%s,%s,%u,%llu,%llu\n", figure, name, x, (unsigned long long)loop->cycles,
           (unsigned long long)loop->median_exit);
}

/* Figs. 6-1 and 6-2, or 6-3 and 6-4. */
static void by_cores(const char *figure, uint32_t n_episodes, barrier_work *work) {
    uint32_t first = only_server ? BARRIER_SERVER : 0;
    for (uint32_t n = 1; n <= most; n *= 2)
        for (uint32_t kind = first; kind < N_BARRIER_KINDS + (uint32_t)only_server; kind++) {
            struct atac_config config = base;
            config.chip.n_cores = n;
            struct barrier_loop loop = barrier_program_run(&config, (enum barrier_kind)kind, n_episodes, work);
            print(figure, barrier_name((enum barrier_kind)kind), n, &loop);
        }
}

/* Fig. 6-5, or 6-6. */
static void by_cost(const char *name, size_t offset, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct atac_config config = base;
        memcpy((char *)&config.chip.optical + offset, &values[i], sizeof *values);
        struct barrier_loop loop = barrier_loop_run(&config, BARRIER_VC, n_loops);
        print("6-5", name, values[i], &loop);
        loop = barrier_program_run(&config, BARRIER_VC, CLUSTERING_EPISODES, clustering_work);
        print("6-6", name, values[i], &loop);
    }
}

static bool read_option(const char *name, const char *value) {
    if (value == NULL)
        return false;
    if (strcmp(name, "--set") == 0)
        return atac_set(&base, value);
    if (strcmp(name, "--loops") == 0)
        return atac_number(value, 1, MOST_LOOPS, &n_loops);
    if (strcmp(name, "--only") == 0)
        return (only_loop = strcmp(value, "loop") == 0) || (only_server = strcmp(value, "server") == 0);
    return strcmp(name, "--most") == 0 && atac_number(value, 1, SIM_MAX_CORES, &most);
}

int main(int argc, char **argv) {
    static const uint32_t transport[] = {5, 20, 200, 2000, 20000}, controller[] = {10, 50, 200, 1000, 2000};
    static const uint32_t check[] = {3, 10, 50, 200, 1000};
    base = atac_config_default();
    for (int i = 1; i < argc; i += 2)
        if (!read_option(argv[i], argv[i + 1])) {
            fprintf(
                stderr,
                "usage: %s [--loops N] [--most CORES] [--set NAME=VALUE]... [--only loop|server]\nNAME is one of%s\n",
                argv[0], atac_settings);
            return 2;
        }
    puts("figure,series,x,cycles,median_exit");
    by_cores("6-1", n_loops, NULL);
    if (only_loop || only_server)
        return 0;
    by_cores("6-3", CLUSTERING_EPISODES, clustering_work);
    by_cost("transport", offsetof(struct hw_optical_config, transport_cycles), transport, 5);
    by_cost("controller", offsetof(struct hw_optical_config, controller_cycles), controller, 5);
    by_cost("check", offsetof(struct hw_optical_config, check_cycles), check, 5);
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Figs. 6-1, 6-2 and 6-5 of the thesis as tables of comma-separated values, in cycles of 1 ns.
 *
 *   build/bench/atac/barrier [--loops N] [--most CORES]    figure,barrier,cores or value,end to end,median exit latency
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "barriers.h"

static uint32_t n_loops = 1000, most = 64;

static void print(const char *figure, const char *name, uint32_t x, const struct barrier_loop *loop) {
    if (loop->n_overlapping != 0) {
        fprintf(stderr, "barrier: %s: a thread left a barrier before all had come\n", name);
        exit(1);
    }
    printf("%s,%s,%u,%llu,%llu\n", figure, name, x, (unsigned long long)loop->cycles,
           (unsigned long long)loop->median_exit);
}

static void by_cores(void) {
    for (uint32_t n = 1; n <= most; n *= 2)
        for (uint32_t kind = 0; kind < N_BARRIER_KINDS; kind++) {
            struct atac_config config = atac_config_default();
            config.chip.n_cores = n;
            struct barrier_loop loop = barrier_loop_run(&config, (enum barrier_kind)kind, n_loops);
            print("6-1", barrier_name((enum barrier_kind)kind), n, &loop);
        }
}

static void by_cost(const char *name, size_t offset, const uint32_t *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct atac_config config = atac_config_default();
        memcpy((char *)&config.chip.optical + offset, &values[i], sizeof *values);
        struct barrier_loop loop = barrier_loop_run(&config, BARRIER_VC, n_loops);
        print("6-5", name, values[i], &loop);
    }
}

int main(int argc, char **argv) {
    static const uint32_t transport[] = {5, 20, 200, 2000, 20000}, controller[] = {10, 50, 200, 1000, 2000};
    static const uint32_t check[] = {3, 10, 50, 200, 1000};
    for (int i = 1; i < argc; i += 2) {
        uint32_t *value = strcmp(argv[i], "--loops") == 0 ? &n_loops : strcmp(argv[i], "--most") == 0 ? &most : NULL;
        if (value == NULL || i + 1 == argc || (*value = (uint32_t)strtoul(argv[i + 1], NULL, 10)) == 0) {
            fprintf(stderr, "usage: %s [--loops N] [--most CORES]\n", argv[0]);
            return 2;
        }
    }
    puts("figure,series,x,cycles,median_exit");
    by_cores();
    by_cost("transport", offsetof(struct hw_optical_config, transport_cycles), transport, 5);
    by_cost("controller", offsetof(struct hw_optical_config, controller_cycles), controller, 5);
    by_cost("check", offsetof(struct hw_optical_config, check_cycles), check, 5);
    return 0;
}

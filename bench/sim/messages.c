/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How fast programs of simulated threads run: messages that threads receive, and messages that they send, per second of
 * one host core. Each thread sends a message, and receives one from each other thread, again and again: a message to n
 * cores is received n - 1 times.
 *
 *   build/bench/sim/messages [CORES [ROUNDS]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "program.h"

static uint32_t n_cores, n_rounds;

static void all_to_all(struct sim_program *p, void *argument) {
    uint32_t channel = *(const uint32_t *)argument;
    struct sim_message message;
    sim_subscribe(p, channel);
    sim_compute(p, 100);
    for (uint32_t round = 0; round < n_rounds; round++) {
        sim_compute(p, 50 + (sim_self(p) * 37 + round * 11) % 100);
        sim_send(p, channel, 1, round, NULL, 0);
        for (uint32_t i = 1; i < n_cores; i++)
            sim_wait_receive(p, channel, &message);
    }
}

static double cpu_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure(void) {
    struct sim_program_config config = sim_program_config_default();
    struct sim_error error;
    config.n_cores = n_cores;
    struct sim_program *p = sim_program_new(&config, &error);
    uint32_t channel = 0;
    bool made = p != NULL;
    if (made)
        channel = sim_channel(p);
    for (uint32_t i = 0; made && i < n_cores; i++)
        made = sim_program_spawn(p, all_to_all, &channel, &error) == SIM_OK;
    double begin = cpu_s();
    if (!made || sim_program_run(p, &error) != SIM_OK) {
        fprintf(stderr, "messages: %s\n", error.text);
        exit(1);
    }
    double seconds = cpu_s() - begin;
    struct hw_optical_counts sum = hw_optical_sum(sim_program_optical(p));
    printf("%5u cores: %8.2f million messages received, %6.2f million a second; %8.1f thousand sent a second; %llu "
           "cycles\n",
           n_cores, (double)sum.n_received * 1e-6, (double)sum.n_received * 1e-6 / seconds,
           (double)sum.n_sent * 1e-3 / seconds, (unsigned long long)sim_program_cycles(p));
    sim_program_free(p);
}

int main(int argc, char **argv) {
    static const uint32_t sizes[] = {2, 4, 16, 64, 256, 1024};
    n_rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    if (argc > 1) {
        n_cores = (uint32_t)strtoul(argv[1], NULL, 10);
        n_rounds = n_rounds != 0 ? n_rounds : 100;
        measure();
        return 0;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        n_cores = sizes[i];
        n_rounds = 4000000 / (n_cores * n_cores) + 1;
        measure();
    }
    return 0;
}

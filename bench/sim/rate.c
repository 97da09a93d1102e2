/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How fast the simulator runs: synchronization calls of a generated trace per second of one host core.
 *
 *   build/bench/sim/rate [--cores N] [--rounds N] [--program NAME] [--sync NAME]
 *
 * Three programs, one thread to a core: `mutexes`, each thread locks and unlocks a mutex of its own and one of eight
 * others' in turn; `contended`, all want the same mutex; `barrier`, all meet again and again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

struct generator {
    struct sbt_trace_writer *writer;
    uint64_t n_events;
};

static void event(struct generator *g, uint32_t thread, enum sbt_trace_op op, uint32_t object, uint32_t other,
                  uint64_t work) {
    struct sbt_trace_event e = {.op = (uint8_t)op,
                                .object = object,
                                .other = other,
                                .site = SBT_TRACE_NONE,
                                .work_ns = work,
                                .type = op == SBT_TRACE_BARRIER_WAIT || op == SBT_TRACE_INIT ? SBT_TRACE_BARRIER
                                        : op < SBT_TRACE_INIT                                ? SBT_TRACE_NO_OBJECT
                                                                                             : SBT_TRACE_MUTEX};
    if (op == SBT_TRACE_INIT)
        e.size = other, e.other = SBT_TRACE_NONE;
    int r = sbt_trace_append(g->writer, thread, &e);
    if (r != 0) {
        fprintf(stderr, "rate: %s\n", strerror(r));
        exit(1);
    }
    g->n_events++;
}

static void thread_events(struct generator *g, const char *program, uint32_t i, uint32_t n, uint32_t n_rounds) {
    for (uint32_t k = 0; k < n_rounds; k++) {
        if (strcmp(program, "barrier") == 0) {
            event(g, i, SBT_TRACE_BARRIER_WAIT, 0, SBT_TRACE_NONE, 500 + i * 7 % 100);
            continue;
        }
        uint32_t m = strcmp(program, "contended") == 0 ? 1 : 1 + (i + k % 9) % n;
        event(g, i, SBT_TRACE_MUTEX_LOCK, m, SBT_TRACE_NONE, 400 + (i * 37 + k * 101) % 300);
        event(g, i, SBT_TRACE_MUTEX_UNLOCK, m, SBT_TRACE_NONE, 50);
    }
}

static void generate(const char *path, const char *program, uint32_t n, uint32_t n_rounds) {
    struct generator g = {.writer = sbt_trace_create(path, program)};
    if (g.writer == NULL) {
        perror("rate");
        exit(1);
    }
    event(&g, 0, SBT_TRACE_INIT, 0, n, 0);
    for (uint32_t i = 1; i < n; i++)
        event(&g, 0, SBT_TRACE_THREAD_CREATE, SBT_TRACE_NONE, i, 100);
    for (uint32_t i = 0; i < n; i++)
        thread_events(&g, program, i, n, n_rounds);
    for (uint32_t i = 1; i < n; i++) {
        event(&g, 0, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, i, 10);
        event(&g, i, SBT_TRACE_THREAD_END, SBT_TRACE_NONE, SBT_TRACE_NONE, 10);
    }
    event(&g, 0, SBT_TRACE_THREAD_END, SBT_TRACE_NONE, SBT_TRACE_NONE, 10);
    if (sbt_trace_finish(g.writer) != 0)
        exit(1);
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure(const char *path, const char *program, uint32_t n_cores, enum sim_sync sync) {
    struct sbt_trace_error damage;
    struct sim_error error;
    struct sim_config config = sim_config_default();
    config.sync = sync;
    if (sync >= SIM_N_SYNCS) {
        struct sim_host_costs costs = sim_host_costs_reference();
        config.host = sim_host_model_of(&costs, (enum sim_host_engine)(sync - SIM_N_SYNCS), n_cores);
    }
    config.width = 1;
    while (config.width * config.width < n_cores)
        config.width *= 2;
    config.height = n_cores / config.width;
    struct sbt_trace *trace = sbt_trace_open(path, &damage);
    if (trace == NULL) {
        fprintf(stderr, "rate: %s\n", damage.reason);
        exit(1);
    }
    struct sim *sim = sim_new(&config, &error);
    double from = now_s();
    if (sim == NULL || sim_add(sim, trace, program, &error) != SIM_OK || sim_run(sim, &error) != SIM_OK) {
        fprintf(stderr, "rate: %s\n", error.text);
        exit(1);
    }
    double seconds = now_s() - from;
    struct sim_summary s = sim_summary(sim);
    printf("%-8s %-9s %5u cores  %9ju calls  %5.2f steps/call  %6.2f M calls/s  virtual %.3f ms\n", program,
           sim_sync_name(sync), config.width * config.height, (uintmax_t)s.n_calls,
           (double)s.n_steps / (double)s.n_calls, (double)s.n_calls / seconds * 1e-6, (double)s.makespan_ns * 1e-6);
    sim_free(sim);
    sbt_trace_close(trace);
}

int main(int argc, char **argv) {
    static const char *const programs[] = {"mutexes", "contended", "barrier"};
    const char *only_program = NULL, *only_sync = NULL;
    uint32_t n_cores = 64, n_rounds = 20000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cores") == 0 && i + 1 < argc)
            n_cores = (uint32_t)atoi(argv[++i]);
        else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
            n_rounds = (uint32_t)atoi(argv[++i]);
        else if (strcmp(argv[i], "--program") == 0 && i + 1 < argc)
            only_program = argv[++i];
        else if (strcmp(argv[i], "--sync") == 0 && i + 1 < argc)
            only_sync = argv[++i];
        else {
            fprintf(stderr, "rate: unknown option '%s' (legal: --cores N, --rounds N, --program NAME, --sync NAME)\n",
                    argv[i]);
            return 2;
        }
    }
    if (n_cores < 1 || n_cores > SIM_MAX_CORES || (n_cores & (n_cores - 1)) != 0 || n_rounds < 1) {
        fprintf(stderr, "rate: cores are a power of two up to %d\n", SIM_MAX_CORES);
        return 2;
    }
    char path[] = "/tmp/subutai-rate.XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (only_program != NULL && strcmp(programs[i], only_program) != 0)
            continue;
        generate(path, programs[i], n_cores, n_rounds);
        for (int sync = 0; sync < SIM_N_ALL_SYNCS; sync++)
            if (only_sync == NULL || strcmp(sim_sync_name((enum sim_sync)sync), only_sync) == 0)
                measure(path, programs[i], n_cores, (enum sim_sync)sync);
    }
    unlink(path);
    return 0;
}

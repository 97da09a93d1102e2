/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What `compare` and `bench` share: the options for engines and runs, and the environment of each engine's runs. */
#ifndef CMD_MEASURE_H
#define CMD_MEASURE_H

#include "engine_spec.h"
#include "trial.h"

/* Indexes of the shared options in a command's table; the command's own options follow from MEASURE_N_OPTIONS on. */
enum {
    MEASURE_ENGINES,
    MEASURE_THREADS,
    MEASURE_RUNS,
    MEASURE_WARMUP,
    MEASURE_BACKGROUND,
    MEASURE_TIMEOUT,
    MEASURE_PROGRESS,
    MEASURE_LIBRARY,
    MEASURE_N_OPTIONS
};

/* The rows of the shared options that have the same text in both tables. */
#define MEASURE_OPTIONS                                                                                                \
    [MEASURE_RUNS] = {0, "runs", "N", "measured runs of each engine (default 7)"},                                     \
    [MEASURE_BACKGROUND] = {0, "beside", "N", "background load: processes that compute meanwhile (default 0)"},        \
    [MEASURE_PROGRESS] = {0, "progress", NULL, "a line on stderr for each run, also if that is no terminal"},          \
    [MEASURE_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"}

enum { MEASURE_MAX_POINTS = 64 };

struct measure {
    const char *engine_list, *library; /* as the user wrote them */
    uint64_t threads[MEASURE_MAX_POINTS];
    size_t n_threads;
    int n_runs, n_warmups;
    size_t n_background;
    int64_t timeout_ns; /* of one run; 0: none */
    bool progress;
    struct settings settings; /* for all engines but native */
    struct engine_spec specs[MAX_ENGINE_SPECS];
    size_t n_engines;

    /* measure_prepare */
    char *const *envps[MAX_ENGINE_SPECS];
    const char *labels[MAX_ENGINE_SPECS];
    struct sbt_options loaded; /* what the library will see in the last of them */
};

/*
 * Take the option just read, with a legal value of at most `max_threads`. False: it is not one of the shared options.
 */
bool measure_option(struct measure *m, const struct args *args, int option, uint64_t max_threads);
/* When all options have been read: parse the list of engines. */
void measure_engines(struct measure *m, const struct args *args);
bool measure_is_native(const struct measure *m); /* no engine needs the library */
/* An environment and a label for each engine. `preload`: the program starts with the library. */
void measure_prepare(struct measure *m, const char *subcommand, bool preload);
/* A series of runs under all engines; the caller adds program and progress. */
struct series measure_series(const struct measure *m, const struct trial_program *program, const char *prefix);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options and environments of measured runs; see measure.h. */
#include "measure.h"

#include <string.h>
#include <unistd.h>

#include "background_load.h"
#include "env.h"
#include "find.h"

bool measure_option(struct measure *m, const struct args *args, int option, uint64_t max_threads) {
    switch (option) {
    case MEASURE_THREADS:
        m->n_threads = args_uint_list(args, "--threads", args->value, 1, max_threads, m->threads, MEASURE_MAX_POINTS);
        return true;
    case MEASURE_ENGINES:
        m->engine_list = args->value;
        return true;
    case MEASURE_RUNS:
        m->n_runs = (int)args_uint(args, "--runs", args->value, 1, 10000);
        return true;
    case MEASURE_WARMUP:
        m->n_warmups = (int)args_uint(args, "--warmup", args->value, 0, 1000);
        return true;
    case MEASURE_BACKGROUND:
        m->n_background = args_uint(args, "--beside", args->value, 0, BACKGROUND_LOAD_MAX);
        return true;
    case MEASURE_TIMEOUT:
        m->timeout_ns = args_seconds_ns(args, "--timeout", args->value, 1e6);
        return true;
    case MEASURE_PROGRESS:
        m->progress = true;
        return true;
    case MEASURE_LIBRARY:
        m->library = args->value;
        return true;
    default:
        return false;
    }
}

void measure_engines(struct measure *m, const struct args *args) {
    engine_specs_refuse_engine(args);
    m->n_engines = engine_specs_parse(args, m->engine_list, m->specs);
}

bool measure_is_native(const struct measure *m) {
    for (size_t i = 0; i < m->n_engines; i++)
        if (!m->specs[i].native)
            return false;
    return true;
}

/* An option for all engines that none of them reads. */
static void warn_idle(const struct measure *m, const char *subcommand) {
    for (size_t o = 0; o < SBT_N_OPTIONS; o++) {
        bool read = m->settings.text[o] == NULL || m->loaded.value[SBT_OPT_VERBOSE].u == 0;
        for (size_t i = 0; i < m->n_engines; i++)
            read = read || env_has(m->envps[i], &sbt_option_table[o]);
        if (!read)
            cmd_warn("%s: --%s does nothing: none of the engines reads it", subcommand, sbt_option_table[o].name);
    }
}

void measure_prepare(struct measure *m, const char *subcommand, bool preload) {
    char *library = measure_is_native(m) ? cmd_format("/libsubutai.so") : find_library(subcommand, m->library);
    for (size_t i = 0; i < m->n_engines; i++) {
        const struct engine_spec *spec = &m->specs[i];
        m->envps[i] = env_build(subcommand, environ, spec->native ? NULL : &m->settings, &spec->settings,
                                spec->native || !preload ? NULL : library, strrchr(library, '/') + 1, &m->loaded);
        m->labels[i] = spec->label;
    }
    warn_idle(m, subcommand);
}

struct series measure_series(const struct measure *m, const struct trial_program *program, const char *prefix) {
    return (struct series){
        .program = *program,
        .n_engines = m->n_engines,
        .labels = m->labels,
        .envps = m->envps,
        .n_runs = m->n_runs,
        .n_warmups = m->n_warmups,
        .n_background = m->n_background,
        .progress_lines = m->progress,
        .prefix = prefix,
    };
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interleaved runs with progress on stderr; see trial.h. */
#include <stdio.h>
#include <unistd.h>

#include "background_load.h"
#include "table.h"
#include "trial.h"

static void announce(const struct series *s, bool terminal, size_t engine, int run) {
    if (!terminal)
        return;
    /* ESC [K, because the line before may have been longer. */
    if (run < 0)
        fprintf(stderr, "\r%s%s: warm-up\033[K", s->prefix, s->labels[engine]);
    else
        fprintf(stderr, "\r%s%s: run %d of %d\033[K", s->prefix, s->labels[engine], run + 1, s->n_runs);
    fflush(stderr);
}

static void report(const struct series *s, size_t engine, int run, const struct trial *trial) {
    char wall[32], outcome[32];
    if (run < 0)
        fprintf(stderr, "%s%s: warm-up: %s, %s\n", s->prefix, s->labels[engine], format_ns(wall, trial->wall_ns),
                trial_outcome(trial, outcome));
    else
        fprintf(stderr, "%s%s: run %d of %d: %s, %s\n", s->prefix, s->labels[engine], run + 1, s->n_runs,
                format_ns(wall, trial->wall_ns), trial_outcome(trial, outcome));
}

void series_run(const struct series *s, series_visit *visit, void *context) {
    background_load_start(s->program.subcommand, s->n_background);
    bool terminal = isatty(STDERR_FILENO) && !s->progress_lines;
    for (int run = -s->n_warmups; run < s->n_runs; run++)
        for (size_t engine = 0; engine < s->n_engines; engine++) {
            if (s->skips != NULL && s->skips(context, engine, run))
                continue;
            announce(s, terminal, engine, run);
            struct trial_program program = s->program;
            program.argv = s->argvs != NULL ? s->argvs[engine] : program.argv;
            struct trial trial = trial_run(&program, s->envps[engine]);
            if (s->progress_lines)
                report(s, engine, run, &trial);
            if (terminal)
                fprintf(stderr, "\r\033[K"); /* so that the visitor writes on an empty line */
            visit(context, engine, run, &trial);
            trial_release(&trial);
        }
    background_load_end();
}

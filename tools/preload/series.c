/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interleaved runs with progress on stderr; see trial.h. */
#include <stdio.h>
#include <unistd.h>

#include "beside.h"
#include "table.h"
#include "trial.h"

static void announce(const struct series *s, bool terminal, size_t contender, int run) {
    if (!terminal)
        return;
    /* ESC [K: the line before may have been longer. */
    if (run < 0)
        fprintf(stderr, "\r%s%s: warm-up\033[K", s->prefix, s->labels[contender]);
    else
        fprintf(stderr, "\r%s%s: run %d of %d\033[K", s->prefix, s->labels[contender], run + 1, s->n_runs);
    fflush(stderr);
}

static void report(const struct series *s, size_t contender, int run, const struct trial *trial) {
    char wall[32], outcome[32];
    if (run < 0)
        fprintf(stderr, "%s%s: warm-up: %s, %s\n", s->prefix, s->labels[contender], format_ns(wall, trial->wall_ns),
                trial_outcome(trial, outcome));
    else
        fprintf(stderr, "%s%s: run %d of %d: %s, %s\n", s->prefix, s->labels[contender], run + 1, s->n_runs,
                format_ns(wall, trial->wall_ns), trial_outcome(trial, outcome));
}

void series_run(const struct series *s, series_visit *visit, void *context) {
    beside_start(s->program.who, s->n_beside);
    bool terminal = isatty(STDERR_FILENO) && !s->progress_lines;
    for (int run = -s->n_warmups; run < s->n_runs; run++)
        for (size_t contender = 0; contender < s->n_contenders; contender++) {
            announce(s, terminal, contender, run);
            struct trial trial = trial_run(&s->program, s->envps[contender]);
            if (s->progress_lines)
                report(s, contender, run, &trial);
            if (terminal)
                fprintf(stderr, "\r\033[K"); /* whatever the visitor says starts on an empty line */
            visit(context, contender, run, &trial);
            trial_release(&trial);
        }
    beside_end();
}

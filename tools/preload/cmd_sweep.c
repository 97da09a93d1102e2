/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai sweep`: becomes Python with the package `subutai`, which does the work. Here the options are checked, so
 * that help, completion and refusals are those of all commands and need no Python.
 */
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "python.h"

static const struct own_option sweep_options[] = {
    {'j', "jobs", "N", "runs at the same time, on this machine (default: its CPUs)"},
    {'o', "out", "DIR", "where journal and results go (default: FILE without .toml); plot: where pictures go"},
    {0, "dask", "ADDRESS", "run on the cluster of this Dask scheduler, such as tcp://host:8786"},
    {0, "slurm", NULL, "run on the Slurm cluster that this machine submits to"},
    {0, "sbatch", "OPTIONS", "of each job array, as sbatch takes them: --sbatch '--partition=short --time=60'"},
    {0, "chunk", "N", "runs of a task of a cluster (default: by their number and the size of the traces)"},
    {0, "resume", NULL, "go on with a sweep that ended early: what its journal has is not run again"},
    {0, "json", NULL, "print one JSON object"},
    {'x', "x", "NAME", "plot: the parameter across (default: the number with most values)"},
    {'y', "y", "NAME", "plot: the parameter upwards in heat maps (default: that with most values)"},
    {0, "format", "FORMAT", "plot: svg (the default), png, pdf"},
    {0, NULL, NULL, NULL},
};

/*
 * The command line in one form for Python's reader, which takes a value such as "--time=1" for an option: options with
 * their values attached, then the operands. Refused here is what needs no file to be read.
 */
static size_t read_words(struct args *args, char **words) {
    size_t n = 0, n_operands = 0;
    char **operands = cmd_allocate((size_t)args->argc, sizeof *operands);
    for (int option; (option = args_next(args)) != ARGS_END;) {
        if (option == ARGS_OPERAND)
            operands[n_operands++] = cmd_format("%s", args->value);
        else if (sweep_options[option].metavar == NULL)
            words[n++] = cmd_format("--%s", sweep_options[option].name);
        else
            words[n++] = cmd_format("--%s=%s", sweep_options[option].name, args->value);
    }
    if (n_operands == 0)
        cmd_refuse("sweep: no sweep given (legal: a TOML file, or plot FOLDER)");
    words[n++] = cmd_format("--");
    memcpy(words + n, operands, n_operands * sizeof *operands);
    free(operands);
    return n + n_operands;
}

static int sweep_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    char **words = cmd_allocate((size_t)argc + 2, sizeof *words);
    size_t n = read_words(&args, words);
    python_become("sweep", "subutai.sweep.command", "plot", words, n);
}

const struct command command_sweep = {
    .name = "sweep",
    .synopsis = "[options] FILE.toml | sweep plot [options] DIR",
    .summary = "predict for a grid of traces, cores, machines and parameters, on one machine or a cluster",
    .details =
        "FILE.toml has the traces, and in [grid] lists of values for options of subutai predict. The results are one\n"
        "table, DIR/results.parquet and DIR/results.csv. plot draws speed-up curves and heat maps of it. Python does\n"
        "the work, with the package subutai. Exit status 0; 2 if nothing was run; 3 if runs failed, twice each, or\n"
        "the sweep ended early; 130 if it was stopped.\n",
    .options = sweep_options,
    .main = sweep_main,
};

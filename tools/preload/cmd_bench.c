/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai bench`: micro benchmarks by the program subutai-bench, which runs one kind once and prints a line of JSON.
 * Here it is run under each engine in alternating child processes and the numbers are put side by side.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "beside.h"
#include "command.h"
#include "contender.h"
#include "env.h"
#include "find.h"
#include "json.h"
#include "stats.h"
#include "table.h"
#include "trial.h"

enum { MAX_POINTS = 64 };

enum {
    BENCH_THREADS,
    BENCH_ENGINES,
    BENCH_RUNS,
    BENCH_WARMUP,
    BENCH_BESIDE,
    BENCH_CS,
    BENCH_THINK,
    BENCH_WRITE_PERCENT,
    BENCH_SECONDS,
    BENCH_TIMEOUT,
    BENCH_JSON,
    BENCH_PROGRESS,
    BENCH_LIST,
    BENCH_PROGRAM,
    BENCH_LIBRARY
};
static const struct own_option bench_options[] = {
    [BENCH_THREADS] = {'n', "threads", "LIST", "numbers of threads (default 2)"},
    [BENCH_ENGINES] = {0, "engines", "LIST",
                       "engines with settings of their own, as for compare (default glibc,direct)"},
    [BENCH_RUNS] = {0, "runs", "N", "measured runs of each engine (default 7)"},
    [BENCH_WARMUP] = {0, "warmup", "N", "runs of each engine before those (default 0)"},
    [BENCH_BESIDE] = {0, "beside", "N", "processes that compute meanwhile: a busy machine (default 0)"},
    [BENCH_CS] = {0, "cs", "NS", "busy time inside the critical section, in nanoseconds"},
    [BENCH_THINK] = {0, "think", "NS", "busy time between critical sections, in nanoseconds"},
    [BENCH_WRITE_PERCENT] = {0, "write-percent", "P", "share of write locks (rwlock)"},
    [BENCH_SECONDS] = {0, "seconds", "S", "duration of one run"},
    [BENCH_TIMEOUT] = {0, "timeout", "SECONDS", "end a run that takes longer (default 120)"},
    [BENCH_JSON] = {0, "json", NULL, "one JSON object per number of threads and engine, each on a line"},
    [BENCH_PROGRESS] = {0, "progress", NULL, "a line on stderr for each run, also if that is no terminal"},
    [BENCH_LIST] = {0, "list", NULL, "list the kinds and exit"},
    [BENCH_PROGRAM] = {0, "program", "FILE", "run FILE instead of the subutai-bench that belongs to this command"},
    [BENCH_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"},
    {0, NULL, NULL, NULL},
};

struct bench {
    const char *kind, *engines, *program, *library;
    const char *cs, *think, *write_percent, *seconds; /* handed on as they are, once checked */
    uint64_t threads[MAX_POINTS];
    size_t n_threads;
    int n_runs, n_warmups;
    size_t n_beside;
    int64_t timeout_ns;
    bool json, progress, list;
    struct settings settings;
    struct contender contenders[MAX_CONTENDERS];
    size_t n_contenders, base; /* index of the engine that the ratios refer to */
    double *ns_per_op[MAX_CONTENDERS], *cpu_per_op[MAX_CONTENDERS];
};

/* What subutai-bench --list prints, one kind per line, possibly a tab and a description. */
static char *list_kinds(const char *program) {
    char *argv[] = {(char *)"subutai-bench", (char *)"--list", NULL};
    struct trial_program list = {.who = "bench", .path = program, .argv = argv, .timeout_ns = INT64_C(30000000000)};
    struct trial trial = trial_run(&list, environ);
    char *text = trial_text(trial.out), outcome[32];
    if (trial.timed_out || trial.status != 0)
        cmd_refuse("bench: '%s --list' failed: %s", program, trial_outcome(&trial, outcome));
    trial_release(&trial);
    return text;
}

static void check_kind(const char *program, const char *kind) {
    char *kinds = list_kinds(program), *rest = kinds, *line, *legal = cmd_format("%s", "");
    bool known = false;
    while ((line = strsep(&rest, "\n")) != NULL) {
        line[strcspn(line, "\t ")] = '\0';
        if (line[0] == '\0')
            continue;
        known = known || (kind != NULL && strcmp(line, kind) == 0);
        char *longer = cmd_format("%s%s%s", legal, legal[0] != '\0' ? ", " : "", line);
        free(legal);
        legal = longer;
    }
    if (kind == NULL)
        cmd_refuse("bench: no kind given (legal: %s)", legal);
    if (!known)
        cmd_refuse("bench: unknown kind '%s' (legal: %s)", kind, legal);
    free(legal);
    free(kinds);
}

_Noreturn static void fail(const struct bench *b, size_t contender, const struct trial *trial, const char *text) {
    char outcome[32], *err = trial_text(trial->err);
    cmd_warn("bench: %s under %s: %s%s%s", b->kind, b->contenders[contender].label, trial_outcome(trial, outcome),
             text[0] != '\0' ? ", no result in: " : "", text);
    fputs(err, stderr);
    exit(WIFEXITED(trial->status) && WEXITSTATUS(trial->status) == CMD_REFUSED ? CMD_REFUSED : CMD_DIFFERENT);
}

static void visit(void *context, size_t contender, int run, struct trial *trial) {
    struct bench *b = context;
    char *text = trial_text(trial->out);
    double ns_per_op, cpu_ns, ops;
    if (trial->timed_out || trial->status != 0)
        fail(b, contender, trial, "");
    if (!json_find_number(text, "ns_per_op", &ns_per_op) || !json_find_number(text, "cpu_ns", &cpu_ns) ||
        !json_find_number(text, "ops", &ops) || !(ops > 0))
        fail(b, contender, trial, text);
    if (run >= 0) {
        b->ns_per_op[contender][run] = ns_per_op;
        b->cpu_per_op[contender][run] = cpu_ns / ops;
    }
    free(text);
}

static void put_json(const struct bench *b, uint64_t threads, size_t i) {
    size_t n = (size_t)b->n_runs;
    struct stats ns = stats_of(b->ns_per_op[i], n);
    struct json j = {.out = stdout};
    json_open(&j, NULL, '{');
    json_text(&j, "kind", b->kind);
    json_int(&j, "threads", (int64_t)threads);
    json_text(&j, "engine", b->contenders[i].label);
    json_int(&j, "n_beside", (int64_t)b->n_beside);
    json_real(&j, "ns_per_op", ns.median, 3);
    json_real(&j, "min", ns.min, 3);
    json_real(&j, "max", ns.max, 3);
    struct stats ratio = stats_ratio(b->ns_per_op[b->base], b->ns_per_op[i], n);
    struct stats cpu_ratio = stats_ratio(b->cpu_per_op[b->base], b->cpu_per_op[i], n);
    json_real(&j, "ratio", ratio.median, 4);
    json_real(&j, "cpu_ratio", cpu_ratio.median, 4);
    json_real(&j, "ratio_min", ratio.min, 4);
    json_real(&j, "ratio_max", ratio.max, 4);
    json_real(&j, "cpu_ratio_min", cpu_ratio.min, 4);
    json_real(&j, "cpu_ratio_max", cpu_ratio.max, 4);
    json_close(&j, '}');
    json_end(&j);
}

static void put_row(const struct bench *b, struct table *t, uint64_t threads, size_t i) {
    size_t n = (size_t)b->n_runs;
    struct stats ns = stats_of(b->ns_per_op[i], n);
    char text[32];
    table_add(t, "%s", b->kind);
    table_add(t, "%ju", (uintmax_t)threads);
    table_add(t, "%s", b->contenders[i].label);
    table_add(t, "%.1f", ns.median);
    table_add(t, "%.1f", ns.min);
    table_add(t, "%.1f", ns.max);
    table_add(t, "%s", format_ratio(text, stats_ratio(b->ns_per_op[b->base], b->ns_per_op[i], n).median));
    table_add(t, "%s", format_ratio(text, stats_ratio(b->cpu_per_op[b->base], b->cpu_per_op[i], n).median));
}

static void measure_point(struct bench *b, const char *program, uint64_t threads, char *const *const *envps,
                          const char *const *labels) {
    char *n_threads = cmd_format("%ju", (uintmax_t)threads);
    char *prefix = cmd_format("%s, %ju threads, ", b->kind, (uintmax_t)threads);
    const char *words[] = {"subutai-bench", b->kind,  "--threads",       n_threads,        "--cs-ns",   b->cs,
                           "--think-ns",    b->think, "--write-percent", b->write_percent, "--seconds", b->seconds};
    char *argv[sizeof words / sizeof *words + 1];
    size_t n = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        if (words[i + 1] != NULL) { /* options that were not given are left to the program's defaults */
            argv[n++] = (char *)words[i];
            argv[n++] = (char *)words[i + 1];
        }
    argv[n] = NULL;
    struct series series = {
        .program = {.who = "bench", .path = program, .argv = argv, .timeout_ns = b->timeout_ns},
        .n_contenders = b->n_contenders,
        .labels = labels,
        .envps = envps,
        .n_runs = b->n_runs,
        .n_warmups = b->n_warmups,
        .n_beside = b->n_beside,
        .progress_lines = b->progress,
        .prefix = prefix,
    };
    series_run(&series, visit, b);
    free(n_threads);
    free(prefix);
}

static const char *checked_seconds(const struct args *args) {
    args_seconds_ns(args, "--seconds", args->value, 3600);
    return args->value;
}

static const char *checked_uint(const struct args *args, const char *what, uint64_t max) {
    args_uint(args, what, args->value, 0, max);
    return args->value;
}

static void read_option(const struct args *args, struct bench *b, int option) {
    switch (option) {
    case ARGS_OPERAND:
        if (b->kind != NULL)
            cmd_refuse("bench: unexpected argument '%s' (legal: one kind)", args->value);
        b->kind = args->value;
        break;
    case BENCH_THREADS:
        b->n_threads = args_uint_list(args, "--threads", args->value, 1, 10000, b->threads, MAX_POINTS);
        break;
    case BENCH_ENGINES:
        b->engines = args->value;
        break;
    case BENCH_RUNS:
        b->n_runs = (int)args_uint(args, "--runs", args->value, 1, 10000);
        break;
    case BENCH_WARMUP:
        b->n_warmups = (int)args_uint(args, "--warmup", args->value, 0, 1000);
        break;
    case BENCH_BESIDE:
        b->n_beside = args_uint(args, "--beside", args->value, 0, BESIDE_MAX);
        break;
    case BENCH_CS:
        b->cs = checked_uint(args, "--cs", 1000000000);
        break;
    case BENCH_THINK:
        b->think = checked_uint(args, "--think", 1000000000);
        break;
    case BENCH_WRITE_PERCENT:
        b->write_percent = checked_uint(args, "--write-percent", 100);
        break;
    case BENCH_SECONDS:
        b->seconds = checked_seconds(args);
        break;
    case BENCH_TIMEOUT:
        b->timeout_ns = args_seconds_ns(args, "--timeout", args->value, 1e6);
        break;
    case BENCH_JSON:
        b->json = true;
        break;
    case BENCH_PROGRESS:
        b->progress = true;
        break;
    case BENCH_LIST:
        b->list = true;
        break;
    case BENCH_PROGRAM:
        b->program = args->value;
        break;
    case BENCH_LIBRARY:
        b->library = args->value;
        break;
    }
}

/* Environments and labels; the ratios' base is the engine called glibc, else the first. */
static void prepare_engines(struct bench *b, char *const **envps, const char **labels) {
    bool all_native = true;
    for (size_t i = b->n_contenders; i-- > 0;) {
        all_native = all_native && b->contenders[i].native;
        if (strcmp(b->contenders[i].label, "glibc") == 0)
            b->base = i;
    }
    char *library = all_native ? cmd_format("/libsubutai.so") : find_library("bench", b->library);
    struct sbt_options loaded;
    for (size_t i = 0; i < b->n_contenders; i++) {
        const struct contender *c = &b->contenders[i];
        envps[i] = env_build("bench", environ, c->native ? NULL : &b->settings, &c->settings,
                             c->native ? NULL : library, strrchr(library, '/') + 1, &loaded);
        labels[i] = c->label;
        b->ns_per_op[i] = cmd_allocate((size_t)b->n_runs, sizeof(double));
        b->cpu_per_op[i] = cmd_allocate((size_t)b->n_runs, sizeof(double));
    }
}

static int bench_main(const struct command *self, int argc, char **argv) {
    static struct bench b = {
        .engines = "glibc,direct", .threads = {2}, .n_threads = 1, .n_runs = 7, .timeout_ns = INT64_C(120000000000)};
    struct args args = {.command = self, .settings = &b.settings, .argc = argc, .argv = argv};
    for (int option; (option = args_next(&args)) != ARGS_END;)
        read_option(&args, &b, option);
    contenders_refuse_engine(&args);
    b.n_contenders = contenders_parse(&args, b.engines, b.contenders);
    char *program = find_bench("bench", b.program);
    if (b.list) {
        fputs(list_kinds(program), stdout);
        return CMD_OK;
    }
    check_kind(program, b.kind);

    char *const *envps[MAX_CONTENDERS];
    const char *labels[MAX_CONTENDERS];
    prepare_engines(&b, envps, labels);
    struct table t = {.n_columns = 8, .alignment = "lrlrrrrr"};
    static const char *const headings[] = {"kind", "threads", "engine", "ns/op", "min", "max", "ratio", "cpu ratio"};
    for (size_t i = 0; i < t.n_columns; i++)
        table_add(&t, "%s", headings[i]);
    for (size_t p = 0; p < b.n_threads; p++) {
        measure_point(&b, program, b.threads[p], envps, labels);
        for (size_t i = 0; i < b.n_contenders; i++) {
            if (b.json)
                put_json(&b, b.threads[p], i);
            else
                put_row(&b, &t, b.threads[p], i);
        }
        fflush(stdout); /* a sweep takes long; what is known can be read */
    }
    if (!b.json)
        table_print(&t, stdout);
    if (!b.json && b.n_beside > 0)
        printf("beside %zu processes that compute\n", b.n_beside);
    return CMD_OK;
}

const struct command command_bench = {
    .name = "bench",
    .synopsis = "KIND [options]",
    .summary = "micro benchmarks of one kind of synchronization under several engines",
    .details =
        "Prints nanoseconds per operation (median, min and max of the runs) and the ratio of glibc's to the engine's:\n"
        "bigger is better. Without glibc among the engines the first one is the base. --list shows the kinds.\n"
        "Exit status 0, 1 if a run failed or timed out, 2 if nothing was run.\n",
    .options = bench_options,
    .takes_library_options = true,
    .main = bench_main,
};

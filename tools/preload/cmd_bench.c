/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai bench`: micro benchmarks. The program subutai-bench runs one kind once and prints a line of JSON. This runs
 * it under each engine, in alternating child processes, and puts the numbers side by side.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "fields.h"
#include "find.h"
#include "json_read.h"
#include "measure.h"
#include "stats.h"

enum {
    BENCH_CS = MEASURE_N_OPTIONS,
    BENCH_THINK,
    BENCH_WRITE_PERCENT,
    BENCH_LOCKS,
    BENCH_LINES,
    BENCH_SECONDS,
    BENCH_JSON,
    BENCH_LIST,
    BENCH_PROGRAM
};
static const struct own_option bench_options[] = {
    MEASURE_OPTIONS,
    [MEASURE_THREADS] = {'n', "threads", "LIST", "numbers of threads (default 2)"},
    [MEASURE_ENGINES] = {0, "engines", "LIST",
                         "engines with settings of their own, as for compare (default glibc,direct)"},
    [MEASURE_WARMUP] = {0, "warmup", "N", "runs of each engine before those (default 0)"},
    [MEASURE_TIMEOUT] = {0, "timeout", "SECONDS", "end a run that takes longer (default 120)"},
    [BENCH_CS] = {0, "cs", "NS", "busy time inside the critical section, in nanoseconds"},
    [BENCH_THINK] = {0, "think", "NS", "busy time between critical sections, in nanoseconds"},
    [BENCH_WRITE_PERCENT] = {0, "write-percent", "P", "share of write locks (rwlock)"},
    [BENCH_LOCKS] = {0, "locks", "LIST", "locks beside the engines' mutexes (locks; default all, \"none\")"},
    [BENCH_LINES] = {0, "lines", "N", "shared cache lines that a section touches (locks; default 5)"},
    [BENCH_SECONDS] = {0, "seconds", "S", "duration of one run"},
    [BENCH_JSON] = {0, "json", NULL, "one JSON object per number of threads and engine, each on a line"},
    [BENCH_LIST] = {0, "list", NULL, "list the kinds and exit"},
    [BENCH_PROGRAM] = {0, "program", "FILE", "run FILE instead of the subutai-bench that belongs to this command"},
    {0, NULL, NULL, NULL},
};

struct bench {
    const char *kind, *program;
    const char *cs, *think, *write_percent, *lines, *seconds; /* checked, and passed on as they are */
    const char *locks;                                        /* --locks; NULL: not given */
    bool json, list;
    struct measure measure;
    size_t base;                        /* index of the engine that is the base of the ratios */
    const char *lock[MAX_ENGINE_SPECS]; /* what each runs in place of its mutex; NULL: its mutex */
    double *ns_per_op[MAX_ENGINE_SPECS], *cpu_per_op[MAX_ENGINE_SPECS], *misses[MAX_ENGINE_SPECS];
};

/* The output of subutai-bench --list: a kind on each line, perhaps with a tab and a description. */
static char *list_kinds(const char *program) {
    char *argv[] = {(char *)"subutai-bench", (char *)"--list", NULL};
    struct trial_program list = {
        .subcommand = "bench", .path = program, .argv = argv, .timeout_ns = INT64_C(30000000000)};
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

_Noreturn static void fail(const struct bench *b, size_t engine, const struct trial *trial, const char *text) {
    char outcome[32], *err = trial_text(trial->err);
    cmd_warn("bench: %s under %s: %s%s%s", b->kind, b->measure.specs[engine].label, trial_outcome(trial, outcome),
             text[0] != '\0' ? ", no result in: " : "", text);
    fputs(err, stderr);
    exit(WIFEXITED(trial->status) && WEXITSTATUS(trial->status) == CMD_REFUSED ? CMD_REFUSED : CMD_DIFFERENT);
}

static void visit(void *context, size_t engine, int run, struct trial *trial) {
    struct bench *b = context;
    char *text = trial_text(trial->out);
    double ns_per_op, cpu_ns, ops;
    if (trial->timed_out || trial->status != 0)
        fail(b, engine, trial, "");
    if (!json_find_number(text, "ns_per_op", &ns_per_op) || !json_find_number(text, "cpu_ns", &cpu_ns) ||
        !json_find_number(text, "ops", &ops) || !(ops > 0))
        fail(b, engine, trial, text);
    if (run >= 0) {
        b->ns_per_op[engine][run] = ns_per_op;
        b->cpu_per_op[engine][run] = cpu_ns / ops;
        if (!json_find_number(text, "misses_per_op", &b->misses[engine][run]))
            b->misses[engine][run] = NAN;
    }
    free(text);
}

/* The result of one engine with one number of threads. */
struct bench_row {
    const char *kind, *engine;
    uint64_t threads, n_background;
    struct stats ns, ratio, cpu_ratio;
    double misses; /* of cache lines, for an operation; NAN: not counted */
};

/* The column that only `locks` has. */
enum { BENCH_MISSES = 9 };

#define ROW(member) offsetof(struct bench_row, member)
static const struct field row_fields[] = {
    {NULL, "kind", "kind", 1, FIELD_TEXT, ROW(kind), 0},
    {NULL, "threads", "threads", 2, FIELD_UINT64, ROW(threads), 0},
    {NULL, "engine", "engine", 3, FIELD_TEXT, ROW(engine), 0},
    {NULL, "n_beside", NULL, 0, FIELD_UINT64, ROW(n_background), 0},
    {NULL, "ns_per_op", "ns/op", 4, FIELD_REAL, ROW(ns.median), 3},
    {NULL, "min", "min", 5, FIELD_REAL, ROW(ns.min), 3},
    {NULL, "max", "max", 6, FIELD_REAL, ROW(ns.max), 3},
    {NULL, "ratio", "ratio", 7, FIELD_RATIO, ROW(ratio.median), 4},
    {NULL, "cpu_ratio", "cpu ratio", 8, FIELD_RATIO, ROW(cpu_ratio.median), 4},
    {NULL, "misses_per_op", "misses/op", BENCH_MISSES, FIELD_RATIO, ROW(misses), 3},
    {NULL, "ratio_min", NULL, 0, FIELD_RATIO, ROW(ratio.min), 4},
    {NULL, "ratio_max", NULL, 0, FIELD_RATIO, ROW(ratio.max), 4},
    {NULL, "cpu_ratio_min", NULL, 0, FIELD_RATIO, ROW(cpu_ratio.min), 4},
    {NULL, "cpu_ratio_max", NULL, 0, FIELD_RATIO, ROW(cpu_ratio.max), 4},
    {0},
};

static bool is_locks(const struct bench *b) {
    return strcmp(b->kind, "locks") == 0;
}

static unsigned hidden(const struct bench *b) {
    return is_locks(b) ? 0 : FIELDS_HIDE(BENCH_MISSES);
}

static struct bench_row row_of(const struct bench *b, uint64_t threads, size_t i) {
    size_t n = (size_t)b->measure.n_runs;
    return (struct bench_row){
        .kind = b->kind,
        .engine = b->measure.specs[i].label,
        .threads = threads,
        .n_background = b->measure.n_background,
        .ns = stats_of(b->ns_per_op[i], n),
        .ratio = stats_ratio(b->ns_per_op[b->base], b->ns_per_op[i], n),
        .cpu_ratio = stats_ratio(b->cpu_per_op[b->base], b->cpu_per_op[i], n),
        .misses = stats_of(b->misses[i], n).median,
    };
}

/* A JSON object on its own line, or a row of the table. */
static void put_row(const struct bench *b, struct table *t, uint64_t threads, size_t i) {
    struct bench_row row = row_of(b, threads, i);
    if (!b->json) {
        fields_row(t, row_fields, hidden(b), &row);
        return;
    }
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    fields_json(&j, row_fields, hidden(b), &row);
    json_close(&j, '}');
    json_end(&j);
}

/* The words of one engine's runs, allocated. Options that were not given have defaults in the program. */
static char **words_of(const struct bench *b, const char *n_threads, const char *lock) {
    const char *words[] = {"subutai-bench",   b->kind,          "--threads", n_threads, "--cs-ns", b->cs,
                           "--think-ns",      b->think,         "--lock",    lock,      "--lines", b->lines,
                           "--write-percent", b->write_percent, "--seconds", b->seconds};
    char **argv = cmd_allocate(sizeof words / sizeof *words + 1, sizeof *argv);
    size_t n = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i += 2)
        if (words[i + 1] != NULL) {
            argv[n++] = (char *)words[i];
            argv[n++] = (char *)words[i + 1];
        }
    return argv;
}

static void measure_point(struct bench *b, const char *program, uint64_t threads) {
    char *n_threads = cmd_format("%ju", (uintmax_t)threads);
    char *prefix = cmd_format("%s, %ju threads, ", b->kind, (uintmax_t)threads), **argvs[MAX_ENGINE_SPECS];
    for (size_t i = 0; i < b->measure.n_engines; i++)
        argvs[i] = words_of(b, n_threads, b->lock[i]);
    struct trial_program run = {
        .subcommand = "bench", .path = program, .argv = argvs[0], .timeout_ns = b->measure.timeout_ns};
    struct series series = measure_series(&b->measure, &run, prefix);
    series.argvs = (char *const *const *)argvs;
    series_run(&series, visit, b);
    for (size_t i = 0; i < b->measure.n_engines; i++)
        free(argvs[i]);
    free(n_threads);
    free(prefix);
}

/* One section under that lock: the program knows which locks there are, and its refusal says so. */
static void check_lock(const struct bench *b, const char *program, const char *lock) {
    const char *argv[] = {"subutai-bench", b->kind, "--threads", "1", "--ops", "1", "--lock", lock, NULL};
    struct trial_program once = {
        .subcommand = "bench", .path = program, .argv = (char *const *)argv, .timeout_ns = INT64_C(30000000000)};
    struct trial trial = trial_run(&once, environ);
    char *err = trial_text(trial.err), outcome[32];
    const char *why = strncmp(err, "subutai-bench: ", 15) == 0 ? err + 15 : err;
    err[strcspn(err, "\n")] = '\0';
    if (trial.timed_out || trial.status != 0)
        cmd_refuse("bench: --locks: %s", err[0] != '\0' ? why : trial_outcome(&trial, outcome));
    free(err);
    trial_release(&trial);
}

/* Each lock is one more contestant, which runs without the library. */
static void add_locks(struct bench *b, const char *program) {
    char *rest = cmd_format("%s", b->locks != NULL ? b->locks : "tas,ticket,mcs,clh,mcs-tp,flat,rcl"), *name;
    struct measure *m = &b->measure;
    if (strcmp(rest, "none") == 0)
        return;
    while ((name = strsep(&rest, ",")) != NULL) { /* the names stay: they are labels */
        check_lock(b, program, name);
        if (m->n_engines == MAX_ENGINE_SPECS)
            cmd_refuse("bench: --engines and --locks: more than %d together", MAX_ENGINE_SPECS);
        b->lock[m->n_engines] = name;
        m->specs[m->n_engines++] = (struct engine_spec){.label = name, .native = true};
    }
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
    if (measure_option(&b->measure, args, option, 10000))
        return;
    switch (option) {
    case ARGS_OPERAND:
        if (b->kind != NULL)
            cmd_refuse("bench: unexpected argument '%s' (legal: one kind)", args->value);
        b->kind = args->value;
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
    case BENCH_LOCKS:
        b->locks = args->value;
        break;
    case BENCH_LINES:
        b->lines = args_uint(args, "--lines", args->value, 1, 64) > 0 ? args->value : NULL;
        break;
    case BENCH_SECONDS:
        b->seconds = checked_seconds(args);
        break;
    case BENCH_JSON:
        b->json = true;
        break;
    case BENCH_LIST:
        b->list = true;
        break;
    case BENCH_PROGRAM:
        b->program = args->value;
        break;
    default: /* an option of the table without a case here */
        abort();
    }
}

/* Environments, and memory for results. The base of the ratios is the engine called glibc, or else the first. */
static void prepare_engines(struct bench *b) {
    measure_prepare(&b->measure, "bench", true);
    for (size_t i = b->measure.n_engines; i-- > 0;) {
        if (strcmp(b->measure.labels[i], "glibc") == 0)
            b->base = i;
        b->ns_per_op[i] = cmd_allocate((size_t)b->measure.n_runs, sizeof(double));
        b->cpu_per_op[i] = cmd_allocate((size_t)b->measure.n_runs, sizeof(double));
        b->misses[i] = cmd_allocate((size_t)b->measure.n_runs, sizeof(double));
    }
}

static int bench_main(const struct command *self, int argc, char **argv) {
    static struct bench b = {.measure = {.engine_list = "glibc,direct",
                                         .threads = {2},
                                         .n_threads = 1,
                                         .n_runs = 7,
                                         .timeout_ns = INT64_C(120000000000)}};
    struct args args = {.command = self, .settings = &b.measure.settings, .argc = argc, .argv = argv};
    for (int option; (option = args_next(&args)) != ARGS_END;)
        read_option(&args, &b, option);
    measure_engines(&b.measure, &args);
    char *program = find_bench("bench", b.program);
    if (b.list) {
        fputs(list_kinds(program), stdout);
        return CMD_OK;
    }
    check_kind(program, b.kind);
    if (is_locks(&b))
        add_locks(&b, program);
    else if (b.locks != NULL || b.lines != NULL)
        cmd_refuse("bench: %s: %s has none (legal: with the kind locks)", b.locks != NULL ? "--locks" : "--lines",
                   b.kind);

    prepare_engines(&b);
    struct table t = fields_table(row_fields, hidden(&b));
    for (size_t p = 0; p < b.measure.n_threads; p++) {
        measure_point(&b, program, b.measure.threads[p]);
        for (size_t i = 0; i < b.measure.n_engines; i++)
            put_row(&b, &t, b.measure.threads[p], i);
        fflush(stdout); /* a sweep takes long: the rows so far can be read meanwhile */
    }
    if (!b.json)
        table_print(&t, stdout);
    if (!b.json && b.measure.n_background > 0)
        printf("background load: %zu processes that compute\n", b.measure.n_background);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai compare`: one program, several engines, interleaved runs. Is it as fast, and does it still do the same?
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "compare.h"
#include "content.h"
#include "find.h"
#include "source_lines.h"
#include "verdict.h"

enum { MAX_OUTPUTS = 16 };

enum { COMPARE_OUTPUT = MEASURE_N_OPTIONS, COMPARE_JSON, COMPARE_SHOW_STDERR };
static const struct own_option compare_options[] = {
    MEASURE_OPTIONS,
    [MEASURE_ENGINES] = {0, "engines", "LIST",
                         "engines with settings of their own, e.g. native,glibc,ni:service=inline,scale=0; "
                         "the first is the base of the ratios (default glibc,direct)"},
    [MEASURE_WARMUP] = {0, "warmup", "N", "runs of each engine before those (default 1)"},
    [MEASURE_THREADS] = {'n', "threads", "LIST", "compare once for each number, put in place of {} in CMD's arguments"},
    [MEASURE_TIMEOUT] = {0, "timeout", "SECONDS", "end a run that takes longer; it counts as different"},
    [COMPARE_OUTPUT] = {0, "output", "FILE",
                        "compare FILE's contents as well; it is removed before each run. {} is "
                        "replaced; can be given more than once"},
    [COMPARE_JSON] = {0, "json", NULL, "one JSON object instead of the table"},
    [COMPARE_SHOW_STDERR] = {0, "show-stderr", NULL,
                             "pass on what the runs write to stderr (otherwise only after "
                             "failures)"},
    {0, NULL, NULL, NULL},
};

struct request {
    const char *outputs[MAX_OUTPUTS];
    size_t n_outputs;
    bool json, show_stderr;
};

/* The point that is being measured: series_run passes this to visit(). */
struct measuring {
    const struct comparison *comparison;
    const struct request *request;
    struct point *point;
    char *outputs[MAX_OUTPUTS]; /* with {} replaced */
    bool has_reference;
    struct trial reference; /* its stdout stays open */
    int reference_outputs[MAX_OUTPUTS];
};

static char *replace_braces(const char *text, uint64_t n) {
    char *result = cmd_format("%s", "");
    for (const char *at; (at = strstr(text, "{}")) != NULL; text = at + 2) {
        char *longer = cmd_format("%s%.*s%ju", result, (int)(at - text), text, (uintmax_t)n);
        free(result);
        result = longer;
    }
    char *whole = cmd_format("%s%s", result, text);
    free(result);
    return whole;
}

/*
 * Remove the outputs before a run: if the run does not write a file, the contents of the run before must not pass for
 * its own. A recording engine's trace is removed too, because each run writes its own.
 */
static void remove_outputs(const struct measuring *m) {
    for (size_t i = 0; i < m->comparison->measure.n_engines; i++) {
        const char *trace = m->comparison->measure.specs[i].settings.text[SBT_OPT_RECORD];
        if (trace != NULL && trace[0] != '\0')
            free(find_trace_place("compare", trace));
    }
    for (size_t i = 0; i < m->request->n_outputs; i++) {
        struct stat st;
        if (lstat(m->outputs[i], &st) != 0)
            continue;
        if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
            cmd_refuse("compare: --output: '%s' is no regular file (legal: a file that CMD writes)", m->outputs[i]);
        if (unlink(m->outputs[i]) != 0)
            cmd_refuse("compare: --output: '%s' cannot be removed: %s", m->outputs[i], strerror(errno));
    }
}

/* Take over trial->out and the outputs. All later runs are compared with them. */
static void keep_reference(struct measuring *m, struct trial *trial, const int *outputs) {
    m->has_reference = true;
    m->reference = *trial;
    trial->out = -1;
    for (size_t i = 0; i < m->request->n_outputs; i++)
        m->reference_outputs[i] = outputs[i];
}

static bool same_output(struct measuring *m, const struct trial *trial, const int *outputs) {
    bool same = content_same("compare", m->reference.out, trial->out);
    for (size_t i = 0; i < m->request->n_outputs; i++)
        same = content_same("compare", m->reference_outputs[i], outputs[i]) && same;
    return same;
}

/*
 * Pass the library's lines on. They say why it did not serve a program; the result of a successful run would hide that.
 */
static void pass_on_library(struct side *side, const char *label, const char *text) {
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, "subutai:", 8) == 0) {
            fprintf(stderr, "%s: %.*s\n", label, (int)strcspn(line, "\n"), line);
            side->showed_library = true;
        }
}

static void pass_on_stderr(const struct measuring *m, size_t engine, const struct trial *trial) {
    struct side *side = &m->point->sides[engine];
    const char *label = m->comparison->measure.specs[engine].label;
    bool failed = trial->timed_out || !WIFEXITED(trial->status) || WEXITSTATUS(trial->status) != 0;
    if (!m->request->show_stderr && (side->showed_stderr || !failed) && side->showed_library)
        return;
    char *text = trial_text(trial->err), outcome[32];
    if (m->request->show_stderr || (failed && !side->showed_stderr)) {
        if (failed && !side->showed_stderr)
            cmd_warn("compare: %s: %s%s", label, trial_outcome(trial, outcome), text[0] != '\0' ? "; its stderr:" : "");
        fputs(text, stderr);
        side->showed_stderr = side->showed_stderr || failed;
    } else if (!side->showed_library) {
        pass_on_library(side, label, text);
    }
    free(text);
}

static void visit(void *context, size_t engine, int run, struct trial *trial) {
    struct measuring *m = context;
    struct side *side = &m->point->sides[engine];
    int outputs[MAX_OUTPUTS];
    for (size_t i = 0; i < m->request->n_outputs; i++) {
        outputs[i] = content_take("compare", m->outputs[i]);
        m->point->missing_output = m->point->missing_output || outputs[i] < 0;
    }
    pass_on_stderr(m, engine, trial);

    bool status_is_same = true, output_is_same = true;
    if (side->outcome[0] == '\0')
        snprintf(side->outcome, sizeof side->outcome, "%s", trial_outcome(trial, (char[32]){""}));
    if (!m->has_reference) {
        keep_reference(m, trial, outputs);
    } else {
        status_is_same = trial->status == m->reference.status && trial->timed_out == m->reference.timed_out;
        output_is_same = same_output(m, trial, outputs);
        for (size_t i = 0; i < m->request->n_outputs; i++)
            if (outputs[i] >= 0)
                close(outputs[i]);
    }
    side->n_other_status += !status_is_same;
    side->n_other_output += !output_is_same;
    side->n_timeouts += trial->timed_out;
    if (run >= 0) {
        struct run_record *r = &side->records[run];
        *r = (struct run_record){trial->wall_ns, trial->cpu_ns, trial->peak_kib, "", status_is_same, output_is_same};
        snprintf(r->outcome, sizeof r->outcome, "%s", trial_outcome(trial, (char[32]){""}));
    }
    /* The files of the last run stay, as after a run without the command. */
    if (run + 1 < m->comparison->measure.n_runs || engine + 1 < m->comparison->measure.n_engines)
        remove_outputs(m);
}

/* The command line, with the point's number in place of {}; ends with a NULL. */
static char **arguments_of(const struct comparison *c, const struct point *point) {
    size_t n = 0;
    while (c->command_line[n] != NULL)
        n++;
    char **argv = cmd_allocate(n + 1, sizeof *argv);
    for (size_t i = 0; i < n; i++)
        argv[i] = c->sweep && i > 0 ? replace_braces(c->command_line[i], point->threads) : c->command_line[i];
    return argv;
}

static void free_arguments(const struct comparison *c, char **argv) {
    for (size_t i = 1; c->sweep && argv[0] != NULL && argv[i] != NULL; i++)
        free(argv[i]);
    free(argv);
}

static void measure_point(struct comparison *c, const struct request *request, struct point *point, const char *path) {
    struct measuring m = {.comparison = c, .request = request, .point = point};
    char **argv = arguments_of(c, point);
    for (size_t i = 0; i < request->n_outputs; i++)
        m.outputs[i] =
            c->sweep ? replace_braces(request->outputs[i], point->threads) : cmd_format("%s", request->outputs[i]);
    for (size_t i = 0; i < c->measure.n_engines; i++)
        point->sides[i].records = cmd_allocate((size_t)c->measure.n_runs, sizeof *point->sides[i].records);

    char *prefix = c->sweep ? cmd_format("%ju threads, ", (uintmax_t)point->threads) : cmd_format("%s", "");
    struct trial_program program = {
        .subcommand = "compare", .path = path, .argv = argv, .timeout_ns = c->measure.timeout_ns};
    struct series series = measure_series(&c->measure, &program, prefix);
    remove_outputs(&m);
    series_run(&series, visit, &m);
    trial_release(&m.reference);
    for (size_t i = 0; i < request->n_outputs; i++) {
        if (m.reference_outputs[i] >= 0)
            close(m.reference_outputs[i]);
        free(m.outputs[i]);
    }
    free_arguments(c, argv);
    free(prefix);
}

/* Environments; without the library if the program would not start with it. */
static void prepare_engines(struct comparison *c, const char *path) {
    struct verdict verdict = verdict_of(path, false);
    source_lines_in(&c->measure.settings, path);
    for (size_t i = 0; i < c->measure.n_engines; i++)
        source_lines_in(&c->measure.specs[i].settings, path);
    measure_prepare(&c->measure, "compare", !verdict_forbids_preload(&verdict));
    if (!measure_is_native(&c->measure))
        verdict_warn(&verdict, "compare", c->command_line[0], c->measure.loaded.value[SBT_OPT_VERBOSE].u);
    verdict_free(&verdict);
}

static void read_option(const struct args *args, struct comparison *c, struct request *request, int option) {
    if (measure_option(&c->measure, args, option, 1000000))
        return;
    switch (option) {
    case COMPARE_OUTPUT:
        if (request->n_outputs == MAX_OUTPUTS)
            cmd_refuse("compare: --output: more than %d files", MAX_OUTPUTS);
        request->outputs[request->n_outputs++] = args->value;
        break;
    case COMPARE_JSON:
        request->json = true;
        break;
    case COMPARE_SHOW_STDERR:
        request->show_stderr = true;
        break;
    default: /* an option of the table without a case here */
        abort();
    }
}

static void read_options(struct args *args, struct comparison *c, struct request *request) {
    for (int option; (option = args_next(args)) != ARGS_END;)
        read_option(args, c, request, option);
    measure_engines(&c->measure, args);
    c->command_line = args->argv + args->at;
    if (c->command_line[0] == NULL)
        cmd_refuse("compare: no program given (legal: subutai compare [options] [--] CMD [ARG...])");
    c->sweep = c->measure.n_threads > 0;
    bool has_braces = false;
    for (char *const *word = c->command_line + 1; *word != NULL; word++)
        has_braces = has_braces || strstr(*word, "{}") != NULL;
    if (c->sweep && !has_braces)
        cmd_refuse("compare: --threads: no {} in the arguments of '%s' to put the numbers in", c->command_line[0]);
}

static int compare_main(const struct command *self, int argc, char **argv) {
    static struct request request;
    static struct comparison c = {.measure = {.engine_list = "glibc,direct", .n_runs = 7, .n_warmups = 1}};
    struct args args = {.command = self, .settings = &c.measure.settings, .argc = argc, .argv = argv};
    read_options(&args, &c, &request);

    char *path = find_program("compare", c.command_line[0]);
    prepare_engines(&c, path);
    c.n_points = c.sweep ? c.measure.n_threads : 1;
    c.points = cmd_allocate(c.n_points, sizeof *c.points);
    bool same = true;
    for (size_t i = 0; i < c.n_points; i++) {
        c.points[i].threads = c.sweep ? c.measure.threads[i] : 0;
        measure_point(&c, &request, &c.points[i], path);
        same = point_is_same(&c, &c.points[i]) && same;
    }
    (request.json ? compare_print_json : compare_print_table)(&c, stdout);
    return same ? CMD_OK : CMD_DIFFERENT;
}

const struct command command_compare = {
    .name = "compare",
    .synopsis = "[options] [--] CMD [ARG...]",
    .summary = "run a program under several engines and compare times and outputs",
    .details =
        "The engines' runs are interleaved after a warm-up of each. Ratios are the first engine's median over the\n"
        "engine's: bigger is better. Engine 'native' is no preload at all. Exit status 0 if exit status, stdout and\n"
        "the files named by --output were the same in all runs, 1 if not or after a timeout, 2 if nothing was run.\n",
    .options = compare_options,
    .takes_library_options = true,
    .runs_program = true,
    .main = compare_main,
};

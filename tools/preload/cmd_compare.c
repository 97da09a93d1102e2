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

#include "beside.h"
#include "command.h"
#include "compare.h"
#include "content.h"
#include "env.h"
#include "find.h"
#include "trial.h"
#include "verdict.h"

enum { MAX_OUTPUTS = 16, MAX_POINTS = 64 };

enum {
    COMPARE_ENGINES,
    COMPARE_RUNS,
    COMPARE_WARMUP,
    COMPARE_BESIDE,
    COMPARE_THREADS,
    COMPARE_OUTPUT,
    COMPARE_TIMEOUT,
    COMPARE_JSON,
    COMPARE_PROGRESS,
    COMPARE_SHOW_STDERR,
    COMPARE_LIBRARY
};
static const struct own_option compare_options[] = {
    [COMPARE_ENGINES] = {0, "engines", "LIST",
                         "engines with settings of their own, e.g. native,glibc,ni:service=inline,scale=0; "
                         "the first is the base of the ratios (default glibc,direct)"},
    [COMPARE_RUNS] = {0, "runs", "N", "measured runs of each engine (default 7)"},
    [COMPARE_WARMUP] = {0, "warmup", "N", "runs of each engine before those (default 1)"},
    [COMPARE_BESIDE] = {0, "beside", "N", "processes that compute meanwhile: a busy machine (default 0)"},
    [COMPARE_THREADS] = {'n', "threads", "LIST", "compare once for each number, put in place of {} in CMD's arguments"},
    [COMPARE_OUTPUT] = {0, "output", "FILE",
                        "compare FILE's contents as well; it is removed before each run. {} is "
                        "replaced; can be given more than once"},
    [COMPARE_TIMEOUT] = {0, "timeout", "SECONDS", "end a run that takes longer; it counts as different"},
    [COMPARE_JSON] = {0, "json", NULL, "one JSON object instead of the table"},
    [COMPARE_PROGRESS] = {0, "progress", NULL, "a line on stderr for each run, also if that is no terminal"},
    [COMPARE_SHOW_STDERR] = {0, "show-stderr", NULL,
                             "pass on what the runs write to stderr (otherwise only after "
                             "failures)"},
    [COMPARE_LIBRARY] = {0, "library", "FILE", "preload FILE instead of the library that belongs to this command"},
    {0, NULL, NULL, NULL},
};

struct request {
    const char *outputs[MAX_OUTPUTS];
    size_t n_outputs;
    uint64_t threads[MAX_POINTS];
    size_t n_threads;
    int64_t timeout_ns;
    const char *library;
    bool json, progress, show_stderr;
    struct settings settings;
};

/* State of the point being measured: what series_run hands to visit(). */
struct measuring {
    const struct comparison *comparison;
    const struct request *request;
    struct point *point;
    char *outputs[MAX_OUTPUTS]; /* {} replaced */
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
 * A file that a run does not write must not pass with the contents of the run before. A recording engine's trace is
 * each run's own.
 */
static void remove_outputs(const struct measuring *m) {
    for (size_t i = 0; i < m->comparison->n_contenders; i++) {
        const char *trace = m->comparison->contenders[i].settings.text[SBT_OPT_RECORD];
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

/* Takes over trial->out and the outputs; all later runs are held against them. */
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

/* Lines of the library's own: they say that it stepped aside, which a run that went well would hide. */
static void pass_on_library(struct side *side, const char *label, const char *text) {
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
        if (strncmp(line, "subutai:", 8) == 0) {
            fprintf(stderr, "%s: %.*s\n", label, (int)strcspn(line, "\n"), line);
            side->showed_library = true;
        }
}

static void pass_on_stderr(const struct measuring *m, size_t contender, const struct trial *trial) {
    struct side *side = &m->point->sides[contender];
    const char *label = m->comparison->contenders[contender].label;
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

static void visit(void *context, size_t contender, int run, struct trial *trial) {
    struct measuring *m = context;
    struct side *side = &m->point->sides[contender];
    int outputs[MAX_OUTPUTS];
    for (size_t i = 0; i < m->request->n_outputs; i++) {
        outputs[i] = content_take("compare", m->outputs[i]);
        m->point->missing_output = m->point->missing_output || outputs[i] < 0;
    }
    pass_on_stderr(m, contender, trial);

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
    /* What the last run wrote stays, as after running the program by hand. */
    if (run + 1 < m->comparison->n_runs || contender + 1 < m->comparison->n_contenders)
        remove_outputs(m);
}

static void measure_point(struct comparison *c, const struct request *request, struct point *point, const char *path,
                          char *const *const *envps, const char *const *labels) {
    struct measuring m = {.comparison = c, .request = request, .point = point};
    size_t n_words = 0;
    while (c->command_line[n_words] != NULL)
        n_words++;
    char **argv = cmd_allocate(n_words + 1, sizeof *argv);
    for (size_t i = 0; i < n_words; i++)
        argv[i] = c->sweep && i > 0 ? replace_braces(c->command_line[i], point->threads) : c->command_line[i];
    for (size_t i = 0; i < request->n_outputs; i++)
        m.outputs[i] =
            c->sweep ? replace_braces(request->outputs[i], point->threads) : cmd_format("%s", request->outputs[i]);
    for (size_t i = 0; i < c->n_contenders; i++)
        point->sides[i].records = cmd_allocate((size_t)c->n_runs, sizeof *point->sides[i].records);

    char *prefix = c->sweep ? cmd_format("%ju threads, ", (uintmax_t)point->threads) : cmd_format("%s", "");
    struct series series = {
        .program = {.who = "compare", .path = path, .argv = argv, .timeout_ns = request->timeout_ns},
        .n_contenders = c->n_contenders,
        .labels = labels,
        .envps = envps,
        .n_runs = c->n_runs,
        .n_warmups = c->n_warmups,
        .n_beside = c->n_beside,
        .progress_lines = request->progress,
        .prefix = prefix,
    };
    remove_outputs(&m);
    series_run(&series, visit, &m);
    trial_release(&m.reference);
    for (size_t i = 0; i < request->n_outputs; i++) {
        if (m.reference_outputs[i] >= 0)
            close(m.reference_outputs[i]);
        free(m.outputs[i]);
    }
    for (size_t i = 1; c->sweep && i < n_words; i++)
        free(argv[i]);
    free(argv);
    free(prefix);
}

/* Fills `envps`, one environment per engine; without the library for a program that would not start with it. */
static void prepare_engines(const struct comparison *c, const struct request *request, const char *path,
                            char *const **envps, const char **labels) {
    bool all_native = true;
    for (size_t i = 0; i < c->n_contenders; i++)
        all_native = all_native && c->contenders[i].native;
    char *library = all_native ? cmd_format("/libsubutai.so") : find_library("compare", request->library);
    struct verdict verdict = verdict_of(path, false);
    struct sbt_options loaded;
    for (size_t i = 0; i < c->n_contenders; i++) {
        const struct contender *contender = &c->contenders[i];
        bool preload = !contender->native && !verdict_forbids_preload(&verdict);
        envps[i] = env_build("compare", environ, contender->native ? NULL : &request->settings, &contender->settings,
                             preload ? library : NULL, strrchr(library, '/') + 1, &loaded);
        labels[i] = contender->label;
    }
    if (!all_native)
        verdict_warn(&verdict, "compare", c->command_line[0], loaded.value[SBT_OPT_VERBOSE].u);
    verdict_free(&verdict);
}

static void read_options(struct args *args, struct comparison *c, struct request *request) {
    const char *engines = "glibc,direct";
    for (int option; (option = args_next(args)) != ARGS_END;)
        switch (option) {
        case COMPARE_ENGINES:
            engines = args->value;
            break;
        case COMPARE_RUNS:
            c->n_runs = (int)args_uint(args, "--runs", args->value, 1, 10000);
            break;
        case COMPARE_WARMUP:
            c->n_warmups = (int)args_uint(args, "--warmup", args->value, 0, 1000);
            break;
        case COMPARE_BESIDE:
            c->n_beside = args_uint(args, "--beside", args->value, 0, BESIDE_MAX);
            break;
        case COMPARE_THREADS:
            request->n_threads =
                args_uint_list(args, "--threads", args->value, 1, 1000000, request->threads, MAX_POINTS);
            break;
        case COMPARE_OUTPUT:
            if (request->n_outputs == MAX_OUTPUTS)
                cmd_refuse("compare: --output: more than %d files", MAX_OUTPUTS);
            request->outputs[request->n_outputs++] = args->value;
            break;
        case COMPARE_TIMEOUT:
            request->timeout_ns = args_seconds_ns(args, "--timeout", args->value, 1e6);
            break;
        case COMPARE_JSON:
            request->json = true;
            break;
        case COMPARE_PROGRESS:
            request->progress = true;
            break;
        case COMPARE_SHOW_STDERR:
            request->show_stderr = true;
            break;
        case COMPARE_LIBRARY:
            request->library = args->value;
            break;
        }
    contenders_refuse_engine(args);
    c->n_contenders = contenders_parse(args, engines, c->contenders);
    c->command_line = args->argv + args->at;
    if (c->command_line[0] == NULL)
        cmd_refuse("compare: no program given (legal: subutai compare [options] [--] CMD [ARG...])");
    c->sweep = request->n_threads > 0;
    bool has_braces = false;
    for (char *const *word = c->command_line + 1; *word != NULL; word++)
        has_braces = has_braces || strstr(*word, "{}") != NULL;
    if (c->sweep && !has_braces)
        cmd_refuse("compare: --threads: no {} in the arguments of '%s' to put the numbers in", c->command_line[0]);
}

static int compare_main(const struct command *self, int argc, char **argv) {
    static struct request request;
    static struct comparison c = {.n_runs = 7, .n_warmups = 1};
    struct args args = {.command = self, .settings = &request.settings, .argc = argc, .argv = argv};
    read_options(&args, &c, &request);

    char *path = find_program("compare", c.command_line[0]);
    char *const *envps[MAX_CONTENDERS];
    const char *labels[MAX_CONTENDERS];
    prepare_engines(&c, &request, path, envps, labels);

    c.n_points = c.sweep ? request.n_threads : 1;
    c.points = cmd_allocate(c.n_points, sizeof *c.points);
    bool same = true;
    for (size_t i = 0; i < c.n_points; i++) {
        c.points[i].threads = c.sweep ? request.threads[i] : 0;
        measure_point(&c, &request, &c.points[i], path, envps, labels);
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

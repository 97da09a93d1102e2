/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai report`: where the time of recorded programs went, and what would help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json_file.h"
#include "output.h"
#include "progress.h"
#include "python_lock.h"
#include "report_files.h"
#include "report_predict.h"
#include "report_print.h"
#include "report_try.h"
#include "table.h"
#include "trace_events.h"

enum { REPORT_TEXT, REPORT_JSON, REPORT_CSV, REPORT_FOLDED, REPORT_PREDICT, REPORT_TRY, REPORT_COMMAND, REPORT_TOP };
enum { REPORT_DELEGATE = REPORT_TOP + 1, REPORT_HTML, REPORT_PARQUET, REPORT_SPEEDSCOPE, REPORT_PERFETTO };
static const struct own_option report_options[] = {
    [REPORT_TEXT] = {0, "text", NULL, "print the report (default)"},
    [REPORT_JSON] = {0, "json", NULL, "print a JSON object for each FILE, each from a new line on"},
    [REPORT_CSV] = {0, "csv", NULL, "print the table of objects as CSV"},
    [REPORT_FOLDED] = {0, "folded", "FILE",
                       "write stacks of waits, weighted by nanoseconds, for flame graphs; -: "
                       "print them"},
    [REPORT_PREDICT] = {0, "predict", NULL,
                        "simulate the traces changed as the advice says, and say what that would bring"},
    [REPORT_TRY] =
        {0, "try", NULL,
         "run the recorded command by subutai compare, and say what advice to wait by switching has brought"},
    [REPORT_COMMAND] = {0, "command", "LINE",
                        "the command line of --try (default: the trace's), quoted as for a shell"},
    [REPORT_TOP] = {0, "top", "N", "rows of a table (default 10; JSON and CSV 1000)"},
    [REPORT_DELEGATE] = {0, "delegate-from", "SHARES",
                         "from which shares of time in a lock's sections on delegation beats POSIX locks, and all "
                         "others: two numbers in percent, or never, as bench/delegation-thresholds prints them "
                         "(default 15,60)"},
    [REPORT_HTML] = {0, "html", "FILE", "write one page with pictures, for a browser; it needs no network"},
    [REPORT_PARQUET] = {0, "parquet", "DIR", "write events, waits, objects and threads as tables in Parquet"},
    [REPORT_SPEEDSCOPE] = {0, "speedscope", "FILE", "write stacks of waits for speedscope.app"},
    [REPORT_PERFETTO] = {0, "perfetto", "FILE", "write a time line for ui.perfetto.dev, as subutai trace to-perfetto"},
    {0, NULL, NULL, NULL},
};

enum { TEXT_TOP = 10, DATA_TOP = 1000 };

struct request {
    const char **paths;
    size_t n_paths;
    bool text, json, csv, predict, try;
    const char *folded, *command, *delegate_from;
    struct report_files files;
    unsigned top; /* 0: not given */
};

/* ---- one FILE ---- */

_Noreturn static void refuse(const char *path, const struct sbt_trace_error *error) {
    cmd_refuse("report: '%s': at byte %ju: %s (legal: " TRACE_LEGAL ")", path, (uintmax_t)error->offset, error->reason);
}

static struct report_page analyse(const char *path) {
    struct sbt_trace_error error;
    struct sbt_trace *trace = sbt_trace_open(path, &error);
    if (trace == NULL)
        refuse(path, &error);
    struct progress progress = progress_begin(path);
    struct rep_report *report = rep_analyse(trace, python_lock_of(trace), progress_callback, &progress, &error);
    progress_end(&progress);
    if (report == NULL)
        refuse(path, &error);
    return (struct report_page){.path = path,
                                .trace = trace,
                                .report = report,
                                .names = names_new(trace, report),
                                .command = report->info.command};
}

static void simulate(const struct report_page *page) {
    struct rep_report *r = (struct rep_report *)(uintptr_t)page->report;
    if (r->info.profile)
        cmd_warn("report: --predict: '%s' is a profile, which cannot be simulated (legal: a trace of subutai record)",
                 page->path);
    report_simulate(page->path, page->trace, r);
}

/* Processes with one command line, as those of --command, are measured once. */
static const struct report_tried *try(const struct report_page *page) {
    static struct report_tried tried;
    static char *measured;
    static bool known;
    bool wanted = false;
    for (unsigned i = 0; i < page->report->n_advice; i++) {
        char *command, *text = report_advice_text(page, &page->report->advice[i], &command);
        wanted |= command != NULL;
        free(text);
        free(command);
    }
    if (!wanted) {
        cmd_warn("report: --try: '%s' has no advice that a command could try, so nothing is measured", page->path);
        return NULL;
    }
    const char *lock = report_delegated(page, NULL);
    char *asked = cmd_format("%s %s", lock != NULL ? lock : "", page->command);
    if (measured == NULL || strcmp(measured, asked) != 0)
        known = report_try(page->command, lock, &tried);
    free(measured);
    measured = asked;
    return known ? &tried : NULL;
}

static void close_page(struct report_page *page) {
    names_free(page->names);
    rep_free((struct rep_report *)(uintptr_t)page->report);
    sbt_trace_close((struct sbt_trace *)(uintptr_t)page->trace);
}

static FILE *memory(char **text, size_t *n) {
    FILE *to = open_memstream(text, n);
    if (to == NULL)
        cmd_refuse("report: no memory");
    return to;
}

/* `text` and `n` have what was printed once `to` is closed. */
static void print_memory(FILE *to, char **text, size_t *n) {
    if (fclose(to) != 0)
        cmd_refuse("report: no memory");
    fwrite(*text, 1, *n, stdout);
    free(*text);
}

/* What goes to standard output comes behind the progress line, which it may share a terminal with. */
static void print_folded(const struct report_page *page, FILE *out) {
    struct sbt_trace_error error;
    struct progress progress = progress_begin(page->path);
    char *text = NULL;
    size_t n = 0;
    FILE *to = out == stdout ? memory(&text, &n) : out;
    bool whole = report_folded(page, to, &progress, &error);
    progress_end(&progress);
    if (!whole)
        refuse(page->path, &error);
    if (to != out)
        print_memory(to, &text, &n);
}

/* ---- all of them ---- */

static void overview_heading(struct table *t) {
    static const char *const headings[] = {"file",       "wall",     "CPU",  "threads",
                                           "contention", "barriers", "idle", "advice"};
    for (size_t i = 0; i < sizeof headings / sizeof *headings; i++)
        table_add(t, "%s", headings[i]);
}

static void overview_row(struct table *t, const struct report_page *page) {
    const struct rep_report *r = page->report;
    double life = r->times.life_ns > 0 ? (double)r->times.life_ns : 1;
    char wall[32], cpu[32];
    table_add(t, "%s", page->path);
    table_add(t, "%s", format_ns(wall, (double)r->wall_ns));
    table_add(t, "%s", format_ns(cpu, (double)r->times.cpu_ns));
    table_add(t, "%u", r->n_live);
    table_add(t, "%.1f %%", 100 * (double)rep_contention_ns(&r->times) / life);
    table_add(t, "%.1f %%", 100 * (double)r->times.waiting[REP_BARRIER].ns / life);
    table_add(t, "%.1f %%", 100 * (double)r->times.idle_ns / life);
    if (r->n_advice > 0)
        table_add(t, "%s %s", rep_cause_name(r->advice[0].cause),
                  r->advice[0].object != REP_NONE ? names_object(page->names, r->advice[0].object) : "");
    else
        table_add(t, "%s", r->empty != NULL ? "nothing to report" : "none");
}

/* Looking up names may take long: they are in the files of programs. */
static void print_page(const struct request *r, struct report_page *page) {
    struct progress progress = progress_begin(page->path);
    char *text = NULL;
    size_t n = 0;
    FILE *to = memory(&text, &n);
    page->top = r->top != 0 ? r->top : r->json || r->csv ? DATA_TOP : TEXT_TOP;
    names_watch(page->names, &progress);
    if (r->json)
        report_json(page, to);
    if (r->csv)
        report_csv(page, to);
    if (r->text)
        report_text(page, to);
    names_watch(page->names, NULL);
    progress_end(&progress);
    print_memory(to, &text, &n);
}

static void run(const struct request *r) {
    struct output *folded = r->folded != NULL && strcmp(r->folded, "-") != 0
                                ? output_open("report: --folded", r->folded, r->paths[0])
                                : NULL;
    struct table overview = {.n_columns = 8, .alignment = "lrrrrrrl"};
    overview_heading(&overview);
    for (size_t i = 0; i < r->n_paths; i++) {
        struct report_page page = analyse(r->paths[i]);
        if (r->csv && i == 0) /* behind what may be refused */
            report_csv_heading(stdout);
        if (r->predict)
            simulate(&page);
        page.command = r->command != NULL ? r->command : page.command;
        if (r->try)
            page.tried = try(&page);
        if (i > 0 && r->text)
            printf("\n%s\n\n", "----");
        print_page(r, &page);
        overview_row(&overview, &page);
        if (r->folded != NULL)
            print_folded(&page, folded != NULL ? output_file(folded) : stdout);
        close_page(&page);
    }
    if (folded != NULL)
        output_close(folded);
    if (r->text && r->n_paths > 1) {
        printf("\n");
        table_print(&overview, stdout);
    }
}

static void read_option(const struct args *args, struct request *r, int option) {
    if (option == REPORT_TEXT)
        r->text = true;
    else if (option == REPORT_JSON)
        r->json = true;
    else if (option == REPORT_CSV)
        r->csv = true;
    else if (option == REPORT_FOLDED)
        r->folded = args->value;
    else if (option == REPORT_PREDICT)
        r->predict = true;
    else if (option == REPORT_TRY)
        r->try = true;
    else if (option == REPORT_COMMAND)
        r->command = args->value;
    else if (option == REPORT_DELEGATE)
        r->delegate_from = args->value;
    else if (option == REPORT_HTML)
        r->files.html = args->value;
    else if (option == REPORT_PARQUET)
        r->files.parquet = args->value;
    else if (option == REPORT_SPEEDSCOPE)
        r->files.speedscope = args->value;
    else if (option == REPORT_PERFETTO)
        r->files.perfetto = args->value;
    else if (option == REPORT_TOP)
        r->top = (unsigned)args_uint(args, "--top", args->value, 1, 1000000);
    else
        r->paths[r->n_paths++] = args->value;
}

static int report_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    struct request r = {.paths = cmd_allocate((size_t)argc + 1, sizeof *r.paths)};
    cmd_survive_cut_files();
    for (int option; (option = args_next(&args)) != ARGS_END;)
        read_option(&args, &r, option);
    if (r.n_paths == 0)
        cmd_refuse("report: no file given (legal: subutai report [options] FILE...)");
    if (r.command != NULL && !r.try)
        cmd_refuse("report: --command: nothing is run (legal: with --try)");
    if (r.delegate_from != NULL && !report_delegate_from(r.delegate_from))
        cmd_refuse("report: --delegate-from: '%s' is not a legal value (legal: two of 0 to 100 or never, with a comma)",
                   r.delegate_from);
    if (report_files_wanted(&r.files)) {
        if (r.text || r.json || r.csv || r.folded != NULL)
            cmd_refuse("report: --html, --parquet, --speedscope and --perfetto go with no option that prints or folds");
        report_files_write(&r.files, r.paths, r.n_paths,
                           (struct report_files_as){r.top, r.predict, r.try, r.command, r.delegate_from});
        free(r.paths);
        return CMD_OK;
    }
    bool folded_only = r.folded != NULL && !r.json && !r.csv;
    if (r.text + r.json + r.csv + (r.folded != NULL && strcmp(r.folded, "-") == 0) > 1)
        cmd_refuse("report: --text, --json, --csv and --folded - print to the same place (legal: one of them)");
    r.text |= !r.json && !r.csv && !folded_only;
    run(&r);
    free(r.paths);
    return CMD_OK;
}

const struct command command_report = {
    .name = "report",
    .synopsis = "[options] FILE...",
    .summary = "where the time of recorded programs went, and what would help",
    .details =
        "Each FILE is a trace that subutai record has written. Printed are a summary, advice, and tables: objects,\n"
        "which thread waited for which, the critical path, barriers, the order of locks.\n"
        "Exit status 0, 2 if a FILE is no trace or is damaged, 3 if it became shorter while it was read.\n",
    .options = report_options,
    .main = report_main,
};

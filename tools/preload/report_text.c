/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The report as text, at most 100 columns wide: the summary and the advice first, then the tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "find.h"
#include "report_text.h"

/* ---- words ---- */

/* Shortened in the middle, so that the beginning and the line number stay; between characters of UTF-8. */
static const char *cut(char buffer[static 64], const char *text, size_t width) {
    size_t n = strlen(text), tail = width / 2 - 1;
    if (n <= width)
        return text;
    size_t head = cmd_whole_characters(text, width - tail - 2);
    while (cmd_whole_characters(text, n - tail) < n - tail)
        tail--;
    snprintf(buffer, 64, "%.*s..%s", (int)head, text, text + n - tail);
    return buffer;
}

void text_paragraph(FILE *out, const char *first, const char *text) {
    size_t indent = strlen(first), column = indent;
    fputs(first, out);
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (column > indent && column + 1 + n > TEXT_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)n, at);
        column += n;
        at += n;
        at += strspn(at, " ");
    }
    fputc('\n', out);
}

double text_percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

void text_heading(const struct text *t, const char *words) {
    fprintf(t->out, "\n%s\n", words);
}

void text_ns(struct table *table, double ns) {
    char buffer[32];
    table_add(table, "%s", format_ns(buffer, ns));
}

void text_name(struct table *table, const char *name, size_t width) {
    char buffer[64];
    table_add(table, "%s", cut(buffer, name, width));
}

unsigned text_most(const struct text *t, size_t n) {
    return n < t->page->top ? (unsigned)n : t->page->top;
}

/* ---- the summary ---- */

/* What is not there of a program that did not end by itself. */
static const char *what_is_missing(const struct sbt_trace_info *info, const char *path) {
    if (info->whole)
        return "";
    if (!info->completed && find_left_rest(path))
        return "; not whole: the program was killed, or has become another one by exec; the end is "
               "missing; " FIND_LEFT_REST;
    if (!info->completed && sbt_trace_writer(path) != 0)
        return "; not whole: the program runs, and writes on";
    if (!info->completed)
        return "; not whole: the program was killed, or has become another one by exec; the end is missing, and with "
               "it what threads waited for then";
    if (info->end_is_known)
        return "; the program was killed, or has become another one by exec";
    return "; the program was killed, or has become another one by exec, after the last of these calls";
}

static void origin(const struct text *t) {
    const struct sbt_trace_info *info = &t->r->info;
    char *lost = info->n_lost > 0 ? cmd_format(", %ju event%s lost", (uintmax_t)info->n_lost, cmd_s(info->n_lost))
                                  : cmd_format("%s", "");
    char *line = cmd_format("%s: %s", t->page->path, info->command);
    text_paragraph(t->out, "", line);
    free(line);
    line = info->generated ? cmd_format("generated, %ju event%s", (uintmax_t)info->n_events, cmd_s(info->n_events))
                           : cmd_format("process %ju, engine %s, %s%ju event%s%s%s", (uintmax_t)info->process_id,
                                        info->engine, info->profile ? "a profile, " : "", (uintmax_t)info->n_events,
                                        cmd_s(info->n_events), lost, what_is_missing(info, t->page->path));
    text_paragraph(t->out, "", line);
    free(line);
    free(lost);
}

/* In user code of sections, on average. */
static char *misses_of(const struct sbt_trace_info *info) {
    if (!info->profile)
        return cmd_format("counted in profiles only");
    if (!info->whole)
        return cmd_format("not known, the trace has not the program's own end");
    if (!info->counts_misses)
        return cmd_format("not available here");
    if (info->n_counted_holds == 0)
        return cmd_format("counted in no section");
    return cmd_format("%.1f a section", (double)info->n_misses / (double)info->n_counted_holds);
}

/* By the kernel's count. */
static char *queued_of(const struct rep_report *r) {
    char ns[32];
    if (r->n_queued == 0)
        return cmd_format(r->info.whole ? "not available here" : "not known of a program that was killed");
    return cmd_format("%s, %.1f %% of the time%s", format_ns(ns, (double)r->times.queued_ns),
                      text_percent((double)r->times.queued_ns, (double)r->times.life_ns),
                      r->n_queued < r->n_live ? "; short-lived and killed threads are not counted" : "");
}

static void summary(const struct text *t) {
    const struct rep_times *s = &t->r->times;
    char wall[32], cpu[32];
    double life = (double)s->life_ns;
    char *more = s->unknown_ns > 0 ? cmd_format(" and up to %s more", format_ns(wall, (double)s->unknown_ns))
                                   : cmd_format("%s", "");
    char *line = cmd_format("wall %s, CPU %s%s, %u threads, %.2f running at a time",
                            format_ns(wall, (double)t->r->wall_ns), format_ns(cpu, (double)s->cpu_ns), more,
                            t->r->n_live, t->r->wall_ns > 0 ? (double)s->cpu_ns / (double)t->r->wall_ns : 0);
    text_paragraph(t->out, "", line);
    free(line);
    free(more);
    fprintf(t->out, "\n");
    struct table table = {.n_columns = 4, .alignment = "lrrl"};
    const struct {
        const char *name;
        double ns;
        const char *note;
    } rows[] = {
        {"work", (double)s->cpu_ns,
         t->r->n_guessed > 1 ? "CPU time between calls; behind their last ones threads have equal parts"
                             : "CPU time between calls"},
        {"off CPU", (double)s->off_cpu_ns, "between calls: input, output, sleep, preemption"},
        {"- no core", (double)s->no_core_ns, "of that, could have run: other threads had the cores"},
        {"- outside", (double)s->outside_ns, "of that, in calls that waited for other processes, devices or time"},
        {"not known", (double)s->unknown_ns, "since threads' last calls, until they were killed: work or off CPU"},
        {"contention", (double)rep_contention_ns(s), "waiting for locks, and for what threads use as locks"},
        {"barriers", (double)s->waiting[REP_BARRIER].ns, ""},
        {"waiting, not idle", (double)(rep_event_waits_ns(s) - s->idle_ns),
         "for conditions, semaphores, futexes: other threads wait too, or waking up"},
        {"idle", (double)s->idle_ns, "the same, and no other thread waits for it: no contention"},
        {"joins", (double)s->waiting[REP_JOIN].ns, ""},
        {"calls", (double)s->calls_ns, "that waited for no thread"},
    };
    table_add(&table, "threads' time");
    table_add(&table, "sum");
    table_add(&table, "share");
    table_add(&table, "%s", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].ns <= 0)
            continue;
        table_add(&table, "%s", rows[i].name);
        text_ns(&table, rows[i].ns);
        table_add(&table, "%.1f %%", text_percent(rows[i].ns, life));
        table_add(&table, "%s", rows[i].note);
    }
    table_print(&table, t->out);
    char *misses = misses_of(&t->r->info), *queued = queued_of(t->r);
    line = cmd_format(
        "In critical sections, with waits for them: %.1f %% of the threads' time, %.1f %% without idle time; "
        "with a lock held: %.1f %%. Cache misses: %s. Waiting for a core, in calls too: %s.",
        text_percent((double)s->sections.ns, life), text_percent((double)s->sections.ns, (double)rep_active_ns(s)),
        text_percent((double)s->sections.held_ns, life), misses, queued);
    free(queued);
    text_paragraph(t->out, "", line);
    free(misses);
    free(line);
}

/* Several threads, and none waited for another but in a join: what they may wait for all the same is not seen. */
static void own_words(const struct text *t) {
    const struct rep_times *s = &t->r->times;
    uint64_t waits = 0;
    for (unsigned kind = 0; kind < REP_N_KINDS; kind++)
        waits += kind != REP_JOIN ? s->waiting[kind].n : 0;
    if (waits == 0 && t->r->n_live > 2)
        text_paragraph(
            t->out, "",
            "But for threads' ends, no thread waited for another one in a call that is recorded. A loop on the "
            "program's own words, as in a spin lock of atomic operations, counts as work: perf record shows the "
            "place.");
}

static char *gain_of(const struct text *t, const struct rep_advice *a) {
    char ns[32];
    char *not = a->unsimulated != NULL ? cmd_format(" Not simulated: %s.", a->unsimulated) : cmd_format("%s", "");
    if (a->basis == REP_BASIS_NONE)
        return not ;
    static const char *const bases[] = {[REP_BASIS_PATH] = "a bound, by the critical path",
                                        [REP_BASIS_COUNTED] = "by the number of calls; a trace's program is longer "
                                                              "than it would be without the recorder",
                                        [REP_BASIS_SIMULATED] = "simulated"};
    const char *what = a->basis == REP_BASIS_PATH      ? "At most"
                       : a->basis == REP_BASIS_COUNTED ? "About"
                       : a->gain_ns < 0                ? "It would cost"
                                                       : "Gain";
    char *gain = cmd_format(" %s: %s, %.1f %% of the time (%s).%s", what, format_ns(ns, fabs(a->gain_ns)),
                            text_percent(fabs(a->gain_ns), (double)t->r->wall_ns), bases[a->basis], not );
    free(not );
    return gain;
}

/* What was measured, and beside it the gain as a ratio. */
static void measured(const struct text *t, const struct rep_advice *a, const char *command) {
    const struct report_tried *tried = t->page->tried;
    double predicted = report_advice_ratio(t->page, a);
    if (tried == NULL)
        return;
    char *line = cmd_format("measured, times as fast as glibc in %d runs:", tried->n_runs), *longer;
    for (size_t i = 0; i < tried->n_engines; i++) {
        if (strstr(command, tried->engines[i].name) == NULL) /* of another advice */
            continue;
        longer = cmd_format("%s%s %s %.2f (%.2f to %.2f)", line, i > 0 ? "," : "", tried->engines[i].name,
                            tried->engines[i].ratio, tried->engines[i].ratio_min, tried->engines[i].ratio_max);
        free(line);
        line = longer;
    }
    char *whole = cmd_format("%s; outputs %s", line, tried->identical ? "identical" : "DIFFER");
    text_paragraph(t->out, "    ", whole);
    if (isfinite(predicted))
        fprintf(t->out, "    predicted: %s%.2f times as fast\n", a->basis == REP_BASIS_PATH ? "at most " : "",
                predicted);
    free(whole);
    free(line);
}

static void advice(const struct text *t) {
    text_heading(t, "Advice");
    if (t->r->n_advice == 0)
        text_paragraph(t->out, "  ",
                       "None: no lock, barrier or condition has a part of the critical path that is worth a change.");
    for (unsigned i = 0; i < text_most(t, t->r->n_advice); i++) {
        const struct rep_advice *a = &t->r->advice[i];
        char *command, *words = report_advice_text(t->page, a, &command), *gain = gain_of(t, a);
        char *first = cmd_format("%2u. ", i + 1),
             *whole = cmd_format("[%s] %s%s", rep_cause_name(a->cause), words, gain);
        text_paragraph(t->out, first, whole);
        if (command != NULL) {
            fprintf(t->out, "    try: %s\n", command);
            measured(t, a, command);
        }
        free(whole);
        free(first);
        free(gain);
        free(words);
        free(command);
    }
}

void report_text(const struct report_page *page, FILE *out) {
    struct text t = {page, page->report, out};
    origin(&t);
    if (t.r->empty != NULL) {
        char *line = cmd_format("Nothing to report: %s.", t.r->empty);
        text_paragraph(out, "", line);
        free(line);
        return;
    }
    summary(&t);
    own_words(&t);
    advice(&t);
    text_tables(&t);
}

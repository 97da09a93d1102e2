/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai schedule`: what is in a schedule log of the engine det, and where two of them differ first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "json_file.h"
#include "progress.h"
#include "schedule_diff.h"

enum { SCHEDULE_JSON, SCHEDULE_FROM, SCHEDULE_TO };
static const struct own_option schedule_options[] = {
    [SCHEDULE_JSON] = {0, "json", NULL, "info, diff: one JSON object; dump: one for each event, each on a line"},
    [SCHEDULE_FROM] = {0, "from", "N", "dump: from that event on (default 1)"},
    [SCHEDULE_TO] = {0, "to", "M", "dump: up to that event (default: the last)"},
    {0, NULL, NULL, NULL},
};

struct request {
    const char *what, *paths[2];
    size_t n_paths;
    bool json;
    uint64_t from, to;
};

/* ---- info ---- */

struct summary {
    uint64_t n_ops[SCHEDULE_N_OPS], n_returns[SCHEDULE_N_RETURNS];
    uint64_t n_all_ops, n_all_returns, n_events, n_stalls, n_released, time_ns, hash;
    uint32_t n_threads, n_objects;
    struct section_count {
        uint64_t hint, n, turns; /* of all */
    } * sections;                /* by hints, in the order of their first use */
    size_t n_sections;
};

static void count_section(struct summary *s, const struct schedule_event *e) {
    size_t i = 0;
    while (i < s->n_sections && s->sections[i].hint != e->hint)
        i++;
    if (i == s->n_sections) {
        s->sections = cmd_reallocate(s->sections, ++s->n_sections, sizeof *s->sections);
        s->sections[i] = (struct section_count){.hint = e->hint};
    }
    s->sections[i].n++;
    s->sections[i].turns += e->turns;
}

static void count(struct summary *s, const struct schedule_event *e) {
    s->n_events++;
    s->time_ns = e->time_ns;
    s->hash = e->hash;
    if (e->thread >= s->n_threads)
        s->n_threads = e->thread + 1;
    if (e->object > s->n_objects)
        s->n_objects = e->object;
    if (e->kind == SCHEDULE_EVENT_OP) {
        s->n_ops[e->what]++;
        s->n_all_ops++;
    } else if (e->kind == SCHEDULE_EVENT_RETURN) {
        s->n_returns[e->what]++;
        s->n_all_returns++;
    } else if (e->kind == SCHEDULE_EVENT_SECTION) {
        count_section(s, e);
    }
    s->n_stalls += e->kind == SCHEDULE_EVENT_STALL || e->kind == SCHEDULE_EVENT_RELEASED;
    s->n_released += e->kind == SCHEDULE_EVENT_RELEASED;
}

static struct summary summarize(const char *path, struct schedule_log *log) {
    struct summary s = {.n_events = 0};
    struct schedule_event e;
    struct progress progress = progress_begin(path);
    while (schedule_read("schedule", log, &e)) {
        count(&s, &e);
        if ((s.n_events & 0x3FFF) == 0)
            progress_show(&progress, (double)schedule_place(log) / (double)schedule_bytes(log));
    }
    progress_end(&progress);
    return s;
}

static bool has_flag(const struct schedule_hints *hints, enum schedule_flag flag) {
    return (hints->flags & flag) != 0;
}

static const char *state_of(const struct schedule_hints *hints, enum schedule_flag flag) {
    return has_flag(hints, flag) ? "on" : "off";
}

static void hints_json(struct json *j, const struct schedule_log *log, const struct summary *s) {
    const struct schedule_hints *hints = schedule_hints_of(log);
    char hash[17];
    if (hints != NULL) {
        json_open(j, "hints", '{');
        if (has_flag(hints, SCHEDULE_WITH_FILE)) {
            snprintf(hash, sizeof hash, "%016" PRIx64, hints->hash);
            json_text(j, "file_hash", hash);
            json_uint(j, "number", hints->n);
        }
        json_bool(j, "sfs", has_flag(hints, SCHEDULE_SFS));
        json_bool(j, "sts", has_flag(hints, SCHEDULE_STS));
        json_bool(j, "soft_barriers", has_flag(hints, SCHEDULE_SOFT_BARRIERS));
        json_close(j, '}');
    }
    json_open(j, "sections", '[');
    for (size_t i = 0; i < s->n_sections; i++) {
        char *name = schedule_hint_name(s->sections[i].hint);
        json_open(j, NULL, '{');
        json_text(j, "hint", name);
        json_uint(j, "number", s->sections[i].n);
        json_uint(j, "turns", s->sections[i].turns);
        json_close(j, '}');
        free(name);
    }
    json_close(j, ']');
}

static void hints_text(const struct schedule_log *log, const struct summary *s) {
    const struct schedule_hints *hints = schedule_hints_of(log);
    if (hints != NULL && has_flag(hints, SCHEDULE_WITH_FILE))
        printf("hints %016" PRIx64 ", %" PRIu64 " in the file; ", hints->hash, hints->n);
    if (hints != NULL)
        printf("sfs %s, sts %s, soft barriers %s\n", state_of(hints, SCHEDULE_SFS), state_of(hints, SCHEDULE_STS),
               state_of(hints, SCHEDULE_SOFT_BARRIERS));
    for (size_t i = 0; i < s->n_sections; i++) {
        char *name = schedule_hint_name(s->sections[i].hint);
        printf("%s: the turn was given up %" PRIu64 " time%s, for %.1f turns each on average\n", name, s->sections[i].n,
               cmd_s(s->sections[i].n), (double)s->sections[i].turns / (double)s->sections[i].n);
        free(name);
    }
}

static void info_json(const struct schedule_log *log, const struct summary *s) {
    const struct schedule_header *h = schedule_header_of(log);
    struct json j = json_on(stdout);
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, s->hash);
    json_open(&j, NULL, '{');
    json_uint(&j, "version", h->version);
    json_uint(&j, "seed", h->seed);
    json_uint(&j, "process", h->process);
    json_uint(&j, "parent", h->parent);
    json_bool(&j, "forked", h->is_forked != 0);
    json_bool(&j, "whole", schedule_totals_of(log) != NULL);
    json_bool(&j, "full", schedule_is_full(log));
    json_text(&j, "hash", hash);
    json_uint(&j, "events", s->n_events);
    json_uint(&j, "operations", s->n_all_ops);
    json_uint(&j, "outside", s->n_all_returns);
    json_uint(&j, "stalls", s->n_stalls);
    json_uint(&j, "released", s->n_released);
    json_uint(&j, "threads", s->n_threads);
    json_uint(&j, "objects", s->n_objects);
    json_uint(&j, "time_ns", s->time_ns);
    json_uint(&j, "bytes", schedule_place(log));
    hints_json(&j, log, s);
    json_open(&j, "by_operation", '{');
    for (unsigned i = 0; i < SCHEDULE_N_OPS; i++)
        if (s->n_ops[i] > 0)
            json_uint(&j, schedule_op_name((enum schedule_op)i), s->n_ops[i]);
    json_close(&j, '}');
    json_open(&j, "by_return", '{');
    for (unsigned i = 0; i < SCHEDULE_N_RETURNS; i++)
        json_uint(&j, schedule_return_name((enum schedule_return)i), s->n_returns[i]);
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

static const char *end_of(const struct schedule_log *log) {
    return schedule_totals_of(log) != NULL ? "whole"
           : schedule_is_full(log)
               ? "cut: the file could not grow, and the process went on without a log"
               : "cut: the process was killed, has crashed, has become another program by exec, or has "
                 "ended by a system call of its own";
}

static void info_text(const struct schedule_log *log, const struct summary *s) {
    const struct schedule_header *h = schedule_header_of(log);
    printf("process %" PRIu32 ", seed %" PRIu64 "%s; %s\n", h->process, h->seed, h->is_forked ? ", forked" : "",
           end_of(log));
    printf("schedule %016" PRIx64 ", %" PRIu64 " operation%s, %" PRIu64 " return%s from outside, %" PRIu64 " stall%s\n",
           s->hash, s->n_all_ops, cmd_s(s->n_all_ops), s->n_all_returns, cmd_s(s->n_all_returns), s->n_stalls,
           cmd_s(s->n_stalls));
    printf("%" PRIu32 " thread%s at a time, %" PRIu32 " object%s, %.3f ms of logical time, %.2f bytes an operation\n",
           s->n_threads, cmd_s(s->n_threads), s->n_objects, cmd_s(s->n_objects), (double)s->time_ns / 1e6,
           s->n_all_ops > 0 ? (double)schedule_place(log) / (double)s->n_all_ops : 0);
    hints_text(log, s);
    putchar('\n');
    for (unsigned i = 0; i < SCHEDULE_N_OPS; i++)
        if (s->n_ops[i] > 0)
            printf("%-16s %10" PRIu64 "\n", schedule_op_name((enum schedule_op)i), s->n_ops[i]);
    for (unsigned i = 0; i < SCHEDULE_N_RETURNS; i++)
        if (s->n_returns[i] > 0)
            printf("%-16s %10" PRIu64 "\n", schedule_return_name((enum schedule_return)i), s->n_returns[i]);
}

static int info(const struct request *r) {
    struct schedule_log *log = schedule_take("schedule", r->paths[0]);
    struct summary s = summarize(r->paths[0], log);
    (r->json ? info_json : info_text)(log, &s);
    free(s.sections);
    schedule_close(log);
    return CMD_OK;
}

/* ---- dump ---- */

static void print(const struct request *r, const struct schedule_log *log, struct symbols *symbols, uint64_t number,
                  const struct schedule_event *e) {
    if (r->json) {
        struct json j = json_on(stdout);
        json_open(&j, NULL, '{');
        schedule_json(&j, log, symbols, number, e);
        json_close(&j, '}');
        json_end(&j);
        return;
    }
    char *text = schedule_text(log, symbols, number, e);
    puts(text);
    free(text);
}

static int dump(const struct request *r) {
    struct schedule_log *log = schedule_take("schedule", r->paths[0]);
    struct symbols *symbols = symbols_new();
    struct schedule_event e;
    uint64_t n = 0;
    while (n < r->to && schedule_read("schedule", log, &e))
        if (++n >= r->from)
            print(r, log, symbols, n, &e);
    if (n < r->from && r->from > 1)
        cmd_refuse("schedule: --from: '%" PRIu64 "' is not a legal value (legal: 1 to %" PRIu64
                   ", the events of the log)",
                   r->from, n);
    symbols_free(symbols);
    schedule_close(log);
    return CMD_OK;
}

/* ---- diff ---- */

static void diff_json(struct schedule_log *const logs[2], struct symbols *symbols,
                      const struct schedule_difference *d) {
    static const char *const names[] = {"a", "b"};
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_bool(&j, "same", d->is_same);
    json_uint(&j, "common", d->n);
    for (int i = 0; i < 2; i++) {
        json_open(&j, names[i], '{');
        json_bool(&j, "ends", !d->side[i].has_event);
        json_bool(&j, "cut", d->side[i].is_cut);
        if (d->side[i].has_event)
            schedule_json(&j, logs[i], symbols, d->side[i].number, &d->side[i].event);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_end(&j);
}

static void diff_text(const struct request *r, struct schedule_log *const logs[2], struct symbols *symbols,
                      const struct schedule_difference *d) {
    if (d->is_same) {
        printf("the same schedule: %" PRIu64 " operation%s and ends of waits%s\n", d->n, cmd_s(d->n),
               d->side[0].is_cut || d->side[1].is_cut ? ", then a log is cut" : "");
        return;
    }
    printf("the schedules differ after %" PRIu64 " operation%s and ends of waits that are the same\n", d->n,
           cmd_s(d->n));
    for (int i = 0; i < 2; i++) {
        char *text = d->side[i].has_event
                         ? schedule_text(logs[i], symbols, d->side[i].number, &d->side[i].event)
                         : cmd_format("%s", d->side[i].is_cut ? "the log is cut there" : "the schedule ends there");
        printf("%s: %s\n", r->paths[i], text);
        free(text);
    }
}

static int diff(const struct request *r) {
    struct schedule_log *logs[2] = {schedule_take("schedule", r->paths[0]), schedule_take("schedule", r->paths[1])};
    struct symbols *symbols = symbols_new();
    struct schedule_difference d;
    schedule_compare("schedule", logs, &d);
    if (r->json)
        diff_json(logs, symbols, &d);
    else
        diff_text(r, logs, symbols, &d);
    symbols_free(symbols);
    schedule_close(logs[0]);
    schedule_close(logs[1]);
    return d.is_same ? CMD_OK : CMD_DIFFERENT;
}

/* ---- the command ---- */

static const struct {
    const char *name;
    int (*main)(const struct request *r);
    size_t n_paths;
} words[] = {{"info", info, 1}, {"dump", dump, 1}, {"diff", diff, 2}};

static int carry_out(const struct request *r) {
    if (r->what == NULL)
        cmd_refuse("schedule: nothing to do given (legal: info FILE, dump FILE, diff A B)");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(words[i].name, r->what) != 0)
            continue;
        if (r->n_paths < words[i].n_paths)
            cmd_refuse("schedule: %s: %s given (legal: %s)", r->what, r->n_paths == 0 ? "no file" : "only one file",
                       words[i].n_paths == 1 ? "FILE" : "A B");
        if (r->n_paths > words[i].n_paths)
            cmd_refuse("schedule: unexpected argument '%s'", r->paths[1]);
        if (words[i].main != dump && (r->from != 1 || r->to != UINT64_MAX))
            cmd_refuse("schedule: --from and --to choose nothing for %s (legal: with dump)", r->what);
        if (r->to < r->from)
            cmd_refuse("schedule: --to: '%" PRIu64 "' is before --from (legal: %" PRIu64 " or more)", r->to, r->from);
        return words[i].main(r);
    }
    cmd_refuse("schedule: unknown action '%s' (legal: info, dump, diff)", r->what);
}

static void take_operand(struct request *r, const char *value) {
    if (r->what == NULL)
        r->what = value;
    else if (r->n_paths == 2)
        cmd_refuse("schedule: unexpected argument '%s'", value);
    else
        r->paths[r->n_paths++] = value;
}

static int schedule_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    struct request r = {.from = 1, .to = UINT64_MAX};
    cmd_survive_cut_files();
    for (int option; (option = args_next(&args)) != ARGS_END;) {
        if (option == ARGS_OPERAND)
            take_operand(&r, args.value);
        else if (option == SCHEDULE_JSON)
            r.json = true;
        else
            *(option == SCHEDULE_FROM ? &r.from : &r.to) =
                args_uint(&args, option == SCHEDULE_FROM ? "--from" : "--to", args.value, 1, UINT64_MAX);
    }
    return carry_out(&r);
}

const struct command command_schedule = {
    .name = "schedule",
    .synopsis = "info [--json] FILE | dump [--json] [--from N] [--to M] FILE | diff [--json] A B",
    .summary = "show what a run under the engine det has written of its schedule, and where two differ",
    .details = "FILE is what `subutai run --engine det --schedule FILE` has written. A log that is cut is read up to\n"
               "there. diff: exit status 0 for the same schedule, 1 for another; 2 with one line for a bad log.\n",
    .options = schedule_options,
    .main = schedule_main,
};

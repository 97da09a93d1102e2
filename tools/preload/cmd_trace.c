/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai trace`: what is in a trace, as a summary, event by event, or for the viewer at ui.perfetto.dev. A damaged
 * trace is refused with the place and the reason. `dump` and `to-perfetto` refuse it when they reach that place: what
 * was printed by then stays printed, and a file of --out stays as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fields.h"
#include "find.h"
#include "output.h"
#include "trace_events.h"

enum { TRACE_JSON, TRACE_THREAD, TRACE_OUT };
static const struct own_option trace_options[] = {
    [TRACE_JSON] = {0, "json", NULL, "info: one JSON object; dump: one for each event and line; to-perfetto: JSON"},
    [TRACE_THREAD] = {0, "thread", "N", "dump: that thread's events only"},
    [TRACE_OUT] = {'o', "out", "FILE", "to-perfetto: write FILE instead of standard output"},
    {0, NULL, NULL, NULL},
};

_Noreturn static void refuse(const struct trace_request *r, const struct sbt_trace_error *error) {
    if (r->reading != NULL)
        progress_end(&r->reading->line);
    cmd_refuse("%s: '%s': at byte %ju: %s (legal: " TRACE_LEGAL ")", r->command != NULL ? r->command : "trace", r->path,
               (uintmax_t)error->offset, error->reason);
}

bool trace_next(const struct trace_request *r, struct sbt_trace_cursor *cursor, struct sbt_trace_event *event) {
    struct sbt_trace_error error;
    struct trace_reading *reading = r->reading;
    int got = sbt_trace_next(cursor, event, &error);
    if (reading != NULL && (++reading->n_read & 0x3FFF) == 0)
        progress_show(&reading->line, (double)reading->n_read / (double)(reading->n_to_read + 1));
    if (got < 0)
        refuse(r, &error);
    return got == 1;
}

struct summary {
    struct sbt_trace_info info;
    uint64_t n_ops[SBT_TRACE_N_OPS], n_failed[SBT_TRACE_N_OPS], took_ns[SBT_TRACE_N_OPS];
    uint64_t n_counted[SBT_TRACE_N_OPS]; /* calls in tallies */
    uint64_t life_ns; /* of all threads, from the work before the first event to the end of the last one */
    uint64_t work_ns, outside_ns, n_bytes, n_calls_counted;
};

#define INFO(member) offsetof(struct summary, member)
static const struct field info_fields[] = {
    {NULL, "version", NULL, 0, FIELD_UINT32, INFO(info.version), 0},
    {NULL, "command", NULL, 0, FIELD_TEXT, INFO(info.command), 0},
    {NULL, "engine", NULL, 0, FIELD_TEXT, INFO(info.engine), 0},
    {NULL, "process", NULL, 0, FIELD_UINT64, INFO(info.process_id), 0},
    {NULL, "whole", NULL, 0, FIELD_BOOL, INFO(info.whole), 0},
    {NULL, "completed", NULL, 0, FIELD_BOOL, INFO(info.completed), 0},
    {NULL, "generated", NULL, 0, FIELD_BOOL, INFO(info.generated), 0},
    {NULL, "threads", NULL, 0, FIELD_UINT32, INFO(info.n_threads), 0},
    {NULL, "objects", NULL, 0, FIELD_UINT32, INFO(info.n_objects), 0},
    {NULL, "sites", NULL, 0, FIELD_UINT32, INFO(info.n_sites), 0},
    {NULL, "events", NULL, 0, FIELD_UINT64, INFO(info.n_events), 0},
    {NULL, "lost", NULL, 0, FIELD_UINT64, INFO(info.n_lost), 0},
    {NULL, "bytes", NULL, 0, FIELD_UINT64, INFO(n_bytes), 0},
    {NULL, "duration_ns", NULL, 0, FIELD_UINT64, INFO(info.duration_ns), 0},
    {NULL, "work_ns", NULL, 0, FIELD_UINT64, INFO(work_ns), 0},
    {NULL, "outside_ns", NULL, 0, FIELD_UINT64, INFO(outside_ns), 0},
    {NULL, "life_ns", NULL, 0, FIELD_UINT64, INFO(life_ns), 0},
    {NULL, "profile", NULL, 0, FIELD_BOOL, INFO(info.profile), 0},
    {NULL, "tallies", NULL, 0, FIELD_UINT64, INFO(info.n_tallies), 0},
    {NULL, "counted", NULL, 0, FIELD_UINT64, INFO(n_calls_counted), 0},
    {0},
};

/* The sums of the calls of one kind. In JSON the name is the key of an object. */
struct op_row {
    const char *name;
    uint64_t n, n_failed, took_ns, n_counted;
};

#define OP(member) offsetof(struct op_row, member)
static const struct field op_fields[] = {
    {NULL, NULL, "operation", 1, FIELD_TEXT, OP(name), 0},
    {NULL, "count", "events", 2, FIELD_UINT64, OP(n), 0},
    {NULL, "failed", "failed", 3, FIELD_UINT64, OP(n_failed), 0},
    {NULL, "took_ns", "took, sum", 4, FIELD_NS64, OP(took_ns), 0},
    {NULL, "counted", "counted", 5, FIELD_UINT64, OP(n_counted), 0},
    {0},
};

/* False: the trace has no call of that kind. */
static bool op_row_of(const struct summary *s, unsigned op, struct op_row *row) {
    *row = (struct op_row){sbt_trace_op_name(op), s->n_ops[op], s->n_failed[op], s->took_ns[op], s->n_counted[op]};
    return row->n + row->n_counted > 0;
}

static void count_tallies(const struct trace_request *r, const struct sbt_trace *trace, struct summary *s) {
    struct sbt_trace_tally_cursor cursor;
    struct sbt_trace_tally tally;
    struct sbt_trace_error error;
    int got;
    sbt_trace_tally_begin(trace, &cursor);
    while ((got = sbt_trace_tally_next(&cursor, &tally, &error)) == 1) {
        s->n_counted[tally.op] += tally.n;
        s->n_calls_counted += tally.n;
    }
    if (got < 0)
        refuse(r, &error);
}

/* A generated trace's threads run without a break. */
static void add_life(struct summary *s, const struct sbt_trace_event *event, uint64_t *ended_ns, bool first) {
    uint64_t begin_ns = event->at_ns - (event->work_ns < event->at_ns ? event->work_ns : event->at_ns);
    if (s->info.generated) {
        s->life_ns += event->work_ns + event->took_ns;
        return;
    }
    if (first)
        *ended_ns = begin_ns;
    uint64_t end_ns = event->at_ns + event->took_ns;
    if (end_ns > *ended_ns) {
        s->life_ns += end_ns - *ended_ns;
        *ended_ns = end_ns;
    }
}

static void summarize(const struct trace_request *r, const struct sbt_trace *trace, struct summary *s) {
    struct stat st;
    s->info = *sbt_trace_info(trace);
    if (stat(r->path, &st) == 0)
        s->n_bytes = (uint64_t)st.st_size;
    count_tallies(r, trace, s);
    for (uint32_t t = 0; t < s->info.n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event event;
        uint64_t ended_ns = 0;
        sbt_trace_cursor_begin(trace, t, &cursor);
        for (bool first = true; trace_next(r, &cursor, &event); first = false) {
            add_life(s, &event, &ended_ns, first);
            s->n_ops[event.op]++;
            s->n_failed[event.op] += event.result != 0;
            s->took_ns[event.op] += event.took_ns;
            s->work_ns += event.work_ns;
        }
    }
    s->outside_ns = s->took_ns[SBT_TRACE_OUTSIDE_WAIT];
}

static void info_json(const struct summary *s) {
    struct json j = json_on(stdout);
    struct op_row row;
    json_open(&j, NULL, '{');
    fields_json(&j, info_fields, 0, s);
    json_open(&j, "operations", '{');
    for (unsigned op = 0; op < SBT_TRACE_N_OPS; op++) {
        if (!op_row_of(s, op, &row))
            continue;
        json_open(&j, row.name, '{');
        fields_json(&j, op_fields, 0, &row);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

static void info_text(const struct summary *s, const char *path) {
    const struct sbt_trace_info *info = &s->info;
    char duration[32], work[32], outside[32];
    printf("%s\n", info->command);
    if (info->generated)
        printf("generated");
    else
        printf("process %ju, engine %s, %s", (uintmax_t)info->process_id, info->engine,
               format_ns(duration, (double)info->duration_ns));
    printf("; %s work", format_ns(work, (double)s->work_ns));
    if (s->outside_ns > 0)
        printf(", %s waiting outside: %.1f %% of the threads' time", format_ns(outside, (double)s->outside_ns),
               100.0 * (double)s->outside_ns / (double)s->life_ns);
    printf("; %s%s\n",
           info->whole       ? "whole"
           : info->completed ? "not whole: the program was killed, or has become another one by exec"
                             : "not whole: ends with the last block that was written",
           info->whole || info->completed || !find_left_rest(path) ? "" : "; " FIND_LEFT_REST);
    printf("%u threads, %u objects, %u call sites, %ju events, %.2f bytes an event", info->n_threads, info->n_objects,
           info->n_sites, (uintmax_t)info->n_events,
           info->n_events > 0 ? (double)s->n_bytes / (double)info->n_events : 0.0);
    if (info->n_lost > 0)
        printf(", %ju lost", (uintmax_t)info->n_lost);
    if (info->profile)
        printf("\na profile: events are calls that waited or ended a wait; %ju other calls are counted in %ju tallies",
               (uintmax_t)s->n_calls_counted, (uintmax_t)info->n_tallies);
    printf("\n\n");
    struct table table = fields_table(op_fields, 0);
    struct op_row row;
    for (unsigned op = 0; op < SBT_TRACE_N_OPS; op++)
        if (op_row_of(s, op, &row))
            fields_row(&table, op_fields, 0, &row);
    table_print(&table, stdout);
}

static void info(const struct trace_request *r, const struct sbt_trace *trace) {
    struct summary s = {0};
    summarize(r, trace, &s);
    if (r->json)
        info_json(&s);
    else
        info_text(&s, r->path);
}

static const struct {
    const char *name;
    void (*run)(const struct trace_request *r, const struct sbt_trace *trace);
} actions[] = {{"info", info}, {"dump", trace_dump}, {"to-perfetto", trace_to_perfetto}};

typedef void trace_action(const struct trace_request *r, const struct sbt_trace *trace);

static trace_action *action_of(const char *name) {
    for (size_t i = 0; name != NULL && i < sizeof actions / sizeof *actions; i++)
        if (strcmp(actions[i].name, name) == 0)
            return actions[i].run;
    cmd_refuse("trace: %s%s%s (legal: info, dump, to-perfetto)", name == NULL ? "no action given" : "unknown action '",
               name == NULL ? "" : name, name == NULL ? "" : "'");
}

static void read_option(const struct args *args, struct trace_request *r, const char **action, const char **out,
                        int option) {
    if (option == TRACE_JSON)
        r->json = true;
    else if (option == TRACE_THREAD)
        r->thread = args_uint(args, "--thread", args->value, 0, SBT_TRACE_NONE - 1);
    else if (option == TRACE_OUT)
        *out = args->value;
    else if (*action == NULL)
        *action = args->value;
    else if (r->path == NULL)
        r->path = args->value;
    else
        cmd_refuse("trace: unexpected argument '%s' (legal: one FILE)", args->value);
}

static struct sbt_trace *open_trace(const struct trace_request *r) {
    struct sbt_trace_error error;
    struct sbt_trace *trace = sbt_trace_open(r->path, &error);
    if (trace == NULL)
        refuse(r, &error);
    if (r->thread != SBT_TRACE_NONE && r->thread >= sbt_trace_info(trace)->n_threads)
        cmd_refuse("trace: --thread: %ju is not in the trace, which has %u", (uintmax_t)r->thread,
                   sbt_trace_info(trace)->n_threads);
    return trace;
}

static int trace_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    struct trace_request r = {.thread = SBT_TRACE_NONE, .out = stdout};
    const char *name = NULL, *out = NULL;
    cmd_survive_cut_files();
    for (int option; (option = args_next(&args)) != ARGS_END;)
        read_option(&args, &r, &name, &out, option);
    trace_action *action = action_of(name);
    if (r.path == NULL)
        cmd_refuse("trace: no file given (legal: subutai trace %s [options] FILE)", name);
    if (out != NULL && action != trace_to_perfetto)
        cmd_refuse("trace: --out goes with to-perfetto only");
    if (r.thread != SBT_TRACE_NONE && action != trace_dump)
        cmd_refuse("trace: --thread goes with dump only");

    if (action == trace_to_perfetto && !r.json && out == NULL && isatty(STDOUT_FILENO))
        cmd_refuse("trace: to-perfetto: protocol buffers are not for a terminal (legal: --out FILE, or --json)");

    struct sbt_trace *trace = open_trace(&r);
    struct output *file = out != NULL ? output_open("trace: --out", out, r.path) : NULL;
    if (file != NULL)
        r.out = output_file(file);
    action(&r, trace);
    if (file != NULL)
        output_close(file);
    sbt_trace_close(trace);
    return CMD_OK;
}

const struct command command_trace = {
    .name = "trace",
    .synopsis = "info|dump|to-perfetto [options] FILE",
    .summary = "read what subutai record has written",
    .details =
        "info sums up; dump prints each event, thread by thread; to-perfetto writes what ui.perfetto.dev opens:\n"
        "protocol buffers, with an arrow from each call to the waits that it ended, or with --json JSON without.\n"
        "A file that is damaged, or is no trace, is refused with the byte and the reason.\n",
    .options = trace_options,
    .main = trace_main,
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `subutai trace`: what is in a trace, as a summary, event by event, or for the viewer at ui.perfetto.dev. A trace that
 * is damaged is refused with the place and the reason, by `dump` and `to-perfetto` where they come to it: what was
 * printed by then stays printed, a file of --out is left as it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "json.h"
#include "output.h"
#include "symbols.h"
#include "table.h"
#include "trace.h"

enum { TRACE_JSON, TRACE_THREAD, TRACE_OUT };
static const struct own_option trace_options[] = {
    [TRACE_JSON] = {0, "json", NULL, "info: one JSON object; dump: one for each event and line"},
    [TRACE_THREAD] = {0, "thread", "N", "dump: that thread's events only"},
    [TRACE_OUT] = {'o', "out", "FILE", "to-perfetto: write FILE instead of standard output"},
    {0, NULL, NULL, NULL},
};

struct request {
    const char *path;
    bool json;
    uint64_t thread; /* SBT_TRACE_NONE: all */
    FILE *out;
};

_Noreturn static void refuse(const struct request *r, const struct sbt_trace_error *error) {
    cmd_refuse("trace: '%s': at byte %ju: %s", r->path, (uintmax_t)error->offset, error->reason);
}

static bool next(const struct request *r, struct sbt_trace_cursor *cursor, struct sbt_trace_event *event) {
    struct sbt_trace_error error;
    int got = sbt_trace_next(cursor, event, &error);
    if (got < 0)
        refuse(r, &error);
    return got == 1;
}

struct summary {
    uint64_t n_ops[SBT_TRACE_N_OPS], n_failed[SBT_TRACE_N_OPS], took_ns[SBT_TRACE_N_OPS];
    uint64_t work_ns, n_bytes;
};

static void summarize(const struct request *r, const struct sbt_trace *trace, struct summary *s) {
    struct stat st;
    if (stat(r->path, &st) == 0)
        s->n_bytes = (uint64_t)st.st_size;
    for (uint32_t t = 0; t < sbt_trace_info(trace)->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event event;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while (next(r, &cursor, &event)) {
            s->n_ops[event.op]++;
            s->n_failed[event.op] += event.result != 0;
            s->took_ns[event.op] += event.took_ns;
            s->work_ns += event.work_ns;
        }
    }
}

static void info_json(const struct sbt_trace_info *info, const struct summary *s) {
    struct json j = {.out = stdout};
    json_open(&j, NULL, '{');
    json_int(&j, "version", info->version);
    json_text(&j, "command", info->command);
    json_text(&j, "engine", info->engine);
    json_int(&j, "process", (int64_t)info->process_id);
    json_bool(&j, "whole", info->whole);
    json_bool(&j, "generated", info->generated);
    json_int(&j, "threads", info->n_threads);
    json_int(&j, "objects", info->n_objects);
    json_int(&j, "sites", info->n_sites);
    json_int(&j, "events", (int64_t)info->n_events);
    json_int(&j, "lost", (int64_t)info->n_lost);
    json_int(&j, "bytes", (int64_t)s->n_bytes);
    json_int(&j, "duration_ns", (int64_t)info->duration_ns);
    json_int(&j, "work_ns", (int64_t)s->work_ns);
    json_open(&j, "operations", '{');
    for (unsigned op = 0; op < SBT_TRACE_N_OPS; op++) {
        if (s->n_ops[op] == 0)
            continue;
        json_open(&j, sbt_trace_op_name(op), '{');
        json_int(&j, "count", (int64_t)s->n_ops[op]);
        json_int(&j, "failed", (int64_t)s->n_failed[op]);
        json_int(&j, "took_ns", (int64_t)s->took_ns[op]);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_close(&j, '}');
    json_end(&j);
}

static void info_text(const struct sbt_trace_info *info, const struct summary *s) {
    char duration[32], work[32], took[32];
    printf("%s\n", info->command);
    if (info->generated)
        printf("generated");
    else
        printf("process %ju, engine %s, %s", (uintmax_t)info->process_id, info->engine,
               format_ns(duration, (double)info->duration_ns));
    printf("; %s work; %s\n", format_ns(work, (double)s->work_ns),
           info->whole ? "whole" : "not whole: ends with the last block that was written");
    printf("%u threads, %u objects, %u call sites, %ju events, %.2f bytes an event", info->n_threads, info->n_objects,
           info->n_sites, (uintmax_t)info->n_events,
           info->n_events > 0 ? (double)s->n_bytes / (double)info->n_events : 0.0);
    if (info->n_lost > 0)
        printf(", %ju lost", (uintmax_t)info->n_lost);
    printf("\n\n");
    struct table table = {.n_columns = 4, .alignment = "lrrr"};
    table_add(&table, "operation");
    table_add(&table, "events");
    table_add(&table, "failed");
    table_add(&table, "took, sum");
    for (unsigned op = 0; op < SBT_TRACE_N_OPS; op++) {
        if (s->n_ops[op] == 0)
            continue;
        table_add(&table, "%s", sbt_trace_op_name(op));
        table_add(&table, "%ju", (uintmax_t)s->n_ops[op]);
        table_add(&table, "%ju", (uintmax_t)s->n_failed[op]);
        table_add(&table, "%s", format_ns(took, (double)s->took_ns[op]));
    }
    table_print(&table, stdout);
}

static void info(const struct request *r, const struct sbt_trace *trace) {
    struct summary s = {0};
    summarize(r, trace, &s);
    (r->json ? info_json : info_text)(sbt_trace_info(trace), &s);
}

static void number(struct json *j, const char *key, uint32_t n) {
    if (n != SBT_TRACE_NONE)
        json_int(j, key, n);
}

static void dump_json(const struct sbt_trace *trace, uint32_t thread, const struct sbt_trace_event *e) {
    struct json j = {.out = stdout};
    uint64_t address = e->object != SBT_TRACE_NONE ? sbt_trace_object_address(trace, e->object) : 0;
    json_open(&j, NULL, '{');
    json_int(&j, "thread", thread);
    json_int(&j, "at_ns", (int64_t)e->at_ns);
    json_text(&j, "op", sbt_trace_op_name(e->op));
    if (e->type != SBT_TRACE_NO_OBJECT)
        json_text(&j, "type", sbt_trace_type_name(e->type));
    number(&j, "object", e->object);
    if (address != 0) {
        char text[32];
        snprintf(text, sizeof text, "0x%jx", (uintmax_t)address);
        json_text(&j, "address", text);
    }
    number(&j, "other", e->other);
    number(&j, "site", e->site);
    if (e->site != SBT_TRACE_NONE)
        json_text(&j, "place", sbt_trace_site_name(trace, e->site));
    json_int(&j, "work_ns", (int64_t)e->work_ns);
    json_int(&j, "took_ns", (int64_t)e->took_ns);
    json_int(&j, "order", (int64_t)e->order);
    if (e->op == SBT_TRACE_COND_WAIT)
        json_int(&j, "relock", (int64_t)e->relock);
    if (e->size != 0)
        json_int(&j, "size", e->size);
    json_int(&j, "result", e->result);
    json_close(&j, '}');
    json_end(&j);
}

static void dump_text(const struct sbt_trace *trace, uint32_t thread, const struct sbt_trace_event *e,
                      struct symbols *symbols) {
    printf("%u %ju %s", thread, (uintmax_t)e->at_ns, sbt_trace_op_name(e->op));
    if (e->object != SBT_TRACE_NONE)
        printf(" %s#%u", sbt_trace_type_name(e->type), e->object);
    if (e->other != SBT_TRACE_NONE)
        printf(" %s#%u", e->op == SBT_TRACE_COND_WAIT ? "mutex" : "thread", e->other);
    printf(" work %ju took %ju", (uintmax_t)e->work_ns, (uintmax_t)e->took_ns);
    if (e->order != 0)
        printf(" order %ju", (uintmax_t)e->order);
    if (e->relock != 0)
        printf(" relock %ju", (uintmax_t)e->relock);
    if (e->size != 0)
        printf(" size %u", e->size);
    if (e->result != 0)
        printf(" result %s", strerrorname_np(e->result) != NULL ? strerrorname_np(e->result) : "?");
    const char *place = e->site != SBT_TRACE_NONE ? symbols_name(symbols, sbt_trace_site_name(trace, e->site)) : "";
    printf("%s%s\n", place[0] != '\0' ? " " : "", place);
}

static void dump(const struct request *r, const struct sbt_trace *trace) {
    struct symbols *symbols = symbols_new();
    for (uint32_t t = 0; t < sbt_trace_info(trace)->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event event;
        if (r->thread != SBT_TRACE_NONE && r->thread != t)
            continue;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while (next(r, &cursor, &event)) {
            if (r->json)
                dump_json(trace, t, &event);
            else
                dump_text(trace, t, &event, symbols);
        }
    }
    symbols_free(symbols);
}

/* The trace event format: complete events ("X"), microseconds. */
static void perfetto_event(struct json *j, const struct sbt_trace *trace, uint32_t thread,
                           const struct sbt_trace_event *e, uint64_t at_ns, struct symbols *symbols) {
    char name[64];
    if (e->object != SBT_TRACE_NONE)
        snprintf(name, sizeof name, "%s #%u", sbt_trace_op_name(e->op), e->object);
    else if (e->other != SBT_TRACE_NONE)
        snprintf(name, sizeof name, "%s thread %u", sbt_trace_op_name(e->op), e->other);
    else
        snprintf(name, sizeof name, "%s", sbt_trace_op_name(e->op));
    json_line(j);
    json_open(j, NULL, '{');
    json_text(j, "name", name);
    json_text(j, "cat", sbt_trace_type_name(e->type));
    json_text(j, "ph", "X");
    json_int(j, "pid", (int64_t)sbt_trace_info(trace)->process_id);
    json_int(j, "tid", thread);
    json_real(j, "ts", (double)at_ns / 1000, 3);
    json_real(j, "dur", (double)e->took_ns / 1000, 3);
    json_open(j, "args", '{');
    json_int(j, "work_ns", (int64_t)e->work_ns);
    if (e->order != 0)
        json_int(j, "order", (int64_t)e->order);
    if (e->op == SBT_TRACE_COND_WAIT)
        number(j, "mutex", e->other);
    if (e->result != 0)
        json_text(j, "result", strerrorname_np(e->result));
    if (e->site != SBT_TRACE_NONE)
        json_text(j, "place", symbols_name(symbols, sbt_trace_site_name(trace, e->site)));
    json_close(j, '}');
    json_close(j, '}');
}

static void metadata(struct json *j, const struct sbt_trace *trace, const char *what, uint32_t thread,
                     const char *name) {
    json_line(j);
    json_open(j, NULL, '{');
    json_text(j, "name", what);
    json_text(j, "ph", "M");
    json_int(j, "pid", (int64_t)sbt_trace_info(trace)->process_id);
    json_int(j, "tid", thread);
    json_open(j, "args", '{');
    json_text(j, "name", name);
    json_close(j, '}');
    json_close(j, '}');
}

static void to_perfetto(const struct request *r, const struct sbt_trace *trace) {
    struct symbols *symbols = symbols_new();
    struct json j = {.out = r->out};
    json_open(&j, NULL, '{');
    json_text(&j, "displayTimeUnit", "ns");
    json_open(&j, "traceEvents", '[');
    metadata(&j, trace, "process_name", 0, sbt_trace_info(trace)->command);
    for (uint32_t t = 0; t < sbt_trace_info(trace)->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event event;
        uint64_t generated_ns =
            0; /* generated traces have no times of day: as if every thread ran from the beginning */
        char name[32];
        snprintf(name, sizeof name, "thread %u", t);
        metadata(&j, trace, "thread_name", t, name);
        sbt_trace_cursor_begin(trace, t, &cursor);
        while (next(r, &cursor, &event)) {
            generated_ns += event.work_ns;
            perfetto_event(&j, trace, t, &event, sbt_trace_info(trace)->generated ? generated_ns : event.at_ns,
                           symbols);
            generated_ns += event.took_ns;
        }
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
    symbols_free(symbols);
}

static const struct {
    const char *name;
    void (*run)(const struct request *r, const struct sbt_trace *trace);
} actions[] = {{"info", info}, {"dump", dump}, {"to-perfetto", to_perfetto}};

static int trace_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    struct request r = {.thread = SBT_TRACE_NONE, .out = stdout};
    const char *action = NULL, *out = NULL;
    size_t i = 0;
    cmd_survive_cut_files();
    for (int option; (option = args_next(&args)) != ARGS_END;) {
        if (option == TRACE_JSON)
            r.json = true;
        else if (option == TRACE_THREAD)
            r.thread = args_uint(&args, "--thread", args.value, 0, SBT_TRACE_NONE - 1);
        else if (option == TRACE_OUT)
            out = args.value;
        else if (action == NULL)
            action = args.value;
        else if (r.path == NULL)
            r.path = args.value;
        else
            cmd_refuse("trace: unexpected argument '%s' (legal: one FILE)", args.value);
    }
    while (action != NULL && i < sizeof actions / sizeof *actions && strcmp(actions[i].name, action) != 0)
        i++;
    if (action == NULL || i == sizeof actions / sizeof *actions)
        cmd_refuse("trace: %s%s%s (legal: info, dump, to-perfetto)",
                   action == NULL ? "no action given" : "unknown action '", action == NULL ? "" : action,
                   action == NULL ? "" : "'");
    if (r.path == NULL)
        cmd_refuse("trace: no file given (legal: subutai trace %s [options] FILE)", action);
    if (out != NULL && actions[i].run != to_perfetto)
        cmd_refuse("trace: --out goes with to-perfetto only");
    if (r.thread != SBT_TRACE_NONE && actions[i].run != dump)
        cmd_refuse("trace: --thread goes with dump only");

    struct sbt_trace_error error;
    struct sbt_trace *trace = sbt_trace_open(r.path, &error);
    if (trace == NULL)
        refuse(&r, &error);
    if (r.thread != SBT_TRACE_NONE && r.thread >= sbt_trace_info(trace)->n_threads)
        cmd_refuse("trace: --thread: %ju is not in the trace, which has %u", (uintmax_t)r.thread,
                   sbt_trace_info(trace)->n_threads);
    struct output *file = out != NULL ? output_open("trace: --out", out, r.path) : NULL;
    if (file != NULL)
        r.out = output_file(file);
    actions[i].run(&r, trace);
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
        "info sums up; dump prints each event, thread by thread; to-perfetto writes JSON that ui.perfetto.dev opens.\n"
        "A file that is damaged, or is no trace, is refused with the byte and the reason.\n",
    .options = trace_options,
    .main = trace_main,
};

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai trace dump` and `to-perfetto`; see trace_events.h. */
#include "trace_events.h"

#include <stdio.h>
#include <string.h>

#include "json_file.h"
#include "symbols.h"

static void number(struct json *j, const char *key, uint32_t n) {
    if (n != SBT_TRACE_NONE)
        json_int(j, key, n);
}

static void dump_json(const struct sbt_trace *trace, uint32_t thread, const struct sbt_trace_event *e) {
    struct json j = json_on(stdout);
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

void trace_dump(const struct trace_request *r, const struct sbt_trace *trace) {
    struct symbols *symbols = symbols_new();
    for (uint32_t t = 0; t < sbt_trace_info(trace)->n_threads; t++) {
        struct sbt_trace_cursor cursor;
        struct sbt_trace_event event;
        if (r->thread != SBT_TRACE_NONE && r->thread != t)
            continue;
        sbt_trace_cursor_begin(trace, t, &cursor);
        while (trace_next(r, &cursor, &event)) {
            if (r->json)
                dump_json(trace, t, &event);
            else
                dump_text(trace, t, &event, symbols);
        }
    }
    symbols_free(symbols);
}

/* In the trace event format: complete events ("X"), microseconds. */
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
    json_text(j, "cat", e->op == SBT_TRACE_OUTSIDE_WAIT ? "outside" : sbt_trace_type_name(e->type));
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

static void perfetto_json(const struct trace_request *r, const struct sbt_trace *trace) {
    struct symbols *symbols = symbols_new();
    struct json j = json_on(r->out);
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
        while (trace_next(r, &cursor, &event)) {
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

void trace_to_perfetto(const struct trace_request *r, const struct sbt_trace *trace) {
    struct trace_reading reading = {progress_begin(r->path), 0, 0};
    struct trace_request shown = *r;
    shown.reading = &reading;
    reading.n_to_read = (r->json ? 1 : 3) * sbt_trace_info(trace)->n_events; /* wakers_find reads it twice */
    (r->json ? perfetto_json : perfetto_write)(&shown, trace);
    progress_end(&reading.line);
}

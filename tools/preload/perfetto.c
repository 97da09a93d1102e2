/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A trace as Perfetto's protocol buffers. Source of the messages and their numbers: google/perfetto,
 * protos/perfetto/trace/trace.proto, trace_packet.proto, interned_data/interned_data.proto and
 * track_event/{track_event,track_descriptor,process_descriptor,thread_descriptor,debug_annotation}.proto.
 * docs/perfetto.md says which are used.
 *
 * The file is a Trace: packets, each a field of it, in one sequence. Names are interned: the first packet that needs a
 * name brings it. A call is a slice, with a packet at its beginning and one at its end. An arrow from a call to a wait
 * that it ended is a flow. Perfetto draws a flow from the slice that began first to the other one, and a wait begins
 * before the call that ends it. So the arrow leads to a slice of its own: the wait's last part, from that call on. The
 * flow's number stands in the packets of the call's beginning and of that part's end.
 */
#include <stdlib.h>
#include <string.h>

#include "protobuf.h"
#include "symbols.h"
#include "trace_events.h"
#include "wakers.h"

enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_TRACK_EVENT = 11, PACKET_INTERNED = 12 };
enum { PACKET_SEQUENCE_FLAGS = 13, PACKET_TRACK_DESCRIPTOR = 60 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 }; /* of PACKET_SEQUENCE_FLAGS */
enum { TRACK_UUID = 1, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };
enum { EVENT_CATEGORIES = 3, EVENT_ANNOTATIONS = 4, EVENT_TYPE = 9, EVENT_NAME = 10, EVENT_TRACK = 11 };
enum { EVENT_FLOWS = 47, EVENT_LAST_FLOWS = 48 };
enum { SLICE_BEGIN = 1, SLICE_END = 2 }; /* of EVENT_TYPE */
enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_ANNOTATIONS = 3, INTERNED_STRINGS = 29 };
enum { INTERNED_NUMBER = 1, INTERNED_TEXT = 2 }; /* of all kinds of names */
enum { ANNOTATION_NAME = 1, ANNOTATION_UINT = 3, ANNOTATION_STRING = 17 };

enum { SEQUENCE = 1, PROCESS_TRACK = 1, FIRST_THREAD_TRACK = 2 };

/* Annotations of events, by their number as an interned name. */
enum { WORK = 1, ORDER, MUTEX, RESULT, PLACE, HOLDER, N_ANNOTATIONS };
static const char *const annotation_names[N_ANNOTATIONS] = {
    [WORK] = "work_ns",  [ORDER] = "order", [MUTEX] = "mutex",
    [RESULT] = "result", [PLACE] = "place", [HOLDER] = "holder"};

enum { OUTSIDE = SBT_TRACE_N_TYPES + 1 }; /* a category, besides those of types: their number plus 1 */

enum { RELEASED = 1 }; /* the name of the part of a wait after what ended it */

enum { N_RESULTS = 4096 }; /* errno values with a name of their own; the others are shown as numbers */

struct name { /* of slices: an operation with an object or thread */
    uint64_t key;
    uint64_t number; /* 0: free */
};

struct writer {
    const struct trace_request *r;
    const struct sbt_trace *trace;
    struct symbols *symbols;
    struct wakers *wakers;
    struct protobuf packet, interned;
    struct name *names; /* a hash table */
    size_t n_names, capacity;
    bool *place_known; /* by site */
    bool result_known[N_RESULTS];
};

static void finish_packet(struct writer *w, size_t opened) {
    protobuf_close(&w->packet, opened);
    if (w->packet.failed || w->interned.failed)
        cmd_refuse("trace: out of memory");
    fwrite(w->packet.bytes, 1, w->packet.n, w->r->out);
    protobuf_clear(&w->packet);
}

static size_t begin_packet(struct writer *w) {
    size_t opened = protobuf_open(&w->packet, TRACE_PACKET);
    protobuf_uint(&w->packet, PACKET_SEQUENCE, SEQUENCE);
    return opened;
}

static void intern(struct writer *w, unsigned kind, uint64_t number, const char *text) {
    size_t opened = protobuf_open(&w->interned, kind);
    protobuf_uint(&w->interned, INTERNED_NUMBER, number);
    protobuf_text(&w->interned, INTERNED_TEXT, text);
    protobuf_close(&w->interned, opened);
}

/* The names that are new go into the packet that is open. */
static void put_interned(struct writer *w) {
    if (w->interned.n > 0)
        protobuf_bytes(&w->packet, PACKET_INTERNED, w->interned.bytes, w->interned.n);
    protobuf_clear(&w->interned);
}

/* ---- tracks, and the names that all traces have ---- */

/* Perfetto takes 0, which generated traces have, for the kernel's idle process. */
static uint32_t process_number(const struct writer *w) {
    uint32_t number = sbt_trace_info(w->trace)->process_id & INT32_MAX;
    return number != 0 ? number : 1;
}

static void put_begin(struct writer *w) {
    const struct sbt_trace_info *info = sbt_trace_info(w->trace);
    size_t packet = begin_packet(w);
    protobuf_uint(&w->packet, PACKET_SEQUENCE_FLAGS, STATE_CLEARED);
    size_t track = protobuf_open(&w->packet, PACKET_TRACK_DESCRIPTOR);
    protobuf_uint(&w->packet, TRACK_UUID, PROCESS_TRACK);
    size_t process = protobuf_open(&w->packet, TRACK_PROCESS);
    protobuf_uint(&w->packet, PROCESS_PID, process_number(w));
    protobuf_text(&w->packet, PROCESS_NAME, info->command);
    protobuf_close(&w->packet, process);
    protobuf_close(&w->packet, track);
    for (unsigned type = 0; type < SBT_TRACE_N_TYPES; type++)
        intern(w, INTERNED_CATEGORIES, type + 1, type == 0 ? "thread" : sbt_trace_type_name(type));
    intern(w, INTERNED_CATEGORIES, OUTSIDE, "outside");
    for (unsigned i = 1; i < N_ANNOTATIONS; i++)
        intern(w, INTERNED_ANNOTATIONS, i, annotation_names[i]);
    intern(w, INTERNED_NAMES, RELEASED, "released");
    w->n_names = RELEASED;
    put_interned(w);
    finish_packet(w, packet);
}

/* The kernel's number of the first thread is the process's. Those of the others are not in the trace. */
static void put_thread(struct writer *w, uint32_t thread) {
    uint32_t routine = sbt_trace_thread_routine(w->trace, thread);
    const char *name =
        routine != SBT_TRACE_NONE ? symbols_name(w->symbols, sbt_trace_site_name(w->trace, routine)) : "";
    char *text = cmd_format("thread %u%s%s", thread, name[0] != '\0' ? " " : "", name);
    size_t packet = begin_packet(w);
    size_t track = protobuf_open(&w->packet, PACKET_TRACK_DESCRIPTOR);
    protobuf_uint(&w->packet, TRACK_UUID, FIRST_THREAD_TRACK + (uint64_t)thread);
    protobuf_uint(&w->packet, TRACK_PARENT, PROCESS_TRACK);
    size_t inner = protobuf_open(&w->packet, TRACK_THREAD);
    protobuf_uint(&w->packet, THREAD_PID, process_number(w));
    protobuf_uint(&w->packet, THREAD_TID, (process_number(w) + thread) & INT32_MAX);
    protobuf_text(&w->packet, THREAD_NAME, text);
    protobuf_close(&w->packet, inner);
    protobuf_close(&w->packet, track);
    finish_packet(w, packet);
    free(text);
}

/* ---- names ---- */

static struct name *find(struct name *names, size_t capacity, uint64_t key) {
    size_t at = (size_t)(key * 0x9E3779B97F4A7C15u >> 32) & (capacity - 1); /* Fibonacci hashing (Knuth) */
    while (names[at].number != 0 && names[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &names[at];
}

static void grow(struct writer *w) {
    size_t capacity = w->capacity > 0 ? 2 * w->capacity : 256;
    struct name *names = cmd_allocate(capacity, sizeof *names);
    for (size_t i = 0; i < w->capacity; i++)
        if (w->names[i].number != 0)
            *find(names, capacity, w->names[i].key) = w->names[i];
    free(w->names);
    w->names = names;
    w->capacity = capacity;
}

static uint64_t name_of(struct writer *w, const struct sbt_trace_event *e) {
    uint32_t about = e->object != SBT_TRACE_NONE ? e->object : e->other;
    uint64_t key = (uint64_t)e->op << 33 | (uint64_t)(e->object != SBT_TRACE_NONE) << 32 | about;
    if (2 * w->n_names >= w->capacity)
        grow(w);
    struct name *name = find(w->names, w->capacity, key);
    if (name->number != 0)
        return name->number;
    *name = (struct name){key, ++w->n_names};
    char *text = about == SBT_TRACE_NONE       ? cmd_format("%s", sbt_trace_op_name(e->op))
                 : e->object != SBT_TRACE_NONE ? cmd_format("%s #%u", sbt_trace_op_name(e->op), about)
                                               : cmd_format("%s thread %u", sbt_trace_op_name(e->op), about);
    intern(w, INTERNED_NAMES, name->number, text);
    free(text);
    return name->number;
}

/* Texts of annotations: results first, and call sites behind them. */
static uint64_t result_of(struct writer *w, uint16_t result) {
    if (result >= N_RESULTS || strerrorname_np(result) == NULL)
        return 0;
    if (!w->result_known[result])
        intern(w, INTERNED_STRINGS, result, strerrorname_np(result));
    w->result_known[result] = true;
    return result;
}

static uint64_t place_of(struct writer *w, uint32_t site) {
    uint64_t number = N_RESULTS + (uint64_t)site;
    if (!w->place_known[site])
        intern(w, INTERNED_STRINGS, number, symbols_name(w->symbols, sbt_trace_site_name(w->trace, site)));
    w->place_known[site] = true;
    return number;
}

/* ---- events ---- */

static void annotate(struct writer *w, unsigned name, unsigned kind, uint64_t value) {
    size_t opened = protobuf_open(&w->packet, EVENT_ANNOTATIONS);
    protobuf_uint(&w->packet, ANNOTATION_NAME, name);
    protobuf_uint(&w->packet, kind, value);
    protobuf_close(&w->packet, opened);
}

/* Opens a packet and the event in it. */
struct opened {
    size_t packet, event;
};

static struct opened begin_event(struct writer *w, uint32_t thread, unsigned type, uint64_t at_ns) {
    size_t packet = begin_packet(w);
    protobuf_uint(&w->packet, PACKET_TIMESTAMP, at_ns);
    protobuf_uint(&w->packet, PACKET_SEQUENCE_FLAGS, NEEDS_STATE);
    size_t event = protobuf_open(&w->packet, PACKET_TRACK_EVENT);
    protobuf_uint(&w->packet, EVENT_TYPE, type);
    protobuf_uint(&w->packet, EVENT_TRACK, FIRST_THREAD_TRACK + (uint64_t)thread);
    return (struct opened){packet, event};
}

static void finish_event(struct writer *w, struct opened opened) {
    protobuf_close(&w->packet, opened.event);
    put_interned(w);
    finish_packet(w, opened.packet);
}

static unsigned category_of(const struct sbt_trace_event *e) {
    return e->op == SBT_TRACE_OUTSIDE_WAIT ? OUTSIDE : e->type + 1u;
}

static void put_slice_begin(struct writer *w, const struct wakers_walk *walk) {
    const struct sbt_trace_event *e = &walk->event;
    struct opened opened = begin_event(w, walk->thread, SLICE_BEGIN, e->at_ns);
    protobuf_uint(&w->packet, EVENT_CATEGORIES, category_of(e));
    protobuf_uint(&w->packet, EVENT_NAME, name_of(w, e));
    annotate(w, WORK, ANNOTATION_UINT, e->work_ns);
    if (e->order != 0)
        annotate(w, ORDER, ANNOTATION_UINT, e->order);
    if (e->op == SBT_TRACE_COND_WAIT && e->other != SBT_TRACE_NONE)
        annotate(w, MUTEX, ANNOTATION_UINT, e->other);
    uint64_t result = result_of(w, e->result);
    if (e->result != 0)
        annotate(w, RESULT, result != 0 ? ANNOTATION_STRING : ANNOTATION_UINT, result != 0 ? result : e->result);
    const uint32_t holder = wakers_holder(w->wakers, walk->thread, walk->index);
    if (holder != SBT_TRACE_NONE) /* of a call for a lock that timed out */
        annotate(w, HOLDER, ANNOTATION_UINT, holder);
    if (e->site != SBT_TRACE_NONE)
        annotate(w, PLACE, ANNOTATION_STRING, place_of(w, e->site));
    for (uint32_t flow; (flow = wakers_ended(w->wakers, walk->thread, walk->index)) != 0;)
        protobuf_fixed64(&w->packet, EVENT_FLOWS, flow);
    finish_event(w, opened);
}

/* The part of a wait after what ended it, to which the arrow leads; within the wait's slice. */
static void put_released(struct writer *w, const struct wakers_walk *walk, uint32_t flow) {
    const struct sbt_trace_event *e = &walk->event;
    uint64_t release_ns = wakers_release_ns(w->wakers, flow);
    struct opened opened = begin_event(w, walk->thread, SLICE_BEGIN, release_ns > e->at_ns ? release_ns : e->at_ns);
    protobuf_uint(&w->packet, EVENT_CATEGORIES, category_of(e));
    protobuf_uint(&w->packet, EVENT_NAME, RELEASED);
    finish_event(w, opened);
    opened = begin_event(w, walk->thread, SLICE_END, e->at_ns + e->took_ns);
    protobuf_fixed64(&w->packet, EVENT_LAST_FLOWS, flow);
    finish_event(w, opened);
}

static void put_slice_end(struct writer *w, const struct wakers_walk *walk) {
    uint32_t flow = wakers_wait(w->wakers, walk->thread, walk->index);
    if (flow != 0)
        put_released(w, walk, flow);
    finish_event(w, begin_event(w, walk->thread, SLICE_END, walk->event.at_ns + walk->event.took_ns));
}

void perfetto_write(const struct trace_request *r, const struct sbt_trace *trace) {
    struct writer *w = cmd_allocate(1, sizeof *w);
    *w = (struct writer){.r = r, .trace = trace, .symbols = symbols_new()};
    w->wakers = wakers_find(r, trace);
    w->place_known = cmd_allocate((size_t)sbt_trace_info(trace)->n_sites + 1, sizeof *w->place_known);
    w->result_known[0] = true; /* success has no annotation */
    put_begin(w);
    uint32_t thread = SBT_TRACE_NONE;
    for (struct wakers_walk walk = {0}; wakers_read(r, trace, &walk);) {
        if (walk.thread != thread)
            put_thread(w, thread = walk.thread);
        put_slice_begin(w, &walk);
        put_slice_end(w, &walk);
    }
    wakers_free(w->wakers);
    symbols_free(w->symbols);
    protobuf_free(&w->packet);
    protobuf_free(&w->interned);
    free(w->names);
    free(w->place_known);
    free(w);
}

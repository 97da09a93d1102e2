/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * parity FILE [--swap]: each NI's requests of a live run (--requests), fed to the simulator in their order. The packets
 * that leave the simulator's NI must be the live NI's, in the same order, each after the same request: so grants, too.
 * What the live engine stepped again, because it had been held, is not in the file: the simulator's own holding and
 * stepping again has to come to the same.
 *
 * --swap, which shows that this can fail: two locks of the same mutex by different threads, the one right after the
 * other, change places.
 *
 * Exit status 0: the same; 1: not, with the first difference; 2: the file cannot be used.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ni/requests.h"
#include "packet.h"
#include "sim.h"

/* A live NI's records. */
struct stream {
    struct ni_requests_header first;
    struct ni_requests_record *record;
    size_t n, next; /* next: to be compared */
};

static struct stream *streams;
static size_t n_streams;

struct watch {
    struct stream *stream;
    struct hw_layout layout;
    uint64_t n_requests, n_answers, n_grants, n_held;
    bool differs;
};

static void refuse(const char *what) {
    fprintf(stderr, "parity: %s\n", what);
    exit(2);
}

/* ---- the file ---- */

static struct stream *stream_of(const struct ni_requests_header *h) {
    for (size_t i = 0; i < n_streams; i++)
        if (streams[i].first.process == h->process && streams[i].first.start_ns == h->start_ns &&
            streams[i].first.tile == h->tile)
            return &streams[i];
    streams = realloc(streams, (n_streams + 1) * sizeof *streams);
    if (streams == NULL)
        refuse("out of memory");
    streams[n_streams] = (struct stream){.first = *h};
    return &streams[n_streams++];
}

static void load(const char *path) {
    struct ni_requests_header h;
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        refuse("the file cannot be opened");
    for (size_t n; (n = fread(&h, 1, sizeof h, in)) > 0;) {
        if (n < sizeof h || h.magic != NI_REQUESTS_MAGIC || h.n_records == 0 || h.n_records > NI_REQUESTS_BLOCK)
            refuse("the file is none of --requests");
        struct stream *s = stream_of(&h);
        s->record = realloc(s->record, (s->n + h.n_records) * sizeof *s->record);
        if (s->record == NULL || fread(&s->record[s->n], sizeof *s->record, h.n_records, in) != h.n_records)
            refuse("the file ends within a block");
        s->n += h.n_records;
    }
    fclose(in);
    if (n_streams == 0)
        refuse("the file is empty");
}

static struct hw_packet packet_of(const struct ni_requests_record *r) {
    return (struct hw_packet){{r->flit[0], r->flit[1], r->flit[2]}};
}

/* ---- one NI ---- */

static void print(const char *side, const struct hw_layout *layout, const struct hw_packet *packet) {
    if (packet == NULL) {
        printf("# %s: nothing\n", side);
        return;
    }
    struct hw_message m = hw_packet_decode(layout, packet);
    printf("# %s: operation %d argument %" PRIu32 " primitive %08" PRIx32 " thread %u\n", side, (int)m.op, m.argument,
           m.primitive, m.thread);
}

static void differ(struct watch *w, const struct hw_packet *live, const struct hw_packet *sim) {
    if (!w->differs) {
        printf("# process %" PRIu32 ", NI %u, record %zu\n", w->stream->first.process, w->stream->first.tile,
               w->stream->next);
        print("live", &w->layout, live);
        print("sim", &w->layout, sim);
    }
    w->differs = true;
}

static const struct ni_requests_record *next_answer(const struct stream *s) {
    return s->next < s->n && s->record[s->next].kind == NI_REQUESTS_LEFT ? &s->record[s->next] : NULL;
}

static void on_packet(void *context, uint32_t ni, const struct hw_packet *packet) {
    struct watch *w = context;
    const struct ni_requests_record *r = next_answer(w->stream);
    struct hw_packet live;
    if (r != NULL)
        live = packet_of(r);
    if (r == NULL || ni != w->stream->first.tile || memcmp(live.flit, packet->flit, sizeof live.flit) != 0) {
        differ(w, r != NULL ? &live : NULL, packet);
        return;
    }
    w->stream->next++;
    w->n_answers++;
    w->n_grants += hw_packet_op(packet) == HW_OP_GRANT;
}

static void replay(struct watch *w) {
    struct stream *s = w->stream;
    struct sim_error error;
    struct sim_config config = sim_config_default();
    bool again = (s->first.flags & NI_REQUESTS_FULL_AGAIN) != 0;
    if (again != ((s->first.flags & NI_REQUESTS_NO_RESERVE) != 0))
        refuse("the simulator has no such machine: --queue-full again without --strict-paper");
    config.width = s->first.width;
    config.height = s->first.height;
    config.n_control = s->first.n_control;
    config.n_queue = s->first.n_queue;
    config.strict_paper = again;
    config.context = w;
    config.on_packet = on_packet;
    struct sim *sim = sim_new(&config, &error);
    if (sim == NULL || !hw_layout_init(&w->layout, config.width * config.height, config.n_control))
        refuse("the simulator has no such machine");
    while (!w->differs && s->next < s->n) {
        struct hw_packet live = packet_of(&s->record[s->next++]);
        if (s->record[s->next - 1].kind != NI_REQUESTS_CAME) {
            differ(w, &live, NULL);
            break;
        }
        w->n_requests++;
        if (!sim_feed(sim, &live))
            refuse("a request for an NI that does not exist");
    }
    w->n_held += sim_summary(sim).n_held;
    sim_free(sim);
}

static bool lock_of(const struct ni_requests_record *r) {
    struct hw_packet packet = packet_of(r);
    return r->kind == NI_REQUESTS_CAME && hw_packet_op(&packet) == HW_OP_LOCK;
}

/* Two locks that are both queued have no packet between them. */
static void swap(struct stream *s) {
    for (size_t i = 0; i + 1 < s->n; i++) {
        struct ni_requests_record a = s->record[i], b = s->record[i + 1];
        if (lock_of(&a) && lock_of(&b) && a.flit[1] == b.flit[1] && a.flit[2] != b.flit[2]) {
            s->record[i] = b;
            s->record[i + 1] = a;
            i++;
        }
    }
}

int main(int argc, char **argv) {
    struct watch w = {.differs = false};
    if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--swap") != 0))
        refuse("usage: parity FILE [--swap]");
    load(argv[1]);
    for (size_t i = 0; i < n_streams && !w.differs; i++) {
        w.stream = &streams[i];
        if (argc == 3)
            swap(w.stream);
        replay(&w);
    }
    printf("%zu NIs, %" PRIu64 " requests, %" PRIu64 " answers, %" PRIu64 " grants, %" PRIu64 " held: %s\n", n_streams,
           w.n_requests, w.n_answers, w.n_grants, w.n_held, w.differs ? "different" : "the same");
    return w.differs;
}

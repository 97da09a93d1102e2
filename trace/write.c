/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whole traces from a generator: each thread gets an encoder at its first event. The file gets its last block only if
 * all blocks before it were written.
 */
#include "encode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

struct sbt_trace_writer {
    int fd, error; /* the first error; nothing is written after it */
    bool timed;    /* events keep their times of day */
    struct trace_encoder **encoders;
    uint32_t n_encoders;
    uint32_t n_objects, n_sites, n_threads;
    uint64_t n_events, n_blocks;
};

static int write_all(struct sbt_trace_writer *w, struct iovec *parts, int n_parts) {
    while (w->error == 0 && n_parts > 0) {
        ssize_t n = writev(w->fd, parts, n_parts);
        if (n < 0 && errno != EINTR)
            w->error = errno;
        for (; n > 0 || (n_parts > 0 && parts->iov_len == 0); parts++, n_parts--) {
            if ((size_t)n < parts->iov_len) {
                parts->iov_base = (char *)parts->iov_base + n;
                parts->iov_len -= (size_t)n;
                break;
            }
            n -= (ssize_t)parts->iov_len;
        }
    }
    return w->error;
}

static void raise_to(uint32_t *bound, uint32_t value) {
    if (value > *bound)
        *bound = value;
}

static int flush(struct sbt_trace_writer *w, struct trace_encoder *e) {
    struct trace_block header;
    if (e->n_events == 0)
        return w->error;
    trace_encoder_header(e, &header);
    raise_to(&w->n_objects, header.n_objects);
    raise_to(&w->n_sites, header.n_sites);
    raise_to(&w->n_threads, header.n_threads);
    struct iovec parts[] = {{&header, sizeof header},
                            {e->events, e->n_event_bytes},
                            {e->templates, e->n_templates * sizeof e->templates[0]},
                            {e->definitions, e->n_definition_bytes}};
    write_all(w, parts, 4);
    w->n_events += e->n_events;
    w->n_blocks++;
    trace_encoder_next(e);
    return w->error;
}

static uint8_t *put_text(uint8_t *at, uint8_t what, const char *text, size_t most) {
    size_t n = strnlen(text, most);
    *at++ = what;
    at = trace_put(at, n);
    memcpy(at, text, n);
    return at + n;
}

/* The preamble, and the first block with these definitions. */
static struct sbt_trace_writer *create(const char *path, uint16_t flags, const uint8_t *definitions, size_t n) {
    struct sbt_trace_writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->timed = flags != TRACE_GENERATED;
    w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        free(w);
        return NULL;
    }
    struct trace_preamble preamble = TRACE_PREAMBLE(flags);
    struct trace_block header;
    trace_definitions_header(&header, TRACE_BLOCK_BEGIN, definitions, (uint32_t)n);
    struct iovec parts[] = {
        {&preamble, sizeof preamble}, {&header, sizeof header}, {(void *)(uintptr_t)definitions, n}};
    if (write_all(w, parts, 3) == 0)
        return w;
    errno = w->error;
    close(w->fd);
    free(w);
    return NULL;
}

struct sbt_trace_writer *sbt_trace_create(const char *path, const char *command) {
    uint8_t definitions[TRACE_MAX_TEXT + 16];
    uint8_t *at = put_text(definitions, TRACE_DEFINE_COMMAND, command, TRACE_MAX_TEXT);
    return create(path, TRACE_GENERATED, definitions, (size_t)(at - definitions));
}

struct sbt_trace_writer *sbt_trace_create_timed(const char *path, const char *command, const char *engine) {
    uint8_t definitions[TRACE_MAX_TEXT + 128];
    uint8_t *at = put_text(definitions, TRACE_DEFINE_COMMAND, command, TRACE_MAX_TEXT);
    at = put_text(at, TRACE_DEFINE_ENGINE, engine, 64);
    *at++ = TRACE_DEFINE_PROCESS;
    at = trace_put(trace_put(trace_put(at, 1), 0), 0);
    return create(path, 0, definitions, (size_t)(at - definitions));
}

static struct trace_encoder *encoder_of(struct sbt_trace_writer *w, uint32_t thread) {
    if (thread >= w->n_encoders) {
        uint32_t n = thread + 1 > 2 * w->n_encoders ? thread + 1 : 2 * w->n_encoders;
        struct trace_encoder **longer = realloc(w->encoders, n * sizeof(struct trace_encoder *));
        if (longer == NULL)
            return NULL;
        memset(longer + w->n_encoders, 0, (n - w->n_encoders) * sizeof(struct trace_encoder *));
        w->encoders = longer;
        w->n_encoders = n;
    }
    if (w->encoders[thread] == NULL && (w->encoders[thread] = calloc(1, sizeof(struct trace_encoder))) != NULL)
        w->encoders[thread]->thread = thread;
    return w->encoders[thread];
}

int sbt_trace_append(struct sbt_trace_writer *w, uint32_t thread, const struct sbt_trace_event *event) {
    if (event->op >= SBT_TRACE_N_OPS || event->type >= SBT_TRACE_N_TYPES || thread >= SBT_TRACE_NONE / 2)
        return EINVAL;
    struct trace_encoder *e = encoder_of(w, thread);
    if (e == NULL)
        return ENOMEM;
    if (!trace_encoder_has_room(e))
        flush(w, e);
    struct sbt_trace_event written = *event;
    if (!w->timed)
        written.at_ns = e->clock_ns + event->work_ns;
    trace_encode(e, &written);
    return w->error;
}

int sbt_trace_finish(struct sbt_trace_writer *w) {
    uint64_t duration_ns = 0;
    for (uint32_t t = 0; t < w->n_encoders; t++) {
        if (w->encoders[t] == NULL)
            continue;
        flush(w, w->encoders[t]);
        if (w->encoders[t]->clock_ns > duration_ns)
            duration_ns = w->encoders[t]->clock_ns;
        free(w->encoders[t]);
    }
    uint8_t definitions[64], *at = definitions;
    *at++ = TRACE_DEFINE_TOTALS;
    at = trace_put(trace_put(trace_put(at, w->n_events), w->n_blocks), 0);
    struct trace_block header;
    trace_definitions_header(&header, TRACE_BLOCK_END, definitions, (uint32_t)(at - definitions));
    header.clock_ns = duration_ns;
    header.n_objects = w->n_objects;
    header.n_sites = w->n_sites;
    header.n_threads = w->n_threads;
    header.header_sum = trace_header_sum(&header);
    struct iovec parts[] = {{&header, sizeof header}, {definitions, (size_t)(at - definitions)}};
    write_all(w, parts, 2);
    int error = w->error;
    if (close(w->fd) != 0 && error == 0)
        error = errno;
    free(w->encoders);
    free(w);
    return error;
}

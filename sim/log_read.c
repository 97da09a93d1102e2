/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mesh.h"
#include "spm.h"

#define FAIL(error, ...) (snprintf((error)->text, sizeof(error)->text, __VA_ARGS__), false)

static uint32_t n_tiles(const struct hw_log_header *h) {
    return (uint32_t)h->width * h->height;
}

static bool is_block(const struct hw_log_header *h) {
    if (h->magic != HW_LOG_MAGIC || h->width > HW_MESH_MAX_SIDE || h->height > HW_MESH_MAX_SIDE ||
        h->tile >= n_tiles(h))
        return false;
    if (h->block == HW_LOG_STATE)
        return h->n_bytes == sizeof(struct hw_log_state) + hw_spm_n_bytes(h->n_control, h->n_queue) &&
               h->n_bytes <= sizeof(struct hw_log_state) + HW_MAX_SPM_BYTES;
    return h->block == HW_LOG_RECORDS && h->n_bytes != 0 && h->n_bytes % sizeof(struct hw_log_record) == 0 &&
           h->n_bytes / sizeof(struct hw_log_record) <= HW_LOG_MAX_RECORDS;
}

/* The process of a block. NULL: no memory. */
static struct sim_log_process *process_of(struct sim_log *log, const struct hw_log_header *h) {
    for (uint32_t i = log->n_processes; i-- > 0;)
        if (log->process[i].first.process == h->process && log->process[i].first.start_ns == h->start_ns)
            return &log->process[i];
    struct sim_log_process *all = realloc(log->process, (log->n_processes + 1) * sizeof *all);
    if (all == NULL)
        return NULL;
    log->process = all;
    all[log->n_processes] = (struct sim_log_process){.first = *h};
    return &all[log->n_processes++];
}

static bool is_same_machine(const struct hw_log_header *a, const struct hw_log_header *b) {
    return a->width == b->width && a->height == b->height && a->n_control == b->n_control && a->n_queue == b->n_queue &&
           a->flags == b->flags && a->time_scale == b->time_scale;
}

static bool add_records(struct sim_log_process *p, const struct hw_log_header *h, const struct hw_log_record *record) {
    size_t n = h->n_bytes / sizeof *record;
    if (p->n_entries + n > p->capacity) {
        size_t capacity = p->capacity == 0 ? 1024 : 2 * p->capacity;
        struct sim_log_entry *all = realloc(p->entry, capacity * sizeof *all);
        if (all == NULL)
            return false;
        p->entry = all;
        p->capacity = capacity;
    }
    for (size_t i = 0; i < n; i++) /* waits in the network are in the other records' times */
        if (record[i].kind != HW_LOG_CROSSED)
            p->entry[p->n_entries++] = (struct sim_log_entry){record[i], h->tile, SIM_LOG_END};
    return true;
}

static bool add_state(struct sim_log_process *p, const struct hw_log_header *h, const uint8_t *bytes) {
    struct sim_log_begin *all = realloc(p->begin, (p->n_begins + 1) * sizeof *all);
    if (all == NULL)
        return false;
    p->begin = all;
    struct sim_log_begin *begin = &all[p->n_begins];
    size_t n = h->n_bytes - sizeof begin->state;
    begin->tile = h->tile;
    begin->bytes = malloc(n);
    if (begin->bytes == NULL)
        return false;
    memcpy(&begin->state, bytes, sizeof begin->state);
    memcpy(begin->bytes, bytes + sizeof begin->state, n);
    p->n_begins++;
    return true;
}

static bool read_blocks(struct sim_log *log, FILE *in, struct sim_error *error) {
    static union {
        struct hw_log_record record[HW_LOG_MAX_RECORDS];
        uint8_t bytes[sizeof(struct hw_log_state) + HW_MAX_SPM_BYTES];
    } body;
    struct hw_log_header h;
    for (size_t n; (n = fread(&h, 1, sizeof h, in)) > 0;) {
        if (n < sizeof h || !is_block(&h))
            return FAIL(error, "not a request log");
        if (fread(&body, 1, h.n_bytes, in) != h.n_bytes)
            return FAIL(error, "it ends within a block");
        struct sim_log_process *p = process_of(log, &h);
        if (p != NULL && !is_same_machine(&p->first, &h))
            return FAIL(error, "damaged: two machines in process %u", h.process);
        if (p == NULL || !(h.block == HW_LOG_STATE ? add_state(p, &h, body.bytes) : add_records(p, &h, body.record)))
            return FAIL(error, "out of memory");
    }
    if (ferror(in))
        return FAIL(error, "%s", strerror(errno));
    return log->n_processes != 0 || FAIL(error, "it is empty");
}

static int by_order(const void *a, const void *b) {
    const struct sim_log_entry *x = a, *y = b;
    return x->record.order < y->record.order ? -1 : x->record.order > y->record.order;
}

/* Find the next record of each NI, and refuse what would have no place. */
static bool link_entries(struct sim_log_process *p, struct sim_error *error) {
    static size_t following[HW_MESH_MAX_SIDE * HW_MESH_MAX_SIDE];
    if (p->n_entries != 0) /* a forked child that was killed may have states only */
        qsort(p->entry, p->n_entries, sizeof *p->entry, by_order);
    for (uint32_t i = 0; i < n_tiles(&p->first); i++)
        following[i] = SIM_LOG_END;
    for (size_t i = p->n_entries; i-- > 0;) {
        struct sim_log_entry *e = &p->entry[i];
        if ((e->record.kind != HW_LOG_CAME && e->record.kind != HW_LOG_LEFT) ||
            (uint16_t)e->record.flit[2] >= n_tiles(&p->first))
            return FAIL(error, "damaged: a record without a meaning in process %u", p->first.process);
        if (i + 1 < p->n_entries && e->record.order == e[1].record.order)
            return FAIL(error, "damaged: two records with one number in process %u", p->first.process);
        e->next = following[e->tile];
        following[e->tile] = i;
    }
    return true;
}

struct sim_log *sim_log_open(const char *path, struct sim_error *error) {
    struct sim_log *log = calloc(1, sizeof *log);
    FILE *in = log != NULL ? fopen(path, "rb") : NULL;
    bool ok = in != NULL ? read_blocks(log, in, error) : FAIL(error, "%s", strerror(errno));
    for (uint32_t i = 0; ok && i < log->n_processes; i++)
        ok = link_entries(&log->process[i], error);
    if (in != NULL)
        fclose(in);
    if (!ok && log != NULL)
        sim_log_close(log);
    return ok ? log : NULL;
}

void sim_log_close(struct sim_log *log) {
    for (uint32_t i = 0; i < log->n_processes; i++) {
        struct sim_log_process *p = &log->process[i];
        for (size_t k = 0; k < p->n_begins; k++)
            free(p->begin[k].bytes);
        free(p->begin);
        free(p->entry);
    }
    free(log->process);
    free(log);
}

uint32_t sim_log_n_processes(const struct sim_log *log) {
    return log->n_processes;
}

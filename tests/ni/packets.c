/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * packets FILE: the packets that crossed the mesh in a live run (--requests, with statistics or a time scale), sent
 * once more by one thread and in the order of their times, each process's through a mesh of its own. Prints how many
 * there are, for how long they waited live, for how long in order, and whether the two agree; and for how long they
 * would have waited at ports that serve them to the cycle (lib/fifo_mesh.h).
 *
 * At one port the sum of all waits does not depend on the order of coming (emu_hw/calendar.h). Which packet waits does,
 * and so when each comes to its next port. So the sums may differ by 2 %, and by 60 cycles: 20 packets of which the one
 * goes on its way alone and the other meets one more.
 *
 * Exit status 0: they agree; 1: they do not; 2: the file cannot be used.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fifo_mesh.h"
#include "request_log.h"
#include "slotted.h"

static struct process {
    struct hw_log_header first;
    struct fifo_packet *packet;
    uint32_t n;
    uint64_t waited;
} * processes;
static size_t n_processes;

static void refuse(const char *what) {
    fprintf(stderr, "packets: %s\n", what);
    exit(2);
}

static struct process *process_of(const struct hw_log_header *h) {
    for (size_t i = 0; i < n_processes; i++)
        if (processes[i].first.process == h->process && processes[i].first.start_ns == h->start_ns)
            return &processes[i];
    processes = realloc(processes, (n_processes + 1) * sizeof *processes);
    if (processes == NULL)
        refuse("out of memory");
    processes[n_processes] = (struct process){.first = *h};
    return &processes[n_processes++];
}

static void add(struct process *p, const struct hw_log_record *r) {
    if (r->kind != HW_LOG_CROSSED)
        return;
    if ((p->n & (p->n - 1)) == 0) /* a power of two: full */
        p->packet = realloc(p->packet, (p->n == 0 ? 1 : 2 * (size_t)p->n) * sizeof *p->packet);
    if (p->packet == NULL)
        refuse("out of memory");
    p->packet[p->n++] = (struct fifo_packet){r->from_cycles, r->flit[0], r->flit[1], (uint32_t)r->to_cycles};
    p->waited += r->to_cycles;
}

static void load(const char *path) {
    struct hw_log_header h;
    struct hw_log_record r;
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        refuse("the file cannot be opened");
    while (fread(&h, sizeof h, 1, in) == 1) {
        if (h.magic != HW_LOG_MAGIC)
            refuse("the file is no request log");
        for (uint32_t n = 0; h.block == HW_LOG_RECORDS && n < h.n_bytes; n += (uint32_t)sizeof r) {
            if (fread(&r, sizeof r, 1, in) != 1)
                refuse("the file ends within a block");
            add(process_of(&h), &r);
        }
        if (h.block != HW_LOG_RECORDS)
            fseek(in, h.n_bytes, SEEK_CUR);
    }
    fclose(in);
}

static int by_time(const void *a, const void *b) {
    const struct fifo_packet *x = a, *y = b;
    return x->at_cycles < y->at_cycles ? -1 : x->at_cycles > y->at_cycles;
}

/* The sum of the waits of packets that are sent in the order of the array. */
static double send_all(const struct hw_mesh_config *config, const struct fifo_packet *packets, uint32_t n) {
    struct hw_slotted net;
    uint64_t *memory = aligned_alloc(64, (hw_slotted_bytes(config->width, config->height) + 63) / 64 * 64);
    double sum = 0;
    if (memory == NULL)
        refuse("out of memory");
    memset(memory, 0, hw_slotted_bytes(config->width, config->height));
    if (!hw_slotted_init(&net, config, memory))
        refuse("no such mesh");
    for (uint32_t i = 0; i < n; i++)
        sum += hw_slotted_send(&net, packets[i].from, packets[i].to, packets[i].at_cycles).contention_cycles;
    free(memory);
    return sum;
}

int main(int argc, char **argv) {
    uint64_t n = 0;
    double live = 0, in_order = 0, to_the_cycle = 0;
    if (argc != 2)
        refuse("usage: packets FILE");
    load(argv[1]);
    for (size_t i = 0; i < n_processes; i++) {
        struct process *p = &processes[i];
        struct hw_mesh_config config = hw_mesh_config_default();
        config.width = p->first.width;
        config.height = p->first.height;
        if (p->n != 0)
            qsort(p->packet, p->n, sizeof *p->packet, by_time);
        n += p->n;
        live += (double)p->waited;
        in_order += send_all(&config, p->packet, p->n);
        to_the_cycle += (double)fifo_mesh(&config, p->packet, p->n);
    }
    bool agree = fabs(live - in_order) <= 0.02 * in_order + 60;
    printf("%" PRIu64 " packets, %.0f cycles of contention, %.0f in order, %.0f to the cycle: %s\n", n, live, in_order,
           to_the_cycle, agree ? "the same" : "different");
    return !agree;
}

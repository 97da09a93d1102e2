/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * packets FILE: the packets that crossed the mesh in a live run (--requests, with statistics or a time scale), given
 * once more to the reference, in which each port serves them in the order of time. Prints how many there are, for how
 * long they waited live, for how long in the reference, and whether the two agree. Each process has a mesh of its own.
 *
 * The sums agree within 10 %, and five standard deviations. Live a packet waits for whole slots of three cycles, or not
 * at all, where it waits w cycles in the reference. The mean is the same. The variance is w (3 - w), at most 2 w, for a
 * packet that meets one other; where many meet it is less. So the deviation of a sum W is below sqrt(2 W). The least
 * that is allowed is 300 cycles: that many are 100 pairs that are a cycle closer, or farther apart, after their turns.
 *
 * Exit status 0: they agree; 1: they do not; 2: the file cannot be used.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/fifo_mesh.h"
#include "request_log.h"

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

int main(int argc, char **argv) {
    uint64_t n = 0;
    double live = 0, in_order = 0;
    if (argc != 2)
        refuse("usage: packets FILE");
    load(argv[1]);
    for (size_t i = 0; i < n_processes; i++) {
        struct hw_mesh_config config = hw_mesh_config_default();
        config.width = processes[i].first.width;
        config.height = processes[i].first.height;
        n += processes[i].n;
        live += (double)processes[i].waited;
        in_order += (double)fifo_mesh(&config, processes[i].packet, processes[i].n);
    }
    double allowed = 0.1 * in_order + 5 * sqrt(2 * in_order);
    bool agree = fabs(live - in_order) <= (allowed > 300 ? allowed : 300);
    printf("%" PRIu64 " packets, %.0f cycles of contention, %.0f in order: %s\n", n, live, in_order,
           agree ? "the same" : "different");
    return !agree;
}

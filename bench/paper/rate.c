/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How fast the model itself runs on this machine: requests through state machines, packets through the mesh, and both
 * together as a simulator does it. Usage: hardware-rate [millions of events for each line].
 */
#include "fsm.h"
#include "mesh.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { N_TILES = 64 };

static struct hw_ni nis[N_TILES];
static uint32_t ids[N_TILES];
static struct hw_output *outputs;
static struct hw_mesh mesh;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static void check(bool ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "hardware-rate: %s\n", what);
        exit(1);
    }
}

static void open_chip(uint32_t load_permille) {
    struct hw_config config = hw_config_default();
    struct hw_mesh_config mesh_config = hw_mesh_config_default();
    mesh_config.load_permille = load_permille;
    for (uint32_t i = 0; i < N_TILES; i++) {
        uint8_t *bytes = malloc(hw_config_spm_bytes(&config));
        check(bytes && hw_ni_init(&nis[i], &config, i, bytes), "no machine");
        if (!outputs)
            outputs = calloc(hw_ni_max_outputs(&nis[i]), sizeof *outputs);
        struct hw_packet packet = hw_packet_alloc(&nis[i].spm.layout, HW_OP_ALLOC_MUTEX, i, 0, i, 0);
        struct hw_step step;
        check(outputs != NULL, "no memory");
        hw_fsm_step(&nis[i], &packet, &step, outputs);
        ids[i] = outputs[0].packet.flit[1];
    }
    struct hw_port *ports = malloc(hw_mesh_bytes(8, 8));
    check(ports && hw_mesh_init(&mesh, &mesh_config, ports), "no mesh");
}

static void close_chip(void) {
    for (uint32_t i = 0; i < N_TILES; i++)
        free(nis[i].spm.bytes);
    free(mesh.ports);
}

/* Random cores lock and unlock random mutexes; a tenth of the locks meets a held one. */
static uint64_t run(uint64_t n, bool with_fsm, bool with_mesh) {
    uint64_t random = 1, time = 0, n_granted = 0;
    const struct hw_layout *layout = &nis[0].spm.layout;
    uint8_t depth[N_TILES] = {0};
    for (uint64_t i = 0; i < n; i++, time += 4) {
        uint32_t core = draw(&random) % N_TILES, home = draw(&random) % N_TILES;
        enum hw_op op = depth[home] == 0 || (depth[home] < 4 && draw(&random) % 8 == 0) ? HW_OP_LOCK : HW_OP_UNLOCK;
        depth[home] = (uint8_t)(depth[home] + (op == HW_OP_LOCK ? 1 : -1));
        uint64_t at = time;
        if (with_mesh)
            at = hw_mesh_send(&mesh, core, home, at, NULL).head_cycles;
        if (with_fsm) {
            struct hw_packet packet = hw_packet_request(layout, op, ids[home], core, 0);
            struct hw_step step;
            hw_fsm_step(&nis[home], &packet, &step, outputs);
            for (uint32_t k = 0; k < step.n_outputs; k++, n_granted++)
                if (with_mesh)
                    hw_mesh_send(&mesh, home, hw_packet_decode(layout, &outputs[k].packet).destination,
                                 at + outputs[k].at_cycles, NULL);
        }
    }
    return n_granted;
}

int main(int argc, char **argv) {
    uint64_t n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 2) * 1000000;
    check(n > 0, "usage: hardware-rate [millions of events]");
    static const struct {
        const char *name;
        bool fsm, mesh;
        uint32_t load_permille;
    } lines[] = {{"state machine", true, false, 0},
                 {"mesh", false, true, 0},
                 {"state machine and mesh", true, true, 0},
                 {"the same, links loaded 30 %", true, true, 300}};
    printf("%-30s %14s %10s\n", "", "requests/s", "ns each");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        open_chip(lines[i].load_permille);
        double start = now();
        uint64_t n_granted = run(n, lines[i].fsm, lines[i].mesh);
        double seconds = now() - start;
        check(!lines[i].fsm || n_granted > n / 3, "grants are missing");
        printf("%-30s %14.0f %10.1f\n", lines[i].name, (double)n / seconds, seconds / (double)n * 1e9);
        close_chip();
    }
    free(outputs);
    return 0;
}

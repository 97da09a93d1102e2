/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/memory.h"
#include "wait/adapt.h"
#include "wait/yield_gate.h"

#define CALIBRATION_NS 30000  /* at each timed start under `ni`; the result is good to about a thousandth */
#define SLEEP_MARGIN_NS 80000 /* a sleep may end this late, so the rest of a wait is spun */

#define TOUCHED_MOST 8388608 /* bytes of a mesh of which all pages are touched at the start */

struct ni_machine ni_machine;

static uint16_t *tile_of; /* the map: tile of the n-th thread, n modulo n_mapped */
static uint32_t n_mapped;

/* ---- time ---- */

static uint64_t ns_to_cycles(uint64_t ns) {
    return ns * ni_machine.config.timing.clock_mhz / 1000;
}

static void calibrate(void) {
    uint64_t ns = sbt_now_ns(), t = ni_ticks(), end;
    do
        end = sbt_now_ns();
    while (end - ns < CALIBRATION_NS);
    t = ni_ticks() - t;
    ni_machine.tick_mult = (ns_to_cycles(end - ns) << 32) / (t != 0 ? t : 1);
}

static uint64_t wall_ns(uint64_t cycles) {
    return hw_timing_wall_ns(&ni_machine.config.timing, cycles, ni_machine.time_scale);
}

static uint64_t cycles_of_wall(uint64_t ns) {
    return hw_timing_cycles_of_wall(&ni_machine.config.timing, ns, ni_machine.time_scale);
}

uint64_t ni_scaled_cycles(void) {
    return cycles_of_wall(sbt_now_ns() - ni_machine.start_ns);
}

uint64_t ni_call_cycles(uint64_t *rest_ns) {
    *rest_ns = 0;
    if (ni_machine.time_scale == 0)
        return ni_now_cycles();
    uint64_t ns = sbt_now_ns() - ni_machine.start_ns, cycles = cycles_of_wall(ns);
    *rest_ns = ns - (wall_ns(cycles) < ns ? wall_ns(cycles) : ns);
    return cycles;
}

uint64_t ni_wait_until(uint64_t cycles, uint64_t rest_ns) {
    uint64_t at = ni_machine.start_ns + wall_ns(cycles) + rest_ns, now;
    while ((now = sbt_now_ns()) < at) {
        if (at - now > 2 * SLEEP_MARGIN_NS)
            sbt_pause_ns((long)(at - now - SLEEP_MARGIN_NS));
        else if (sbt_cores_to_spare())
            sbt_cpu_relax();
        else
            sbt_yield_gate_offer(&sbt_yield_gate);
    }
    return now - at;
}

/* ---- map ---- */

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void map_random(uint64_t seed) {
    uint32_t n = ni_machine.n_tiles;
    uint64_t x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (uint32_t i = n - 1; i > 0; i--) {
        uint32_t j = (uint32_t)(next_random(&x) % (i + 1));
        uint16_t swap = tile_of[i];
        tile_of[i] = tile_of[j];
        tile_of[j] = swap;
    }
}

/* Read decimal tile numbers between white space. NULL, or what is wrong. */
static const char *map_file(const char *path) {
    char text[4096];
    uint32_t n = 0, value = 0, capacity = n_mapped;
    bool digits = false;
    long file = sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file < 0)
        return "cannot be opened";
    const char *wrong = NULL;
    for (long got; wrong == NULL && (got = sbt_syscall3(SYS_read, file, text, sizeof text)) > 0;)
        for (long i = 0; i < got && wrong == NULL; i++) {
            bool space = text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r';
            if (text[i] >= '0' && text[i] <= '9') {
                value = value * 10 + (uint32_t)(text[i] - '0');
                digits = true;
                if (value >= ni_machine.n_tiles)
                    wrong = "names a tile that the mesh does not have";
            } else if (!space) {
                wrong = "has something other than decimal tile numbers";
            } else if (digits) {
                if (n == capacity)
                    wrong = "has more numbers than 65536";
                else
                    tile_of[n++] = (uint16_t)value;
                value = 0;
                digits = false;
            }
        }
    sbt_syscall3(SYS_close, file, 0, 0);
    if (wrong == NULL && digits && n < capacity)
        tile_of[n++] = (uint16_t)value;
    n_mapped = n;
    return wrong != NULL ? wrong : n == 0 ? "has no tile number" : NULL;
}

void *ni_get_memory(size_t bytes) {
    return sbt_memory_map(bytes);
}

static int start_map(const char *map) {
    bool file = strncmp(map, "file:", 5) == 0;
    n_mapped = file ? 65536 : ni_machine.n_tiles;
    tile_of = ni_get_memory(n_mapped * sizeof *tile_of);
    if (tile_of == NULL)
        return ENOMEM;
    if (file) {
        const char *wrong = map_file(map + 5);
        if (wrong != NULL)
            sbt_log(0, "map: ", map + 5, " ", wrong, NULL);
        return wrong != NULL ? EINVAL : 0;
    }
    for (uint32_t i = 0; i < n_mapped; i++)
        tile_of[i] = (uint16_t)i;
    if (strncmp(map, "random", 6) == 0) {
        uint64_t seed = 0;
        for (const char *p = map + 6 + (map[6] == ':'); *p != '\0'; p++)
            seed = seed * 10 + (uint64_t)(*p - '0');
        map_random(seed);
    }
    return 0;
}

uint32_t ni_map(uint32_t n) {
    return tile_of[n % n_mapped];
}

/* ---- start ---- */

/*
 * Touch all pages of a small mesh. Otherwise a server touches them one by one under its tile's lock, and each time the
 * kernel may keep it behind threads that end: the threads that wait for the server then leave it no core. The pages of
 * a large mesh are touched when they are used: they are too many for a program that uses few of them.
 */
static void touch(void *memory, size_t bytes) {
    volatile char *page = memory;
    for (size_t i = 0; bytes <= TOUCHED_MOST && i < bytes; i += 4096)
        page[i] = 0;
}

/* A mesh that nothing is sent over has its configuration, and no memory. */
static int start_mesh(const struct hw_mesh_config *config) {
    struct ni_machine *m = &ni_machine;
    if (!hw_mesh_possible(config))
        return EINVAL;
    if (m->timed) {
        m->mesh_bytes = hw_slotted_bytes(config->width, config->height);
        m->mesh_memory = ni_get_memory(m->mesh_bytes);
        if (m->mesh_memory == NULL)
            return ENOMEM;
        touch(m->mesh_memory, m->mesh_bytes);
    }
    return hw_slotted_init(&m->mesh, config, m->mesh_memory) ? 0 : EINVAL;
}

void ni_machine_clear_mesh(void) {
    if (ni_machine.mesh_memory != NULL)
        sbt_memory_clear(ni_machine.mesh_memory, ni_machine.mesh_bytes);
}

int ni_machine_start(const struct sbt_options *options) {
    struct ni_machine *m = &ni_machine;
    const union sbt_option_value *value = options->value;
    uint32_t width = (uint32_t)(value[SBT_OPT_MESH].u >> 16), height = (uint32_t)value[SBT_OPT_MESH].u & 0xFFFF;
    bool paper = value[SBT_OPT_STRICT_PAPER].u != 0;
    m->config = paper ? hw_config_paper() : hw_config_default();
    m->config.n_tiles = m->n_tiles = width * height;
    m->config.n_control = (uint32_t)value[SBT_OPT_CONTROL_ELEMENTS].u;
    m->config.n_queue = (uint32_t)value[SBT_OPT_QUEUE_ELEMENTS].u;
    if (value[SBT_OPT_QUEUE_FULL].u == SBT_QUEUE_FULL_AGAIN)
        m->config.full = HW_FULL_AGAIN;
    m->evict = !paper && value[SBT_OPT_CONTROL_FULL].u == SBT_CONTROL_FULL_EVICT;
    m->stats = value[SBT_OPT_STATS].u != SBT_STATS_OFF;
    m->time_scale = (uint32_t)value[SBT_OPT_TIME_SCALE].u;
    m->timed = m->stats || m->time_scale != 0 || value[SBT_OPT_REQUESTS].s != NULL;
    if (!hw_layout_init(&m->layout, m->n_tiles, m->config.n_control))
        return EINVAL;

    struct hw_mesh_config mesh = hw_mesh_config_default();
    mesh.width = width;
    mesh.height = height;
    mesh.timing = m->config.timing;
    mesh.load_permille = (uint32_t)value[SBT_OPT_DATA_LOAD].u;
    mesh.qos = value[SBT_OPT_QOS].u == SBT_QOS_NONE ? HW_QOS_NONE : HW_QOS_CONTROL_FIRST;
    int r = start_mesh(&mesh);
    if (r == 0)
        r = start_map(value[SBT_OPT_MAP].s);
    if (r != 0)
        return r;
    if (m->timed && m->time_scale == 0)
        calibrate();
    m->start_ns = sbt_now_ns();
    return 0;
}

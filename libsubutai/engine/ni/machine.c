/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The machine: tiles, their memory, the map from threads to tiles, and model time.
 *
 * Model time is the wall clock's, divided by the time scale; with scale 0, when nothing waits for it, it runs at the
 * speed of the wall clock and comes from the CPU's counter, which costs less to read. Either way it decides only when
 * requests meet at a port or a state machine: a request's own latency is added up from the model. Without a time scale
 * and statistics nobody could tell what time it is: then it stands still, and packets cross the mesh uncounted.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "core/thread.h"
#include "engine/ni/ni.h"
#include "wait/futex.h"
#include "wait/turn.h"

#define CALIBRATION_NS 30000
#define SPIN_BEFORE_YIELD 200
#define EAGER_GAIN 1
#define EAGER_LOSS 2
#define EAGER_MOST 8
#define EAGER_PROBE 16        /* of those that do not pay, one in so many is tried */
#define SLEEP_MARGIN_NS 80000 /* a sleep may end so much late; the rest is spun */

struct ni_machine ni_machine;

static uint16_t *tile_of; /* by --map: of the n-th thread, n modulo n_mapped */
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

uint64_t ni_scaled_cycles(void) {
    return ns_to_cycles((sbt_now_ns() - ni_machine.start_ns) / ni_machine.time_scale);
}

void ni_wait_until(uint64_t cycles) {
    uint64_t at = ni_machine.start_ns + cycles * 1000 / ni_machine.config.timing.clock_mhz * ni_machine.time_scale;
    for (uint64_t now; (now = sbt_now_ns()) < at;) {
        if (at - now > 2 * SLEEP_MARGIN_NS)
            sbt_pause_ns((long)(at - now - SLEEP_MARGIN_NS));
        else if (sbt_cores_to_spare())
            sbt_cpu_relax();
        else
            sbt_turn_offer();
    }
}

void ni_take(uint32_t *lock) {
    for (uint32_t i = 0; !ni_try(lock); i++) {
        if (i < SPIN_BEFORE_YIELD && sbt_cores_to_spare())
            sbt_cpu_relax();
        else
            sbt_turn_give_or_pause();
    }
}

bool ni_eager_pays(struct ni_eager *e) {
    return sbt_cores_to_spare() || e->credit >= 0 || ++e->n_skipped % EAGER_PROBE == 0;
}

void ni_eager_done(struct ni_eager *e, bool paid) {
    int credit = e->credit + (paid ? EAGER_GAIN : -EAGER_LOSS);
    e->credit = (int8_t)(credit > EAGER_MOST ? EAGER_MOST : credit < -EAGER_MOST ? -EAGER_MOST : credit);
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

/* Decimal tile numbers between white space. NULL, or what is wrong. */
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
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
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

static int start_tiles(void) {
    struct ni_machine *m = &ni_machine;
    size_t spm = (hw_config_spm_bytes(&m->config) + 63) & ~(size_t)63;
    size_t epochs = (m->config.n_control * sizeof(uint32_t) + 63) & ~(size_t)63;
    size_t objects = (m->config.n_control * sizeof(void *) + 63) & ~(size_t)63;
    size_t outputs = (m->config.n_queue + 2u) * sizeof(struct hw_output);
    size_t latency = m->stats ? ni_stats_bytes() : 0;
    m->tiles = ni_get_memory(m->n_tiles * sizeof *m->tiles);
    m->threads = ni_get_memory(NI_MAX_THREADS * sizeof *m->threads);
    char *rest = ni_get_memory(m->n_tiles * (spm + epochs + objects + outputs + latency));
    if (m->tiles == NULL || m->threads == NULL || rest == NULL)
        return ENOMEM;
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        struct ni_tile *tile = &m->tiles[i];
        char *own = rest + i * (spm + epochs + objects + outputs + latency);
        if (!hw_ni_init(&tile->ni, &m->config, i, (uint8_t *)own))
            return EINVAL;
        tile->outputs = (struct hw_output *)(void *)(own + spm + epochs + objects);
        tile->objects = (const void **)(void *)(own + spm + epochs);
        tile->epochs = (uint32_t *)(void *)(own + spm);
        tile->latency = latency != 0 ? (struct ni_latency *)(void *)(own + spm + epochs + objects + outputs) : NULL;
        tile->next_cycles = UINT64_MAX;
        __cds_wfcq_init(&tile->queue_head, &tile->queue_tail);
    }
    return 0;
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
    m->timed = m->stats || m->time_scale != 0;
    if (!hw_layout_init(&m->layout, m->n_tiles, m->config.n_control))
        return EINVAL;

    struct hw_mesh_config mesh = hw_mesh_config_default();
    mesh.width = width;
    mesh.height = height;
    mesh.timing = m->config.timing;
    mesh.load_permille = (uint32_t)value[SBT_OPT_DATA_LOAD].u;
    struct hw_port *ports = ni_get_memory(hw_mesh_bytes(width, height));
    if (ports == NULL)
        return ENOMEM;
    if (!hw_mesh_init(&m->mesh, &mesh, ports))
        return EINVAL;
    int r = start_tiles();
    if (r == 0)
        r = start_map(value[SBT_OPT_MAP].s);
    if (r != 0)
        return r;
    if (m->timed && m->time_scale == 0)
        calibrate();
    m->start_ns = sbt_now_ns();
    ni_stats_start(options);
    r = ni_requests_start(options);
    if (r != 0)
        return r;
    ni_service_start(options);
    ni_thread_start();
    return 0;
}

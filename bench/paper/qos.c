/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qos [--mesh WxH] [--data-flits N] [--cycles N] [--seed N] [--json] [--check]
 *
 * Section III-E of the paper: with a priority of their own, control packets have a lower mean latency than data
 * packets, and one that varies less. The paper gives no figure. Here are both kinds' latencies at loads of 0 to 900
 * permille, with control packets first and with no quality of service, in two networks:
 *  - all packets travel (sim/travel.h); the load is that of the busiest links;
 *  - each port has data traffic of its own (emu_hw/mesh.h), as `subutai predict --data-load` has it; the load is that
 * of every link, and data packets of it are followed. The same pairs of tiles at the same times for both kinds.
 *
 * Latency is from a packet's being ready until all of it has arrived. Exit status: 0; 1 no memory, or with --check if
 * the claim does not hold; 2 refused.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_file.h"
#include "travel.h"

enum { N_LOADS = 10, N_QOS = 2, MAX_CYCLES = 10000000, CONTROL_GAP = 1000, WARM_CYCLES = 5000 };

/* One load with one quality of service. */
struct row {
    uint32_t load_permille;
    double mean_link; /* load of the average link, of 1 */
    enum hw_qos qos;
    struct sim_packets packets[SIM_N_PACKETS];
};

static const char *const networks[] = {"all packets travel; load of the busiest links",
                                       "each port has data traffic of its own; load of every link"};
static const char *const network_keys[] = {"travelling", "by_port"};

struct options {
    struct sim_travel_config config;
    bool json, check;
};

static _Noreturn void fail(int status, const char *what, const char *why) {
    fprintf(stderr, "qos: %s%s\n", what, why);
    exit(status);
}

static struct sim_packets packets_of(const struct sim_spread *s) {
    const struct sim_histogram *h = &s->histogram;
    return (struct sim_packets){.n = h->n,
                                .mean_ns = h->n > 0 ? (double)h->sum / (double)h->n : 0,
                                .deviation_ns = sim_spread_deviation(s),
                                .p99_ns = sim_histogram_quantile(h, 0.99),
                                .max_ns = h->max};
}

/* ---- the two networks ---- */

static void travel(const struct sim_travel_config *config, struct row *row) {
    static struct sim_travel_result result;
    if (!sim_travel(config, &result))
        fail(1, "out of memory", "");
    row->mean_link = (double)result.busy_cycles / (double)(result.n_links * result.n_cycles);
    for (int kind = 0; kind < SIM_N_PACKETS; kind++)
        row->packets[kind] = packets_of(&result.latency[kind]);
}

static uint64_t draw(uint64_t *state, uint64_t n) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) * n >> 31;
}

static void by_port(const struct sim_travel_config *config, struct row *row) {
    static struct sim_spread spread[SIM_N_PACKETS];
    uint32_t n_tiles = config->mesh.width * config->mesh.height;
    struct hw_mesh mesh;
    struct hw_port *ports = aligned_alloc(64, (hw_mesh_bytes(config->mesh.width, config->mesh.height) + 63) / 64 * 64);
    if (ports == NULL || !hw_mesh_init(&mesh, &config->mesh, ports))
        fail(1, "out of memory", "");
    memset(spread, 0, sizeof spread);
    uint64_t random = config->mesh.seed, n = config->n_cycles * n_tiles / CONTROL_GAP;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = WARM_CYCLES + i * CONTROL_GAP / n_tiles;
        uint32_t from = (uint32_t)draw(&random, n_tiles), to = (uint32_t)draw(&random, n_tiles - 1);
        to += to >= from;
        struct hw_delivery data = hw_mesh_follow(&mesh, from, to, at);
        sim_spread_add(&spread[SIM_DATA_PACKET], data.tail_cycles - at);
        sim_spread_add(&spread[SIM_CONTROL_PACKET], hw_mesh_send(&mesh, from, to, at, NULL).tail_cycles - at);
    }
    free(ports);
    row->mean_link = config->mesh.load_permille / 1000.0;
    for (int kind = 0; kind < SIM_N_PACKETS; kind++)
        row->packets[kind] = packets_of(&spread[kind]);
}

static void measure(const struct options *o, int network, struct row rows[N_LOADS][N_QOS]) {
    struct sim_travel_config config = o->config;
    for (uint32_t i = 0; i < N_LOADS; i++)
        for (int qos = 0; qos < N_QOS; qos++) {
            config.mesh.load_permille = 100 * i;
            config.mesh.qos = (enum hw_qos)qos;
            rows[i][qos] = (struct row){.load_permille = 100 * i, .qos = (enum hw_qos)qos};
            (network == 0 ? travel : by_port)(&config, &rows[i][qos]);
        }
}

/* ---- the report ---- */

static const char *qos_name(enum hw_qos qos) {
    return qos == HW_QOS_NONE ? "none" : "control";
}

static void print_head(const struct options *o) {
    const struct hw_mesh_config *m = &o->config.mesh;
    printf(
        "Latency in cycles of 1 ns, section III-E. Mesh %ux%u, a router %u and a link %u cycles; control packets of %d "
        "flits, data packets of %u;\neach tile sends a control packet every %u cycles on average; %" PRIu64
        " cycles, seed %" PRIu64 "\n",
        m->width, m->height, m->timing.router_cycles, m->timing.link_cycles, HW_MESH_N_FLITS, m->data_flits,
        o->config.control_gap, o->config.n_cycles, m->seed);
}

static void print_rows(const char *name, struct row rows[N_LOADS][N_QOS]) {
    printf("\n%s\n%31s%37s\n%4s %5s  %-7s", name, "control packets", "data packets", "load", "mean", "qos");
    for (int kind = 0; kind < SIM_N_PACKETS; kind++)
        printf(" %8s %8s %7s %7s  ", "mean", "dev.", "p99", "max");
    printf("\n");
    for (int i = 0; i < N_LOADS; i++)
        for (int qos = 0; qos < N_QOS; qos++) {
            const struct row *row = &rows[i][qos];
            printf("%4u %5.0f  %-7s", row->load_permille, row->mean_link * 1000, qos_name(row->qos));
            for (int kind = 0; kind < SIM_N_PACKETS; kind++) {
                const struct sim_packets *p = &row->packets[kind];
                if (p->n == 0)
                    printf(" %8s %8s %7s %7s  ", "-", "-", "-", "-");
                else
                    printf(" %8.1f %8.1f %7" PRIu64 " %7" PRIu64 "  ", p->mean_ns, p->deviation_ns, p->p99_ns,
                           p->max_ns);
            }
            printf("\n");
        }
}

static void put_row(struct json *j, const struct row *row) {
    json_line(j);
    json_open(j, NULL, '{');
    json_uint(j, "load_permille", row->load_permille);
    json_real(j, "mean_link_permille", row->mean_link * 1000, 1);
    json_text(j, "qos", qos_name(row->qos));
    for (int kind = 0; kind < SIM_N_PACKETS; kind++) {
        const struct sim_packets *p = &row->packets[kind];
        json_open(j, sim_packet_name((enum sim_packet_kind)kind), '{');
        json_uint(j, "n", p->n);
        json_real(j, "mean_ns", p->mean_ns, 2);
        json_real(j, "deviation_ns", p->deviation_ns, 2);
        json_uint(j, "p99_ns", p->p99_ns);
        json_uint(j, "max_ns", p->max_ns);
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void print_json(const struct options *o, struct row rows[][N_LOADS][N_QOS]) {
    const struct hw_mesh_config *m = &o->config.mesh;
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_uint(&j, "width", m->width);
    json_uint(&j, "height", m->height);
    json_uint(&j, "router_cycles", m->timing.router_cycles);
    json_uint(&j, "link_cycles", m->timing.link_cycles);
    json_uint(&j, "control_flits", HW_MESH_N_FLITS);
    json_uint(&j, "data_flits", m->data_flits);
    json_uint(&j, "control_gap_cycles", o->config.control_gap);
    json_uint(&j, "cycles", o->config.n_cycles);
    json_uint(&j, "seed", m->seed);
    for (int network = 0; network < 2; network++) {
        json_open(&j, network_keys[network], '[');
        for (int i = 0; i < N_LOADS * N_QOS; i++)
            put_row(&j, &rows[network][i / N_QOS][i % N_QOS]);
        json_close(&j, ']');
    }
    json_close(&j, '}');
    json_end(&j);
}

/*
 * The claim: with control packets first, their mean is below that of data packets at any load, and their deviation from
 * 300 permille on. With less load most of the deviation is that of the distances, for both kinds. And it is the
 * priority that does it: from 300 permille on both are below those of control packets without.
 */
static bool holds(struct row rows[N_LOADS][N_QOS]) {
    for (int i = 1; i < N_LOADS; i++) {
        const struct sim_packets *control = &rows[i][HW_QOS_CONTROL_FIRST].packets[SIM_CONTROL_PACKET];
        const struct sim_packets *data = &rows[i][HW_QOS_CONTROL_FIRST].packets[SIM_DATA_PACKET];
        const struct sim_packets *equal = &rows[i][HW_QOS_NONE].packets[SIM_CONTROL_PACKET];
        if (control->mean_ns >= data->mean_ns)
            return false;
        if (i >= 3 && (control->deviation_ns >= data->deviation_ns || control->mean_ns >= equal->mean_ns ||
                       control->deviation_ns >= equal->deviation_ns))
            return false;
    }
    return true;
}

/* ---- the command line ---- */

static uint64_t number(const char *option, const char *text, uint64_t min, uint64_t max) {
    char legal[80], *end = NULL;
    uint64_t u = text != NULL && text[0] >= '0' && text[0] <= '9' && strlen(text) < 20 ? strtoull(text, &end, 10) : 0;
    snprintf(legal, sizeof legal, ": not a legal value (legal: %" PRIu64 " to %" PRIu64 ")", min, max);
    if (end == NULL || *end != '\0' || u < min || u > max)
        fail(2, option, legal);
    return u;
}

static void read_mesh(struct hw_mesh_config *mesh, const char *text) {
    char end;
    if (text == NULL || text[0] < '0' || text[0] > '9' ||
        sscanf(text, "%2ux%2u%c", &mesh->width, &mesh->height, &end) != 2 || !hw_mesh_possible(mesh) ||
        mesh->width * mesh->height < 2)
        fail(2, "--mesh", ": not a legal mesh (legal: WxH, each 1 to 32, at least two tiles)");
}

static struct options read_options(int argc, char **argv) {
    struct options o = {.config = {.mesh = hw_mesh_config_default(),
                                   .control_gap = CONTROL_GAP,
                                   .warm_cycles = WARM_CYCLES,
                                   .n_cycles = 50000}};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool takes_value = true;
        if (strcmp(argv[i], "--mesh") == 0)
            read_mesh(&o.config.mesh, value);
        else if (strcmp(argv[i], "--data-flits") == 0)
            o.config.mesh.data_flits = (uint32_t)number("--data-flits", value, 1, 1000);
        else if (strcmp(argv[i], "--cycles") == 0)
            o.config.n_cycles = number("--cycles", value, 1000, MAX_CYCLES);
        else if (strcmp(argv[i], "--seed") == 0)
            o.config.mesh.seed = number("--seed", value, 0, INT64_MAX);
        else
            takes_value = false;
        if (strcmp(argv[i], "--json") == 0)
            o.json = true;
        else if (strcmp(argv[i], "--check") == 0)
            o.check = true;
        else if (!takes_value)
            fail(2, argv[i], ": unknown option (legal: --mesh, --data-flits, --cycles, --seed, --json, --check)");
        i += takes_value;
    }
    return o;
}

int main(int argc, char **argv) {
    static struct row rows[2][N_LOADS][N_QOS];
    struct options o = read_options(argc, argv);
    for (int network = 0; network < 2; network++)
        measure(&o, network, rows[network]);
    if (o.json) {
        print_json(&o, rows);
    } else {
        print_head(&o);
        for (int network = 0; network < 2; network++)
            print_rows(networks[network], rows[network]);
    }
    for (int network = 0; network < 2 && o.check; network++)
        if (!holds(rows[network]))
            fail(1, "the claim does not hold where ", networks[network]);
    return 0;
}

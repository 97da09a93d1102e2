/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The report of --stats, as text or JSON, in the model's nanoseconds.
 *
 * It opens no stream and allocates nothing: the process may be ending in any state.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "engine/ni/broadcast.h"
#include "engine/ni/stats.h"
#include "json.h"
#include "os/arch.h"

static const char *const names[NI_N_CLASSES] = {
    "lock, empty", "lock, queued", "trylock",    "unlock",   "barrier wait", "condition wait", "signal",
    "broadcast",   "allocate",     "deallocate", "withdraw", "evict",        "refused"};

static uint64_t format;
static const char *path;

void ni_stats_report_start(const struct sbt_options *options) {
    format = options->value[SBT_OPT_STATS].u;
    path = options->value[SBT_OPT_STATS_FILE].s;
}

/* ---- output ---- */

static int file;
static char text[8192];
static size_t n_text;

static void flush(void) {
    for (size_t done = 0; done < n_text;) {
        long n = sbt_syscall3(SYS_write, file, text + done, n_text - done);
        if (n <= 0)
            break;
        done += (size_t)n;
    }
    n_text = 0;
}

__attribute__((format(printf, 1, 2))) static void put(const char *how, ...) {
    va_list arguments;
    if (sizeof text - n_text < 512)
        flush();
    va_start(arguments, how);
    int n = vsnprintf(text + n_text, sizeof text - n_text, how, arguments);
    va_end(arguments);
    if (n > 0)
        n_text += (size_t)n < sizeof text - n_text ? (size_t)n : sizeof text - n_text - 1;
}

/* The JSON writer's bytes, put into the same buffer. */
static void put_bytes(void *unused, const char *bytes, size_t n) {
    (void)unused;
    while (n > 0) {
        if (n_text == sizeof text)
            flush();
        size_t fits = n < sizeof text - n_text ? n : sizeof text - n_text;
        memcpy(text + n_text, bytes, fits);
        n_text += fits;
        bytes += fits;
        n -= fits;
    }
}

/* ---- sums ---- */

static double ns(double cycles) {
    return cycles * 1000 / ni_machine.config.timing.clock_mhz;
}

static double quantile(const struct ni_latency *l, double q) {
    uint64_t want = (uint64_t)(q * (double)(l->n - 1)) + 1, seen = 0;
    for (uint32_t k = 0; k < NI_LATENCY_SIZE; k++)
        if ((seen += l->bucket[k]) >= want)
            return ns((double)ni_stats_cycles(k));
    return 0;
}

static double mean_of(const struct ni_latency *l, uint64_t cycles) {
    return ns((double)cycles / (double)l->n);
}

static double mean(const struct ni_latency *l) {
    return mean_of(l, ni_cycles_all(&l->cycles));
}

static double median(const struct ni_latency *l) {
    return quantile(l, 0.5);
}

static double p99(const struct ni_latency *l) {
    return quantile(l, 0.99);
}

static double handover(const struct ni_latency *l) {
    return mean_of(l, l->cycles.handover);
}

static double network(const struct ni_latency *l) {
    return mean_of(l, l->cycles.network);
}

static double fsm(const struct ni_latency *l) {
    return mean_of(l, l->cycles.fsm);
}

static double resume(const struct ni_latency *l) {
    return mean_of(l, l->cycles.resume);
}

static double waited(const struct ni_latency *l) {
    return mean_of(l, l->cycles.waited);
}

/* The latencies of a class of operations, in nanoseconds: text and JSON walk the same rows. */
static const struct {
    const char *json, *heading;
    int width, text_decimals, json_decimals;
    double (*get)(const struct ni_latency *l);
} latencies[] = {
    {"mean_ns", "mean", 9, 1, 2, mean},
    {"median_ns", "median", 9, 0, 0, median},
    {"p99_ns", "p99", 9, 0, 0, p99},
    {"handover_ns", "hand-over", 9, 1, 2, handover},
    {"network_ns", "network", 9, 1, 2, network},
    {"fsm_ns", "fsm", 9, 1, 2, fsm},
    {"resume_ns", "resume", 9, 1, 2, resume},
    {"waiting_ns", "waiting", 11, 1, 2, waited},
};
enum { N_LATENCIES = sizeof latencies / sizeof *latencies };

/* Counts of what an NI refused or lacked room for. */
enum { EVICTED, NO_SPACE, HELD, WOKEN, AGAIN, N_SHORTAGES };

static const struct {
    const char *text, *json;
} shortages[N_SHORTAGES] = {{"evictions", "evictions"},
                            {"allocations without room", "no_space"},
                            {"held back", "held"},
                            {"woken for want of an element", "woken"},
                            {"refused for want of one", "again"}};

static uint64_t shortage(const struct ni_tile *tile, uint32_t which) {
    const struct hw_ni_stats *s = &tile->ni.stats;
    const uint64_t counts[N_SHORTAGES] = {[EVICTED] = __atomic_load_n(&tile->n_evicted, __ATOMIC_RELAXED),
                                          [NO_SPACE] = s->n_no_space,
                                          [HELD] = s->n_held,
                                          [WOKEN] = s->n_woken,
                                          [AGAIN] = s->n_again};
    return counts[which];
}

/* Too large for a small stack. */
static uint64_t port_packets[HW_MESH_MAX_SIDE * HW_MESH_MAX_SIDE * HW_N_DIRECTIONS];

struct totals {
    uint64_t pushed, direct, stepped, withdrawn, looks, delayed, late_ns;
    unsigned long long shortage[N_SHORTAGES];
    bool at_rest; /* no thread changes the machine meanwhile */
};

static struct totals totals(void) {
    struct totals t = {0};
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        const struct ni_tile *tile = &ni_machine.tiles[i];
        t.pushed += ni_mailbox_handed_in(&tile->mailbox) + tile->n_direct;
        t.delayed += __atomic_load_n(&tile->mailbox.n_delayed, __ATOMIC_RELAXED);
        t.late_ns += __atomic_load_n(&tile->mailbox.late_ns, __ATOMIC_RELAXED);
        t.direct += tile->n_direct;
        t.stepped += tile->n_stepped;
        t.withdrawn += 2 * tile->n_withdrawn_held; /* the withdrawal, and the request that it took away */
        t.looks += tile->held.n_looks;
        for (uint32_t k = 0; k < N_SHORTAGES; k++)
            t.shortage[k] += shortage(tile, k);
    }
    return t;
}

/* By how much later than the model says calls went on, on average, in nanoseconds of the model. */
static double late(const struct totals *t) {
    return t->delayed != 0 ? (double)t->late_ns / ni_machine.time_scale / (double)t->delayed : 0;
}

/* ---- text ---- */

static void text_latencies(void) {
    put("%-16s %12s", "latency, ns", "count");
    for (uint32_t k = 0; k < N_LATENCIES; k++)
        put(" %*s", latencies[k].width, latencies[k].heading);
    put(" %7s\n", "local");
    for (uint32_t class = 0; class < NI_N_CLASSES; class ++) {
        const struct ni_latency *l = ni_stats_sum(class);
        if (l == NULL)
            continue;
        put("%-16s %12llu", names[class], (unsigned long long)l->n);
        for (uint32_t k = 0; k < N_LATENCIES; k++)
            put(" %*.*f", latencies[k].width, latencies[k].text_decimals, latencies[k].get(l));
        put(" %6.1f%%\n", 100 * (double)l->n_local / (double)l->n);
    }
}

static void text_ni(uint32_t i) {
    const struct ni_tile *tile = &ni_machine.tiles[i];
    const struct hw_ni_stats *s = &tile->ni.stats;
    put("NI %u: at most %u control and %u queue elements, busy %.0f ns;", i, s->max_control, s->max_queue,
        ns((double)s->busy_cycles));
    for (uint32_t k = 0; k < HW_N_STATES; k++)
        if (s->n_steps[k] != 0)
            put(" %s %llu", hw_state_name((enum hw_state)k), (unsigned long long)s->n_steps[k]);
    const char *before = "; ";
    for (uint32_t k = 0; k < N_SHORTAGES; k++) {
        unsigned long long n = shortage(tile, k);
        if (n != 0) {
            put("%s%s %llu", before, shortages[k].text, n);
            before = ", ";
        }
    }
    put("\n");
}

static void text_network(void) {
    static const char *const ports[HW_N_DIRECTIONS] = {"inject", "east", "west", "north", "south", "eject"};
    const struct ni_machine *m = &ni_machine;
    struct hw_slotted_sums sums = hw_slotted_sum(&m->mesh, port_packets);
    put("network: %llu packets, %.2f hops each, %.0f ns of contention", (unsigned long long)sums.n_packets,
        sums.n_packets != 0 ? (double)sums.n_hops / (double)sums.n_packets : 0.0, ns((double)sums.contention_cycles));
    if (sums.n_forgotten != 0)
        put(", %llu times forgotten", (unsigned long long)sums.n_forgotten);
    put("\n");
    for (uint32_t i = 0; i < m->n_tiles * HW_N_DIRECTIONS; i++)
        if (port_packets[i] != 0)
            put("link %u %s: %llu packets, %llu cycles of contention\n", i / HW_N_DIRECTIONS,
                ports[i % HW_N_DIRECTIONS], (unsigned long long)port_packets[i], (unsigned long long)m->mesh.waited[i]);
}

/* The optical network's counts: text and JSON walk the same rows. */
static const struct {
    const char *text, *json;
    size_t offset;
} messages[] = {
    {"messages", "messages", offsetof(struct ni_broadcast_counts, n_messages)},
    {"transferred", "transferred", offsetof(struct ni_broadcast_counts, n_transferred)},
    {"retrieved", "retrieved", offsetof(struct ni_broadcast_counts, n_retrieved)},
    {"cycles from sending to the buffer", "delay_cycles", offsetof(struct ni_broadcast_counts, delay_cycles)},
    {"at most in a lambda queue", "max_lambda_queue", offsetof(struct ni_broadcast_counts, max_lambda)},
    {"at most in a buffer", "max_buffer", offsetof(struct ni_broadcast_counts, max_buffer)},
    {"barrier waits without a channel", "without_channel", offsetof(struct ni_broadcast_counts, n_without_channel)},
};
enum { N_MESSAGES = sizeof messages / sizeof *messages };

static unsigned long long message_count(const struct ni_broadcast_counts *counts, uint32_t k) {
    uint64_t n;
    memcpy(&n, (const char *)counts + messages[k].offset, sizeof n);
    return n;
}

static void text_optical(const struct totals *t) {
    struct ni_broadcast_counts counts = ni_broadcast_sum(t->at_rest);
    put("optical network:");
    for (uint32_t k = 0; k < N_MESSAGES; k++)
        put("%s %s %llu", k == 0 ? "" : ",", messages[k].text, message_count(&counts, k));
    put("\n");
}

static void text_report(const struct totals *t) {
    const struct ni_machine *m = &ni_machine;
    put("subutai: emulated hardware, process %d: %u x %u tiles, %u control and %u queue elements each, time scale %u\n",
        (int)sbt_syscall0(SYS_getpid), m->mesh.config.width, m->mesh.config.height, m->config.n_control,
        m->config.n_queue, m->time_scale);
    put("requests: %llu in, %llu out (%llu withdrawn while held), %llu served by the threads that made them\n",
        (unsigned long long)t->pushed, (unsigned long long)(t->stepped + t->withdrawn),
        (unsigned long long)t->withdrawn / 2, (unsigned long long)t->direct);
    text_latencies();
    if (t->delayed != 0)
        put("delayed: %llu calls, which went on %.1f ns late\n", (unsigned long long)t->delayed, late(t));
    put("evictions %llu, allocated anew %llu, objects left to software %llu, condition waits in software %llu, held "
        "back %llu, woken for want of an element %llu, refused for want of one %llu\n",
        t->shortage[EVICTED], (unsigned long long)m->n_stale, (unsigned long long)m->n_software,
        (unsigned long long)m->n_software_waits, t->shortage[HELD], t->shortage[WOKEN], t->shortage[AGAIN]);
    for (uint32_t i = 0; i < m->n_tiles; i++)
        if (m->tiles[i].n_stepped != 0)
            text_ni(i);
    if (ni_machine.optical)
        text_optical(t);
    text_network();
}

/* ---- JSON ---- */

static void json_latencies(struct json *j) {
    json_open(j, "latencies", '[');
    for (uint32_t class = 0; class < NI_N_CLASSES; class ++) {
        const struct ni_latency *l = ni_stats_sum(class);
        if (l == NULL)
            continue;
        json_open(j, NULL, '{');
        json_text(j, "operation", names[class]);
        json_uint(j, "count", l->n);
        for (uint32_t k = 0; k < N_LATENCIES; k++)
            json_real(j, latencies[k].json, latencies[k].get(l), latencies[k].json_decimals);
        json_uint(j, "local", l->n_local);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void json_ni(struct json *j, uint32_t i) {
    const struct hw_ni_stats *s = &ni_machine.tiles[i].ni.stats;
    json_open(j, NULL, '{');
    json_uint(j, "ni", i);
    json_uint(j, "max_control", s->max_control);
    json_uint(j, "max_queue", s->max_queue);
    json_uint(j, "busy_cycles", s->busy_cycles);
    for (uint32_t k = 0; k < N_SHORTAGES; k++)
        json_uint(j, shortages[k].json, shortage(&ni_machine.tiles[i], k));
    json_open(j, "states", '{');
    for (uint32_t k = 0; k < HW_N_STATES; k++)
        if (s->n_steps[k] != 0)
            json_uint(j, hw_state_name((enum hw_state)k), s->n_steps[k]);
    json_close(j, '}');
    json_close(j, '}');
}

static void json_network(struct json *j) {
    const struct ni_machine *m = &ni_machine;
    json_open(j, "network", '{');
    struct hw_slotted_sums sums = hw_slotted_sum(&m->mesh, port_packets);
    json_uint(j, "packets", sums.n_packets);
    json_uint(j, "hops", sums.n_hops);
    json_uint(j, "contention_cycles", sums.contention_cycles);
    json_uint(j, "forgotten", sums.n_forgotten);
    json_open(j, "links", '[');
    for (uint32_t i = 0; i < m->n_tiles * HW_N_DIRECTIONS; i++) {
        if (port_packets[i] == 0)
            continue;
        json_open(j, NULL, '{');
        json_uint(j, "tile", i / HW_N_DIRECTIONS);
        json_uint(j, "port", i % HW_N_DIRECTIONS);
        json_uint(j, "packets", port_packets[i]);
        json_uint(j, "contention_cycles", m->mesh.waited[i]);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void json_optical(struct json *j, const struct totals *t) {
    struct ni_broadcast_counts counts = ni_broadcast_sum(t->at_rest);
    json_open(j, "optical", '{');
    for (uint32_t k = 0; k < N_MESSAGES; k++)
        json_uint(j, messages[k].json, message_count(&counts, k));
    json_close(j, '}');
}

static void json_machine(struct json *j, const struct totals *t) {
    const struct ni_machine *m = &ni_machine;
    json_int(j, "pid", (int)sbt_syscall0(SYS_getpid));
    json_open(j, "mesh", '[');
    json_uint(j, NULL, m->mesh.config.width);
    json_uint(j, NULL, m->mesh.config.height);
    json_close(j, ']');
    json_uint(j, "control_elements", m->config.n_control);
    json_uint(j, "queue_elements", m->config.n_queue);
    json_uint(j, "time_scale", m->time_scale);
    json_uint(j, "requests_in", t->pushed);
    json_uint(j, "requests_out", t->stepped + t->withdrawn);
    json_uint(j, "requests_by_caller", t->direct);
    json_uint(j, "withdrawn_while_held", t->withdrawn / 2);
    json_uint(j, "delayed", t->delayed);
    json_real(j, "late_ns", late(t), 2);
}

static void json_shortages(struct json *j, const struct totals *t) {
    const struct ni_machine *m = &ni_machine;
    json_uint(j, "evictions", t->shortage[EVICTED]);
    json_uint(j, "allocated_anew", m->n_stale);
    json_uint(j, "objects_in_software", m->n_software);
    json_uint(j, "condition_waits_in_software", m->n_software_waits);
    json_uint(j, "held", t->shortage[HELD]);
    json_uint(j, "woken", t->shortage[WOKEN]);
    json_uint(j, "again", t->shortage[AGAIN]);
    json_uint(j, "looks_at_held", t->looks);
}

static void json_report(const struct totals *t) {
    struct json j = {.put = put_bytes};
    json_open(&j, NULL, '{');
    json_machine(&j, t);
    json_latencies(&j);
    json_shortages(&j, t);
    json_open(&j, "nis", '[');
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        if (ni_machine.tiles[i].n_stepped != 0)
            json_ni(&j, i);
    json_close(&j, ']');
    if (ni_machine.optical)
        json_optical(&j, t);
    json_network(&j);
    json_close(&j, '}');
    json_end(&j);
}

bool ni_stats_wanted(void) {
    return format != SBT_STATS_OFF;
}

void ni_stats_report(bool at_rest) {
    file = STDERR_FILENO;
    if (path != NULL) {
        long opened =
            sbt_syscall6(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666, 0, 0);
        if (opened < 0)
            sbt_log(0, "stats-file: cannot write ", path, ": the statistics go to stderr", NULL);
        else
            file = (int)opened;
    }
    struct totals t = totals();
    t.at_rest = at_rest;
    if (format == SBT_STATS_TEXT)
        text_report(&t);
    else
        json_report(&t);
    flush();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the emulated hardware did, for --stats. Latencies are the model's, in its nanoseconds, from the moment the
 * program hands a request in until its core sees the answer; without an answer, until it is handed in. Waiting for
 * other threads (a lock's holder, the rest of a barrier) is kept apart from what the hardware takes: hand-over,
 * network, and state machine, its queue included. Counted under the lock of the tile where it happens, added up at
 * exit.
 *
 * The report is built without stdio: the process may be ending in any state.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "engine/ni/ni.h"

/* Buckets of a histogram: exact up to 1024 cycles, then 32 to each power of two, 3 % wide. */
enum { EXACT_POWER = 10, EXACT = 1 << EXACT_POWER, PER_POWER = 32, N_BUCKETS = EXACT + (64 - EXACT_POWER) * PER_POWER };

struct ni_latency {
    uint64_t n, n_local;
    uint64_t handover, network, fsm, resume, waited;
    uint32_t bucket[N_BUCKETS];
};

static const char *const names[NI_N_CLASSES] = {
    "lock, empty", "lock, queued", "trylock",    "unlock",   "barrier wait", "condition wait", "signal",
    "broadcast",   "allocate",     "deallocate", "withdraw", "evict",        "refused"};

static uint64_t format;
static const char *path;

size_t ni_stats_bytes(void) {
    return (sizeof(struct ni_latency) * NI_N_CLASSES + 63) & ~(size_t)63;
}

void ni_stats_start(const struct sbt_options *options) {
    format = options->value[SBT_OPT_STATS].u;
    path = options->value[SBT_OPT_STATS_FILE].s;
}

static uint32_t bucket_of(uint64_t cycles) {
    if (cycles < EXACT)
        return (uint32_t)cycles;
    uint32_t power = 63u - (uint32_t)__builtin_clzll(cycles); /* >= EXACT_POWER */
    return EXACT + (power - EXACT_POWER) * PER_POWER + (uint32_t)(cycles >> (power - 5) & (PER_POWER - 1));
}

/* Middle of a bucket. */
static uint64_t cycles_of(uint32_t bucket) {
    if (bucket < EXACT)
        return bucket;
    uint32_t power = EXACT_POWER + (bucket - EXACT) / PER_POWER, step = (bucket - EXACT) % PER_POWER;
    return ((uint64_t)(PER_POWER + step) << (power - 5)) + ((UINT64_C(1) << (power - 5)) - 1) / 2;
}

void ni_stats_add(struct ni_tile *tile, enum ni_class class, const struct ni_sample *sample) {
    if (SBT_LIKELY(tile->latency == NULL))
        return;
    struct ni_latency *l = &tile->latency[class];
    l->n++;
    l->n_local += sample->local;
    l->handover += sample->handover;
    l->network += sample->network;
    l->fsm += sample->fsm;
    l->resume += sample->resume;
    l->waited += sample->waited;
    l->bucket[bucket_of(sample->handover + sample->network + sample->fsm + sample->resume + sample->waited)]++;
}

void ni_stats_fork_child(void) {
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        if (ni_machine.tiles[i].latency != NULL)
            memset(ni_machine.tiles[i].latency, 0, ni_stats_bytes());
    ni_machine.n_software = ni_machine.n_software_waits = ni_machine.n_stale = 0;
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

/* ---- sums ---- */

static struct ni_latency sum; /* too large for a small stack */

static const struct ni_latency *sum_of(uint32_t class) {
    memset(&sum, 0, sizeof sum);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        const struct ni_latency *l = &ni_machine.tiles[i].latency[class];
        if (l->n == 0)
            continue;
        sum.n += l->n;
        sum.n_local += l->n_local;
        sum.handover += l->handover;
        sum.network += l->network;
        sum.fsm += l->fsm;
        sum.resume += l->resume;
        sum.waited += l->waited;
        for (uint32_t k = 0; k < N_BUCKETS; k++)
            sum.bucket[k] += l->bucket[k];
    }
    return sum.n != 0 ? &sum : NULL;
}

static uint64_t all_of(const struct ni_latency *l) {
    return l->handover + l->network + l->fsm + l->resume + l->waited;
}

static double ns(double cycles) {
    return cycles * 1000 / ni_machine.config.timing.clock_mhz;
}

static double quantile(const struct ni_latency *l, double q) {
    uint64_t want = (uint64_t)(q * (double)(l->n - 1)) + 1, seen = 0;
    for (uint32_t k = 0; k < N_BUCKETS; k++)
        if ((seen += l->bucket[k]) >= want)
            return ns((double)cycles_of(k));
    return 0;
}

/* What an NI could not do as it should. */
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

struct totals {
    uint64_t pushed, stepped, withdrawn;
    unsigned long long shortage[N_SHORTAGES];
};

static struct totals totals(void) {
    struct totals t = {0};
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        const struct ni_tile *tile = &ni_machine.tiles[i];
        t.pushed += __atomic_load_n(&tile->mailbox.n_pushed, __ATOMIC_RELAXED) + tile->n_direct;
        t.stepped += tile->n_stepped;
        t.withdrawn += 2 * tile->n_withdrawn_held; /* the withdrawal, and what it took away */
        for (uint32_t k = 0; k < N_SHORTAGES; k++)
            t.shortage[k] += shortage(tile, k);
    }
    return t;
}

/* ---- text ---- */

static void text_report(const struct totals *t) {
    const struct ni_machine *m = &ni_machine;
    put("subutai: emulated hardware, process %d: %u x %u tiles, %u control and %u queue elements each, time scale %u\n",
        getpid(), m->mesh.config.width, m->mesh.config.height, m->config.n_control, m->config.n_queue, m->time_scale);
    put("requests: %llu in, %llu out (%llu withdrawn while held)\n", (unsigned long long)t->pushed,
        (unsigned long long)(t->stepped + t->withdrawn), (unsigned long long)t->withdrawn / 2);
    put("%-16s %12s %9s %9s %9s %9s %9s %9s %9s %11s %7s\n", "latency, ns", "count", "mean", "median", "p99",
        "hand-over", "network", "fsm", "resume", "waiting", "local");
    for (uint32_t class = 0; class < NI_N_CLASSES; class ++) {
        const struct ni_latency *l = sum_of(class);
        if (l == NULL)
            continue;
        double n = (double)l->n;
        put("%-16s %12llu %9.1f %9.0f %9.0f %9.1f %9.1f %9.1f %9.1f %11.1f %6.1f%%\n", names[class],
            (unsigned long long)l->n, ns((double)all_of(l) / n), quantile(l, 0.5), quantile(l, 0.99),
            ns((double)l->handover / n), ns((double)l->network / n), ns((double)l->fsm / n), ns((double)l->resume / n),
            ns((double)l->waited / n), 100 * (double)l->n_local / n);
    }
    put("evictions %llu, allocated anew %llu, objects left to software %llu, condition waits in software %llu, held "
        "back %llu, woken for want of an element %llu, refused for want of one %llu\n",
        t->shortage[EVICTED], (unsigned long long)m->n_stale, (unsigned long long)m->n_software,
        (unsigned long long)m->n_software_waits, t->shortage[HELD], t->shortage[WOKEN], t->shortage[AGAIN]);
    for (uint32_t i = 0; i < m->n_tiles; i++) {
        const struct hw_ni_stats *s = &m->tiles[i].ni.stats;
        if (m->tiles[i].n_stepped == 0)
            continue;
        put("NI %u: at most %u control and %u queue elements, busy %.0f ns;", i, s->max_control, s->max_queue,
            ns((double)s->busy_cycles));
        for (uint32_t k = 0; k < HW_N_STATES; k++)
            if (s->n_steps[k] != 0)
                put(" %s %llu", hw_state_name((enum hw_state)k), (unsigned long long)s->n_steps[k]);
        const char *before = "; ";
        for (uint32_t k = 0; k < N_SHORTAGES; k++) {
            unsigned long long n = shortage(&m->tiles[i], k);
            if (n != 0) {
                put("%s%s %llu", before, shortages[k].text, n);
                before = ", ";
            }
        }
        put("\n");
    }
    put("network: %llu packets, %.2f hops each, %.0f ns of contention\n", (unsigned long long)m->mesh.n_packets,
        m->mesh.n_packets != 0 ? (double)m->mesh.n_hops / (double)m->mesh.n_packets : 0.0,
        ns((double)m->mesh.contention_cycles));
    static const char *const ports[HW_N_DIRECTIONS] = {"inject", "east", "west", "north", "south", "eject"};
    for (uint32_t i = 0; i < m->n_tiles * HW_N_DIRECTIONS; i++) {
        const struct hw_port *p = &m->mesh.ports[i];
        if (hw_port_n_packets(p) != 0)
            put("link %u %s: %llu packets, %llu cycles of contention\n", i / HW_N_DIRECTIONS,
                ports[i % HW_N_DIRECTIONS], (unsigned long long)hw_port_n_packets(p),
                (unsigned long long)p->contention_cycles);
    }
}

/* ---- JSON ---- */

static void json_latencies(void) {
    const char *comma = "";
    for (uint32_t class = 0; class < NI_N_CLASSES; class ++) {
        const struct ni_latency *l = sum_of(class);
        if (l == NULL)
            continue;
        double n = (double)l->n;
        put("%s{\"operation\":\"%s\",\"count\":%llu,\"mean_ns\":%.2f,\"median_ns\":%.0f,\"p99_ns\":%.0f,"
            "\"handover_ns\":%.2f,\"network_ns\":%.2f,\"fsm_ns\":%.2f,\"resume_ns\":%.2f,\"waiting_ns\":%.2f,\"local\":"
            "%llu}",
            comma, names[class], (unsigned long long)l->n, ns((double)all_of(l) / n), quantile(l, 0.5),
            quantile(l, 0.99), ns((double)l->handover / n), ns((double)l->network / n), ns((double)l->fsm / n),
            ns((double)l->resume / n), ns((double)l->waited / n), (unsigned long long)l->n_local);
        comma = ",";
    }
}

static void json_nis(void) {
    const char *comma = "";
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++) {
        const struct hw_ni_stats *s = &ni_machine.tiles[i].ni.stats;
        const char *inner = "";
        if (ni_machine.tiles[i].n_stepped == 0)
            continue;
        put("%s{\"ni\":%u,\"max_control\":%u,\"max_queue\":%u,\"busy_cycles\":%llu", comma, i, s->max_control,
            s->max_queue, (unsigned long long)s->busy_cycles);
        for (uint32_t k = 0; k < N_SHORTAGES; k++)
            put(",\"%s\":%llu", shortages[k].json, (unsigned long long)shortage(&ni_machine.tiles[i], k));
        put(",\"states\":{");
        for (uint32_t k = 0; k < HW_N_STATES; k++)
            if (s->n_steps[k] != 0) {
                put("%s\"%s\":%llu", inner, hw_state_name((enum hw_state)k), (unsigned long long)s->n_steps[k]);
                inner = ",";
            }
        put("}}");
        comma = ",";
    }
}

static void json_report(const struct totals *t) {
    const struct ni_machine *m = &ni_machine;
    put("{\"pid\":%d,\"mesh\":[%u,%u],\"control_elements\":%u,\"queue_elements\":%u,\"time_scale\":%u,"
        "\"requests_in\":%llu,\"requests_out\":%llu,\"withdrawn_while_held\":%llu,\"latencies\":[",
        getpid(), m->mesh.config.width, m->mesh.config.height, m->config.n_control, m->config.n_queue, m->time_scale,
        (unsigned long long)t->pushed, (unsigned long long)(t->stepped + t->withdrawn),
        (unsigned long long)t->withdrawn / 2);
    json_latencies();
    put("],\"evictions\":%llu,\"allocated_anew\":%llu,\"objects_in_software\":%llu,\"condition_waits_in_software\":%"
        "llu,"
        "\"held\":%llu,\"woken\":%llu,\"again\":%llu,\"nis\":[",
        t->shortage[EVICTED], (unsigned long long)m->n_stale, (unsigned long long)m->n_software,
        (unsigned long long)m->n_software_waits, t->shortage[HELD], t->shortage[WOKEN], t->shortage[AGAIN]);
    json_nis();
    put("],\"network\":{\"packets\":%llu,\"hops\":%llu,\"contention_cycles\":%llu,\"links\":[",
        (unsigned long long)m->mesh.n_packets, (unsigned long long)m->mesh.n_hops,
        (unsigned long long)m->mesh.contention_cycles);
    const char *comma = "";
    for (uint32_t i = 0; i < m->n_tiles * HW_N_DIRECTIONS; i++) {
        const struct hw_port *p = &m->mesh.ports[i];
        if (hw_port_n_packets(p) == 0)
            continue;
        put("%s{\"tile\":%u,\"port\":%u,\"packets\":%llu,\"contention_cycles\":%llu}", comma, i / HW_N_DIRECTIONS,
            i % HW_N_DIRECTIONS, (unsigned long long)hw_port_n_packets(p), (unsigned long long)p->contention_cycles);
        comma = ",";
    }
    put("]}}\n");
}

bool ni_stats_wanted(void) {
    return format != SBT_STATS_OFF;
}

void ni_stats_report(void) {
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
    if (format == SBT_STATS_TEXT)
        text_report(&t);
    else
        json_report(&t);
    flush();
}

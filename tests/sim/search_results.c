/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * search-results N: what N random programs of fibers do on random hosts, a line for each thread and each program. Work,
 * sleep and waits for each other leave carriers without a fiber for less and for more than they search.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "sim.h"

enum { BARRIER = 0, MUTEX = 1, POSTED = 8, MOST_THREADS = 16, N_ROUNDS = 30 };

static uint64_t seed;
static uint32_t grain_ns; /* all times are multiples of it: where it is large, much happens at once, also with looks */

static uint32_t below(uint32_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed % n);
}

static _Noreturn void __attribute__((format(printf, 1, 2))) give_up(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("search-results: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static uint64_t some_ns(void) {
    static const uint32_t most[] = {300, 3000, 12000, 70000};
    return below(most[below(4)]) / grain_ns * grain_ns;
}

static void put(struct sbt_trace_writer *w, uint32_t thread, struct sbt_trace_event e) {
    e.site = SBT_TRACE_NONE;
    e.work_ns = some_ns();
    if (sbt_trace_append(w, thread, &e) != 0)
        give_up("an event was not written");
}

static void call(struct sbt_trace_writer *w, uint32_t thread, enum sbt_trace_op op, enum sbt_trace_type type,
                 uint32_t object, uint64_t order) {
    put(w, thread,
        (struct sbt_trace_event){
            .op = (uint8_t)op, .type = (uint8_t)type, .object = object, .other = SBT_TRACE_NONE, .order = order});
}

static void about_thread(struct sbt_trace_writer *w, enum sbt_trace_op op, uint32_t other) {
    put(w, 0,
        (struct sbt_trace_event){
            .op = (uint8_t)op, .type = SBT_TRACE_NO_OBJECT, .object = SBT_TRACE_NONE, .other = other});
}

static void init(struct sbt_trace_writer *w, enum sbt_trace_type type, uint32_t object, uint32_t size) {
    put(w, 0,
        (struct sbt_trace_event){
            .op = SBT_TRACE_INIT, .type = (uint8_t)type, .object = object, .other = SBT_TRACE_NONE, .size = size});
}

static void sleep_for(struct sbt_trace_writer *w, uint32_t thread, uint64_t ns) {
    put(w, thread,
        (struct sbt_trace_event){.op = SBT_TRACE_SEM_WAIT,
                                 .type = SBT_TRACE_SEM,
                                 .object = POSTED + MOST_THREADS,
                                 .other = SBT_TRACE_NONE,
                                 .result = ETIMEDOUT,
                                 .took_ns = ns});
}

/* One round of all threads; each kind has an end however the threads are run. */
static void one_round(struct sbt_trace_writer *w, uint32_t n, uint64_t round) {
    uint32_t kind = below(30), one = below(n);
    if (kind == 0) { /* no thread posts it: it ends when no thread can go on */
        call(w, one, SBT_TRACE_SEM_WAIT, SBT_TRACE_SEM, POSTED + one, N_ROUNDS + 1);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        switch (kind % 4) {
        case 0:
            call(w, i, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, BARRIER, 0);
            break;
        case 1:
            call(w, i, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, MUTEX, round * n + i + 1);
            call(w, i, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, MUTEX, 0);
            break;
        case 2: /* one thread wakes the others */
            for (uint32_t k = 0; k < n; k++)
                if (i == one && k != one)
                    call(w, i, SBT_TRACE_SEM_POST, SBT_TRACE_SEM, POSTED + k, round + 1);
            if (i != one)
                call(w, i, SBT_TRACE_SEM_WAIT, SBT_TRACE_SEM, POSTED + i, round + 1);
            break;
        default:
            sleep_for(w, i, some_ns());
        }
    }
}

static void write_program(const char *path, uint32_t n) {
    struct sbt_trace_writer *w = sbt_trace_create(path, "random");
    if (w == NULL)
        give_up("'%s': it cannot be written", path);
    init(w, SBT_TRACE_BARRIER, BARRIER, n);
    for (uint32_t i = 0; i <= MOST_THREADS; i++)
        init(w, SBT_TRACE_SEM, POSTED + i, 0);
    for (uint32_t i = 1; i < n; i++)
        about_thread(w, SBT_TRACE_THREAD_CREATE, i);
    for (uint64_t round = 0; round < N_ROUNDS; round++)
        one_round(w, n, round);
    for (uint32_t i = 1; i < n; i++) {
        call(w, i, SBT_TRACE_THREAD_END, SBT_TRACE_NO_OBJECT, SBT_TRACE_NONE, 0);
        about_thread(w, SBT_TRACE_THREAD_JOIN, i);
    }
    call(w, 0, SBT_TRACE_THREAD_END, SBT_TRACE_NO_OBJECT, SBT_TRACE_NONE, 0);
    if (sbt_trace_finish(w) != 0)
        give_up("'%s': it cannot be written", path);
}

static struct sim_config some_host(void) {
    struct sim_host_costs costs = sim_host_costs_reference();
    struct sim_config config = sim_config_default();
    config.sync = SIM_SWITCH;
    config.let_pass = true;
    config.width = 2 + below(7);
    config.height = 1;
    config.host = sim_host_model_of(&costs, SIM_HOST_SWITCH, config.width);
    if (grain_ns > 1)
        config.host = (struct sim_host_model){.slice_ns = 2800000,
                                              .tick_ns = 4000000,
                                              .fiber_ns = below(2) * grain_ns,
                                              .fiber_wake_ns = below(2) * grain_ns,
                                              .late_idle_ns = below(3) * grain_ns,
                                              .search_ns = config.host.search_ns};
    config.host.search_ns = below(4) == 0 ? below(12) * 5000 + below(2) * below(5000) : config.host.search_ns;
    config.host.deep_after_ns = below(2) ? below(60000) : config.host.deep_after_ns;
    config.host.effects = below(2) ? SIM_HOST_ALL : below(SIM_HOST_ALL + 1);
    config.host.spin_ns = below(3) * 1000;
    return config;
}

static void print(const struct sim *sim, uint32_t number, uint32_t n) {
    struct sim_summary s = sim_summary(sim);
    printf("program %" PRIu32 ": %" PRIu64 " ns, switches %" PRIu64 ", migrations %" PRIu64 ", sleeps %" PRIu64
           ", lost %" PRIu64 "\n",
           number, s.makespan_ns, s.n_switches, s.n_migrations, s.n_futex_waits, s.n_lost_races);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_thread_result r;
        if (!sim_thread(sim, 0, i, &r))
            give_up("program %" PRIu32 ": thread %" PRIu32 " has not run", number, i);
        printf("thread %" PRIu32 ": %" PRIu64 " to %" PRIu64 ", ready %" PRIu64 ", waits %" PRIu64 "\n", i, r.from_ns,
               r.to_ns, r.in_ns[SIM_READY], r.in_ns[SIM_WAIT]);
    }
}

static void run(const char *path, uint32_t number) {
    struct sbt_trace_error damage;
    struct sim_error error = {.text = ""};
    static const uint32_t grains[] = {1, 1, 1, 500, 2000, 2500};
    seed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    grain_ns = grains[below(6)];
    struct sim_config config = some_host();
    uint32_t n = 2 + below(MOST_THREADS - 1);
    write_program(path, n);
    struct sbt_trace *trace = sbt_trace_open(path, &damage);
    struct sim *sim = sim_new(&config, &error);
    if (trace == NULL || sim == NULL || sim_add(sim, trace, "random", &error) != SIM_OK ||
        sim_run(sim, &error) != SIM_OK)
        give_up("program %" PRIu32 ": %s", number, trace == NULL ? damage.reason : error.text);
    print(sim, number, n);
    sim_free(sim);
    sbt_trace_close(trace);
}

int main(int argc, char **argv) {
    const char *folder = getenv("TMPDIR");
    char path[4096];
    uint32_t n = argc == 2 ? (uint32_t)atoi(argv[1]) : 0;
    if (n == 0) {
        fputs("Usage: search-results N\n", stderr);
        return 2;
    }
    snprintf(path, sizeof path, "%s/subutai-search.XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        give_up("'%s': it cannot be made", path);
    close(fd);
    for (uint32_t i = 0; i < n; i++)
        run(path, i);
    unlink(path);
    return 0;
}

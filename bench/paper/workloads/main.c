/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * workload APPLICATION [--threads N] [--phase NS] [--worker NS] [--spread PERMILLE] [--seed S] [-o FILE] : one of the
 * paper's applications as a trace; without -o nothing is written. What it counted goes to stdout as JSON.
 */
#include "workload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_file.h"

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "workload: %s%s%s\n", what, *why ? ": " : "", why);
    return 2;
}

static int append(void *to, uint32_t thread, const struct sbt_trace_event *event) {
    return to ? sbt_trace_append(to, thread, event) : 0;
}

static void print_json(const struct workload_request *request, const struct workload_counts *counts) {
    struct json j = json_on(stdout);
    json_open(&j, NULL, '{');
    json_text(&j, "application", request->application);
    json_uint(&j, "threads", request->n_threads);
    json_uint(&j, "phase_ns", request->phase_ns);
    json_uint(&j, "worker_ns", request->worker_ns);
    json_uint(&j, "spread_permille", request->spread_permille);
    json_uint(&j, "seed", request->seed);
    json_uint(&j, "mutexes", counts->n_mutexes);
    json_uint(&j, "conditions", counts->n_conditions);
    json_uint(&j, "barriers", counts->n_barriers);
    json_uint(&j, "mutex_events", counts->mutex_events);
    json_uint(&j, "condition_events", counts->condition_events);
    json_uint(&j, "barrier_events", counts->barrier_events);
    json_uint(&j, "events", counts->n_events);
    json_uint(&j, "held_ns", counts->held_ns);
    json_close(&j, '}');
    json_end(&j);
}

static int write_trace(const char *file, const struct workload_request *request, struct workload_counts *counts) {
    const char *why;
    char command[200];
    snprintf(command, sizeof command,
             "workload %s --threads %" PRIu32 " --phase %" PRIu64 " --worker %" PRIu64 " --spread %" PRIu32
             " --seed %" PRIu64,
             request->application, request->n_threads, request->phase_ns, request->worker_ns, request->spread_permille,
             request->seed);
    struct sbt_trace_writer *writer = sbt_trace_create(file, command);
    if (!writer)
        return refuse(file, strerror(errno));
    int error = workload_generate(request, append, writer, counts, &why), unfinished = sbt_trace_finish(writer);
    if (error || unfinished) {
        remove(file);
        return refuse(file, strerror(error ? error : unfinished));
    }
    return 0;
}

int main(int argc, char **argv) {
    struct workload_request request = {.n_threads = 64, .phase_ns = 1000000, .spread_permille = 250, .seed = 1};
    uint64_t threads = request.n_threads, spread = request.spread_permille;
    const struct {
        const char *name;
        uint64_t *value;
    } options[] = {{"--threads", &threads},
                   {"--phase", &request.phase_ns},
                   {"--worker", &request.worker_ns},
                   {"--spread", &spread},
                   {"--seed", &request.seed}};
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') {
            if (request.application)
                return refuse(argv[i], "more than one application");
            request.application = argv[i];
            continue;
        }
        if (i + 1 == argc)
            return refuse(argv[i], "needs a value (legal: --threads, --phase, --worker, --spread, --seed, -o)");
        uint64_t *value = NULL;
        for (size_t k = 0; k < sizeof options / sizeof *options; k++)
            if (!strcmp(options[k].name, argv[i]))
                value = options[k].value;
        if (!strcmp(argv[i], "-o")) {
            file = argv[++i];
            continue;
        }
        if (!value)
            return refuse(argv[i], "unknown option (legal: --threads, --phase, --worker, --spread, --seed, -o)");
        char *end;
        errno = 0;
        *value = strtoull(argv[++i], &end, 10);
        if (errno || *end || argv[i][0] < '0' || argv[i][0] > '9')
            return refuse(argv[i], "not a number");
    }
    if (!request.application)
        return refuse("no application (legal: bodytrack, streamcluster, x264, facesim)", "");
    request.n_threads = threads > UINT32_MAX ? 0 : (uint32_t)threads;
    request.spread_permille = spread > 1000 ? 1000 : (uint32_t)spread;
    if (!request.worker_ns)
        request.worker_ns = request.phase_ns;

    struct workload_counts counts;
    const char *why;
    /* First without a file, so that a request that is refused leaves none. */
    if (workload_generate(&request, append, NULL, &counts, &why))
        return refuse(request.application, why);
    int status = file ? write_trace(file, &request, &counts) : 0;
    if (status != 0)
        return status;
    print_json(&request, &counts);
    return 0;
}

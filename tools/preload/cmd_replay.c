/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai replay`: the requests of a live run of the engine ni, once more in the model. */
#include <stdio.h>
#include <stdlib.h>

#include "command.h"
#include "fields.h"
#include "log.h"

enum { REPLAY_JSON };
static const struct own_option replay_options[] = {
    [REPLAY_JSON] = {0, "json", NULL, "one JSON object for each process and line"},
    {0, NULL, NULL, NULL},
};

#define RESULT(member) offsetof(struct sim_log_result, member)
static const struct field result_fields[] = {
    {NULL, "process", "process", 1, FIELD_UINT32, RESULT(process), 0},
    {NULL, "forked", NULL, 0, FIELD_BOOL, RESULT(child), 0},
    {NULL, "width", NULL, 0, FIELD_UINT32, RESULT(width), 0},
    {NULL, "height", NULL, 0, FIELD_UINT32, RESULT(height), 0},
    {NULL, "control_elements", NULL, 0, FIELD_UINT32, RESULT(n_control), 0},
    {NULL, "queue_elements", NULL, 0, FIELD_UINT32, RESULT(n_queue), 0},
    {NULL, "time_scale", NULL, 0, FIELD_UINT32, RESULT(time_scale), 0},
    {NULL, "nis", "NIs", 2, FIELD_UINT32, RESULT(n_nis), 0},
    {NULL, "requests", "requests", 3, FIELD_UINT64, RESULT(n_requests), 0},
    {NULL, "answers", "answers", 4, FIELD_UINT64, RESULT(n_answers), 0},
    {NULL, "grants", "grants", 5, FIELD_UINT64, RESULT(n_grants), 0},
    {NULL, "held", "held", 6, FIELD_UINT64, RESULT(n_held), 0},
    {NULL, "differs", NULL, 0, FIELD_BOOL, RESULT(differs), 0},
    {NULL, "difference", NULL, 0, FIELD_CHARS, RESULT(difference), 0},
    {0},
};

/* The requests of one kind. */
struct latency_row {
    const char *operation;
    uint64_t n;
    double mean, waits;
};

#define LATENCY(member) offsetof(struct latency_row, member)
static const struct field latency_fields[] = {
    {NULL, "operation", "latency", 1, FIELD_TEXT, LATENCY(operation), 0},
    {NULL, "count", "count", 2, FIELD_UINT64, LATENCY(n), 0},
    {NULL, "mean_ns", "mean", 3, FIELD_NS, LATENCY(mean), 2},
    {NULL, "network_wait_ns", "waits in the network", 4, FIELD_NS, LATENCY(waits), 2},
    {0},
};

static bool latency_row(const struct sim_log_latency *l, unsigned op, struct latency_row *row) {
    if (l->n == 0)
        return false;
    double n = (double)l->n;
    *row =
        (struct latency_row){sim_log_op_name((enum hw_op)op), l->n, (double)l->sum / n, (double)l->network_waits / n};
    return true;
}

static void put_json(const struct sim_log_result *result) {
    struct json j = json_on(stdout);
    struct latency_row row;
    json_open(&j, NULL, '{');
    fields_json(&j, result_fields, 0, result);
    json_open(&j, "latencies", '[');
    for (unsigned op = 0; op < HW_N_REQUESTS; op++)
        if (latency_row(&result->latency[op], op, &row)) {
            json_open(&j, NULL, '{');
            fields_json(&j, latency_fields, 0, &row);
            json_close(&j, '}');
        }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static void put_text(const struct sim_log_result *result) {
    struct table table = fields_table(result_fields, 0);
    struct latency_row row;
    fields_row(&table, result_fields, 0, result);
    table_print(&table, stdout);
    if (result->differs)
        printf("different: %s\n\n", result->difference);
    else
        printf("the same in the model%s\n\n", result->child ? ", from the state that it was forked with" : "");
    table = fields_table(latency_fields, 0);
    for (unsigned op = 0; op < HW_N_REQUESTS; op++)
        if (latency_row(&result->latency[op], op, &row))
            fields_row(&table, latency_fields, 0, &row);
    table_print(&table, stdout);
}

static int replay_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    struct sim_log_result result;
    struct sim_error error;
    const char *path = NULL;
    bool json = false, differs = false;
    for (int option; (option = args_next(&args)) != ARGS_END;) {
        if (option == REPLAY_JSON)
            json = true;
        else if (path == NULL)
            path = args.value;
        else
            cmd_refuse("replay: unexpected argument '%s' (legal: one FILE)", args.value);
    }
    if (path == NULL)
        cmd_refuse("replay: no file given (legal: subutai replay [--json] FILE)");
    struct sim_log *log = sim_log_open(path, &error);
    if (log == NULL)
        cmd_refuse("replay: '%s': %s (legal: what subutai run --engine ni --requests FILE has written)", path,
                   error.text);
    for (uint32_t i = 0; i < sim_log_n_processes(log); i++) {
        if (!sim_log_replay(log, i, &result, &error))
            cmd_refuse("replay: '%s': %s", path, error.text);
        if (!json && i > 0)
            putchar('\n');
        (json ? put_json : put_text)(&result);
        differs |= result.differs;
    }
    sim_log_close(log);
    return differs ? CMD_DIFFERENT : CMD_OK;
}

const struct command command_replay = {
    .name = "replay",
    .synopsis = "[--json] FILE",
    .summary = "replay the requests of a run under the engine ni in the model",
    .details =
        "FILE is what subutai run --engine ni --requests FILE has written. The requests of each process are fed to "
        "the\n"
        "simulator's network interfaces in the order in which they were served. The answers have to be the same, and\n"
        "their times to the cycle. Prints the first difference of each process, and what requests took in the model's\n"
        "time. Exit status: 0 the same, 1 different, 2 refused.\n",
    .options = replay_options,
    .main = replay_main,
};

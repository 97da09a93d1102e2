/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs subutai-calibrate, once for each part and each way to serve calls, and collects its samples.
 *
 * The calls are measured in two rounds, so that a change of the machine's pace meets all engines alike. The user's
 * SUBUTAI_* variables do not reach the runs: costs are those of the defaults.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrate.h"
#include "command.h"
#include "env.h"
#include "trial.h"

static const struct part {
    const char *name;  /* subutai-calibrate's */
    const char *group; /* of the costs that it measures */
    const char *engine, *wait;
    double share; /* of the time; all together 1 */
} parts[] = {
    {"kernel", "kernel", NULL, NULL, 0.2},        {"turns", "kernel", NULL, NULL, 0.2},
    {"core", "core", NULL, NULL, 0.05},           {"memory", "memory", NULL, NULL, 0.2},
    {"sync", "glibc", NULL, NULL, 0.05},          {"sync", "direct", "direct", NULL, 0.05},
    {"sync", "switch", "direct", "switch", 0.05}, {"fibers", "switch", "direct", "switch", 0.05},
    {"sync", "glibc", NULL, NULL, 0.05},          {"sync", "direct", "direct", NULL, 0.05},
    {"sync", "switch", "direct", "switch", 0.05},
};
enum { N_PARTS = sizeof parts / sizeof *parts };

static void progress(const char *format, size_t i, const char *name) {
    if (isatty(STDERR_FILENO))
        fprintf(stderr, format, i, (size_t)N_PARTS, name);
}

/* One line of what the failed run said. */
_Noreturn static void failed(const struct part *part, const struct trial *trial) {
    char outcome[32], *err = trial_text(trial->err);
    err[strcspn(err, "\n")] = '\0';
    progress("\r\033[K", 0, "");
    cmd_warn("calibrate: %s%s%s: %s%s%s", part->name, part->engine != NULL ? " of " : "",
             part->engine != NULL ? part->group : "", trial_outcome(trial, outcome), err[0] != '\0' ? ": " : "", err);
    exit(WIFEXITED(trial->status) && WEXITSTATUS(trial->status) == CMD_REFUSED ? CMD_REFUSED : CMD_DIFFERENT);
}

_Noreturn static void no_sense(const struct part *part, const char *what, const char *key) {
    progress("\r\033[K", 0, "");
    cmd_warn("calibrate: %s: %s '%s'", part->name, what, key);
    exit(CMD_DIFFERENT);
}

/* The part's output, an object that the caller frees. */
static json_t *run(struct calibration *c, const struct part *part, char *const *environment) {
    struct sbt_options loaded;
    struct settings own = {{NULL}};
    char seconds[32];
    own.text[SBT_OPT_ENGINE] = part->engine;
    own.text[SBT_OPT_WAIT] = part->wait;
    char **envp = env_build("calibrate", environment, NULL, &own, part->engine != NULL ? c->library : NULL,
                            strrchr(c->library, '/') + 1, &loaded);
    snprintf(seconds, sizeof seconds, "%.4f", part->share * c->seconds);
    char *argv[] = {(char *)"subutai-calibrate", (char *)part->name, seconds, NULL};
    struct trial_program program = {
        .subcommand = "calibrate", .path = c->program, .argv = argv, .timeout_ns = INT64_C(60000000000)};
    struct trial trial = trial_run(&program, envp);
    if (trial.timed_out || trial.status != 0)
        failed(part, &trial);
    char *text = trial_text(trial.out);
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object))
        no_sense(part, "no result in", text);
    c->own_s += (double)trial.cpu_ns / 1e9;
    trial_release(&trial);
    free(text);
    free(envp);
    return object;
}

static size_t row_of(const char *group, const char *key) {
    size_t i = 0;
    while (i < sim_n_host_costs &&
           (strcmp(sim_host_cost_table[i].group, group) != 0 || strcmp(sim_host_cost_table[i].key, key) != 0))
        i++;
    return i;
}

static void add(struct calibration *c, const struct part *part, const char *key, const json_t *sample) {
    size_t i = row_of(part->group, key);
    if (i == sim_n_host_costs || !json_is_number(sample))
        no_sense(part, "no sample of a cost:", key);
    struct cost_samples *s = &c->samples[i];
    s->value = cmd_reallocate(s->value, s->n + 1, sizeof *s->value);
    s->value[s->n++] = json_number_value(sample);
}

/* {"call_ns": [170.1, ...], ...} */
static void collect(struct calibration *c, const struct part *part, json_t *object) {
    const char *key;
    json_t *list;
    json_object_foreach(object, key, list) {
        size_t i;
        json_t *sample;
        if (!json_is_array(list))
            no_sense(part, "no list of samples in", key);
        json_array_foreach(list, i, sample) {
            add(c, part, key, sample);
        }
    }
}

static void take_text(const struct part *part, const json_t *machine, const char *key,
                      char name[static SIM_HOST_TEXT]) {
    const char *text = json_string_value(json_object_get(machine, key));
    if (text == NULL)
        no_sense(part, "no text", key);
    snprintf(name, SIM_HOST_TEXT, "%s", text);
}

static uint32_t take_count(const struct part *part, const json_t *machine, const char *key) {
    json_int_t n = json_integer_value(json_object_get(machine, key));
    if (n < 1 || n > UINT32_MAX)
        no_sense(part, "no number", key);
    return (uint32_t)n;
}

void calibrate_machine(struct calibration *c) {
    static const struct part part = {"machine", "caches", NULL, NULL, 1};
    for (size_t i = 0; i < SBT_N_OPTIONS; i++)
        unsetenv(sbt_option_table[i].env);
    c->samples = cmd_allocate(sim_n_host_costs, sizeof *c->samples);
    json_t *object = run(c, &part, environ);
    const json_t *machine = json_object_get(object, "machine");
    const char *key;
    json_t *value;
    take_text(&part, machine, "cpu", c->cpu_name);
    take_text(&part, machine, "kernel", c->kernel_name);
    take_text(&part, machine, "libc", c->libc_name);
    c->n_cpus = take_count(&part, machine, "n_cpus");
    c->n_cores = take_count(&part, machine, "n_cores");
    json_object_foreach(json_object_get(object, "caches"), key, value) {
        add(c, &part, key, value);
    }
    json_decref(object);
}

void calibrate_measure(struct calibration *c) {
    for (size_t i = 0; i < N_PARTS; i++) {
        progress("\rmeasuring, %zu of %zu: %s\033[K", i + 1, parts[i].engine != NULL ? parts[i].group : parts[i].name);
        json_t *object = run(c, &parts[i], environ);
        collect(c, &parts[i], object);
        json_decref(object);
    }
    progress("\r\033[K", 0, "");
    for (size_t i = 0; i < sim_n_host_costs; i++)
        if (c->samples[i].n == 0 && !sim_host_cost_is_optional(&sim_host_cost_table[i])) {
            cmd_warn("calibrate: there is no sample of '%s.%s'", sim_host_cost_table[i].group,
                     sim_host_cost_table[i].key);
            exit(CMD_DIFFERENT);
        }
}

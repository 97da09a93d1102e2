/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads a file of costs. The JSON is jansson's to read: a small library that allocates only what it returns, keeps
 * whole and real numbers apart, and refuses doubled keys, NaN and numbers without an end. What is wrong with it is said
 * here, with the key.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_costs.h"

enum { MAX_FILE = 1 << 20, KEY_SIZE = 96 };

struct reading {
    struct sim_host_costs *costs;
    char *error;
    size_t error_size;
};

static int fail(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(struct reading *r, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(r->error, r->error_size, format, list);
    va_end(list);
    for (char *c = r->error; *c != '\0'; c++) /* a line, whatever the file holds */
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
    return -1;
}

static const char *type_of(const json_t *value) {
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array", [JSON_STRING] = "a text", [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",      [JSON_FALSE] = "false",   [JSON_NULL] = "null"};
    return names[json_typeof(value)];
}

/* Member `key` of an object that is itself called `group` (NULL: the file); NULL, and the failure is written. */
static const json_t *member(struct reading *r, const json_t *object, const char *group, const char *key, json_type type,
                            const char *legal) {
    const json_t *value = json_object_get(object, key);
    const char *dot = group != NULL ? "." : "", *in = group != NULL ? group : "";
    if (value == NULL)
        return fail(r, "'%s%s%s' is missing", in, dot, key), NULL;
    if (json_typeof(value) != type && !(type == JSON_REAL && json_is_integer(value)) &&
        !(type == JSON_TRUE && json_is_boolean(value)))
        return fail(r, "'%s%s%s' is %s (legal: %s)", in, dot, key, type_of(value), legal), NULL;
    return value;
}

static int text(struct reading *r, const json_t *object, const char *group, const char *key,
                char buffer[static SIM_HOST_TEXT]) {
    const json_t *value = member(r, object, group, key, JSON_STRING, "a text");
    if (value == NULL)
        return -1;
    if (json_string_length(value) >= SIM_HOST_TEXT)
        return fail(r, "'%s.%s' has %zu bytes (legal: at most %d)", group, key, json_string_length(value),
                    SIM_HOST_TEXT - 1);
    strcpy(buffer, json_string_value(value));
    return 0;
}

static int number(struct reading *r, const json_t *value, const char *key, double min, double max, double *got) {
    if (!json_is_number(value))
        return fail(r, "'%s' is %s (legal: a number)", key, type_of(value));
    *got = json_number_value(value);
    if (!(*got >= min && *got <= max)) /* a NaN too */
        return fail(r, "'%s' is %.6g (legal: %.6g to %.6g)", key, *got, min, max);
    return 0;
}

/* Refuses what is not in `known`, which ends with NULL. */
static int only(struct reading *r, const json_t *object, const char *group, const char *const *known) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t i = 0;
        while (known[i] != NULL && strcmp(known[i], key) != 0)
            i++;
        if (known[i] == NULL)
            return fail(r, "'%s%s%s' is unknown in version %d", group != NULL ? group : "", group != NULL ? "." : "",
                        key, SIM_HOST_COSTS_VERSION);
    }
    return 0;
}

/* What was measured: its five numbers are in order, and the median is legal. A sample that met a stall of the machine
 * may be above what is legal: the median, which is what a prediction uses, does not mind. */
static int spread(struct reading *r, const json_t *object, const char *key, const struct sim_host_cost *row,
                  double *median) {
    static const char *const names[] = {"median", "min", "q1", "q3", "max", "n", NULL};
    enum { MEDIAN = 2 }; /* of `order` */
    static const char *const order[] = {"min", "q1", "median", "q3", "max"};
    double last = row->min, n = 0;
    char place[KEY_SIZE + 16];
    if (only(r, object, key, names) != 0)
        return -1;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const json_t *value = member(r, object, key, order[i], JSON_REAL, "a number");
        double now = 0;
        snprintf(place, sizeof place, "%s.%s", key, order[i]);
        if (value == NULL || number(r, value, place, row->min, i > MEDIAN ? 1e15 : row->max, &now) != 0)
            return -1;
        if (now < last)
            return fail(r, "'%s' is %.6g, below '%s' (legal: min, q1, median, q3, max in this order)", place, now,
                        order[i - 1]);
        if (strcmp(order[i], "median") == 0)
            *median = now;
        last = now;
    }
    const json_t *value = member(r, object, key, "n", JSON_INTEGER, "a whole number");
    snprintf(place, sizeof place, "%s.n", key);
    return value == NULL ? -1 : number(r, value, place, 1, 1e15, &n);
}

bool sim_host_cost_is_optional(const struct sim_host_cost *row) {
    static const size_t optional[] = {offsetof(struct sim_host_costs, kernel.interrupt_ns),
                                      offsetof(struct sim_host_costs, kernel.idle_entry_ns),
                                      offsetof(struct sim_host_costs, kernel.wake_soon_ns),
                                      offsetof(struct sim_host_costs, kernel.latency_soon_ns),
                                      offsetof(struct sim_host_costs, kernel.wake_short_ns),
                                      offsetof(struct sim_host_costs, kernel.latency_short_ns),
                                      offsetof(struct sim_host_costs, core.line_after_work_ns)};
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (row->offset == optional[i])
            return true;
    return false;
}

/* A cost that files of this version have not had from the beginning: without it, it is 0. */
static bool is_later(const struct sim_host_cost *row) {
    return row->offset == offsetof(struct sim_host_costs, kernel.wake_remote_ns) || sim_host_cost_is_optional(row);
}

static int cost(struct reading *r, const json_t *group, const struct sim_host_cost *row) {
    char key[KEY_SIZE];
    double *place = (double *)((char *)r->costs + row->offset);
    const json_t *value = json_object_get(group, row->key);
    snprintf(key, sizeof key, "%s.%s", row->group, row->key);
    if (value == NULL)
        return is_later(row) ? 0 : fail(r, "'%s' is missing", key);
    if (json_is_object(value))
        return spread(r, value, key, row, place);
    if (!json_is_number(value))
        return fail(r, "'%s' is %s (legal: a number, or an object with median, min, q1, q3, max and n)", key,
                    type_of(value));
    return number(r, value, key, row->min, row->max, place);
}

static int costs(struct reading *r, const json_t *file) {
    for (size_t i = 0, n; i < sim_n_host_costs; i += n) {
        const struct sim_host_cost *first = &sim_host_cost_table[i];
        const json_t *group = member(r, file, NULL, first->group, JSON_OBJECT, "an object");
        const char *known[32] = {NULL};
        if (group == NULL)
            return -1;
        for (n = 0; i + n < sim_n_host_costs && strcmp(first[n].group, first->group) == 0; n++) {
            known[n] = first[n].key;
            if (cost(r, group, &first[n]) != 0)
                return -1;
        }
        if (only(r, group, first->group, known) != 0)
            return -1;
    }
    return 0;
}

static int machine(struct reading *r, const json_t *file) {
    static const char *const known[] = {"cpu", "kernel", "libc", "n_cpus", "n_cores", NULL};
    const json_t *object = member(r, file, NULL, "machine", JSON_OBJECT, "an object"), *cpus, *cores;
    struct sim_host_costs *c = r->costs;
    double n_cpus = 0, n_cores = 0;
    if (object == NULL || text(r, object, "machine", "cpu", c->cpu_name) != 0 ||
        text(r, object, "machine", "kernel", c->kernel_name) != 0 ||
        text(r, object, "machine", "libc", c->libc_name) != 0 ||
        (cpus = member(r, object, "machine", "n_cpus", JSON_INTEGER, "a whole number")) == NULL ||
        (cores = member(r, object, "machine", "n_cores", JSON_INTEGER, "a whole number")) == NULL ||
        number(r, cpus, "machine.n_cpus", 1, 65536, &n_cpus) != 0 ||
        number(r, cores, "machine.n_cores", 1, n_cpus, &n_cores) != 0)
        return -1;
    c->n_cpus = (uint32_t)n_cpus;
    c->n_cores = (uint32_t)n_cores;
    return only(r, object, "machine", known);
}

/* How it was measured. Only "forced" matters to a reader in C. */
static int measured(struct reading *r, const json_t *file) {
    static const char *const known[] = {"by", "at", "seconds", "forced", "busy_share", "stolen_share", NULL};
    const json_t *object = member(r, file, NULL, "measured", JSON_OBJECT, "an object"), *value;
    if (object == NULL || (value = member(r, object, "measured", "forced", JSON_TRUE, "true or false")) == NULL)
        return -1;
    r->costs->forced = json_is_true(value);
    return only(r, object, "measured", known);
}

static int header(struct reading *r, const json_t *file) {
    const json_t *value;
    if (!json_is_object(file))
        return fail(r, "the file has %s (legal: an object, as 'subutai calibrate' writes it)", type_of(file));
    value = member(r, file, NULL, "format", JSON_STRING, "\"" SIM_HOST_COSTS_FORMAT "\"");
    if (value == NULL)
        return -1;
    if (strcmp(json_string_value(value), SIM_HOST_COSTS_FORMAT) != 0)
        return fail(r, "'format' is \"%.40s\" (legal: \"" SIM_HOST_COSTS_FORMAT "\")", json_string_value(value));
    value = member(r, file, NULL, "version", JSON_INTEGER, "a whole number");
    if (value == NULL)
        return -1;
    if (json_integer_value(value) != SIM_HOST_COSTS_VERSION)
        return fail(r, "'version' is %lld (legal: %d)", (long long)json_integer_value(value), SIM_HOST_COSTS_VERSION);
    return 0;
}

static int whole(struct reading *r, const json_t *file) {
    const char *known[16] = {"format", "version", "machine", "measured"};
    size_t n_known = 4;
    for (size_t i = 0; i < sim_n_host_costs; i++)
        if (i == 0 || strcmp(sim_host_cost_table[i].group, sim_host_cost_table[i - 1].group) != 0)
            known[n_known++] = sim_host_cost_table[i].group;
    if (header(r, file) != 0 || machine(r, file) != 0 || measured(r, file) != 0 || costs(r, file) != 0)
        return -1;
    return only(r, file, NULL, known);
}

/* The last key before the place where the JSON ends to be JSON: "key":. Its length; 0: there is none. */
static size_t key_before(const char *text, size_t at, const char **key) {
    while (at-- > 0) {
        size_t end = at;
        if (text[at] != ':')
            continue;
        while (end > 0 && (text[end - 1] == ' ' || text[end - 1] == '\t'))
            end--;
        if (end == 0 || text[end - 1] != '"')
            continue;
        size_t begin = --end;
        while (begin > 0 && text[begin - 1] != '"' && text[begin - 1] != '\n')
            begin--;
        if (begin == 0 || text[begin - 1] != '"')
            continue;
        *key = text + begin;
        return end - begin;
    }
    return 0;
}

int sim_host_costs_parse(const char *text, size_t n, struct sim_host_costs *costs, char *error, size_t error_size) {
    struct reading r = {costs, error, error_size};
    json_error_t wrong;
    json_t *file = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &wrong);
    *costs = (struct sim_host_costs){0};
    if (file == NULL) {
        const char *key = "";
        size_t at = wrong.position > 0 && (size_t)wrong.position < n ? (size_t)wrong.position : n;
        size_t length = key_before(text, at, &key);
        return fail(&r, "line %d: %s%s%.*s%s", wrong.line, wrong.text, length > 0 ? ", after '" : "",
                    (int)(length < KEY_SIZE ? length : KEY_SIZE), key, length > 0 ? "'" : "");
    }
    int result = whole(&r, file);
    json_decref(file);
    return result;
}

int sim_host_costs_read(const char *path, struct sim_host_costs *costs, char *error, size_t error_size) {
    struct reading r = {costs, error, error_size};
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return fail(&r, "%s", strerror(errno));
    char *text = malloc(MAX_FILE + 1);
    size_t n = 0;
    int result = -1;
    errno = 0;
    if (text != NULL)
        n = fread(text, 1, MAX_FILE + 1, file);
    if (text == NULL)
        fail(&r, "out of memory");
    else if (ferror(file))
        fail(&r, "%s", strerror(errno));
    else if (n > MAX_FILE)
        fail(&r, "the file has more than %d bytes, so it is none of 'subutai calibrate'", MAX_FILE);
    else
        result = sim_host_costs_parse(text, n, costs, error, error_size);
    free(text);
    fclose(file);
    return result;
}

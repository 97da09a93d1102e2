/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What waiting by switching brings, measured. `subutai compare` runs as a child; it shows its progress on stderr, and
 * the program's standard output goes to it.
 */
#include "report_try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "own_child.h"
#include "words.h"

#define RUNS "5"
enum { MOST_WORDS = 2048 };

static const char *const own[] = {"subutai", "compare", "--json",    "--warmup",         "1",
                                  "--runs",  RUNS,      "--engines", REPORT_TRY_ENGINES, "--"};
enum { N_OWN = sizeof own / sizeof *own, ENGINES = N_OWN - 2 };

/* What compare prints of the command line in `text`, which is changed. NULL: a line has said why. */
static json_t *compare(char *text, const char *command, const char *engines) {
    char *words[MOST_WORDS];
    const char *line[N_OWN + MOST_WORDS + 1] = {NULL};
    size_t n = words_split(text, words, MOST_WORDS);
    if (n == 0 || n == WORDS_BAD) {
        cmd_warn("report: --try: '%.80s' is not a whole command line (legal: --command LINE)", command);
        return NULL;
    }
    memcpy(line, own, sizeof own);
    line[ENGINES] = engines;
    memcpy(line + N_OWN, words, n * sizeof *words);
    json_t *document = own_child_json(line, CMD_DIFFERENT);
    if (document == NULL)
        cmd_warn("report: --try: not measured: subutai compare -- %.80s", command);
    return document;
}

static double number(const json_t *object, const char *member, const char *part) {
    return json_number_value(json_object_get(json_object_get(object, member), part));
}

static bool take(const json_t *document, struct report_tried *tried) {
    const json_t *point = json_array_get(json_object_get(document, "points"), 0),
                 *engines = json_object_get(point, "engines");
    tried->n_engines = json_array_size(engines) - (json_array_size(engines) > 0);
    if (tried->n_engines == 0 || tried->n_engines > REPORT_TRIED_ENGINES)
        return false;
    tried->n_runs = (int)json_integer_value(json_object_get(document, "n_runs"));
    tried->identical = json_is_true(json_object_get(document, "identical"));
    tried->base_ns = number(json_array_get(engines, 0), "wall_ns", "median");
    for (size_t i = 0; i < tried->n_engines; i++) {
        const json_t *engine = json_array_get(engines, i + 1);
        const char *name = json_string_value(json_object_get(engine, "engine"));
        snprintf(tried->engines[i].name, sizeof tried->engines[i].name, "%s", name != NULL ? name : "");
        tried->engines[i].ns = number(engine, "wall_ns", "median");
        tried->engines[i].ratio = number(engine, "ratio", "median");
        tried->engines[i].ratio_min = number(engine, "ratio", "min");
        tried->engines[i].ratio_max = number(engine, "ratio", "max");
    }
    return tried->base_ns > 0;
}

bool report_try(const char *command, const char *lock, struct report_tried *tried) {
    char *text = cmd_format("%s", command),
         *engines = cmd_format(REPORT_TRY_ENGINES "%s%s", lock != NULL ? "," REPORT_TRY_DELEGATED : "",
                               lock != NULL ? lock : "");
    json_t *document = compare(text, command, engines);
    bool measured = document != NULL && take(document, tried);
    if (document != NULL && !measured)
        cmd_warn("report: --try: subutai compare has printed no times");
    json_decref(document);
    free(text);
    free(engines);
    return measured;
}

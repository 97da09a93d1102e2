/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What waiting by switching brings, measured. `subutai compare` runs as a child; it shows its progress on stderr, and
 * the program's standard output goes to it.
 */
#include "report_try.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "words.h"

#define RUNS "5"
enum { MOST_WORDS = 2048 };

/* The command line of `subutai compare`, in memory of `text`, which is changed; NULL: `text` is no command line. */
static char **compare_line(char *text) {
    static const char *const own[] = {"subutai", "compare", "--json",    "--warmup",         "1",
                                      "--runs",  RUNS,      "--engines", REPORT_TRY_ENGINES, "--"};
    enum { N_OWN = sizeof own / sizeof *own };
    char **line = cmd_allocate(N_OWN + MOST_WORDS + 1, sizeof *line);
    for (size_t i = 0; i < N_OWN; i++)
        line[i] = cmd_format("%s", own[i]);
    size_t n = words_split(text, line + N_OWN, MOST_WORDS);
    if (n != 0 && n != WORDS_BAD)
        return line;
    free(line);
    return NULL;
}

/* What compare prints; NULL: it failed, and has said why. */
static json_t *compare(char **line) {
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execv("/proc/self/exe", line);
        _exit(CMD_REFUSED);
    }
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    json_t *document = pid > 0 && from != NULL ? json_loadf(from, 0, NULL) : NULL;
    if (from != NULL)
        fclose(from);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) <= CMD_DIFFERENT)
        return document;
    json_decref(document);
    return NULL;
}

static double number(const json_t *object, const char *member, const char *part) {
    return json_number_value(json_object_get(json_object_get(object, member), part));
}

static bool take(const json_t *document, struct report_tried *tried) {
    const json_t *point = json_array_get(json_object_get(document, "points"), 0),
                 *engines = json_object_get(point, "engines");
    if (json_array_size(engines) != REPORT_TRIED_ENGINES + 1)
        return false;
    tried->n_runs = (int)json_integer_value(json_object_get(document, "n_runs"));
    tried->identical = json_is_true(json_object_get(document, "identical"));
    tried->base_ns = number(json_array_get(engines, 0), "wall_ns", "median");
    for (size_t i = 0; i < REPORT_TRIED_ENGINES; i++) {
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

bool report_try(const char *command, struct report_tried *tried) {
    char *text = cmd_format("%s", command), **line = compare_line(text);
    if (line == NULL) {
        cmd_warn("report: --try: '%.80s' is not a whole command line (legal: --command LINE)", command);
        free(text);
        return false;
    }
    json_t *document = compare(line);
    bool measured = document != NULL && take(document, tried);
    if (!measured)
        cmd_warn("report: --try: not measured: subutai compare -- %.80s", command);
    json_decref(document);
    free(line);
    free(text);
    return measured;
}

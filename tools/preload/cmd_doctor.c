/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai doctor`: prints verdict.h's answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "find.h"
#include "json.h"
#include "switch/refused.h"
#include "verdict.h"

enum { DOCTOR_JSON };
static const struct own_option doctor_options[] = {
    [DOCTOR_JSON] = {0, "json", NULL, "one JSON object instead of text"},
    {0, NULL, NULL, NULL},
};

static size_t n_imported(const struct object *o) {
    size_t n = 0;
    for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
        n += o->primitives[g].n;
    return n;
}

/* The program itself is `objects`[0]; without a closure it is the only one. */
static size_t objects_of(const struct verdict *v, struct object *const **objects) {
    *objects = v->closure != NULL ? v->closure->objects : &v->program;
    return v->closure != NULL ? v->closure->n : 1;
}

/* In the words of the library's own message. NULL: nothing tells against it. To be freed. */
static char *why_not_switched(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *library = sbt_switch_refused_library(objects[i]->path);
        if (library != NULL)
            return cmd_format("the process uses %s, which %s", objects[i]->path, library);
        if (objects[i]->switch_reason != NULL)
            return cmd_format("%s uses %s, which %s", objects[i]->path, objects[i]->switch_symbol,
                              objects[i]->switch_reason);
    }
    return NULL;
}

static bool main_stays(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->main_stays)
            return true;
    return false;
}

static bool loads_code(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->imports_dlopen && !sbt_switch_is_libc(objects[i]->path))
            return true;
    return false;
}

static void print_group(const char *group, const struct names *names) {
    int column = printf("    %-8s", group);
    for (size_t i = 0; i < names->n; i++) {
        if (column + 1 + strlen(names->list[i]) > 110)
            column = printf("\n    %-8s", "") - 1;
        column += printf(" %s", names->list[i]);
    }
    putchar('\n');
}

static void print_text(const char *name, const struct verdict *v) {
    struct object *const *objects;
    size_t n = objects_of(v, &objects), listed = 0;
    for (size_t i = 0; i < v->followed.n; i++)
        printf("%s\n", v->followed.list[i]);
    if (v->reason == VERDICT_SERVED)
        printf("%s: can be served\n", name);
    else
        printf("%s: cannot be served: %s\n", name, v->detail);
    for (size_t i = 0; i < v->notes.n; i++)
        printf("note: %s\n", v->notes.list[i]);
    if (v->reason == VERDICT_SERVED) {
        char *why = why_not_switched(objects, n);
        printf("--wait switch: %s%s%s\n", why != NULL ? "steps aside: " : "can be used",
               why == NULL && main_stays(objects, n) ? ", but the main thread waits in the kernel" : "",
               why == NULL && loads_code(objects, n) ? "; code that it loads is judged then" : "");
        if (why != NULL)
            printf("  %s\n", why);
        free(why);
    }
    for (size_t i = 0; i < n; i++) {
        if (n_imported(objects[i]) == 0)
            continue;
        if (listed++ == 0)
            printf("imported primitives:\n");
        printf("  %s\n", objects[i]->path);
        for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
            if (objects[i]->primitives[g].n > 0)
                print_group(primitive_group_names[g], &objects[i]->primitives[g]);
    }
}

static void put_names(struct json *j, const char *key, const struct names *names) {
    json_open(j, key, '[');
    for (size_t i = 0; i < names->n; i++)
        json_text(j, NULL, names->list[i]);
    json_close(j, ']');
}

static void print_json(const char *name, const struct verdict *v) {
    struct json j = {.out = stdout};
    struct object *const *objects;
    size_t n = objects_of(v, &objects);
    json_open(&j, NULL, '{');
    json_text(&j, "program", name);
    json_text(&j, "path", v->program->path);
    json_bool(&j, "served", v->reason == VERDICT_SERVED);
    json_text(&j, "reason", verdict_reason_words[v->reason]);
    json_text(&j, "detail", v->detail);
    json_text(&j, "interpreter", v->program->interpreter);
    put_names(&j, "scripts", &v->followed);
    put_names(&j, "notes", &v->notes);
    char *why = why_not_switched(objects, n);
    json_bool(&j, "switchable", v->reason == VERDICT_SERVED && why == NULL);
    json_text(&j, "switch_detail", why);
    json_bool(&j, "switch_main_stays", main_stays(objects, n));
    free(why);
    json_open(&j, "objects", '[');
    for (size_t i = 0; i < n; i++) {
        json_line(&j);
        json_open(&j, NULL, '{');
        json_text(&j, "path", objects[i]->path);
        json_open(&j, "primitives", '{');
        for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
            if (objects[i]->primitives[g].n > 0)
                put_names(&j, primitive_group_names[g], &objects[i]->primitives[g]);
        json_close(&j, '}');
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}

static int doctor_main(const struct command *self, int argc, char **argv) {
    struct args args = {.command = self, .argc = argc, .argv = argv};
    const char *name = NULL;
    bool as_json = false;
    for (int option; (option = args_next(&args)) != ARGS_END;) {
        if (option == DOCTOR_JSON)
            as_json = true;
        else if (name == NULL)
            name = args.value;
        else
            cmd_refuse("doctor: unexpected argument '%s' (legal: one program)", args.value);
    }
    if (name == NULL)
        cmd_refuse("doctor: no program given (legal: subutai doctor [--json] PROG)");

    char *path = find_program("doctor", name);
    struct verdict verdict = verdict_of(path, true);
    (as_json ? print_json : print_text)(path, &verdict);
    int status = verdict.reason == VERDICT_SERVED ? CMD_OK : CMD_DIFFERENT;
    verdict_free(&verdict);
    return status;
}

const struct command command_doctor = {
    .name = "doctor",
    .synopsis = "[--json] PROG",
    .summary = "say whether a program can be served, and if not, why",
    .details =
        "Reads the program's file and those of the libraries it needs; runs nothing. Exit status 0 if the program\n"
        "can be served, 1 if not, 2 if there is no such program.\n",
    .options = doctor_options,
    .main = doctor_main,
};

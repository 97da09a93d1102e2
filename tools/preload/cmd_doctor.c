/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `subutai doctor`: prints the answer of verdict.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "core/eligibility_table.h"
#include "fields.h"
#include "find.h"
#include "sites.h"
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

/* The program is `objects`[0]; without a closure there is only the program. */
static size_t objects_of(const struct verdict *v, struct object *const **objects) {
    *objects = v->closure != NULL ? v->closure->objects : &v->program;
    return v->closure != NULL ? v->closure->n : 1;
}

/* Why --wait switch cannot be used, in the words of the library's own message; NULL: it can. To be freed. */
static char *why_not_switched(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *library = sbt_eligibility_refused_library(objects[i]->path);
        if (library != NULL && !(sbt_eligibility_is_gomp(objects[i]->path) && sites_can_be_served(objects[i]->path)))
            return cmd_format("the process uses %s, which %s", objects[i]->path, library);
        if (objects[i]->switch_reason != NULL)
            return cmd_format("%s uses %s, which %s", objects[i]->path, objects[i]->switch_symbol,
                              objects[i]->switch_reason);
    }
    return NULL;
}

static bool pins_main(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->pins_main)
            return true;
    return false;
}

static bool loads_code(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->imports_dlopen && !sbt_eligibility_is_libc(objects[i]->path))
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
        printf("--wait switch: %s%s%s\n", why != NULL ? "cannot be used:" : "can be used",
               why == NULL && pins_main(objects, n) ? ", but the main thread waits in the kernel" : "",
               why == NULL && loads_code(objects, n) ? "; code that it loads later is checked when it is loaded" : "");
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

struct answer {
    const char *program, *path, *reason, *detail, *interpreter, *switch_detail;
    bool served, switchable, switch_main_stays;
};

#define ANSWER(member) offsetof(struct answer, member)
static const struct field served_fields[] = {
    {NULL, "program", NULL, 0, FIELD_TEXT, ANSWER(program), 0},
    {NULL, "path", NULL, 0, FIELD_TEXT, ANSWER(path), 0},
    {NULL, "served", NULL, 0, FIELD_BOOL, ANSWER(served), 0},
    {NULL, "reason", NULL, 0, FIELD_TEXT, ANSWER(reason), 0},
    {NULL, "detail", NULL, 0, FIELD_TEXT, ANSWER(detail), 0},
    {NULL, "interpreter", NULL, 0, FIELD_TEXT, ANSWER(interpreter), 0},
    {0},
};
static const struct field switched_fields[] = {
    {NULL, "switchable", NULL, 0, FIELD_BOOL, ANSWER(switchable), 0},
    {NULL, "switch_detail", NULL, 0, FIELD_TEXT, ANSWER(switch_detail), 0},
    {NULL, "switch_main_stays", NULL, 0, FIELD_BOOL, ANSWER(switch_main_stays), 0},
    {0},
};

static void put_object(struct json *j, const struct object *o) {
    json_line(j);
    json_open(j, NULL, '{');
    json_text(j, "path", o->path);
    json_open(j, "primitives", '{');
    for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
        if (o->primitives[g].n > 0)
            put_names(j, primitive_group_names[g], &o->primitives[g]);
    json_close(j, '}');
    json_close(j, '}');
}

static void print_json(const char *name, const struct verdict *v) {
    struct json j = json_on(stdout);
    struct object *const *objects;
    size_t n = objects_of(v, &objects);
    char *why = why_not_switched(objects, n);
    struct answer answer = {
        .program = name,
        .path = v->program->path,
        .served = v->reason == VERDICT_SERVED,
        .reason = verdict_reason_words[v->reason],
        .detail = v->detail,
        .interpreter = v->program->interpreter,
        .switchable = v->reason == VERDICT_SERVED && why == NULL,
        .switch_detail = why,
        .switch_main_stays = pins_main(objects, n),
    };
    json_open(&j, NULL, '{');
    fields_json(&j, served_fields, 0, &answer);
    put_names(&j, "scripts", &v->followed);
    put_names(&j, "notes", &v->notes);
    fields_json(&j, switched_fields, 0, &answer);
    free(why);
    json_open(&j, "objects", '[');
    for (size_t i = 0; i < n; i++)
        put_object(&j, objects[i]);
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

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
    return v->closure != NULL ? v->closure->n_linked : 1;
}

/* Why a process with that object is not switched, in the words of the library's own message; NULL: it is. To be freed.
 */
static char *why_not_with(const struct object *o) {
    const char *name = o->soname != NULL ? o->soname : o->path; /* as sbt_dynamic_name */
    const char *library = sbt_eligibility_refused_library(name);
    if (library != NULL && !(sbt_eligibility_is_gomp(name) && sites_can_be_served(o->path)))
        return cmd_format("the process uses %s, which %s", o->path, library);
    return o->switch_reason == NULL ? NULL
                                    : cmd_format("%s uses %s, which %s", o->path, o->switch_symbol, o->switch_reason);
}

/* The same for a whole process. */
static char *why_not_switched(struct object *const *objects, size_t n) {
    char *why = NULL;
    for (size_t i = 0; i < n && why == NULL; i++)
        why = why_not_with(objects[i]);
    return why;
}

static bool pins_main(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->pins_main)
            return true;
    return false;
}

static bool may_handle(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->may_handle)
            return true;
    return false;
}

static const char *but_main(struct object *const *objects, size_t n) {
    return pins_main(objects, n)    ? ", but the main thread waits in the kernel"
           : may_handle(objects, n) ? ", but from the first signal handler on the main thread waits in the kernel"
                                    : "";
}

static bool loads_code(struct object *const *objects, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (objects[i]->imports_dlopen && !sbt_eligibility_is_libc(objects[i]->path))
            return true;
    return false;
}

/*
 * What the program may load later, and what ends switching then. Only the libraries beside the program are known; each
 * is named once, with the first reason in what it needs.
 */
struct later {
    struct names paths, reasons; /* of the libraries that end switching */
    size_t n_others;             /* libraries that do not */
};

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Give each object the reason of what it needs, until no more get one. why[i] is of objects[i]. */
static void spread_reasons(struct object *const *objects, char **why, size_t n) {
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; why[i] == NULL && k < objects[i]->needed.n; k++)
                for (size_t l = 0; why[i] == NULL && l < n; l++)
                    if (why[l] != NULL && strcmp(base_of(objects[l]->path), base_of(objects[i]->needed.list[k])) == 0) {
                        why[i] = cmd_format("%s", why[l]);
                        more = true;
                    }
    }
}

static struct later judge_later(const struct closure *c) {
    struct later later = {0};
    if (c == NULL)
        return later;
    size_t n = c->n - c->n_linked;
    char **why = cmd_allocate(n + 1, sizeof *why);
    struct object *const *objects = c->objects + c->n_linked;
    for (size_t i = 0; i < n; i++)
        why[i] = why_not_with(objects[i]);
    spread_reasons(objects, why, n);
    for (size_t i = 0; i < n; i++) {
        bool is_beside = c->needed_by[c->n_linked + i] == c->n_linked + i;
        if (is_beside && why[i] != NULL) {
            names_add(&later.paths, objects[i]->path);
            names_add(&later.reasons, why[i]);
        }
        later.n_others += is_beside && why[i] == NULL;
        free(why[i]);
    }
    free(why);
    return later;
}

static void free_names(struct names *names) {
    for (size_t i = 0; i < names->n; i++)
        free(names->list[i]);
    free(names->list);
}

static void print_later(const struct closure *c) {
    struct later later = judge_later(c);
    for (size_t i = 0; i < later.paths.n; i++)
        printf("  if it loads %s, switching ends then: %s\n", later.paths.list[i], later.reasons.list[i]);
    const char *other = later.paths.n > 0 ? "other " : "";
    if (later.n_others == 1)
        printf("  if it loads the %slibrary beside it, switching goes on\n", other);
    else if (later.n_others > 0)
        printf("  if it loads any of the %s%zu libraries beside it, switching goes on\n", other, later.n_others);
    free_names(&later.paths);
    free_names(&later.reasons);
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
        printf("--wait auto (the default), --wait switch: %s%s%s\n", why != NULL ? "cannot be used:" : "can be used",
               why == NULL ? but_main(objects, n) : "",
               why == NULL && loads_code(objects, n) ? "; code that it loads later is checked when it is loaded" : "");
        if (why != NULL)
            printf("  %s\n", why);
        else if (loads_code(objects, n))
            print_later(v->closure);
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
    bool served, switchable, switch_main_stays, switch_main_stays_with_handlers;
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
    {NULL, "switch_main_stays_with_handlers", NULL, 0, FIELD_BOOL, ANSWER(switch_main_stays_with_handlers), 0},
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
        .switch_main_stays_with_handlers = may_handle(objects, n),
    };
    json_open(&j, NULL, '{');
    fields_json(&j, served_fields, 0, &answer);
    put_names(&j, "scripts", &v->followed);
    put_names(&j, "notes", &v->notes);
    fields_json(&j, switched_fields, 0, &answer);
    free(why);
    struct later later = judge_later(v->closure);
    json_open(&j, "later", '[');
    for (size_t i = 0; i < later.paths.n; i++) {
        json_open(&j, NULL, '{');
        json_text(&j, "path", later.paths.list[i]);
        json_text(&j, "switch_detail", later.reasons.list[i]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    free_names(&later.paths);
    free_names(&later.reasons);
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
    struct object *const *objects;
    size_t n = objects_of(&verdict, &objects);
    if (verdict.reason == VERDICT_SERVED && loads_code(objects, n))
        closure_add_loadable(verdict.closure);
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

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "source_lines.h"

#include <stdlib.h>
#include <string.h>

#include "needed.h"
#include "symbols.h"

/* One name of the list, and what is written for it. */
struct name {
    const char *module; /* the last part of its path */
    char *at;           /* "@SERVER", or "" */
    char *code;         /* NULL: nothing so far */
};

static void add_range(void *context, uint64_t first, uint64_t last) {
    struct name *n = context;
    char *before = n->code;
    n->code = cmd_format("%s%s%s+0x%jx..0x%jx%s", before != NULL ? before : "", before != NULL ? "," : "", n->module,
                         (uintmax_t)first, (uintmax_t)last, n->at);
    free(before);
}

/* Allocated; NULL: it is no source line, or no module has it. */
static char *code_of(struct symbols *symbols, const struct closure *modules, const char *text) {
    char *file = cmd_format("%s", text), *server = strchr(file, '@'), *colon, *end;
    struct name n = {.at = cmd_format("%s", server != NULL ? server : "")};
    if (server != NULL)
        *server = '\0';
    colon = strrchr(file, ':');
    if (colon != NULL) {
        *colon = '\0';
        long line = strtol(colon + 1, &end, 10);
        for (size_t i = 0; *end == '\0' && line > 0 && line < INT32_MAX && i < modules->n_linked; i++) {
            const char *path = modules->objects[i]->path, *slash = strrchr(path, '/');
            n.module = slash != NULL ? slash + 1 : path;
            if (strchr(n.module, ',') == NULL) /* the list would be parted there */
                symbols_lines(symbols, path, file, (int)line, add_range, &n);
        }
    }
    free(file);
    free(n.at);
    return n.code;
}

void source_lines_in(struct settings *settings, const char *program) {
    const char *list = settings->text[SBT_OPT_DELEGATE];
    if (list == NULL || strchr(list, ':') == NULL)
        return;
    struct object *object = object_read(program);
    if (object->kind != OBJECT_ELF) {
        object_free(object);
        return;
    }
    struct closure *modules = closure_of(object);
    struct symbols *symbols = symbols_new();
    char *rest = cmd_format("%s", list), *whole = rest, *name, *all = NULL;
    while ((name = strsep(&rest, ",")) != NULL) {
        char *code = code_of(symbols, modules, name), *before = all;
        all = cmd_format("%s%s%s", before != NULL ? before : "", before != NULL ? "," : "", code != NULL ? code : name);
        free(code);
        free(before);
    }
    settings->text[SBT_OPT_DELEGATE] = all; /* kept as long as the command runs */
    free(whole);
    symbols_free(symbols);
    closure_free(modules);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See hints_check.h. */
#include "hints_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hints_read.h"
#include "os/elf_image.h"
#include "symbols.h"
#include "verdict.h"

struct file {
    char *path; /* without symbolic links; NULL: there is no such file */
    void *bytes;
    size_t n;
};

/* What the hints may be in. */
struct modules {
    struct file *list;
    size_t n;
};

struct check {
    const char *subcommand, *path; /* of the hint file */
    struct modules modules;
};

/* Its path is allocated; bytes NULL: errno says why. */
static struct file map_file(const char *path) {
    struct file f = {.path = realpath(path, NULL)};
    struct stat st;
    int fd = f.path != NULL ? open(f.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0 || fstat(fd, &st) != 0)
        return f;
    if (!S_ISREG(st.st_mode))
        errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
    else if (st.st_size > 0)
        f.bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    else
        f.bytes = cmd_format("%s", ""); /* an empty file is a file with nothing in it */
    f.n = (size_t)st.st_size;
    if (f.bytes == MAP_FAILED)
        f.bytes = NULL;
    close(fd);
    return f;
}

static struct file *add_module(struct modules *m, const char *path) {
    m->list = cmd_reallocate(m->list, m->n + 1, sizeof *m->list);
    m->list[m->n] = map_file(path);
    return &m->list[m->n++];
}

static void find_modules(struct check *c, const char *program) {
    struct verdict v = verdict_of(program, true);
    add_module(&c->modules, program);
    if (v.closure != NULL) {
        closure_add_loadable(v.closure);
        for (size_t i = 0; i < v.closure->n; i++)
            add_module(&c->modules, v.closure->objects[i]->path);
    }
    verdict_free(&v);
}

/* "app, libone.so, libtwo.so", as far as a line has room. */
static char *names_of(const struct modules *m) {
    char *names = cmd_format("%s", "");
    for (size_t i = 0; i < m->n && strlen(names) < 300; i++) {
        const char *slash = m->list[i].path != NULL ? strrchr(m->list[i].path, '/') : NULL;
        if (slash == NULL || (i > 0 && m->list[0].path != NULL && strcmp(m->list[i].path, m->list[0].path) == 0))
            continue;
        char *longer = cmd_format("%s%s%s", names, names[0] != '\0' ? ", " : "", slash + 1);
        free(names);
        names = longer;
    }
    return names;
}

static const struct file *module_of(struct check *c, const struct hints_call *call) {
    for (size_t i = 0; i < c->modules.n; i++)
        if (c->modules.list[i].bytes != NULL && hints_is_module(&call->module, c->modules.list[i].path))
            return &c->modules.list[i];
    if (memchr(call->module.at, '/', call->module.n) == NULL)
        return NULL;
    char *path = cmd_format("%.*s", (int)call->module.n, call->module.at);
    const struct file *f = add_module(&c->modules, path);
    free(path);
    return f->bytes != NULL && hints_is_module(&call->module, f->path) ? f : NULL;
}

static bool has_call(const struct file *f, const struct hints_call *call) {
    uint64_t first, size;
    if (call->symbol.n == 0)
        return sbt_elf_image_is_code(f->bytes, f->n, call->offset);
    return sbt_elf_image_function(f->bytes, f->n, call->symbol.at, call->symbol.n, &first, &size) &&
           (call->is_whole || call->offset < size);
}

/* The linker's names of a function, "_ZN3app4pushEi, _ZN3app4pushEl", as far as a line has room. */
struct linked {
    const struct file *file;
    char *names; /* allocated */
};

/* Not as a part of another one. */
static bool is_listed(const char *names, const char *symbol) {
    size_t n = strlen(symbol);
    for (const char *at = names; (at = strstr(at, symbol)) != NULL; at += n)
        if ((at == names || at[-1] == ' ') && (at[n] == ',' || at[n] == '\0'))
            return true;
    return false;
}

static void add_linked(void *context, const char *symbol) {
    struct linked *l = context;
    uint64_t first, size;
    size_t n = strlen(symbol);
    if (strlen(l->names) + n > 400 || is_listed(l->names, symbol) ||
        !sbt_elf_image_function(l->file->bytes, l->file->n, symbol, n, &first, &size))
        return;
    char *longer = cmd_format("%s%s%s", l->names, l->names[0] != '\0' ? ", " : "", symbol);
    free(l->names);
    l->names = longer;
}

/* What reports and schedules show is the source's name of the function, where that of the file is another one. */
static char *linked_names(const struct file *f, const struct hints_call *call) {
    struct linked l = {f, cmd_format("%s", "")};
    struct symbols *symbols = symbols_new();
    char *name = cmd_format("%.*s", (int)call->symbol.n, call->symbol.at);
    if (name[0] != '\0')
        symbols_of_source(symbols, f->path, name, add_linked, &l);
    free(name);
    symbols_free(symbols);
    return l.names;
}

_Noreturn static void refuse_call(struct check *c, const struct hint *h, const struct hints_call *call,
                                  const char *what, const struct file *f) {
    char *names = linked_names(f, call);
    int n = (int)(call->text.n < 200 ? call->text.n : 200);
    if (names[0] != '\0')
        cmd_refuse("%s: hints: %s:%u: %s '%.*s' has a name of the source (legal: the linker's, %s; or MODULE+0xOFFSET, "
                   "which subutai schedule dump --json has as site)",
                   c->subcommand, c->path, h->line, what, n, call->text.at, names);
    cmd_refuse("%s: hints: %s:%u: %s '%.*s' is not in the program: '%s' has no code there "
               "(legal: " HINTS_LEGAL_SITES ")",
               c->subcommand, c->path, h->line, what, n, call->text.at, f->path);
}

static void check_call(struct check *c, const struct hint *h, const struct hints_call *call, const char *what) {
    const struct file *f = module_of(c, call);
    int n = (int)(call->text.n < 200 ? call->text.n : 200);
    if (f == NULL)
        cmd_refuse("%s: hints: %s:%u: %s '%.*s' is not in the program (legal modules: %s; or the path of a file)",
                   c->subcommand, c->path, h->line, what, n, call->text.at, names_of(&c->modules));
    if (!has_call(f, call))
        refuse_call(c, h, call, what, f);
}

static void check_hint(struct check *c, const struct hint *h) {
    check_call(c, h, &h->call, "call site");
    for (unsigned i = 0; i < h->n_callers; i++)
        check_call(c, h, &h->caller[i], "caller");
}

const char *hints_chosen(const struct settings *s, enum sbt_option_id option) {
    const char *variable = getenv(sbt_option_table[option].env);
    return s->text[option] != NULL ? s->text[option] : variable != NULL && variable[0] != '\0' ? variable : NULL;
}

void hints_check(const char *subcommand, struct settings *settings, const char *program) {
    const char *engine = hints_chosen(settings, SBT_OPT_ENGINE), *path = hints_chosen(settings, SBT_OPT_HINTS);
    struct check c = {.subcommand = subcommand, .path = path};
    struct hints_reader r;
    static struct hint hints[HINTS_MAX];
    const struct hint *h;
    char error[512];
    if (path == NULL || engine == NULL || strcmp(engine, "det") != 0)
        return;
    struct file text = map_file(path);
    if (text.bytes == NULL)
        cmd_refuse("%s: hints: '%s': %s (legal: a hint file)", subcommand, path, strerror(errno));
    if (text.n > HINTS_MAX_BYTES)
        cmd_refuse("%s: hints: '%s': too large (legal: a mebibyte)", subcommand, path);
    if (!hints_begin(&r, text.bytes, text.n, hints, error, sizeof error))
        cmd_refuse("%s: hints: %s:%s", subcommand, path, error);
    find_modules(&c, program);
    while ((h = hints_next(&r, error, sizeof error)) != NULL)
        check_hint(&c, h);
    if (error[0] != '\0')
        cmd_refuse("%s: hints: %s:%s", subcommand, path, error);
    settings->text[SBT_OPT_HINTS] = text.path;
}

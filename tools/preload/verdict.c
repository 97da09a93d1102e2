/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The decision of `doctor`; see verdict.h. */
#include "verdict.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "command.h"
#include "find.h"
#include "wrapper.h"

enum { MAX_SCRIPTS = 6 }; /* the kernel gives up after five */

const char *const verdict_reason_words[VERDICT_N_REASONS] = {
    [VERDICT_SERVED] = "served",
    [VERDICT_UNREADABLE] = "unreadable",
    [VERDICT_NOT_ELF] = "not-elf",
    [VERDICT_OTHER_MACHINE] = "other-architecture",
    [VERDICT_STATIC] = "static",
    [VERDICT_SET_ID] = "set-id",
    [VERDICT_CAPABILITIES] = "capabilities",
    [VERDICT_OTHER_LIBC] = "other-libc",
    [VERDICT_SANITIZER] = "sanitizer",
    [VERDICT_NO_SYMBOLS] = "no-symbols",
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void fail(struct verdict *v, enum verdict_reason reason, char *detail) {
    v->reason = reason;
    v->detail = detail;
}

/*
 * What `env` in a #! line would run: its first word that is neither an option nor an assignment. NULL: there is none.
 */
static char *program_of_env(const char *arguments) {
    char *copy = cmd_format("%s", arguments != NULL ? arguments : ""), *rest = copy, *word, *path = NULL;
    const char *why;
    while ((word = strsep(&rest, " \t")) != NULL) {
        if (word[0] == '\0' || word[0] == '-' || strchr(word, '=') != NULL)
            continue;
        path = find_in_path(word, &why);
        break;
    }
    free(copy);
    return path;
}

/* The program that a shell script executes; NULL: none, or it is no shell script. */
static char *behind_wrapper(const struct object *script, bool *runs_script) {
    const char *name = script->script_interpreter;
    const char *argument = script->script_argument;
    if (strcmp(base_name(name), "env") == 0 && argument != NULL && strpbrk(argument, " \t-") == NULL)
        name = argument;
    return wrapper_is_shell(name) ? wrapper_program(script->path, runs_script) : NULL;
}

/* From a script to the ELF file that the kernel runs for it, or that a wrapper executes. False: there is none, and the
 * verdict says so. */
static bool follow_scripts(struct verdict *v, const char *path, bool through_wrappers) {
    v->program = object_read(path);
    for (int depth = 0; v->program->kind == OBJECT_SCRIPT; depth++) {
        struct object *script = v->program;
        bool runs_script = false;
        char *line, *next = through_wrappers && depth < MAX_SCRIPTS ? behind_wrapper(script, &runs_script) : NULL;
        bool is_wrapper = next != NULL;
        if (next == NULL && depth < MAX_SCRIPTS && strcmp(base_name(script->script_interpreter), "env") == 0)
            next = program_of_env(script->script_argument);
        if (is_wrapper) {
            line = cmd_format("%s is a script for %s, which %s %s", script->path, script->script_interpreter,
                              runs_script ? "is run by" : "executes", next);
        } else if (next != NULL) {
            line = cmd_format("%s is a script for %s, found by %s", script->path, next, script->script_interpreter);
        } else {
            next = cmd_format("%s", script->script_interpreter);
            line = cmd_format("%s is a script for %s", script->path, next);
        }
        names_add(&v->followed, line);
        free(line);
        if (depth >= MAX_SCRIPTS || access(next, X_OK) != 0) {
            fail(v, VERDICT_NOT_ELF, cmd_format("the script's interpreter %s cannot be executed", next));
            free(next);
            return false;
        }
        v->program = object_read(next);
        object_free(script);
        free(next);
    }
    if (v->program->kind == OBJECT_UNREADABLE)
        fail(v, VERDICT_UNREADABLE, cmd_format("%s: %s", v->program->path, v->program->problem));
    else if (v->program->kind == OBJECT_OTHER)
        fail(v, VERDICT_NOT_ELF, cmd_format("neither an ELF program nor a script"));
    return v->program->kind == OBJECT_ELF;
}

/* glibc's loaders: ld-linux*.so.N, ld64.so.N (s390x, ppc64), ld.so.1 (mips, ppc). */
static bool is_glibc_loader(const char *interpreter) {
    const char *name = base_name(interpreter);
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so.", 8) == 0 || strcmp(name, "ld.so.1") == 0;
}

/*
 * Secure execution (AT_SECURE), in which the loader ignores LD_PRELOAD: the effective ids differ from the real ones, or
 * a user other than root gained file capabilities (ld.so(8), capabilities(7)).
 */
static void check_privileges(struct verdict *v) {
    const struct object *o = v->program;
    struct statvfs fs;
    bool set_ids = (o->stat.st_mode & S_ISUID) || ((o->stat.st_mode & S_ISGID) && (o->stat.st_mode & S_IXGRP));
    bool capabilities = getxattr(o->path, "security.capability", NULL, 0) > 0;
    if (!set_ids && !capabilities)
        return;
    if (statvfs(o->path, &fs) == 0 && (fs.f_flag & ST_NOSUID)) {
        names_add(&v->notes, "its set-ID bits and capabilities are void: the file system is mounted nosuid");
        return;
    }
    if ((o->stat.st_mode & S_ISUID) && o->stat.st_uid != getuid())
        fail(v, VERDICT_SET_ID, cmd_format("set-user-ID program: the dynamic loader ignores LD_PRELOAD"));
    else if ((o->stat.st_mode & S_ISGID) && (o->stat.st_mode & S_IXGRP) && o->stat.st_gid != getgid())
        fail(v, VERDICT_SET_ID, cmd_format("set-group-ID program: the dynamic loader ignores LD_PRELOAD"));
    else if (capabilities && getuid() != 0)
        fail(v, VERDICT_CAPABILITIES, cmd_format("has file capabilities: the dynamic loader ignores LD_PRELOAD"));
    else
        names_add(&v->notes, "has set-ID bits or capabilities that change nothing for you; for other users the dynamic "
                             "loader would ignore LD_PRELOAD");
}

static void check_own_file(struct verdict *v) {
    const struct object *o = v->program;
    struct object *self = object_read("/proc/self/exe");
    bool compatible = object_compatible(o, self);
    object_free(self);
    const char *go = o->is_go ? " (a Go program)" : "";
    if (!compatible)
        fail(v, VERDICT_OTHER_MACHINE,
             cmd_format("built for another architecture (%d-bit, ELF machine %d) than the library",
                        o->elf_class == ELFCLASS32 ? 32 : 64, o->machine));
    else if (o->interpreter == NULL)
        fail(v, VERDICT_STATIC, cmd_format("statically linked%s: no dynamic loader that could preload a library", go));
    else if (!is_glibc_loader(o->interpreter))
        fail(v, VERDICT_OTHER_LIBC,
             cmd_format("uses another C library%s: its loader is %s, the library needs glibc's",
                        strstr(o->interpreter, "musl") != NULL ? " (musl)" : "", o->interpreter));
    else
        check_privileges(v);
    if (v->reason == VERDICT_SERVED && o->sanitizer != NULL)
        fail(v, VERDICT_SANITIZER,
             cmd_format("%s is linked in: it takes over the same functions and must come first", o->sanitizer));
}

static bool synchronizes(const struct object *o) {
    for (size_t g = 0; g < PRIMITIVE_N_GROUPS; g++)
        if (g != PRIMITIVE_THREAD && o->primitives[g].n > 0)
            return true;
    return false;
}

/* What the program and its libraries import. */
struct imports {
    bool synchronization; /* by the program or a library of its own */
    bool by_runtime;      /* by a language runtime, which every program in that language loads */
    bool threads, dlopen;
    bool syscall; /* by neither, so it may be for futexes */
    bool openmp;  /* gcc's runtime library, which makes futex calls */
};

static bool is_runtime(const struct object *o) {
    const char *name = base_name(o->path);
    return strncmp(name, "libgcc_s.so", 11) == 0 || strncmp(name, "libstdc++.so", 12) == 0;
}

static struct imports imports_of(const struct closure *c) {
    struct imports all = {0};
    for (size_t i = 0; i < c->n; i++) {
        const struct object *o = c->objects[i];
        bool is_libc = strncmp(base_name(o->path), "libc.", 5) == 0;
        if (synchronizes(o) && is_runtime(o))
            all.by_runtime = true;
        else if (synchronizes(o))
            all.synchronization = true;
        all.threads = all.threads || (o->primitives[PRIMITIVE_THREAD].n > 0 && !is_runtime(o));
        all.syscall = all.syscall || (o->imports_syscall && !is_libc && !is_runtime(o));
        all.openmp = all.openmp || strncmp(base_name(o->path), "libgomp", 7) == 0;
        all.dlopen = all.dlopen || (o->imports_dlopen && !is_libc);
    }
    return all;
}

static void check_symbols(struct verdict *v) {
    const struct object *o = v->program;
    struct imports all = imports_of(v->closure);
    const char *why = "";
    if (!o->has_sections)
        why = " (the file has no section headers to read them from)";
    else if (o->is_go)
        why = " (a Go program: goroutines synchronize through futexes of their own)";
    else if (all.by_runtime)
        why = " (only the language's runtime library does)";

    if (all.synchronization && o->is_go)
        names_add(&v->notes,
                  "a Go program: goroutines synchronize through futexes of their own, only C code is served");
    else if (!all.synchronization && all.threads && all.syscall && !o->is_go)
        names_add(&v->notes, "no pthread synchronization functions, but it may wait by futex(2) through syscall, as "
                             "Rust's and C++20's libraries do, which is served");
    else if (!all.synchronization && all.threads && all.dlopen && !o->is_go)
        /* A launcher, java for instance: threads here, everything else in what it loads. */
        names_add(&v->notes, "nothing that is linked in imports synchronization functions, but it starts threads and "
                             "loads libraries, which will be served");
    else if (!all.synchronization)
        fail(v, VERDICT_NO_SYMBOLS,
             cmd_format("neither it nor its libraries import pthread synchronization functions%s", why));
    if (all.synchronization && all.syscall)
        names_add(&v->notes, "imports syscall: private futexes that it waits on by that are served too");
    if (all.threads && (all.syscall || all.openmp))
        names_add(&v->notes,
                  "--engine det: whether it asks for a futex depends on a race: --serial has one order of that too");
    if (all.dlopen)
        names_add(&v->notes, "imports dlopen: libraries loaded later are served too, but not listed here");
    if (v->reason == VERDICT_NO_SYMBOLS)
        names_add(&v->notes, "programs that it starts can be served all the same");
}

static void check_libraries(struct verdict *v) {
    const struct closure *c = v->closure;
    for (size_t i = 0; i < c->n; i++)
        if (v->reason == VERDICT_SERVED && c->objects[i]->sanitizer != NULL)
            fail(v, VERDICT_SANITIZER,
                 cmd_format("%s is linked into %s: it takes over the same functions and must come first",
                            c->objects[i]->sanitizer, c->objects[i]->path));
    for (size_t i = 0; i < c->missing.n; i++) {
        char *note = cmd_format("needs %s, which was not found: the program may not start", c->missing.list[i]);
        names_add(&v->notes, note);
        free(note);
    }
    if (v->reason == VERDICT_SERVED)
        check_symbols(v);
}

struct verdict verdict_of(const char *path, bool with_libraries) {
    struct verdict v = {.reason = VERDICT_SERVED};
    if (!follow_scripts(&v, path, with_libraries))
        return v;
    check_own_file(&v);
    if (with_libraries && v.reason != VERDICT_OTHER_MACHINE && v.reason != VERDICT_STATIC) {
        v.closure = closure_of(v.program);
        check_libraries(&v);
    }
    return v;
}

void verdict_free(struct verdict *v) {
    if (v->closure != NULL)
        closure_free(v->closure);
    else
        object_free(v->program);
    for (struct names *list = &v->followed; list != NULL; list = list == &v->followed ? &v->notes : NULL) {
        for (size_t i = 0; i < list->n; i++)
            free(list->list[i]);
        free(list->list);
    }
    free(v->detail);
}

bool verdict_forbids_preload(const struct verdict *v) {
    return v->reason == VERDICT_OTHER_LIBC || v->reason == VERDICT_OTHER_MACHINE || v->reason == VERDICT_SANITIZER;
}

void verdict_warn(const struct verdict *v, const char *subcommand, const char *program, uint64_t verbosity) {
    /* The kernel refuses a file that is not ELF, or gives it to an interpreter (binfmt_misc), which may be served. */
    if (v->reason != VERDICT_SERVED && v->reason != VERDICT_NOT_ELF && verbosity >= 1)
        cmd_warn("%s: %s runs without an engine: %s", subcommand, program, v->detail);
}

void verdict_refuse_unserved(const char *subcommand, const char *path, const char *program) {
    struct verdict verdict = verdict_of(path, false);
    if (verdict_forbids_preload(&verdict) || verdict.reason == VERDICT_STATIC || verdict.reason == VERDICT_SET_ID ||
        verdict.reason == VERDICT_CAPABILITIES)
        cmd_refuse("%s: '%s' cannot be served: %s (legal: a program that subutai doctor calls served)", subcommand,
                   program, verdict.detail);
    verdict_free(&verdict);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a file contains: a script or an ELF object, its interpreter, the libraries that it needs, and the primitives
 * that it imports. Read from the file by libelf; nothing is loaded or run.
 */
#ifndef CMD_OBJECT_H
#define CMD_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "primitives.h"

struct names {
    char **list;
    size_t n, capacity;
};
void names_add(struct names *names, const char *name);

enum object_kind { OBJECT_UNREADABLE, OBJECT_OTHER, OBJECT_SCRIPT, OBJECT_ELF };

struct object {
    char *path;
    enum object_kind kind;
    const char *problem; /* why the file cannot be read */
    struct stat stat;

    /* Scripts: the words after #!, split as the kernel splits them: at most one argument. */
    char *script_interpreter, *script_argument;

    /* ELF */
    int elf_class, byte_order, machine; /* EI_CLASS, EI_DATA, e_machine */
    char *interpreter;                  /* PT_INTERP, NULL if there is none */
    bool has_sections;                  /* without section headers imports cannot be read */
    bool is_go;
    bool imports_dlopen, imports_syscall;
    char *switch_symbol; /* the first import with which waiting by switching is not safe; NULL: none */
    const char *switch_reason;
    bool pins_main;        /* switching is safe, with the main thread pinned */
    bool may_handle;       /* the same from the first signal handler on */
    const char *sanitizer; /* "AddressSanitizer"; NULL: none is linked in */
    char *soname;          /* the name that a library was linked by; NULL: none */
    char *rpath, *runpath;
    struct names needed;
    struct names primitives[PRIMITIVE_N_GROUPS];
};

/* Never fails: kind and problem say what could not be read. */
struct object *object_read(const char *path);
void object_free(struct object *object);
/* Are both of the same machine and class, so that one process can load them? */
bool object_compatible(const struct object *a, const struct object *b);

#endif

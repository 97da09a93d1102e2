/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a file says about itself: script or ELF object, its interpreter, the libraries it needs and the primitives it
 * imports. Read with libelf from the file; nothing is loaded or run.
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
    const char *problem; /* of an unreadable file: why */
    struct stat stat;

    /* Scripts: the words after #!, split as the kernel does: at most one argument. */
    char *script_interpreter, *script_argument;

    /* ELF */
    int elf_class, byte_order, machine; /* EI_CLASS, EI_DATA, e_machine */
    char *interpreter;                  /* PT_INTERP, NULL if there is none */
    bool has_sections;                  /* without section headers imports cannot be read */
    bool is_go;
    bool imports_dlopen, imports_syscall;
    char *switch_symbol; /* the first import that tells against waiting by switching, NULL if none does */
    const char *switch_reason;
    bool main_stays;       /* by switching, but for the main thread */
    const char *sanitizer; /* "AddressSanitizer", NULL if none is linked in */
    char *rpath, *runpath;
    struct names needed;
    struct names primitives[PRIMITIVE_N_GROUPS];
};

/* Never fails: what could not be read is said in kind and problem. */
struct object *object_read(const char *path);
void object_free(struct object *object);
/* Of the same machine and class: can be loaded into one process. */
bool object_compatible(const struct object *a, const struct object *b);

#endif

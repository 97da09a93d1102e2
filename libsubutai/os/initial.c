/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "os/initial.h"

#include <link.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/*
 * The dynamic linker's: the place on the stack of the number of arguments. The arguments follow, then the environment,
 * then the rest.
 */
extern void *__libc_stack_end;

static char **initial_environment(void) {
    long arguments = *(long *)__libc_stack_end;
    return (char **)__libc_stack_end + 1 + arguments + 1;
}

char **sbt_environment(void) {
    return environ != NULL ? environ : initial_environment();
}

char *sbt_environment_value(const char *name) {
    size_t length = strlen(name);
    for (char **p = sbt_environment(); *p != NULL; p++)
        if (strncmp(*p, name, length) == 0 && (*p)[length] == '=')
            return *p + length + 1;
    return NULL;
}

unsigned long sbt_auxiliary(unsigned long type, unsigned long otherwise) {
    char **end = initial_environment();
    while (*end != NULL)
        end++;
    for (const ElfW(auxv_t) *a = (const ElfW(auxv_t) *)(end + 1); a->a_type != AT_NULL; a++)
        if (a->a_type == type)
            return a->a_un.a_val;
    return otherwise;
}

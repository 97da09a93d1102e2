/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which imported function belongs to which kind of primitive. */
#ifndef CMD_PRIMITIVES_H
#define CMD_PRIMITIVES_H

#include <stdbool.h>

enum primitive_group {
    PRIMITIVE_MUTEX,
    PRIMITIVE_COND,
    PRIMITIVE_BARRIER,
    PRIMITIVE_RWLOCK,
    PRIMITIVE_SEM,
    PRIMITIVE_SPIN,
    PRIMITIVE_ONCE,
    PRIMITIVE_C11,
    PRIMITIVE_THREAD, /* creation and end of threads: no synchronization by itself */
    PRIMITIVE_N_GROUPS,
    PRIMITIVE_NONE = -1
};

extern const char *const primitive_group_names[PRIMITIVE_N_GROUPS];

/* The group of the function; PRIMITIVE_NONE: the library does not serve it. */
enum primitive_group primitive_group_of(const char *symbol);

#endif

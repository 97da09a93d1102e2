/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "locks/locks.h"

#include <string.h>

#include "locks/wait.h"

bool lock_yields;

const struct lock_kind *const lock_kinds[] = {
    &lock_posix, &lock_tas, &lock_ticket, &lock_mcs,   &lock_clh, &lock_mcs_tp,
    &lock_flat,  &lock_rcl, &lock_bare,   &lock_calls, NULL,
};

const struct lock_kind *lock_find(const char *name) {
    for (size_t i = 0; lock_kinds[i] != NULL; i++)
        if (strcmp(lock_kinds[i]->name, name) == 0)
            return lock_kinds[i];
    return NULL;
}

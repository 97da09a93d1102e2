/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Groups of imported functions. A pthread_ function is recognized by its prefix, which is reserved for the C library.
 * sem_, mtx_, cnd_ and thrd_ are not reserved, so those functions are recognized by their full names.
 */
#include "primitives.h"

#include <stddef.h>
#include <string.h>

const char *const primitive_group_names[PRIMITIVE_N_GROUPS] = {
    [PRIMITIVE_MUTEX] = "mutex",   [PRIMITIVE_COND] = "cond", [PRIMITIVE_BARRIER] = "barrier",
    [PRIMITIVE_RWLOCK] = "rwlock", [PRIMITIVE_SEM] = "sem",   [PRIMITIVE_SPIN] = "spin",
    [PRIMITIVE_ONCE] = "once",     [PRIMITIVE_C11] = "c11",   [PRIMITIVE_THREAD] = "thread",
};

static const struct {
    const char *prefix;
    enum primitive_group group;
} families[] = {
    {"pthread_mutex", PRIMITIVE_MUTEX},   {"pthread_cond", PRIMITIVE_COND},  {"pthread_barrier", PRIMITIVE_BARRIER},
    {"pthread_rwlock", PRIMITIVE_RWLOCK}, {"pthread_spin_", PRIMITIVE_SPIN},
};

static const struct {
    const char *name;
    enum primitive_group group;
} functions[] = {
    {"pthread_once", PRIMITIVE_ONCE},
    {"sem_init", PRIMITIVE_SEM},
    {"sem_destroy", PRIMITIVE_SEM},
    {"sem_wait", PRIMITIVE_SEM},
    {"sem_trywait", PRIMITIVE_SEM},
    {"sem_timedwait", PRIMITIVE_SEM},
    {"sem_clockwait", PRIMITIVE_SEM},
    {"sem_post", PRIMITIVE_SEM},
    {"sem_getvalue", PRIMITIVE_SEM},
    {"sem_open", PRIMITIVE_SEM},
    {"sem_close", PRIMITIVE_SEM},
    {"sem_unlink", PRIMITIVE_SEM},
    {"mtx_init", PRIMITIVE_C11},
    {"mtx_destroy", PRIMITIVE_C11},
    {"mtx_lock", PRIMITIVE_C11},
    {"mtx_timedlock", PRIMITIVE_C11},
    {"mtx_trylock", PRIMITIVE_C11},
    {"mtx_unlock", PRIMITIVE_C11},
    {"cnd_init", PRIMITIVE_C11},
    {"cnd_destroy", PRIMITIVE_C11},
    {"cnd_wait", PRIMITIVE_C11},
    {"cnd_timedwait", PRIMITIVE_C11},
    {"cnd_signal", PRIMITIVE_C11},
    {"cnd_broadcast", PRIMITIVE_C11},
    {"call_once", PRIMITIVE_C11},
    {"pthread_create", PRIMITIVE_THREAD},
    {"pthread_exit", PRIMITIVE_THREAD},
    {"pthread_join", PRIMITIVE_THREAD},
    {"pthread_tryjoin_np", PRIMITIVE_THREAD},
    {"pthread_timedjoin_np", PRIMITIVE_THREAD},
    {"pthread_clockjoin_np", PRIMITIVE_THREAD},
    {"pthread_detach", PRIMITIVE_THREAD},
    {"pthread_cancel", PRIMITIVE_THREAD},
    {"thrd_create", PRIMITIVE_THREAD},
    {"thrd_exit", PRIMITIVE_THREAD},
    {"thrd_join", PRIMITIVE_THREAD},
    {"thrd_detach", PRIMITIVE_THREAD},
};

enum primitive_group primitive_group_of(const char *symbol) {
    if (strncmp(symbol, "__pthread_", 10) == 0) /* glibc's aliases, which older binaries bind */
        symbol += 2;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(symbol, families[i].prefix, strlen(families[i].prefix)) == 0)
            return families[i].group;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(symbol, functions[i].name) == 0)
            return functions[i].group;
    return PRIMITIVE_NONE;
}

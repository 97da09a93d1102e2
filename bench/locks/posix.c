/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* posix: pthread_mutex_lock of whatever the program runs under: glibc, or an engine of Subutai's. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locks/locks.h"

static void must(int error, const char *call) {
    if (__builtin_expect(error != 0, 0)) {
        fprintf(stderr, "%s: %s\n", call, strerror(error));
        abort();
    }
}

static void posix_init(void *lock) {
    must(pthread_mutex_init(lock, NULL), "pthread_mutex_init");
}

static void posix_node_init(void *lock, void *node) {
    (void)lock, (void)node;
}

static void posix_execute(void *lock, void *node, lock_section *section, void *context) {
    (void)node;
    must(pthread_mutex_lock(lock), "pthread_mutex_lock");
    section(context);
    must(pthread_mutex_unlock(lock), "pthread_mutex_unlock");
}

const struct lock_kind lock_posix = {
    .name = "posix",
    .after = "pthread_mutex_lock",
    .bytes = sizeof(pthread_mutex_t),
    .node_bytes = 0,
    .init = posix_init,
    .node_init = posix_node_init,
    .execute = posix_execute,
};

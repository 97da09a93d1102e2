/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rcl: Remote Core Locking (rcl/subutai/rcl.h): Lozi, David, Thomas, Lawall and Muller, USENIX ATC 2012. Sections run
 * on a server thread. It is not pinned: with more threads than cores the bench has no core to give away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locks/locks.h"
#include "subutai/rcl.h"

static void must(int error, const char *call) {
    if (__builtin_expect(error != 0, 0)) {
        fprintf(stderr, "%s: %s\n", call, strerror(error));
        abort();
    }
}

/* The server stays until the program ends: it belongs to all locks that are made. */
static void rcl_init(void *lock) {
    static struct rcl_server *server;
    if (server == NULL)
        must(rcl_server_create(&server, -1), "rcl_server_create");
    must(rcl_lock_init(lock, server), "rcl_lock_init");
}

static void rcl_node_init(void *lock, void *node) {
    (void)lock, (void)node;
}

static void execute(void *lock, void *node, lock_section *section, void *context) {
    (void)node;
    must(rcl_execute(lock, section, context), "rcl_execute");
}

const struct lock_kind lock_rcl = {
    .name = "rcl",
    .after = "Remote Core Locking: Lozi and others, USENIX ATC 2012",
    .bytes = sizeof(struct rcl_lock),
    .node_bytes = 0,
    .init = rcl_init,
    .node_init = rcl_node_init,
    .execute = execute,
};

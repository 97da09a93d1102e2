/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol between clients and a server's threads: mailboxes of one cache line, as on the slides "Remote Core
 * Locking" of Lozi's thesis defence.
 *
 * Which thread may write a field of a mailbox, and when:
 *   function  its client, from NULL to a request; the servicing thread that holds the request's lock, to
 *             rcl_under_way when the section gives its lock up in a condition wait, and back to NULL at its end
 *   lock, context   its client, while function is NULL
 * A request moves the mailbox's line twice: to the server, and back to the client. That lock and function are in the
 * same line and only `function` is waited for is what makes it two.
 *
 * Several servicing threads of a server may look at one mailbox. The one that gets the request's lock looks at the
 * mailbox again, as the request may have been served meanwhile and another one be there. While a thread holds a lock no
 * other one serves requests for it.
 *
 * The server sleeps when it has been idle: `asleep` pairs with the fences below. Either the client sees that it sleeps,
 * or the server's last pass sees the request.
 */
#ifndef RCL_MAILBOX_H
#define RCL_MAILBOX_H

#include <stdbool.h>

#include "subutai/rcl.h"

enum { RCL_LINE = 64 };

typedef void rcl_section(void *context);

struct rcl_mailbox {
    _Alignas(RCL_LINE) rcl_section *function;
    struct rcl_lock *lock;
    void *context;
};

/* The client's side. The caller waits for the end (rcl_await) before it posts again. */
void rcl_post(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context, uint32_t *asleep);
void rcl_await(struct rcl_mailbox *m);

/* The servers' side. */
bool rcl_lock_try(struct rcl_lock *lock);
void rcl_lock_free(struct rcl_lock *lock);
/* True: a request was served. `run` calls the section. */
typedef void rcl_run(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context);
bool rcl_serve(struct rcl_mailbox *m, rcl_run *run);
/* The section of that mailbox is about to give its lock up: no thread may serve the request again. */
void rcl_keep(struct rcl_mailbox *m);
/* A request that waits for a thread; its lock may be held. */
bool rcl_is_posted(const struct rcl_mailbox *m);
/* A lock has become free for which a request may wait: a thread that sleeps looks again. */
void rcl_nudge(uint32_t *asleep);
/* Sleep until a client posts, unless `pass` finds something. Of one thread of the server at a time. */
void rcl_doze(uint32_t *asleep, bool (*pass)(void *server), void *server);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The protocol between clients and a server's threads: mailboxes of one cache line, as on the slides "Remote Core
 * Locking" of Lozi's thesis defence.
 *
 * Which thread may write a field of a mailbox, and when:
 *   state   its client, from RCL_FREE to RCL_POSTED, and RCL_CLIENT_SLEEPS before it sleeps; the servicing thread that
 *           holds the request's lock, RCL_UNDER_WAY when the section gives its lock up in a condition wait, and
 *           back to RCL_FREE at the section's end
 *   lock, function, context   its client, while the state is RCL_FREE
 * A request moves the mailbox's line twice: to the server, and back to the client. That all of the request is in one
 * line and only `state` is waited for is what makes it two. The end of a section is one exchange: it also tells the
 * servicing thread whether its client sleeps, so the line does not come back for that.
 *
 * Several servicing threads of a server may look at one mailbox. The one that gets the request's lock looks at the
 * mailbox again, as the request may have been served meanwhile and another one be there. While a thread holds a lock no
 * other one serves requests for it.
 *
 * The server sleeps when it has been idle. Either the client sees `asleep`, or the server's last pass sees the request:
 * the client stores the state and loads `asleep`, the server exchanges `asleep` and loads the state, all of them
 * sequentially consistent. Clients, and sections that wait for a lock, sleep when they have looked for long enough
 * (rcl_look_on).
 */
#ifndef RCL_MAILBOX_H
#define RCL_MAILBOX_H

#include <stdbool.h>

#include "subutai/rcl.h"

enum { RCL_LINE = 64 };

typedef void rcl_section(void *context);

/* Of a mailbox's state. A request is there if it is posted and not under way. */
enum { RCL_FREE = 0, RCL_POSTED = 1, RCL_UNDER_WAY = 2, RCL_CLIENT_SLEEPS = 4 };

struct rcl_mailbox {
    _Alignas(RCL_LINE) uint32_t state; /* a futex */
    rcl_section *function;
    struct rcl_lock *lock;
    void *context;
};

/* Of a lock's `held`, which is a futex. */
enum { RCL_UNHELD = 0, RCL_HELD = 1, RCL_WANTED = 2 /* held, and threads may sleep until it is free */ };

/* The client's side. The caller waits for the end (rcl_await) before it posts again. */
void rcl_post(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context, uint32_t *asleep);
void rcl_await(struct rcl_mailbox *m);

/* The servers' side. */
bool rcl_lock_try(struct rcl_lock *lock);
void rcl_lock_wait(struct rcl_lock *lock); /* blocks until it has the lock */
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

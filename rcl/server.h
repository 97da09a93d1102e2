/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A server's threads. One servicing thread at a time goes round the mailboxes: it is active. A section may block, and
 * another servicing thread must go on then with the sections of other locks:
 * - Where the runtime blocks itself (condition wait, a nested section of another server, a nested lock that is held) it
 *   says so before: rcl_block_begin makes another thread active.
 * - A section that blocks in the kernel (input and output, a page fault) says nothing. The management thread looks
 *   every RCL_TICK_NS: a thread that is still in the same section counts as blocked. On a pinned server a backup thread
 *   of the lowest priority runs as soon as no thread of the server does, and wakes the management thread.
 * A thread that goes on with its section becomes active again. Of several active threads all but one park when they
 * find nothing.
 *
 * `mutex` protects n_active, `parked`, `workers` and each worker's `counted`. It is taken when threads block, park or
 * change, never for a section.
 */
#ifndef RCL_SERVER_H
#define RCL_SERVER_H

#include <pthread.h>

#include "rcl/mailbox.h"

struct rcl_worker {
    struct rcl_server *server;
    pthread_t thread;
    struct rcl_worker *next, *next_parked;
    uint32_t n_sections; /* begun and ended ones: odd in a section; written by its thread alone */
    uint32_t seen;       /* by the management thread, at its last look */
    uint32_t counted;    /* among the active ones; its thread may read it without the mutex */
    uint32_t is_parked;  /* a futex */
};

struct rcl_server {
    struct rcl_mailbox *mailbox; /* RCL_MAX_CLIENTS of them */
    _Alignas(RCL_LINE) uint32_t asleep;
    _Alignas(RCL_LINE) uint32_t stop;
    uint32_t alarm; /* a futex: the backup thread wakes the management thread */
    int cpu;
    /* False in a forked child, until it uses the server. Written under the registry's mutex, read without it. */
    bool has_threads;
    pthread_t management, backup;
    bool has_backup;
    pthread_mutex_t mutex;
    uint32_t n_active;
    struct rcl_worker *workers, *parked;
    struct rcl_server *next; /* of the registry */
};

/* A section that runs: on the stack of the servicing thread. */
struct rcl_frame {
    struct rcl_lock *lock;
    struct rcl_mailbox *mailbox; /* NULL: called directly, from a section of the same server */
    struct rcl_frame *outer;
};

/* Of each thread. */
struct rcl_self {
    struct rcl_worker *worker; /* NULL: not a servicing thread */
    struct rcl_frame *frame;   /* the innermost section that runs on it */
    uint32_t slot;             /* its mailboxes' place in each server, plus one; 0: none yet */
};
extern __thread struct rcl_self rcl_self;

/* Mailboxes from this one on have never been used. */
extern uint32_t rcl_n_slots;

/* Start the threads; 0 or EAGAIN. rcl_stop joins them. */
int rcl_start(struct rcl_server *s);
void rcl_stop(struct rcl_server *s);

/* The calling servicing thread is about to block, or has blocked. */
void rcl_block_begin(struct rcl_worker *w);
void rcl_block_end(struct rcl_worker *w);

/* The calling servicing thread has found nothing to do. True: it was one too many, and has been parked meanwhile. */
bool rcl_park_surplus(struct rcl_worker *w);

/* Call the section with a frame around it. */
void rcl_call(struct rcl_mailbox *m, struct rcl_lock *lock, rcl_section *function, void *context);
/* Take a lock of the calling servicing thread's server, which may be held. */
void rcl_lock_take(struct rcl_worker *w, struct rcl_lock *lock);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The NI service threads, as the rest of the engine knows them: which of them serves a tile, how it learns of work, and
 * whether there are any (service.c). The threads themselves are in service_thread.c; only that file uses serve.c.
 *
 * Each service thread serves a block of tiles. They run from the process's second thread on. Before that, and in a
 * forked child until its second thread, a thread serves itself: no thread may be created inside malloc, or in a child
 * that is about to exec.
 */
#ifndef SBT_ENGINE_NI_SERVICE_H
#define SBT_ENGINE_NI_SERVICE_H

#include <pthread.h>

#include "engine/ni/eager.h"
#include "engine/ni/record.h"
#include "engine/ni/tile.h"

#define NI_MAX_SERVICES 64

/* Awake; asleep, or about to sleep; woken, and not yet on a core. */
enum { NI_AWAKE, NI_DOZES, NI_CALLED };

struct ni_service {
    uint32_t state __attribute__((aligned(64))); /* atomic, futex: one of the above */
    uint32_t number;
    uint32_t from, to; /* its tiles */
    pthread_t thread;
    struct ni_eager eager;
    bool called; /* its own: it has been woken, and has not looked for long since */
    /* Tiles with threads: it looks at their mailboxes. Atomic; appended to under the lock of service.c. */
    uint32_t n_occupied __attribute__((aligned(64)));
    uint16_t occupied[HW_MAX_TILES];
    uint64_t sent[HW_MAX_TILES / 64]
        __attribute__((aligned(64))); /* a bit for each tile: another service has sent it something */
};

enum { NI_SERVICES_STOPPED, NI_SERVICES_CHANGING, NI_SERVICES_RUNNING };

extern struct ni_services {
    uint32_t n; /* 0: inline service */
    uint32_t tiles_each;
    uint32_t state; /* atomic; CHANGING belongs to the thread that has set it */
    uint32_t quit;  /* atomic; 1: the service threads are to end */
    bool unable;    /* threads could not be created once; it is not tried again */
    struct ni_service service[NI_MAX_SERVICES];
} ni_services;

/* Deal the tiles out to the service threads of later. */
void ni_service_start(const struct sbt_options *options);

/*
 * Are there service threads? Otherwise a thread serves itself. Acquire: pairs with the release that begins or ends
 * them.
 */
static inline bool ni_service_runs(void) {
    return __atomic_load_n(&ni_services.state, __ATOMIC_ACQUIRE) == NI_SERVICES_RUNNING;
}

/*
 * Does the thread leave its next request to the service thread of its tile? False: it serves the request itself, as
 * with inline service, because there is no service thread, or none that would answer in time.
 *
 * A sleep and a wake-up in the kernel for each request would cost a hundred times what the step costs. So a thread
 * never sleeps until a service thread has a core:
 *  - Without a core for the service thread all threads serve themselves, and the service thread goes to sleep.
 *  - A service thread that sleeps gets no request. If there is a core for it a thread calls it, that is wakes it, and
 *    serves its next NI_OWN requests itself. Then it leaves a request to it.
 *  - A thread that has left a request looks for the answer for a moment. Then it takes the locks of the two NIs on the
 *    way and serves them (await.c). If the request still lay there the service thread was late: the thread serves its
 *    next NI_OWN requests itself, twice as many each further time.
 *
 * The number of runnable threads says only whether to try: it may be wrong for as long as it likes. With a time scale a
 * request is always left to a service thread, because it waits for its time.
 *
 * The answer may be out of date at once. That does no harm: a request that is left is followed by ni_service_wake, any
 * other by ni_serve. Either makes sure that it is served.
 */
bool ni_service_leave(struct ni_thread *t);
/* After the look for the answer to a request that was left: was the service thread late with it? */
void ni_service_judge(struct ni_thread *t, bool late);
/* Is there a core for this service thread, which runs, so that threads leave requests to it? */
bool ni_service_has_core(void);

#define NI_OWN 256     /* as many take as long as a service thread takes to wake up */
#define NI_LATE_MOST 5 /* 2^5 times as many */

/* The tile has work: wake its service thread if that sleeps. */
void ni_service_wake(const struct ni_tile *tile);
/* A thread has been placed on that tile. */
void ni_service_occupy(uint32_t tile);
/* The server of `from` has sent something to `to`. False: the same thread is to serve `to`. */
bool ni_service_hand_over(const struct ni_tile *from, const struct ni_tile *to);
void ni_service_fork_child(void);

#endif

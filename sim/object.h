/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Type: a synchronization object of an application. */
#ifndef SIM_OBJECT_H
#define SIM_OBJECT_H

#include "exchange.h"
#include "signal_set.h"
#include "thread.h"

enum { SIM_ID_SOFTWARE = 1 }; /* in the place of an ID: the object is served in software for the rest of its life */

struct sim_channel;

/* All-zero is an unused object. The members that each call looks at come first. */
struct sim_object {
    struct sim_thread *owner; /* of a mutex, an rwlock for writing, a spin lock */
    uint64_t since;           /* when the owner got it */
    uint64_t section_ns;      /* of a mutex: the total time for which it has been held */
    uint32_t n_calls;         /* calls under way */
    uint32_t number;
    uint32_t id; /* 0: it has had no primitive yet; an ID; SIM_ID_SOFTWARE */
    /*
     * barrier: arrivals; rwlock: readers; recursive mutex: its owner's depth; semaphore: waits that its initial value
     * still covers
     */
    uint32_t n_inside;
    uint32_t size; /* of a barrier; of a semaphore: its present value */
    uint16_t application;
    uint16_t line_core;      /* the last core that had the object's cache line */
    uint8_t kind;            /* enum sbt_trace_type */
    bool contended;          /* mutex, in software: the thread that releases it calls the kernel */
    bool known;              /* barrier, semaphore: its size has been seen */
    bool evicted;            /* its ID is stale */
    bool doomed;             /* the trace has destroyed it: it goes as soon as it is idle */
    bool dead;               /* it has gone */
    bool forgotten;          /* its page was given back: it is not known what the object had been */
    struct sim_list waiters; /* asleep in software, at any object */
    struct sim_list queued;  /* of a condition in hardware: the threads in its NI, in the same order */
    /* of a mutex: threads with an early acquisition (owner.h); of a condition on the host: threads that look */
    struct sim_list gated;
    uint64_t n_acquired; /* where order counts (owner.h): acquisitions so far */
    union {
        uint64_t users;                /* of a mutex: threads that have had it, a bit for each, by number modulo 64 */
        struct sim_signal_set signals; /* of a condition: those that have happened */
    };
    uint64_t line_free; /* until then the cache line is on its way to a core */
    /* On the host under the engine direct: what the object remembers of its waits. */
    uint64_t notified_at, handed_at; /* when a waiter was last woken for it; when it was last handed over */
    uint32_t n_notified;             /* waiters that were woken for it and have not looked yet */
    uint32_t spins_failed;           /* forced spins in vain in a row; or, beyond a limit, waits without */
    uint16_t mean_64ns;              /* of its waits; */
    uint8_t mean_switches, probe;    /* of their yields that switched, in sixteenths; counts waits */
    bool active;                     /* a waiter that is awake will look once more */
    uint32_t guard;                  /* of a condition: 1 and the number of the mutex of its last wait */
    uint32_t n_signals;              /* of such a mutex: signals at its conditions */
    union {
        uint64_t guards_from;          /* and how often it had been acquired when the first thread waited with it */
        struct sim_exchange *exchange; /* of a condition on the host: signals.h. NULL: there was none */
    };
    bool guards;                 /* of a mutex under glibc: threads wait at conditions with it */
    bool polled;                 /* of a mutex: threads wait for it by trylocks */
    struct sim_channel *channel; /* of a barrier or condition, on the optical network; NULL: it has none */
    bool without_channel;        /* no channel was free: it is the NIs' */
    uint8_t spun_credit;         /* unlocks that still give the core away, because threads poll; */
    bool spun_by_any;            /* also those of threads, not only of fibers */
    bool served;                 /* of a mutex: its owner has locked it on a server (host_delegate.h) */
};

/* Does the object have a primitive in hardware? Its ID may be stale. */
static inline bool sim_object_has_id(const struct sim_object *o) {
    return (o->id & HW_ID_IN_USE) != 0;
}

#endif

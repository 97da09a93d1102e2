/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Types: a simulated thread, a list of threads, an application.
 *
 * A thread's call is written as a chain of functions of the type sim_then. Each of them runs while its thread is on its
 * core, and ends with exactly one of three calls:
 *
 *   sim_core_run    the core works for so long, then the next function runs
 *   sim_core_wait   the thread waits until another thread, a packet or a timer wakes it, then the next function runs
 *   sim_return      the call has ended, and the thread goes on to its next event
 */
#ifndef SIM_THREAD_H
#define SIM_THREAD_H

#include "csa.h"
#include "earliest.h"
#include "events.h"
#include "line.h"
#include "packet.h"
#include "ranges.h"
#include "sim.h"

struct sim_object;
struct sim_page;
struct sim_port;
struct sim_thread;
typedef void sim_then(struct sim *sim, struct sim_thread *t);

/*
 * Threads in a list, linked through the threads themselves. So a thread is in one list at a time, and a list needs no
 * memory. (liburcu's lists have a link for each direction. Here a thread is seldom taken out of the middle, and its
 * first lines are full.)
 */
struct sim_list {
    struct sim_thread *first, *last;
};

enum sim_place {
    SIM_NOT_BORN,
    SIM_ON_CORE,  /* runs */
    SIM_AWAKE,    /* waits, and keeps its core meanwhile */
    SIM_ASLEEP,   /* waits without a core */
    SIM_IN_QUEUE, /* is ready, in a core's run queue */
    SIM_ENDED
};

/* What a waiting thread waits for; sim_stuck prints it. */
enum sim_why {
    SIM_WHY_ANSWER, /* the hardware's answer, which always comes */
    SIM_WHY_OBJECT, /* a lock, a barrier, a semaphore */
    SIM_WHY_SIGNAL,
    SIM_WHY_THREAD, /* the end of the thread that it joins */
    SIM_WHY_ORDER,  /* other acquisitions of the mutex come first: owner.h */
    SIM_WHY_TIME
};

/* The members stand in the order of their use: most calls touch what comes before the cursor's end. */
struct sim_thread {
    _Alignas(SIM_LINE) struct csa_thread sched; /* first: a pointer to it is a pointer to the thread */
    sim_then *then;                             /* runs when the thread has run for `left`, or has been woken */
    uint64_t left;

    uint16_t core;
    uint8_t place;     /* enum sim_place */
    uint8_t why;       /* enum sim_why */
    uint8_t kind;      /* enum sim_call_kind of the call under way */
    uint8_t shown;     /* enum sim_state since shown_from */
    bool wake_pending; /* a waker came before the thread began to wait */
    bool spins;        /* it keeps its core however long it waits */
    bool cut;          /* its events have ended, without an end of the thread */
    bool queued_lock;  /* the lock under way has found an owner or other waiters */
    bool called;       /* it is inside a call */
    bool woken;        /* its last wait found no element in the hardware, so its next wait is software's */
    bool uncounted;    /* recorded order: this acquisition is not in the trace */
    uint32_t n_held;   /* mutexes that it has */
    uint32_t number;   /* number in its application */
    uint32_t id;       /* number on the chip */
    uint64_t called_at, wait_from, shown_from;
    struct sim_app *app;
    struct sim_object *object, *mutex; /* of the call */

    uint64_t order;              /* recorded order: the number of the acquisition under way, 0: any */
    sim_then *locked, *unlocked; /* run when that part of a call is done */
    uint64_t last_arrival;       /* of its last request, at last_home: the next request does not overtake it */
    uint32_t last_home;          /* an NI */
    uint32_t n_owned;            /* objects that name this thread as their owner */
    struct hw_packet answer;
    uint32_t n_obtained; /* primitives since the last one that it could use */

    struct sim_thread_result result;
    struct sbt_trace_event event;
    struct sbt_trace_cursor cursor;

    struct sim_thread *next; /* the next thread in its list */
    sim_then *obtained;      /* runs when the object has a primitive, or is software's */
    uint64_t awaited;        /* a condition wait: the number of its signal; 0: none */
    struct sim_list targets; /* the threads that it wakes, one after another */
    struct {                 /* a primitive for an object: primitive.c */
        struct sim_object *object;
        uint32_t seen, flit1, mutex, n_tiles, n_tries, n_victims, tile;
        uint8_t op;
        bool evicting;
    } obtain;
    uint32_t generation; /* of its timers: a timer of an older generation is stale */
    uint32_t owned_page; /* where the last of the objects that it owns was found */
    /* again.c: the NI that answered AGAIN, its n_rooms at that time, and since when the thread is parked. */
    uint32_t refused_by;
    uint64_t refused_room, parked_from;
    struct {                          /* on the host machine: host_core.c, host_sched.c, host_wait.c */
        int64_t v, deadline;          /* virtual time; EEVDF's deadline in it */
        int64_t lag;                  /* while it is on no core: how much less than others it had run */
        int64_t key;                  /* its place in the run queue, */
        uint64_t sequence;            /* and among threads with the same key; */
        struct sim_thread *behind;    /* in a carrier's run queue, or of a core's delayed threads, the next */
        uint64_t serial;              /* of all threads: its memory may be another thread's later */
        uint64_t picked_at;           /* since then it has its core */
        uint64_t ran_at;              /* when it last left a core */
        uint64_t slept_at;            /* since when it sleeps */
        sim_then *yielded_then;       /* runs after the yield */
        sim_then *look;               /* active waiting: looks whether the wait is over */
        struct sim_object *what;      /* that it waits for */
        uint64_t since, spun_to;      /* when the wait began, and when its spin ends */
        uint64_t last_ns;             /* when its last yield began */
        uint64_t ticket;              /* of a barrier: the generation that it waits for */
        uint64_t owed_ns;             /* what it has to do first when it goes on */
        struct sim_object *looks_for; /* the condition of a look under way: host_poll.c */
        sim_then *offered;            /* runs after a yield that the yield gate may refuse */
        sim_then *unlocked;           /* runs after the yield of an unlock */
        uint32_t poll_ns;             /* of the trylock under way: the work between two; 0: it is no poll */
        uint32_t again_ns;            /* a spin without an end lasts for so long after each yield */
        bool spun_by_any;             /* of the mutex that it unlocks */
        uint32_t ahead_ns;            /* work before a call that has touched no line */
        uint32_t idle_ns;             /* what is left for yields that switch to no thread */
        uint16_t yields_left;         /* of those that switch */
        uint16_t n_switches;          /* of those that did */
        uint16_t worker;              /* the core from which it went to a server */
        uint32_t n_served;            /* mutexes that it owns and has locked on a server (owner.h) */
        uint8_t why;                  /* enum sim_why */
        bool forced;                  /* on its spin, although threads outnumber cores */
        bool parks, parked;           /* its next look is the last before it sleeps; it sleeps, or was woken */
        bool looks;                   /* it waits actively: it looks as soon as it has a core */
        bool idles;                   /* it yields, and no other thread wants its core */
        bool woken, interrupts;       /* it comes into a run queue because it was woken; with an interrupt there */
        bool yielded;                 /* it comes behind all threads that were woken */
        bool notified;                /* it was woken for the object, and has not got it yet */
        bool lost;                    /* it was woken, and another thread was quicker */
        bool handed;                  /* it was given the object */
        bool delayed;                 /* it sleeps, and is in its core's virtual time all the same */
    } host;
    uint64_t told_at; /* a condition wait's broadcast is known to the thread from then on; 0: it is not */
    struct {          /* a barrier by messages: vc_barrier.c; a wait for a broadcast's message: broadcast.c */
        struct sim_port *port;
        struct sim_thread *next; /* at this port */
        uint64_t episode;
        uint64_t counts; /* the episode of the message that it is taking */
        uint32_t of;     /* and how many make that episode complete */
        bool done;       /* its episode is complete */
        uint64_t from;   /* it began to wait before this one of the channel's messages was sent */
    } vc;
};

_Static_assert(offsetof(struct sim_thread, host) / SIM_LINE == SIM_PREFETCH_HOST, "events.h loads it");

static inline void sim_list_append(struct sim_list *list, struct sim_thread *t) {
    t->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = t;
    list->last = t;
}

/* Take the first thread out; NULL: the list is empty. */
static inline struct sim_thread *sim_list_shift(struct sim_list *list) {
    struct sim_thread *t = list->first;
    if (t != NULL && (list->first = t->next) == NULL)
        list->last = NULL;
    return t;
}

/* Take a thread out, wherever it stands: seldom. False: it is not in the list. */
static inline bool sim_list_remove(struct sim_list *list, const struct sim_thread *t) {
    struct sim_thread *before = NULL, *w = list->first;
    for (; w != NULL && w != t; w = w->next)
        before = w;
    if (w == NULL)
        return false;
    *(before != NULL ? &before->next : &list->first) = w->next;
    if (list->last == w)
        list->last = before;
    return true;
}

struct sim_app {
    const struct sbt_trace *trace;
    struct sim_page **pages;
    struct sim_thread **threads; /* by number; NULL: not alive */
    struct sim_thread_result *results;
    struct sim_list *joiners; /* for each thread the threads that join it */
    uint8_t *ended;           /* SIM_NOT_BORN, SIM_ON_CORE or SIM_ENDED */
    struct sim_list late;     /* ended threads that objects still name as their owners */
    /*
     * when each thread without a creator in the trace begins; UINT64_MAX: it has a creator. NULL: all threads have, or
     * those that have none do not run
     */
    uint64_t *begins;
    struct sim_ranges broadcasts; /* of its conditions; */
    struct sim_earliest earliest; /* and when their signals come at the earliest */
    uint64_t last_ns;             /* the end of the application's last call */
    uint32_t n_threads, n_objects, n_alive, number;
    uint32_t n_unborn; /* threads without a creator that have not begun yet */
    struct sim_application result;
};

#endif

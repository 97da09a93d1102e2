/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state of a program of simulated threads (program.h).
 *
 * A thread that cannot go on leaves a function in `then`, and an event; or waits for another thread to put that event.
 * The event calls the function, which says whether the thread goes on. Whichever thread blocks takes the next events,
 * so most switches go from thread to thread.
 */
#ifndef SIM_PROGRAM_STATE_H
#define SIM_PROGRAM_STATE_H

#include "chip.h"
#include "inbox.h"
#include "program.h"
#include "stack.h"

struct sim_fiber;
/* True: the thread goes on now. */
typedef bool sim_fiber_then(struct sim_program *p, struct sim_fiber *t);

/*
 * A thread that knows what it will find at a later event need not wait for that event: it goes on, and the event
 * becomes a hop. Before it does anything that others can see, its hops happen, each put in by the one before. So all
 * events are put in when they would have been, and those of equal times keep their order.
 */
enum { SIM_MAX_HOPS = 32 };

enum sim_access { SIM_LOAD, SIM_STORE, SIM_ADD, SIM_SWAP, SIM_COMPARE_AND_SWAP };

/* What a thread waits for, for the report of a run that is stuck. */
enum sim_wait { SIM_FOR_TIME, SIM_FOR_CHANGE, SIM_FOR_WAKE, SIM_FOR_MESSAGE };

struct sim_fiber {
    struct sim_stack stack;
    sim_fiber_then *then;
    uint32_t number, core;
    uint32_t generation;  /* events of an earlier generation are stale */
    uint64_t ahead;       /* cycles that it has computed since the last event that has happened, */
    uint64_t hopped;      /* and of them, those until its last hop */
    uint32_t n_hops, hop; /* hops; the next one, when they happen */
    enum sim_wait wait;
    /* An access, a futex call. */
    enum sim_access access;
    uint32_t word;
    uint64_t operand, expected, result;
    uint32_t n_wake;
    struct sim_fiber *next_sleeper;
    /* A wait for a message. */
    uint32_t channel;
    uint64_t alarm;            /* when it looks next; UINT64_MAX: when there is another message */
    uint64_t deadline;         /* when it gives up */
    struct sim_letter *letter; /* that it has taken last, if threads share cores */
    bool ended;
    sim_program_body *body;
    void *argument;
    struct sim_program *program;
    uint64_t departed;               /* when its hops began to happen */
    uint64_t hops[SIM_MAX_HOPS + 1]; /* as `ahead`; the last one is where the thread goes on */
};

struct sim_cache_line {
    uint64_t word[SIM_WORDS_OF_LINE];
    uint64_t sharers[SIM_MAX_CORES / 64]; /* a bit for each core that has it */
    uint64_t free_cycles;                 /* its home has served the last request */
    uint32_t owner;                       /* the core that may write it; SIM_NO_OWNER: none */
};
#define SIM_NO_OWNER UINT32_MAX

struct sim_program {
    struct sim_program_config config;
    struct sim_events events;
    struct hw_mesh mesh;
    void *ports;
    struct sim_stack stack;    /* of sim_program_run's caller */
    struct sim_fiber *threads; /* [config.n_threads] */
    uint32_t n_threads, n_living;
    struct sim_fiber *running;
    uint64_t n_events, end_cycles;
    enum sim_status status;
    struct sim_error error;
    /* memory */
    struct sim_cache_line *lines;
    uint32_t n_lines, lines_capacity;
    uint64_t n_transfers;
    uint64_t server_free_cycles;
    struct sim_fiber *first_sleeper, *last_sleeper;
    /* optical network */
    struct hw_optical optical;
    void *optical_memory;
    struct {
        void *data;
        uint32_t bytes, sender;
    } * slots;                            /* a message's data and thread, by its slot */
    uint64_t waiting[SIM_MAX_CORES / 64]; /* threads that wait for a message that has not been sent */
    uint32_t n_channels;
    /* If threads share cores (program_share.h): */
    struct sim_inboxes inboxes;
    uint64_t *core_free; /* [n_cores] when the core has computed what threads have asked for; NULL: none is shared */
};

static inline uint64_t sim_program_now(const struct sim_program *p) {
    return p->events.now;
}

/* Calls the thread's function at that time. */
static inline void sim_fiber_call(struct sim_program *p, const struct sim_fiber *t, uint64_t at) {
    sim_events_put_words(&p->events, at, SIM_EV_FIBER, t->number, t->generation, 0, t);
}

/* Cycles from core to core, until all of a packet with so many flits is there. */
static inline uint64_t sim_program_way(const struct sim_program *p, uint32_t from, uint32_t to, uint32_t n_flits) {
    if (from == to)
        return 0;
    return hw_mesh_distance(&p->mesh, from, to).head_cycles + (uint64_t)n_flits * p->config.timing.link_cycles;
}

/* The thread stops until `then` says that it goes on. An event has been put in, or will be. */
void sim_fiber_stop(struct sim_program *p, struct sim_fiber *t, enum sim_wait wait, sim_fiber_then *then);
/* The time that the thread has computed passes, with its hops. */
void sim_fiber_settle(struct sim_program *p, struct sim_fiber *t);
/* The same for the thread that runs, if one does: before it takes of what all threads take in the order of time. */
void sim_program_settle(struct sim_program *p);
sim_fiber_then sim_fiber_goes_on;
/* Goes on with the next threads, to the end of the run; for the run's own stack, and for threads that have ended. */
void sim_fiber_leave(struct sim_program *p, struct sim_stack *from);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The simulator, as its files know each other.
 *
 *   sim.c       a chip, its applications, the loop over events; results.c, stuck.c what can be asked of it
 *   events.c    what happens when
 *   core.c      cores and run queues: a thread runs for so long, waits, is woken; the policies are sched_csa's
 *   replay.c    a thread's way along its trace: work, calls, creation and join
 *   calls.c     calls on objects, what is common to both machines
 *   objects.c   objects by number, what is common to both machines: who holds what, which signals have happened
 *   software.c  the software-only model
 *   costs.c     its constants
 *   noc.c       the machine: NIs and mesh of emu_hw, requests and answers
 *   requests.c  objects in requests, and ids.c their primitives: what libsubutai/engine/ni does, in virtual time
 *
 * A thread's call is written as a chain of functions. Each is called when its thread is on its core, and ends with
 * exactly one of: sim_run_for (the core works on, then the next function), sim_wait (somebody will sim_wake it, then
 * the next function), sim_return (the call has ended).
 */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "fsm.h"
#include "mesh.h"
#include "sim.h"

/* ---- the host's cache: what is looked at together is in one line ---- */

#define SIM_LINE 64

static inline size_t sim_lines(size_t bytes) {
    return (bytes + SIM_LINE - 1) / SIM_LINE * SIM_LINE;
}

/* Begins with a line. For free(); NULL: no memory. */
static inline void *sim_zeroed(size_t bytes) {
    void *p = aligned_alloc(SIM_LINE, sim_lines(bytes));
    return p != NULL ? memset(p, 0, bytes) : NULL;
}

struct sim_thread;
typedef void sim_then(struct sim *sim, struct sim_thread *t);

/* ---- objects ---- */

struct sim_list {
    struct sim_thread *first, *last;
};

enum { SIM_ID_SOFTWARE = 1 }; /* in place of an ID: served in software for the rest of its life */

/* One object of an application. All-zero is one that was never used. What each call looks at comes first. */
struct sim_object {
    struct sim_thread *owner; /* of a mutex, an rwlock for writing, a spin lock */
    uint64_t since;           /* it has been held */
    uint64_t section_ns;      /* of a mutex: has been held */
    uint32_t n_calls;         /* under way */
    uint32_t number;
    uint32_t id;       /* in hardware: 0, an ID, SIM_ID_SOFTWARE */
    uint32_t n_inside; /* arrived at a barrier; readers; depth of an owner's recursion; waits for a semaphore's first
                          value */
    uint32_t size;     /* of a barrier; of a semaphore: its value now */
    uint16_t application;
    uint16_t line_core; /* where the cache line was last */
    uint8_t kind;       /* enum sbt_trace_type */
    bool contended;     /* mutex, in software: whoever releases it calls the kernel */
    bool known;         /* barrier, semaphore: its size has been seen */
    bool evicted;       /* its ID is stale */
    bool doomed;        /* destroyed in the trace: as soon as it is idle */
    bool dead;          /* and it was */
    bool forgotten;     /* with all of its page: what it had been is not known any more */
    uint32_t n_window;
    struct sim_list waiters; /* asleep, in software: for whatever it is */
    struct sim_list queued;  /* of a condition, in hardware: the same as in its NI, in the same order */
    struct sim_list gated;   /* of a mutex, recorded order: not their turn yet */
    uint64_t n_acquired;     /* recorded order: acquisitions so far */
    uint64_t below;          /* of a condition: all signals up to this number have happened */
    uint64_t *window;        /* and of the n_window * 64 that follow, those with a bit; NULL: none */
    uint64_t line_free;      /* the cache line is on its way until then */
};

#define SIM_PAGE 256

struct sim_page {
    uint32_t n_dead;
    struct sim_object object[SIM_PAGE];
};

/* ---- threads and applications ---- */

enum sim_place { SIM_NOT_BORN, SIM_ON_CORE, SIM_AWAKE, SIM_ASLEEP, SIM_IN_QUEUE, SIM_ENDED };

/* What a waiting thread waits for, for sim_stuck. */
enum sim_why { SIM_WHY_ANSWER, SIM_WHY_OBJECT, SIM_WHY_SIGNAL, SIM_WHY_THREAD, SIM_WHY_TURN, SIM_WHY_TIME };

/* In the order of how often it is looked at: most calls touch what comes before the cursor's end. */
struct sim_thread {
    _Alignas(SIM_LINE) struct csa_thread sched; /* first: a pointer to it is one to the thread */
    sim_then *then;                             /* when it has run for `left`, or has been woken */
    uint64_t left;

    uint16_t core;
    uint8_t place; /* enum sim_place */
    uint8_t why;
    uint8_t kind;  /* enum sim_call_kind of the call under way */
    uint8_t shown; /* enum sim_state, since shown_from */
    bool token;    /* woken before it waited */
    bool spins;    /* keeps its core for as long as it takes */
    bool cut;      /* its events have ended, and it had not */
    bool queued_lock, called;
    bool woken;          /* its last wait found no element in hardware: the next is software's */
    bool uncounted;      /* recorded order: this acquisition is not one of the trace's */
    uint32_t number, id; /* in its application; on the chip */
    uint64_t called_at, wait_from, shown_from;
    struct sim_app *app;
    struct sim_object *object, *mutex; /* of the call */

    uint64_t order;              /* recorded order: the number of the acquisition under way, 0: any */
    sim_then *locked, *unlocked; /* where a part of a call goes on when it has been done */
    uint64_t last_arrival;       /* of its last request, and its NI: the next one does not overtake it */
    uint32_t last_home;
    uint32_t n_owned; /* objects that name it as their owner */
    struct hw_packet answer;
    uint32_t n_obtained; /* primitives since the last that it could use */

    struct sim_thread_result result;
    struct sbt_trace_event event;
    struct sbt_trace_cursor cursor;

    struct sim_thread *next; /* in one list of an object */
    sim_then *obtained;
    uint64_t awaited;        /* a condition wait: the number of its signal; 0: none */
    struct sim_list targets; /* to be woken, one after another */
    struct {
        struct sim_object *object;
        uint32_t seen, flit1, mutex, n_tiles, n_tries, n_victims, tile;
        uint8_t op;
        bool evicting;
    } obtain;
    uint32_t generation; /* of its timers */
    uint32_t owned_page; /* of the objects that it owns, the last that was looked for */
    /* Told AGAIN, by this NI at its n_rooms; since when it is in sim->parked. */
    uint32_t refused_by;
    uint64_t refused_room, parked_from;
};

struct sim_app {
    const struct sbt_trace *trace;
    struct sim_page **pages;
    struct sim_thread **threads; /* by number; NULL: not alive */
    struct sim_thread_result *results;
    struct sim_list *joiners; /* by the thread they wait for */
    uint8_t *ended;           /* SIM_NOT_BORN, SIM_ON_CORE or SIM_ENDED */
    struct sim_list late;     /* ended, and objects still name them */
    uint64_t
        *begins; /* of a trace that is not whole: who has no creator in it, and when; UINT64_MAX: others. Or NULL */
    uint64_t last_ns; /* a call ended */
    uint32_t n_threads, n_objects, n_alive, number;
    uint32_t n_unborn; /* of those without a creator */
    struct sim_application result;
};

/* ---- the chip ---- */

struct sim_core {
    _Alignas(SIM_LINE) struct sim_thread *on;
    struct sim_thread *last;
    uint64_t from; /* `on` has run since; `on` waits awake since */
    uint32_t generation;
    uint32_t n_spinning; /* of those in its run queue, for a lock */
    uint16_t number;
    bool armed; /* an event is outstanding for this generation */
    struct csa_sched sched;
};

/* A network interface and what waits there. */
struct sim_tile {
    _Alignas(SIM_LINE) struct hw_ni ni;
    uint64_t free_at; /* its state machine is busy until then */
    uint64_t n_rooms; /* how often there was room for a request that had not found any */
    struct hw_packet *held;
    uint32_t n_held, held_capacity, hand;
    struct sim_object **owner; /* of each control element */
};

struct sim_histogram { /* of latencies: 32 steps to an octave */
    uint64_t n, sum, max;
    uint64_t bucket[60 * 32];
};

struct sim {
    struct sim_events events;
    struct sim_config config;
    uint32_t n_cores;
    struct sim_core *cores;
    uint64_t idle[SIM_MAX_CORES / 64]; /* a bit for each core that runs nobody */
    uint32_t n_ready;                  /* in run queues, all cores */
    uint32_t n_placed;
    struct csa_turn turn;

    struct sim_app *apps;
    uint32_t n_apps, n_running;
    uint64_t n_threads; /* of all applications, ever */
    struct sim_thread **by_id;
    uint16_t *free_ids;
    uint32_t n_free_ids;

    struct hw_config hw;
    struct hw_layout layout;
    struct hw_mesh mesh;
    struct hw_port *ports;
    struct sim_tile *tiles;
    uint8_t *scratchpads;
    struct hw_output *outputs;
    struct sim_object **owners;
    uint32_t next_ni;
    struct sim_list parked; /* told AGAIN */

    enum sim_status status;
    bool trimmed; /* and `summary` is complete */
    struct sim_error error;
    struct sim_summary summary;
    struct sim_histogram *latency; /* SIM_N_CALLS */
};

static inline uint64_t sim_now(const struct sim *sim) {
    return sim->events.now;
}

/* Ends the run; the first reason stays. */
void sim_fail(struct sim *sim, enum sim_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- lists ---- */

static inline void sim_append(struct sim_list *list, struct sim_thread *t) {
    t->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = t;
    list->last = t;
}

static inline struct sim_thread *sim_shift(struct sim_list *list) {
    struct sim_thread *t = list->first;
    if (t != NULL && (list->first = t->next) == NULL)
        list->last = NULL;
    return t;
}

/* ---- core.c ---- */

void sim_run_for(struct sim *sim, struct sim_thread *t, uint64_t cycles, sim_then *then);
void sim_wait(struct sim *sim, struct sim_thread *t, enum sim_why why, sim_then *then);
/* It goes on with `cycles` of work and then its function. */
void sim_wake(struct sim *sim, struct sim_thread *t, uint64_t cycles);
void sim_wake_at(struct sim *sim, struct sim_thread *t, uint64_t at);
void sim_born(struct sim *sim, struct sim_thread *t, sim_then *then);
void sim_leave(struct sim *sim, struct sim_thread *t); /* for ever */
void sim_cores_clear(struct sim *sim);                 /* whoever is there has gone */
void sim_hold(struct sim *sim, struct sim_thread *t);
void sim_unhold(struct sim *sim, struct sim_thread *t);
void sim_core_event(struct sim *sim, const struct sim_event *event);
void sim_timer_event(struct sim *sim, const struct sim_event *event);
void sim_tell(struct sim *sim, const struct sim_thread *t, uint64_t at); /* config.on_interval */

static inline void sim_show_at(struct sim *sim, struct sim_thread *t, enum sim_state state, uint64_t at) {
    if (t->shown == state)
        return;
    t->result.in_ns[t->shown] += at - t->shown_from;
    if (__builtin_expect(sim->config.on_interval != NULL, 0) && at != t->shown_from)
        sim_tell(sim, t, at);
    t->shown = (uint8_t)state;
    t->shown_from = at;
}

static inline void sim_show(struct sim *sim, struct sim_thread *t, enum sim_state state) {
    sim_show_at(sim, t, state, sim_now(sim));
}

/* ---- replay.c ---- */

struct sim_thread *sim_create(struct sim *sim, struct sim_app *app, uint32_t number);
/* The first thread of an application, and those that the trace does not see created. */
void sim_start(struct sim *sim, struct sim_app *app);
void sim_born_event(struct sim *sim, const struct sim_event *event);
/* Nothing can advance. True: the traces of those that wait are to blame, and they have ended here. */
bool sim_give_up(struct sim *sim);
/* The call has ended, `extra` cycles from now: on to the next event. */
void sim_return_after(struct sim *sim, struct sim_thread *t, uint64_t extra);
void sim_return(struct sim *sim, struct sim_thread *t); /* at once */

/* ---- calls.c ---- */

/* t->event is about an object. */
void sim_call_object(struct sim *sim, struct sim_thread *t);

/* ---- objects.c ---- */

/* In place of a page: all its objects were destroyed, and its memory is given back. */
extern struct sim_page sim_forgotten;
struct sim_object *sim_object_again(struct sim *sim, struct sim_app *app, uint32_t number);

/* For a call. NULL and the run has failed: no memory. */
static inline struct sim_object *sim_object(struct sim *sim, struct sim_app *app, uint32_t number) {
    struct sim_page *page = number < app->n_objects ? app->pages[number / SIM_PAGE] : NULL;
    if (page == NULL || page == &sim_forgotten || page->object[number % SIM_PAGE].dead)
        return sim_object_again(sim, app, number);
    return &page->object[number % SIM_PAGE];
}

/* One that names t as its owner; NULL: none does. */
struct sim_object *sim_object_of(struct sim_thread *t);
/* A call has ended that used it; by then it may be time to destroy it, which `t` does. */
void sim_object_left(struct sim *sim, struct sim_thread *t, struct sim_object *o);
void sim_objects_free(struct sim_app *app);
/* A signal has happened, and has it? */
void sim_happened(struct sim *sim, struct sim_object *condition, uint64_t number);
bool sim_has_happened(const struct sim_object *condition, uint64_t number);
/* The owner of a mutex, an rwlock for writing, a spin lock; NULL: nobody any more. */
static inline void sim_own(struct sim_object *o, struct sim_thread *t) {
    if (o->owner != NULL)
        o->owner->n_owned--;
    if (t != NULL)
        t->n_owned++;
    o->owner = t;
}
/* A mutex begins or ends to be held: critical sections, priority, recorded order. */
void sim_acquired(struct sim *sim, struct sim_thread *t, struct sim_object *mutex);
void sim_released(struct sim *sim, struct sim_thread *t, struct sim_object *mutex);
/* Recorded order: on to t->gate_open when it is the turn of acquisition t->order. */
void sim_gate(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *open);
static inline bool sim_is_early(const struct sim *sim, const struct sim_thread *t, const struct sim_object *mutex) {
    return sim->config.recorded_order && !mutex->forgotten && t->order > mutex->n_acquired + 1;
}

/* ---- either machine: by the object's word ---- */

/* Acquire t->mutex, then t->locked. Release it, then t->unlocked. Both at once or later. */
void sim_lock(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then);
void sim_unlock(struct sim *sim, struct sim_thread *t, struct sim_object *mutex, sim_then *then);

/* ---- software.c ---- */

void sim_sw_lock(struct sim *sim, struct sim_thread *t);
void sim_sw_unlock(struct sim *sim, struct sim_thread *t);
void sim_sw_try(struct sim *sim, struct sim_thread *t, sim_then *then); /* an attempt that fails */
void sim_sw_cond_wait(struct sim *sim, struct sim_thread *t);
void sim_sw_signal(struct sim *sim, struct sim_thread *t);
void sim_sw_barrier(struct sim *sim, struct sim_thread *t);
void sim_sw_rwlock(struct sim *sim, struct sim_thread *t);
void sim_sw_rwunlock(struct sim *sim, struct sim_thread *t);
void sim_sw_sem_wait(struct sim *sim, struct sim_thread *t);
void sim_sw_sem_post(struct sim *sim, struct sim_thread *t);
void sim_sw_spin_lock(struct sim *sim, struct sim_thread *t);
void sim_sw_spin_unlock(struct sim *sim, struct sim_thread *t);

/* ---- noc.c ---- */

bool sim_noc_init(struct sim *sim);
void sim_noc_free(struct sim *sim);
/* No primitives, nobody waits. Only what has been counted stays. */
void sim_noc_clear(struct sim *sim);
/* The packets may be those of events that have been taken: not looked at after another one is put in. */
void sim_noc_request(struct sim *sim, const struct hw_packet *arrived); /* at its home */
void sim_noc_send(struct sim *sim, const struct hw_packet *packet);     /* is ready to leave an NI */
void sim_noc_answer(struct sim *sim, const struct hw_packet *packet);   /* has arrived at its core */
void sim_post(struct sim *sim, struct sim_thread *t, enum hw_op op, struct sim_object *o, uint32_t id);
void sim_post_alloc(struct sim *sim, struct sim_thread *t, enum hw_op op, uint32_t tile, uint32_t flit1);
struct hw_message sim_answer_of(const struct sim *sim, const struct sim_thread *t);

/* ---- requests.c ---- */

/* There is room at an NI: those that it told AGAIN may try again. */
void sim_hw_room(struct sim *sim, const struct sim_tile *tile);
void sim_hw_lock(struct sim *sim, struct sim_thread *t);
void sim_hw_unlock(struct sim *sim, struct sim_thread *t);
void sim_hw_try(struct sim *sim, struct sim_thread *t, sim_then *then); /* of t->object, without effect */
void sim_hw_cond_wait(struct sim *sim, struct sim_thread *t);
void sim_hw_signal(struct sim *sim, struct sim_thread *t);
void sim_hw_barrier(struct sim *sim, struct sim_thread *t);

/* ---- ids.c ---- */

static inline bool sim_is_id(uint32_t word) {
    return (word & HW_ID_IN_USE) != 0;
}
/* The primitive `id` of `o` is given back, if it still has that. */
void sim_give_back(struct sim *sim, struct sim_thread *t, const struct sim_object *o, uint32_t id);
/* A primitive for the object whose word was `seen`; then t->obtained. */
void sim_obtain(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t seen, enum hw_op op,
                uint32_t flit1, sim_then *then);
/* The same for a condition that lives with this mutex; o->id is no ID of that kind afterwards if there is none. */
void sim_obtain_condition(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t mutex, sim_then *then);

#endif

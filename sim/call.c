/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls on objects, as far as they are common to both machines: recursion, calls that failed when they were recorded,
 * waits that no signal ended, and the choice of the machine that serves a call.
 *
 * A call that succeeded in the trace succeeds here, however long it takes, because the thread's next events depend on
 * it. So a trylock that got the mutex is a lock, and a trylock that did not is an attempt without effect. A lock or
 * wait that timed out lasts as long as it did in the trace.
 */
#include "call.h"

#include "call_attempt.h"
#include "call_cond.h"
#include "core.h"
#include "host_cond.h"
#include "host_sync.h"
#include "mutex.h"
#include "page.h"
#include "request.h"
#include "return.h"
#include "signals.h"
#include "software.h"
#include "software_cond.h"
#include "vc_barrier.h"

#include <errno.h>

/* The trace does not say what the call was about, so it lasts as long as it did. */
static void unknown_wait(struct sim *sim, struct sim_thread *t) {
    sim_deviates(sim, SIM_UNKNOWN_OBJECT);
    sim_call_last(sim, t);
}

/* ---- mutexes ---- */

static void call_locked(struct sim *sim, struct sim_thread *t) {
    t->kind = t->queued_lock ? SIM_LOCK_QUEUED : SIM_LOCK_EMPTY;
    sim_return(sim, t);
}

static bool was_acquired(const struct sbt_trace_event *event) {
    return event->result == 0 || event->result == EOWNERDEAD;
}

void sim_call_last(struct sim *sim, struct sim_thread *t) {
    sim_core_wake_at(sim, t, sim_now(sim) + t->event.took_ns);
    sim_core_wait(sim, t, SIM_WHY_TIME, sim_return);
}

static sim_then *after_failure(const struct sim_thread *t) {
    return t->event.result == ETIMEDOUT ? sim_call_last : sim_return;
}

/* A call that failed: an attempt, and the time for which it waited. */
static void call_failed(struct sim *sim, struct sim_thread *t) {
    t->kind = SIM_TRYLOCK;
    sim_call_attempt(sim, t, after_failure(t));
}

/* Does the thread wait for the mutex by trylocks? Under waiting by switching the library expects that of each trylock.
 */
static bool polls(const struct sim *sim, const struct sim_thread *t, struct sim_object *m) {
    if (t->event.op != SBT_TRACE_MUTEX_TRYLOCK || sim->config.recorded_order)
        return false;
    if (sim->host->fibers && !sim_host_cores_to_spare(sim, t))
        sim_host_spun(m, false);
    return m->polled;
}

static __attribute__((noinline)) void call_lock(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->object;
    t->order = t->event.order;
    if (!was_acquired(&t->event) && sim_mutex_in_hardware(sim, m)) {
        t->kind = SIM_TRYLOCK;
        sim_request_try(sim, t, after_failure(t));
    } else if (!was_acquired(&t->event)) {
        call_failed(sim, t);
    } else if (m->owner == t) {
        m->n_inside++;
        t->kind = SIM_LOCK_EMPTY;
        sim_return(sim, t);
    } else if (sim_on_host(sim) && polls(sim, t, m)) {
        sim_host_poll_lock(sim, t, m, call_locked);
    } else {
        sim_mutex_lock(sim, t, m, call_locked);
    }
}

static __attribute__((noinline)) void call_unlock(struct sim *sim, struct sim_thread *t) {
    struct sim_object *m = t->object;
    t->kind = SIM_UNLOCK;
    if (t->event.result != 0) { /* refused before anything was touched */
        sim_return(sim, t);
    } else if (m->owner == t && m->n_inside > 1) {
        m->n_inside--;
        sim_return(sim, t);
    } else {
        if (m->owner == NULL)
            sim_deviates(sim, SIM_NOT_HELD);
        sim_mutex_unlock(sim, t, m, sim_return);
    }
}

/* ---- futexes ---- */

/*
 * A wait that found another value had seen what a wake-up announced. Here it waits for that wake-up if it comes before
 * it, and finds another value if the wake-up has happened.
 */
static void call_futex_wait(struct sim *sim, struct sim_thread *t) {
    int result = t->event.result;
    t->mutex = NULL;
    t->kind = SIM_FUTEX_WAIT;
    t->awaited = result == 0 || result == EAGAIN ? t->event.order : 0;
    if (t->awaited == 0 || sim_signals_has(t->object, t->awaited))
        sim_call_attempt(sim, t, after_failure(t));
    else if (sim_on_host(sim))
        sim_host_cond_wait(sim, t);
    else
        sim_software_cond_wait(sim, t);
}

static void call_futex_wake(struct sim *sim, struct sim_thread *t) {
    t->kind = SIM_FUTEX_WAKE;
    if (sim_on_host(sim))
        sim_host_cond_signal(sim, t);
    else
        sim_software_cond_signal(sim, t);
}

/* ---- the others ---- */

static void call_barrier(struct sim *sim, struct sim_thread *t) {
    struct sim_object *b = t->object;
    t->kind = SIM_BARRIER;
    if (t->event.result != 0) {
        sim_call_attempt(sim, t, sim_return);
        return;
    }
    if (!b->known && t->event.size != 0) {
        b->known = true;
        b->size = t->event.size;
    }
    if (!b->known && b->forgotten)
        sim_call_attempt(sim, t, sim_return); /* the barrier was destroyed, so in the trace all threads passed it */
    else if (!b->known || b->size == 0)
        unknown_wait(sim, t);
    else if (sim_on_host(sim))
        sim_host_barrier(sim, t);
    else if (sim->broadcast != NULL && sim_vc_barrier(sim, t))
        return;
    else if (sim_mutex_in_hardware(sim, b))
        sim_request_barrier(sim, t);
    else
        sim_software_barrier(sim, t);
}

/* The initial value. In virtual time threads may have come before it is known. */
static void semaphore_value(struct sim *sim, struct sim_object *o, uint32_t value) {
    o->known = true;
    o->size += value;
    o->n_inside = value;
    if (sim_on_host(sim)) {
        sim_host_sem_wake(sim, o);
        return;
    }
    for (; o->size > 0 && o->waiters.first != NULL; o->size--)
        sim_core_wake(sim, sim_list_shift(&o->waiters), 0);
}

static void call_init(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    bool begun = o->known && !o->doomed && !o->forgotten; /* a wait has said the value */
    if (t->event.type != SBT_TRACE_SEM) {
        o->size = t->event.size;
    } else if (!begun) {
        if (o->doomed || o->forgotten)
            o->size = 0;
        semaphore_value(sim, o, t->event.size);
    }
    o->known = true;
    o->doomed = o->forgotten = false; /* a new life, if the number had another before */
    t->kind = SIM_THREAD;
    sim_return(sim, t);
}

static void call_destroy(struct sim *sim, struct sim_thread *t) {
    t->object->doomed = t->object->doomed || t->event.result == 0;
    t->kind = SIM_THREAD;
    sim_return(sim, t);
}

static void call_other(struct sim *sim, struct sim_thread *t) {
    uint8_t op = t->event.op;
    uint8_t type = t->object->kind;
    t->kind = type == SBT_TRACE_SEM ? SIM_SEMAPHORE : type == SBT_TRACE_SPIN ? SIM_SPIN : SIM_RWLOCK;
    bool releases = op == SBT_TRACE_RWLOCK_UNLOCK || op == SBT_TRACE_SEM_POST || op == SBT_TRACE_SPIN_UNLOCK;
    if (releases ? t->event.result != 0 : !was_acquired(&t->event)) {
        call_failed(sim, t);
        return;
    }
    if (releases && op != SBT_TRACE_SEM_POST && t->object->owner == NULL && t->object->n_inside == 0)
        sim_deviates(sim, SIM_NOT_HELD);
    if (sim_on_host(sim)) {
        if (t->event.type == SBT_TRACE_SEM && !releases && !t->object->known && t->event.size != 0)
            semaphore_value(sim, t->object, t->event.size);
        sim_host_other(sim, t);
        return;
    }
    switch (op) {
    case SBT_TRACE_RWLOCK_UNLOCK:
        sim_software_rwunlock(sim, t);
        break;
    case SBT_TRACE_SEM_WAIT:
    case SBT_TRACE_SEM_TRYWAIT:
        if (!t->object->known && t->event.size != 0)
            semaphore_value(sim, t->object, t->event.size);
        sim_software_sem_wait(sim, t);
        break;
    case SBT_TRACE_SEM_POST:
        sim_software_sem_post(sim, t);
        break;
    case SBT_TRACE_SPIN_LOCK:
    case SBT_TRACE_SPIN_TRYLOCK:
        sim_software_spin_lock(sim, t);
        break;
    case SBT_TRACE_SPIN_UNLOCK:
        sim_software_spin_unlock(sim, t);
        break;
    default:
        sim_software_rwlock(sim, t);
    }
}

/* ---- which call ---- */

#define OPS(first, last, type) [SBT_TRACE_##first... SBT_TRACE_##last] = SBT_TRACE_##type
/* The type of the operation's object. An initialisation and a destruction have the event's. */
static const uint8_t type_of[SBT_TRACE_N_OPS] = {
    OPS(MUTEX_LOCK, MUTEX_UNLOCK, MUTEX),
    OPS(COND_WAIT, COND_BROADCAST, COND),
    OPS(BARRIER_WAIT, BARRIER_WAIT, BARRIER),
    OPS(RWLOCK_RDLOCK, RWLOCK_UNLOCK, RWLOCK),
    OPS(SEM_WAIT, SEM_POST, SEM),
    OPS(SPIN_LOCK, SPIN_UNLOCK, SPIN),
    OPS(FUTEX_WAIT, FUTEX_WAKE, FUTEX),
};

/*
 * The object's first use says its type. The recorder begins another life, with another number, for another type. So
 * another type is damage. (The type of a destruction does not matter.)
 */
static __attribute__((noinline)) bool type_fits(struct sim *sim, struct sim_thread *t) {
    struct sim_object *o = t->object;
    uint8_t type = t->event.op == SBT_TRACE_INIT ? t->event.type : type_of[t->event.op];
    if (t->event.op == SBT_TRACE_DESTROY || o->kind == type)
        return true;
    if (o->kind == SBT_TRACE_NO_OBJECT) {
        o->kind = type;
        return true;
    }
    sim_fail(sim, SIM_DAMAGED, "%s: object %u is of two types", t->app->result.name, o->number);
    return false;
}

/* The recorder had no memory for the object. */
static void call_without_object(struct sim *sim, struct sim_thread *t) {
    t->kind = SIM_THREAD;
    unknown_wait(sim, t);
}

static __attribute__((noinline)) void call_rarer(struct sim *sim, struct sim_thread *t) {
    switch (t->event.op) {
    case SBT_TRACE_INIT:
        call_init(sim, t);
        return;
    case SBT_TRACE_DESTROY:
        call_destroy(sim, t);
        return;
    case SBT_TRACE_COND_WAIT:
        sim_call_wait(sim, t);
        return;
    case SBT_TRACE_COND_SIGNAL:
    case SBT_TRACE_COND_BROADCAST:
        sim_call_signal(sim, t);
        return;
    case SBT_TRACE_BARRIER_WAIT:
        call_barrier(sim, t);
        return;
    case SBT_TRACE_FUTEX_WAIT:
        call_futex_wait(sim, t);
        return;
    case SBT_TRACE_FUTEX_WAKE:
        call_futex_wake(sim, t);
        return;
    default:
        call_other(sim, t);
    }
}

static inline void call_found(struct sim *sim, struct sim_thread *t) {
    uint8_t op = t->event.op;
    t->object->n_calls++;
    if (op == SBT_TRACE_MUTEX_UNLOCK)
        call_unlock(sim, t);
    else if (op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_MUTEX_TRYLOCK)
        call_lock(sim, t);
    else
        call_rarer(sim, t);
}

/* The object has not been used yet, or has gone, or the trace is damaged. */
static __attribute__((noinline)) void call_first(struct sim *sim, struct sim_thread *t) {
    if (t->event.object == SBT_TRACE_NONE)
        call_without_object(sim, t);
    else if ((t->object = sim_page_object(sim, t->app, t->event.object)) != NULL &&
             (t->object->kind == type_of[t->event.op] || type_fits(sim, t)))
        call_found(sim, t);
}

void sim_call_object(struct sim *sim, struct sim_thread *t) {
    const struct sbt_trace_event *event = &t->event;
    struct sim_object *o = sim_page_living(t->app, event->object);
    if (__builtin_expect(o == NULL || o->kind != type_of[event->op], 0)) {
        call_first(sim, t);
        return;
    }
    t->object = o;
    call_found(sim, t);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of which advice the change cannot be simulated, and why. change.c makes the others' changes. */
#include "change.h"
#include "walk.h"

const char *rep_change_refused(const struct rep_report *r, const struct rep_advice *a) {
    const unsigned type = a->object != REP_NONE ? r->objects[a->object].type : SBT_TRACE_NO_OBJECT;
    if ((type == SBT_TRACE_SEM || type == SBT_TRACE_FUTEX) &&
        (a->cause == REP_HOT_LOCK || a->cause == REP_LOCK_OVER_IO))
        return type == SBT_TRACE_SEM ? "the simulator does not change semaphores"
                                     : "a trace does not have all calls of a lock made of a futex";
    switch (a->cause) {
    case REP_HOT_LOCK:
        for (uint32_t i = 0; i < r->info.n_objects; i++)
            if (r->objects[i].type == SBT_TRACE_COND && r->objects[i].mutex == a->object)
                return "a condition is waited for with this lock, so it cannot be split";
        return NULL;
    case REP_LOCK_OVER_IO:
    case REP_BARRIER_IMBALANCE:
    case REP_FALSE_SPIN:
    case REP_MANY_LOCKS:
    case REP_BROADCAST_STORM:
    case REP_FUTILE_WAKEUPS:
        return NULL;
    case REP_IDLE:
        return "threads that wait for work cost no time";
    case REP_OFF_CPU:
        return "a trace does not say what a thread sleeps for";
    case REP_INTERPRETER_LOCK:
        return "a trace does not say what runs with the interpreter's lock";
    case REP_BARRIER_STALL:
        return "it is not the program that would be changed";
    case REP_DEADLOCK:
    case REP_LOCK_ORDER:
        return "the change makes nothing faster";
    case REP_TOO_MANY_THREADS:
    case REP_SERIAL:
        return "a trace does not say how other threads would share the work";
    default:
        return "the program stays as it is";
    }
}

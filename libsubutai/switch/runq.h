/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The run queue of a carrier: its runnable fibers. The caller of each function is between sbt_switch_enter and
 * sbt_switch_leave (state.h). It holds no lock of switch/.
 */
#ifndef SBT_SWITCH_RUNQ_H
#define SBT_SWITCH_RUNQ_H

#include "switch/fiber.h"

struct sbt_runq {
    struct sbt_fiber *head, *tail;
};

/*
 * Woken fibers go before fibers that only yielded, and of these the fresh ones first, which have got something done
 * since the program had them yield last: the others look again and again for what these do.
 */
enum sbt_runq_of { SBT_WOKEN, SBT_FRESH, SBT_YIELDED, SBT_RUNQS };

struct sbt_carrier;

/*
 * Make runnable n fibers that `next` links. `self`: the carrier that runs the caller; NULL: none. What is woken on a
 * server is queued elsewhere.
 */
void sbt_runq_push(struct sbt_carrier *self, struct sbt_fiber *first, struct sbt_fiber *last, uint32_t n,
                   enum sbt_runq_of which);

/*
 * Make runnable one fiber in a section, which server x is to run: before all that are queued there, or behind. While x
 * is held up another carrier runs the section, and while carriers are of no use the home thread does.
 */
void sbt_runq_serve(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_runq_of which, bool first);

/* The same for a parked home thread and its own fiber. Its thread-local variables are the fiber's already. */
void sbt_runq_push_from_home(struct sbt_fiber *f, enum sbt_runq_of which);

/*
 * The same of one fiber that has been woken, where x runs the caller and is no server: in few instructions. The caller
 * has deferred the program's signal handlers.
 */
void sbt_runq_push_woken(struct sbt_carrier *x, struct sbt_fiber *f);

/* The same, before all that are queued. */
void sbt_runq_push_first(struct sbt_carrier *self, struct sbt_fiber *f);

/* Note the CPU on which the carrier is about to sleep. */
void sbt_runq_note_cpu(struct sbt_carrier *x);

/* Move half of the fibers of `from` to x's run queue. False: there are none. */
bool sbt_runq_steal(struct sbt_carrier *x, struct sbt_carrier *from);

/*
 * Queue its fibers elsewhere. For the carrier itself, which is to rest and runs no fiber; and for the monitor, when the
 * carrier is a server that is held up.
 */
void sbt_runq_give_away(struct sbt_carrier *x);

/* The carrier's fiber will run for long: wake an idle carrier for those that are queued, unless one searches. */
void sbt_runq_call_help(struct sbt_carrier *x);

/* The carrier leaves a fiber, and has woken an idle carrier meanwhile: was that of any use? */
void sbt_runq_judge(struct sbt_carrier *x);

/* A carrier has taken a fiber from x, and says how that ended: in vain if the fiber soon waited again. */
void sbt_runq_learn(struct sbt_carrier *x, bool in_vain);

/* Take x's next fiber, for the monitor; NULL: none. */
struct sbt_fiber *sbt_runq_take(struct sbt_carrier *x);

/* Wake the monitor if it sleeps. The caller has left a sign for it. */
void sbt_runq_wake_monitor(void);

/* The program has one thread left. The monitor may wait for that. */
void sbt_runq_tell_monitor_alone(void);

#endif

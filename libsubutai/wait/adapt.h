/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a thread waits: look again for a moment, let others run and look again, or sleep at once.
 *
 * Sleeping and being woken costs tens of microseconds when a core goes idle. A yield between threads of a busy process
 * costs less than one. But a yield spent on a wait that lasts a millisecond is wasted CPU time, and a spin while
 * another thread wants the core delays the very thread that is waited for. So each object remembers what its last
 * waits cost, in 32 bits of its own (struct sbt_adapt; all-zero: nothing known yet, be optimistic).
 *
 * A wait spins first, if there are no more threads than cores and the object's last waits were short. Then it yields,
 * up to three limits: the yields that switch to another thread are limited in number (--yields), those that switch to
 * none by 40 us in all, and the yield gate ends both. Then it parks.
 */
#ifndef SBT_WAIT_ADAPT_H
#define SBT_WAIT_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/object.h"
#include "core/thread.h"
#include "os/clock.h"
#include "wait/yield_gate.h"

/* Once, with the limits from the options: longest spin in ns, most yields of one wait. Measures the busy-wait hint. */
void sbt_adapt_start(uint32_t spin_ns, uint32_t yields);

/* Of the waits that park at once because of what the object remembers, one in so many waits actively and finds out. */
#define SBT_ADAPT_PROBE_EVERY 64
/* So many yields in a row that switch, with no more threads than cores: two fibers share one (adapt.c). */
#define SBT_SHARED_YIELDS_MOST 32

/*
 * The memory of waits on a futex: its word has no room for one. Words that share a memory learn from each other, which
 * costs a wait that is too short or too long.
 */
struct sbt_adapt *sbt_adapt_of_word(const uint32_t *word);

/* One wait in progress. */
struct sbt_active {
    uint64_t start_ns;                 /* when it began; 0 while it has only spun: then spun_pauses tells */
    uint64_t last_ns;                  /* end of the last yield */
    uint32_t idle_ns;                  /* how long it may go on with yields that do not switch */
    uint32_t spun_pauses, next_pauses; /* so far, and before the next look: 0, no more spinning */
    uint16_t yields_left;              /* of those that gave the core to another thread */
    uint16_t switches;                 /* of those that did; atomic, because a waker reads it */
    bool parks;                        /* at once, because of what the object remembers */
    bool forced;                       /* on its spin, although threads may outnumber cores (sbt_active_force_spin) */
};

/* Begin a wait on an object with that memory. Reads no clock. Never blocks. */
void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory);

/*
 * A forced spin, for a mutex: the wait spins for --spin-ns, whatever the object remembers and however many threads
 * there are. If the owner runs on another core, in a short section, the caller has the mutex in a moment; and a wait
 * that ends in a wake-up is long for that reason alone. The same holds for a fiber on a carrier: with no other fiber to
 * run, its carrier would only look around. Does nothing with one CPU, and for a fiber that is on its home thread or has
 * the only carrier.
 */
void sbt_active_force_spin(struct sbt_active *a);

/*
 * One step of active waiting: true, look again; false, it no longer pays: park. A wait that will be a switch may end
 * here without its beginning being known: start_ns 0.
 */
bool sbt_active_step(struct sbt_active *a);

/* When it began, ns. */
uint64_t sbt_active_since_ns(const struct sbt_active *a);

/* How long the wait has lasted, ns. */
uint64_t sbt_active_waited_ns(const struct sbt_active *a);

/*
 * A wait is over, however it ended: let the object remember. The caller is a thread that may still touch the object:
 * the waker, where the waiter may find the object gone.
 */
void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory);

/*
 * The caller waits again after a futile wake-up. A signal woke it alone from its last wait on the object, which took so
 * many switches, and the caller has signalled nothing since. So another thread had taken what it waited for. (Or the
 * caller had work to do that it need not signal: that looks the same from here.)
 *
 * On one CPU the caller has then waited all the time, and the object remembers that: its next waiters sleep sooner,
 * because a signal wakes all waiters that stay awake, and only one of those that sleep. On more CPUs the object does
 * not remember it: waiters that stay awake keep the CPUs from going idle.
 */
void sbt_active_futile(struct sbt_active *a, uint16_t switches);

/*
 * A thread that can only look again, by calls of the program (trylocks in a loop). A yield that gives its core to no
 * other thread takes as long as some thirty such looks, and the thread that it waits for runs on another core. So
 * behind several such yields in a row some looks go without one, and behind each further one twice as many. Of one
 * alone nothing follows: the kernel may choose the thread again although others wait for the core. Nor does anything
 * while such yields of other threads of the process are not in vain: two threads share the other core, and the caller's
 * looks keep the mutex from them.
 */
struct sbt_spared {
    uint32_t seen; /* how many such yields of all threads were not in vain, when the thread looked last */
    uint16_t left; /* looks without a yield from now on */
    uint16_t vain; /* yields in a row that gave the core to no other thread, up to a limit */
};

/*
 * Has looked in vain. Yields, or not (above); where yields do not pay it sleeps for a moment (yield_gate.h). False: to
 * give the core away is in vain at present.
 */
bool sbt_spared_yield(struct sbt_spared *spared);

#endif

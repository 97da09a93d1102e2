/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How a thread waits: look again for a moment, let others run and look again, or sleep at once.
 *
 * Sleeping and being woken costs tens of microseconds when a core goes idle, a yield between threads of a busy
 * process under one; but a yield spent on a wait that lasts a millisecond is wasted CPU time, and a spin while another
 * thread wants the core delays the very thread that is waited for. So each object remembers what its last waits
 * cost, in 32 bits of its own (struct sbt_adapt; all-zero: nothing known yet, be optimistic).
 */
#ifndef SBT_WAIT_ADAPT_H
#define SBT_WAIT_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "core/thread.h"

/*
 * Lies in the object. Racy by design: a lost update costs a decision, never correctness, so everything is relaxed.
 * mean_64ns: moving mean of the waits' lengths in units of 64 ns, saturating. mean_switches: moving mean of how many
 * yields of a wait gave the core to another thread, in sixteenths, saturating. probe: counts waits, so that of those
 * that park at once every few one waits actively and finds out whether times have changed.
 */
struct sbt_adapt {
    uint16_t mean_64ns;
    uint8_t mean_switches;
    uint8_t probe;
};

/* Once, with the limits from the options: longest spin in ns, most yields of one wait. Measures the busy-wait hint. */
void sbt_adapt_start(uint32_t spin_ns, uint32_t yields);

/* One wait in progress. */
struct sbt_active {
    uint64_t start_ns;                 /* when it began; 0 while it has only spun: then spun_pauses tells */
    uint64_t last_ns;                  /* end of the last yield */
    uint32_t idle_ns;                  /* how long it may go on yielding to nobody */
    uint32_t spun_pauses, next_pauses; /* so far, and before the next look: 0, no more spinning */
    uint16_t yields_left;              /* of those that gave the core to somebody */
    uint16_t switches;                 /* of those that did; atomic, because a waker reads it */
    bool parks;                        /* at once, because of what the object remembers */
    bool insists;                      /* on its spin, although threads may outnumber cores (sbt_active_spin) */
};

/* Begin a wait on an object with that memory. Reads no clock. Never blocks. */
void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory);

/*
 * A mutex is waited for: look for one longest spin, whatever it remembers and however many threads there are. Should it
 * be held on another core, for a short section, the caller has it in a moment; and waits that end in being woken are
 * long for that reason alone. So it is with a context that is not at home too, whose carrier, with nobody else to run,
 * would only look around. Nothing if there is but one core, or carrier.
 */
void sbt_active_spin(struct sbt_active *a);

/*
 * One step of active waiting: true, look again; false, it no longer pays: park. A wait that will be a switch may end
 * here without its beginning being known: start_ns 0.
 */
bool sbt_active_step(struct sbt_active *a);

/* When it began, ns. */
static inline uint64_t sbt_active_since_ns(const struct sbt_active *a) {
    return a->start_ns != 0 ? a->start_ns : sbt_now_ns();
}

/* How long the wait has lasted, ns. */
uint64_t sbt_active_waited_ns(const struct sbt_active *a);

/*
 * A wait is over, however it ended: let the object remember. Whoever may still touch the object calls it: the waker,
 * where the waiter may find the object gone.
 */
void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory);

/*
 * The wait that has begun is of one who alone has been woken from a wait on the object, after so many switches, and has
 * told nobody anything since: somebody else had taken what it waited for. (Or it had work to do of which it tells
 * nobody: that looks the same from here.) Where threads share one CPU it has then waited all the time, and the object
 * remembers that; for those that stay awake are all woken, where of those that sleep one is at a time. Where there are
 * more, it does not: those that stay awake keep the CPUs from going idle.
 */
void sbt_active_in_vain(struct sbt_active *a, uint16_t switches);

/*
 * A program that calls trylock in a loop is waiting without saying so; with more threads than cores it keeps the owner
 * from running. To be called when a trylock has failed: true, it is one of several in a row, give the core away. Such a
 * program often spins on a flag of its own as well, between its unlock and its first trylock, where it makes no call at
 * all (PARSEC's barrier: up to 350 000 looks). So the mutex should remember, and for SBT_SPUN_UNLOCKS each unlock give
 * the core away too, if threads outnumber cores. A trylock that succeeds clears sbt_self.trylock_last.
 */
#define SBT_SPUN_UNLOCKS 100
#define SBT_TRYLOCKS_BEFORE_YIELD 4

static inline bool sbt_trylock_spins(const void *object) {
    if (sbt_self.trylock_last != object) {
        sbt_self.trylock_last = object;
        sbt_self.trylock_fails = 0;
        return false;
    }
    return ++sbt_self.trylock_fails >= SBT_TRYLOCKS_BEFORE_YIELD;
}

#endif

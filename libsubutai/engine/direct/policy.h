/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the software engine decides by experience and by the clock: pure functions of what an object remembers, the time
 * and the number of CPUs. They touch no object, no thread and no clock, so a test drives them with a time of its own.
 * None of them decides anything about correctness: whatever they say, no waiter is forgotten.
 *
 * Times are nanoseconds of the monotonic clock. Where an object has room for 32 bits only it keeps the low bits of the
 * microseconds (`_us`): they wrap after 71 minutes, when a decision may be wrong once.
 */
#ifndef SBT_ENGINE_DIRECT_POLICY_H
#define SBT_ENGINE_DIRECT_POLICY_H

#include <stdbool.h>
#include <stdint.h>

/* Of a mutex (core/object.h): how its waiters' spins have gone. */
struct direct_contention {
    uint16_t spins_failed; /* in a row; and, beyond a limit, the spins left out because of that */
    uint8_t dense;         /* how often in a row spinning threads took it within a moment of each other; or, beyond a
                              limit, how many spins are left out yet because of that */
    uint32_t taken_ns;     /* when a spinning thread has last taken it, low bits */
};

/* Does a waiter of the mutex force a spin now? Counts the waiters that do not. */
bool direct_policy_spins(struct direct_contention *c, bool is_fiber);
/* A waiter has spun for it, and has got it or not. */
void direct_policy_spun(struct direct_contention *c, bool got);
/* A waiter that has spun for it takes it now. */
void direct_policy_taken(struct direct_contention *c, uint64_t now_ns);

/*
 * An unlock that leaves sleepers asleep looks now and then whether the waiter that it relies on is late. `passed_over`:
 * so many such unlocks this thread has made, of all mutexes. Does this unlock look?
 */
#define DIRECT_LOOK_AT_CLOCK_EVERY 16
static inline bool direct_policy_looks_at_clock(uint32_t passed_over) {
    return passed_over % DIRECT_LOOK_AT_CLOCK_EVERY == DIRECT_LOOK_AT_CLOCK_EVERY - 1;
}

/*
 * After an unlock that found other bits, so many that found none look before they free the mutex. The same of
 * read-write locks, by a count of their own: unlocks, and locks for reading.
 */
#define DIRECT_UNLOCK_LOOKS 16

/* May a core be idle while a notified waiter has none? Not with one CPU. A fiber is put where it will soon be run. */
static inline bool direct_policy_cores_may_idle(uint32_t n_cpus, bool is_fiber) {
    return n_cpus > 1 && !is_fiber;
}

/* The unlock looks: is a look into the queue worth its cost? More rarely where no core idles. */
#define DIRECT_LOOK_SELDOM 256
static inline bool direct_policy_looks_into_queue(uint32_t passed_over, bool cores_may_idle) {
    return cores_may_idle || passed_over % DIRECT_LOOK_SELDOM == 0;
}

/*
 * Is the designated waker late, so that another sleeper is woken beside it? `n_notified`: the waiters that have been
 * notified and have not looked yet, the designated waker among them. `n_lost`: how often notified waiters of this mutex
 * have lost the race lately, up to DIRECT_LOST_MOST.
 */
#define DIRECT_LOST_MOST 8
bool direct_policy_is_late(uint64_t now_ns, uint64_t notified_ns, uint32_t n_notified, uint32_t n_lost,
                           bool cores_may_idle);

/* Has the notified waiter had no core, or been held up in a signal handler, for so long that no thread relies on it? */
bool direct_policy_is_overdue(uint64_t now_ns, uint64_t notified_ns);

/* Is a mutex handed over, rather than freed, to a waiter that has waited since then? `lost`: it has lost the race. */
bool direct_policy_hands_over(uint64_t now_ns, uint64_t since_ns, bool lost, uint32_t handed_us);
/* Was the last hand-over long enough ago for another one? */
bool direct_policy_may_hand_over(uint64_t now_ns, uint32_t handed_us);
/* The same for a read-write lock and its first writer. */
bool direct_policy_hands_over_to_writer(uint64_t now_ns, uint64_t since_ns, uint32_t handed_us);

/* Unlocks of a read-write lock rely on a waiter that is awake: have they left the queue alone for too long? */
bool direct_policy_queue_is_due(uint64_t now_ns, uint32_t looked_us);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/direct/policy.h"

/*
 * When a forced spin (wait/adapt.h) is left out.
 *
 * Dense sections: the word goes from core to core each time that one core takes the mutex from another. Two cores then
 * get more done than one only if there is time enough between. So when spinning waiters have taken the mutex within
 * DENSE_NS of each other, DENSE_MANY times in a row, the next contended locks, up to 255, do not force a spin, and one
 * core does all.
 *
 * Long sections: when the last SPINS_FAILED spins have failed, only every SPIN_EVERY-th contended lock forces one. A
 * fiber forces its spin even then, because its carrier would only look around instead.
 */
#define DENSE_NS 700
#define DENSE_MANY 8
#define SPINS_FAILED 16
#define SPIN_EVERY 64

bool direct_policy_spins(struct direct_contention *c, bool is_fiber) {
    if (c->dense >= DENSE_MANY) {
        c->dense = c->dense == DENSE_MANY ? 0 : (uint8_t)(c->dense - 1);
        return false;
    }
    if (c->spins_failed >= SPINS_FAILED && !is_fiber) {
        c->spins_failed =
            c->spins_failed == SPINS_FAILED + SPIN_EVERY ? SPINS_FAILED - 1 : (uint16_t)(c->spins_failed + 1);
        return false;
    }
    return true;
}

void direct_policy_spun(struct direct_contention *c, bool got) {
    if (got)
        c->spins_failed = 0;
    else if (c->spins_failed < SPINS_FAILED)
        c->spins_failed++;
}

void direct_policy_taken(struct direct_contention *c, uint64_t now_ns) {
    if (c->dense < DENSE_MANY) {
        if ((uint32_t)now_ns - c->taken_ns > DENSE_NS)
            c->dense -= c->dense != 0;
        else
            c->dense = c->dense + 1 < DENSE_MANY ? (uint8_t)(c->dense + 1) : UINT8_MAX;
    }
    c->taken_ns = (uint32_t)now_ns;
}

/*
 * Two ages of a notification: late and overdue.
 *
 * Late: another waiter is notified beside the designated waker. That is on its way, so the rest may sleep. But the
 * kernel may have put it behind the running owner until the next tick, while another core idles; a waiter that last ran
 * on that core may come sooner. So a second waiter is notified after LATE_NS, and each further one after twice as long,
 * because all cores may have something to do. The time also doubles with each race that notified waiters have lost.
 * (2 cores, 16 threads, 1 us inside and 3 us outside: a third of the time one core had nothing to do. With nothing
 * outside, a notified waiter comes for nothing.) Fibers are put where they will soon be run, and a single core does not
 * idle: there a waiter is late only after OVERDUE_NS.
 *
 * Overdue: no thread relies on the designated waker any more. It has no core.
 */
#define LATE_NS 50000u
#define NOTIFIED_MOST 16 /* at a time, because of lateness */
#define OVERDUE_NS 1000000u

bool direct_policy_is_late(uint64_t now_ns, uint64_t notified_ns, uint32_t n_notified, uint32_t n_lost,
                           bool cores_may_idle) {
    if (n_notified == 0 || n_notified > NOTIFIED_MOST)
        return false;
    uint64_t patience_ns = cores_may_idle ? (uint64_t)LATE_NS << n_lost : OVERDUE_NS;
    return now_ns - notified_ns > patience_ns << (n_notified - 1);
}

bool direct_policy_is_overdue(uint64_t now_ns, uint64_t notified_ns) {
    return now_ns - notified_ns > OVERDUE_NS;
}

/*
 * A hand-over costs a context switch, so a mutex is handed over at most once in HANDED_US. A waiter that has not lost
 * the race does not starve: it waits for an owner that has no core, or comes out of a long wait for a condition.
 * (Handing over because of the time alone cost a database with 16 threads on 2 cores 5 % of its transactions.)
 */
#define STARVING_NS 1000000u
#define STARVING_WRITER_NS 2000000u
#define HANDED_US 1000u
#define LOOKED_US 1000u

static bool is_past(uint64_t now_ns, uint32_t then_us, uint32_t us) {
    return (uint32_t)(now_ns / 1000) - then_us > us;
}

bool direct_policy_may_hand_over(uint64_t now_ns, uint32_t handed_us) {
    return is_past(now_ns, handed_us, HANDED_US);
}

bool direct_policy_hands_over(uint64_t now_ns, uint64_t since_ns, bool lost, uint32_t handed_us) {
    return lost && now_ns - since_ns > STARVING_NS && direct_policy_may_hand_over(now_ns, handed_us);
}

bool direct_policy_hands_over_to_writer(uint64_t now_ns, uint64_t since_ns, uint32_t handed_us) {
    return now_ns - since_ns > STARVING_WRITER_NS && direct_policy_may_hand_over(now_ns, handed_us);
}

bool direct_policy_queue_is_due(uint64_t now_ns, uint32_t looked_us) {
    return is_past(now_ns, looked_us, LOOKED_US);
}

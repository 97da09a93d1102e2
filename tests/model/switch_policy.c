/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For switch-walk: the decisions of the engine `direct`, in place of engine/direct/policy.c. Time passes whenever it is
 * looked at, so a waiter starves soon, whether it has lost the race or not; and no notified waiter is overdue, because
 * the walk is about what happens while others rely on it.
 */
#include "engine/direct/policy.h"

bool direct_policy_spins(struct direct_contention *c, bool is_fiber) {
    (void)c, (void)is_fiber;
    return true;
}

void direct_policy_spun(struct direct_contention *c, bool got) {
    (void)c, (void)got;
}

void direct_policy_taken(struct direct_contention *c, uint64_t now_ns) {
    (void)c, (void)now_ns;
}

bool direct_policy_is_late(uint64_t now_ns, uint64_t notified_ns, uint32_t n_notified, uint32_t n_lost,
                           bool cores_may_idle) {
    (void)n_notified, (void)n_lost;
    return cores_may_idle && now_ns > notified_ns;
}

bool direct_policy_is_overdue(uint64_t now_ns, uint64_t notified_ns) {
    (void)now_ns, (void)notified_ns;
    return false;
}

bool direct_policy_may_hand_over(uint64_t now_ns, uint32_t handed_us) {
    return (uint32_t)(now_ns / 1000) - handed_us > 1000;
}

bool direct_policy_hands_over(uint64_t now_ns, uint64_t since_ns, bool lost, uint32_t handed_us) {
    (void)lost;
    return now_ns - since_ns > 1000000 && direct_policy_may_hand_over(now_ns, handed_us);
}

bool direct_policy_hands_over_to_writer(uint64_t now_ns, uint64_t since_ns, uint32_t handed_us) {
    return now_ns - since_ns > 2000000 && direct_policy_may_hand_over(now_ns, handed_us);
}

bool direct_policy_queue_is_due(uint64_t now_ns, uint32_t looked_us) {
    return (uint32_t)(now_ns / 1000) - looked_us > 1000;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Does a thread that sleeps in the kernel wait there, or does it compute and sleep for a moment now and then? */
#ifndef SBT_ENGINE_DET_NAP_H
#define SBT_ENGINE_DET_NAP_H

#include <stdbool.h>
#include <stdint.h>

/* What a look has found. */
struct det_nap {
    uint32_t on; /* the kernel thread; 0: none */
    bool is_asleep;
    uint64_t at_ns;             /* when */
    uint64_t cpu_ns, queued_ns; /* of that thread, by then: CPU time, and waits for a processor */
};

/*
 * True: it waits. *first is the look since which it may have done nothing else; this begins it anew where the thread
 * computes. What it waits for a processor says nothing: on a busy machine that is most of its time, in either case.
 * - It sleeps now, it has slept for longer than it has computed, and for half of `patience_ns`, which has passed.
 * - It was asleep at each look. Or it was runnable and had hardly had a processor: such a look may be in a short
 * waking. Looks of several threads come in any order.
 */
static inline bool det_nap_is_wait(struct det_nap *first, const struct det_nap *nap, uint64_t patience_ns) {
    const uint64_t ns = nap->at_ns - first->at_ns, cpu_ns = nap->cpu_ns - first->cpu_ns,
                   queued_ns = nap->queued_ns - first->queued_ns;
    const uint64_t slept_ns = ns > cpu_ns + queued_ns ? ns - cpu_ns - queued_ns : 0;
    if (nap->on != 0 && nap->on == first->on) {
        if (nap->at_ns <= first->at_ns)
            return false;
        if (cpu_ns <= slept_ns && (nap->is_asleep || queued_ns > cpu_ns))
            return nap->is_asleep && ns >= patience_ns && slept_ns >= patience_ns / 2;
    }
    *first = nap->on != 0 && nap->is_asleep ? *nap : (struct det_nap){0};
    return false;
}

#endif

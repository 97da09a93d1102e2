/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One core with up to N threads, for the tests of the scheduling policies. */
#ifndef CSA_SCENE_H
#define CSA_SCENE_H

#include "csa.h"
#include "lib/suite.h"

enum { N = 8 };
#define MS UINT64_C(1000000)

static struct csa_sched sched;
static struct csa_thread thread[N];

static inline void open_sched(enum csa_policy policy, uint64_t frame_ns, uint64_t cap_ns, int n) {
    struct csa_config config = {.policy = policy, .slot_ns = MS, .frame_ns = frame_ns, .cap_ns = cap_ns};
    csa_init(&sched, &config);
    for (int i = 0; i < N; i++)
        thread[i] = (struct csa_thread){.enabled = true};
    for (int i = 0; i < n; i++)
        csa_add(&sched, &thread[i], 0);
}

/* Let the core run from `now` to `end`, the running thread yielding whenever it is due; ns of each thread. */
static inline uint64_t run(uint64_t now, uint64_t end, uint64_t *ns) {
    if (sched.running == NULL)
        csa_pick(&sched, now);
    while (now < end) {
        uint64_t until = csa_until(&sched, now);
        until = until < end ? until : end;
        ck_assert_uint_ge(until, now);
        ns[sched.running - thread] += until - now;
        now = until;
        if (csa_due(&sched, now)) {
            csa_yield(&sched, now);
            csa_pick(&sched, now);
        }
    }
    return now;
}

#endif

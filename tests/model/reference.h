/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a network interface is meant to do, said as shortly as possible: arrays instead of a scratchpad, no times. The
 * state machine must give the same answers in the same order to any stream of requests.
 */
#ifndef MODEL_REFERENCE_H
#define MODEL_REFERENCE_H

#include "fsm.h"

#ifndef REF_MAX_PRIMITIVES
#define REF_MAX_PRIMITIVES 16
#define REF_MAX_WAITERS 160
#endif

struct ref_primitive {
    uint32_t id; /* 0: free */
    enum hw_kind kind;
    uint32_t bound, max;
    bool held;
    uint32_t n, thread[REF_MAX_WAITERS];
};

struct ref_answer {
    enum hw_op op;
    uint32_t argument, primitive, thread;
};

struct ref {
    struct ref_primitive p[REF_MAX_PRIMITIVES];
    uint32_t n_control, n_queue;
    bool again, reserve;
    uint32_t n_answers;
    struct ref_answer answers[REF_MAX_WAITERS + 2];
};

void ref_init(struct ref *ref, const struct hw_config *config);

/*
 * One request. new_id: the ID that the hardware gave, if it allocated; which one is its own business, but it must be no
 * ID in use and lie in the first free element. Answers are in ref->answers.
 */
enum hw_status ref_step(struct ref *ref, const struct hw_layout *layout, uint32_t ni, const struct hw_packet *request,
                        uint32_t new_id);

/* NULL if the hardware did what the reference did, or what is different. */
const char *ref_compare(const struct ref *ref, enum hw_status status, const struct hw_layout *layout,
                        const struct hw_step *step, const struct hw_output *outputs);

#endif

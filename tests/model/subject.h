/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A network interface and its reference, stepped together. After every step the scratchpad must be valid, the answers
 * the reference's, and the memory of a request that did not happen as before.
 */
#ifndef MODEL_SUBJECT_H
#define MODEL_SUBJECT_H

#include "reference.h"

enum { SUBJECT_MAX_BYTES = REF_MAX_PRIMITIVES * HW_CONTROL_BYTES + REF_MAX_WAITERS * HW_QUEUE_BYTES };

struct subject {
    struct hw_ni ni;
    uint8_t bytes[SUBJECT_MAX_BYTES];
    struct ref ref;
    struct hw_step step;
    struct hw_output outputs[REF_MAX_WAITERS + 2];
};

/* False if there is no such machine, or it is too large for the reference. */
bool subject_init(struct subject *s, const struct hw_config *config, uint32_t number);

/* NULL, or what went wrong. */
const char *subject_step(struct subject *s, const struct hw_packet *packet);

#endif

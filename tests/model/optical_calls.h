/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls of an optical network from bytes: random numbers in one test, a fuzzer's in another. */
#ifndef MODEL_OPTICAL_CALLS_H
#define MODEL_OPTICAL_CALLS_H

#include "optical_subject.h"

#include <stddef.h>

struct optical_calls {
    const uint8_t *data; /* NULL: from `random` instead */
    size_t size;
    uint64_t random, now;
};

/* A network from the source's first bytes: cores, costs, limits, both shapes. */
struct hw_optical_config optical_calls_config(struct optical_calls *calls);

/* Makes the next call. *why: what was wrong, NULL if nothing. False at the end of the data. */
bool optical_calls_next(struct optical_calls *calls, struct optical_subject *subject, const char **why);

#endif

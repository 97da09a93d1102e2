/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Requests from bytes: mostly for primitives that exist, by few threads so that they meet, now and then for one that is
 * gone, and sometimes three flits of anything. The bytes are random numbers in one test and a fuzzer's in another.
 */
#ifndef MODEL_REQUESTS_H
#define MODEL_REQUESTS_H

#include "subject.h"

#include <stddef.h>

struct request_source {
    const uint8_t *data; /* NULL: from `random` instead */
    size_t size;
    uint64_t random;
    uint32_t old_ids[4]; /* of primitives that were */
    uint32_t n_old;
};

/* False at the end of the data. */
bool request_next(struct request_source *source, const struct subject *subject, struct hw_packet *packet);

/* A machine from the source's first bytes: splits, sizes, policies, both layouts. */
struct hw_config request_config(struct request_source *source, uint32_t *number);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The ways in which ATAC_run runs a program: virtual time, real threads, real threads with the model's delays. */
#ifndef WAYS_H
#define WAYS_H

#include <string.h>

#include "lib/suite.h"
#include "subutai/atac.h"

enum { WAYS = 3 };

static inline ATAC_options options_of(int way, int n_cores) {
    ATAC_options o = ATAC_options_default();
    o.number_of_cores = n_cores;
    o.live = way > 0;
    o.time_scale = way == 2 ? 10 : 0;
    return o;
}

static inline unsigned long long passes(const ATAC_options *o, void (*prepare)(void *), void (*body)(void *),
                                        void *argument) {
    unsigned long long cycles = 0;
    const char *error = ATAC_run(o, prepare, body, argument, &cycles);
    ck_assert_msg(error == NULL, "%s", error);
    return cycles;
}

static inline void fails(const ATAC_options *o, void (*prepare)(void *), void (*body)(void *), const char *expected) {
    const char *error = ATAC_run(o, prepare, body, NULL, NULL);
    ck_assert_msg(error != NULL && strcmp(error, expected) == 0, "'%s' in the place of '%s'", error, expected);
}

#endif

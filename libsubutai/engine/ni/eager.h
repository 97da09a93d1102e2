/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is it worth looking for an answer again and again for a microsecond or two?
 *
 * With cores to spare it always is. Without, the other side may be running or not, and the count of runnable threads
 * errs towards too many. So past looks decide. (Not sbt_active: that learns how long the waits for an object last. Here
 * a thread learns whether its server runs.) All-zero is the beginning; the struct belongs to a single thread.
 */
#ifndef SBT_ENGINE_NI_EAGER_H
#define SBT_ENGINE_NI_EAGER_H

#include <stdbool.h>
#include <stdint.h>

struct ni_eager {
    int8_t credit;
    uint8_t n_skipped;
};

bool ni_eager_pays(struct ni_eager *e);
void ni_eager_done(struct ni_eager *e, bool paid);

#endif

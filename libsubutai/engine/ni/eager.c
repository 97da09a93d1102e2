/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/ni/eager.h"

#include "wait/adapt.h"

/* A failed look costs more than a successful look saves: credit falls faster than it rises. */
#define EAGER_GAIN 1
#define EAGER_LOSS 2
#define EAGER_MOST 8
#define EAGER_PROBE 16 /* of the looks that do not pay, one in EAGER_PROBE is tried */

bool ni_eager_pays(struct ni_eager *e) {
    return sbt_cores_to_spare() || e->credit >= 0 || ++e->n_skipped % EAGER_PROBE == 0;
}

void ni_eager_done(struct ni_eager *e, bool paid) {
    int credit = e->credit + (paid ? EAGER_GAIN : -EAGER_LOSS);
    e->credit = (int8_t)(credit > EAGER_MOST ? EAGER_MOST : credit < -EAGER_MOST ? -EAGER_MOST : credit);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What <subutai/det.h> calls. Only an engine that keeps an order needs to know. */
#include "abi/subutai/det.h"

#include "abi/abi.h"

static const struct sbt_order *order(void) {
    sbt_init();
    return sbt_engine.order;
}

SBT_EXPORT int subutai_det_give_up_turn(unsigned hint, unsigned weight) {
    return order() != NULL ? order()->give_up_turn(hint, weight) : 0;
}

SBT_EXPORT int subutai_det_soft_barrier_wait(subutai_soft_barrier_t *b) {
    return order() != NULL ? order()->soft_barrier(b, &b->number, b->threads, b->turns) : 0;
}

SBT_EXPORT int subutai_det_pcs(int begins) {
    if (order() != NULL)
        order()->pcs(begins != 0);
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Type: a network interface and what waits there. */
#ifndef SIM_TILE_H
#define SIM_TILE_H

#include "fsm.h"
#include "object.h"

/* A request that found no queue element. */
struct sim_held {
    struct hw_packet packet;
    uint64_t arrived_at;
};

struct sim_tile {
    _Alignas(SIM_LINE) struct hw_ni ni;
    uint64_t free_at;      /* until then its state machine is busy, */
    uint64_t busy_from;    /* and has been since then, without a pause */
    uint64_t n_rooms;      /* steps that have made room after a request had found none */
    struct sim_held *held; /* in the order of their coming */
    uint32_t n_held, held_capacity;
    uint32_t hand;             /* where the next search for an idle primitive begins: hw_spm_next_idle */
    struct sim_object **owner; /* the object that each control element serves */
};

#endif

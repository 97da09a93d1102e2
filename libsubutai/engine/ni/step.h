/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One step of a NI and the packets that leave (step.c), for whoever serves it (serve.c), under the tile's lock. */
#ifndef SBT_NI_STEP_H
#define SBT_NI_STEP_H

#include "engine/ni/ni.h"

enum { NI_MAX_WAKES = 32, NI_MAX_TOUCHED = NI_RING };

/* What is to be done when the tile's lock has been released. */
struct ni_work {
    const struct ni_thread *self; /* it serves its own request: nobody else writes its record meanwhile */
    uint32_t *everybody;          /* wake all who sleep on this word */
    uint32_t n_wakes, n_touched;
    uint32_t *wakes[NI_MAX_WAKES];
    struct ni_tile *touched[NI_MAX_TOUCHED]; /* that were sent something */
};

/* When a request was handed in and when it is here, in cycles, and for which object. */
struct ni_origin {
    uint64_t issued_cycles, at_cycles;
    const void *object;
};

static inline uint32_t ni_number_of(const struct ni_tile *tile) {
    return (uint32_t)(tile - ni_machine.tiles);
}

static inline uint32_t ni_handover(void) {
    return ni_machine.config.timing.handover_cycles;
}

static inline uint32_t ni_resume(const struct hw_packet *answer) {
    return hw_packet_ends_wait(answer) ? ni_machine.config.timing.resume_cycles : 0;
}

/* Over the mesh, if it is timed. */
struct hw_delivery ni_send(uint32_t from, uint32_t to, uint64_t at_cycles);

/* Its turn has come. `slot`: its place in a mailbox, set free before anybody learns of the outcome; NULL: it has none.
 */
void ni_step_request(struct ni_tile *tile, struct ni_request *r, uint32_t *slot, struct ni_work *work);

/* The same for one that was never put anywhere: its own thread serves it. */
void ni_step_direct(struct ni_tile *tile, const struct hw_packet *packet, const struct ni_origin *origin,
                    struct ni_work *work);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Primitives for objects. */
#ifndef SIM_PRIMITIVE_H
#define SIM_PRIMITIVE_H

#include "chip.h"

/* The object gets a primitive, or is software's from now on. Its word was `seen`. Then the thread goes on. */
void sim_primitive_obtain(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t seen, enum hw_op op,
                          uint32_t flit1, sim_then *then);
/*
 * The same for a condition, at the NI of this mutex. If there is no primitive, o->id is no ID of a primitive bound to
 * it.
 */
void sim_primitive_obtain_condition(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t mutex,
                                    sim_then *then);
/* Give the primitive `id` back, if it is still this object's. */
void sim_primitive_give_back(struct sim *sim, struct sim_thread *t, const struct sim_object *o, uint32_t id);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The numbers by which a trace names objects and call sites: given at first use, defined once in the trace. What each
 * event needs is inline, from the thread's cache; all else is in number.c. Internal to the recorder.
 */
#ifndef SBT_OBSERVE_NUMBER_H
#define SBT_OBSERVE_NUMBER_H

#include "observe/profile.h"

struct rec_node *rec_node_find_for(struct rec_call *c, uintptr_t address);
void rec_claim(struct rec_call *c, struct rec_node *node, uint8_t type, const void *object);
uint32_t rec_site_find(struct rec_call *c, uintptr_t address);
/* Write down the address behind a number, now. */
void rec_define(struct rec_thread *t, enum trace_definition what, uint32_t number, uintptr_t address);
/* What the handler's event i names, and the handler could not define. */
void rec_define_pending(struct rec_thread *t, uint32_t i);

/*
 * The number is given: its definition is written now, or, in a handler on top of the recorder, by the next look-up that
 * is not one's.
 */
bool rec_may_define(const struct rec_call *c, struct rec_node *node);

/*
 * Around a look-up that is not in the thread's cache, before the call has begun: it takes 20 ns, or a page fault if the
 * object is new. That time counts neither for the call nor for work. The result of rec_apart_begin is how long the
 * thread has worked so far; it is that again after rec_apart_end.
 */
static inline uint64_t rec_apart_begin(const struct rec_call *c) {
    return c->nested ? 0 : rec_above_zero(rec_now_ns(), c->thread->end_ns);
}

static inline void rec_apart_end(const struct rec_call *c, uint64_t worked) {
    struct rec_thread *t = c->thread;
    if (c->nested)
        return;
    rec_settle();
    uint64_t end = rec_now_ns() - rec_above_zero(worked, rec.reading_ns), ns = rec_above_zero(end, t->end_ns);
    if (rec_stayed(t, ns)) {
        t->cpu_ns += ns;
        t->end_ns += ns;
    }
}

/* Is there a definition to be written, and by the caller? */
static inline bool rec_takes_definition(const struct rec_call *c, struct rec_node *node) {
    return SBT_UNLIKELY(__atomic_load_n(&node->undefined, __ATOMIC_RELAXED) != 0) && !c->nested &&
           __atomic_exchange_n(&node->undefined, 0, __ATOMIC_RELAXED) != 0;
}

static inline struct rec_node *rec_node_of(struct rec_call *c, uintptr_t address) {
    __typeof(&c->thread->objects[0]) cached = &c->thread->objects[REC_CACHE_PLACE(address)];
    return SBT_LIKELY(cached->address == address) ? cached->node : rec_node_find_for(c, address);
}

/* The number of the object at that address. No memory: SBT_TRACE_NONE, and *node is NULL. */
static inline uint32_t rec_object_number(struct rec_call *c, struct rec_node **node, uint8_t type, const void *object) {
    *node = rec_node_of(c, (uintptr_t)object);
    if (SBT_UNLIKELY(*node == NULL))
        return SBT_TRACE_NONE;
    if (SBT_UNLIKELY(__atomic_load_n(&(*node)->type, __ATOMIC_ACQUIRE) != type))
        rec_claim(c, *node, type, object);
    if (rec_takes_definition(c, *node))
        rec_define(c->thread, TRACE_DEFINE_OBJECT, rec_life_of(*node), (uintptr_t)object);
    return rec_life_of(*node);
}

static inline uint32_t rec_site_number(struct rec_call *c, const void *site) {
    __typeof(&c->thread->sites[0]) cached = &c->thread->sites[REC_CACHE_PLACE((uintptr_t)site)];
    return SBT_LIKELY(cached->address == (uintptr_t)site) ? cached->number : rec_site_find(c, (uintptr_t)site);
}

#endif

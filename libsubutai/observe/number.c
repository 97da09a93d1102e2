/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "observe/number.h"

#include "observe/live.h"

struct rec_node *rec_node_find_for(struct rec_call *c, uintptr_t address) {
    __typeof(&c->thread->objects[0]) cached = &c->thread->objects[REC_CACHE_PLACE(address)];
    uint64_t worked = rec_apart_begin(c);
    struct rec_node *node = rec_node_at(address);
    if (!c->nested && node != NULL)
        REC_CACHE(cached, address, node, node);
    rec_apart_end(c, worked);
    return node;
}

/*
 * Write down the address behind a number. The block always has room for one. The time that a flush takes counts neither
 * as work nor as waiting.
 */
static void defined(struct rec_thread *t) {
    if (SBT_UNLIKELY(!trace_encoder_has_room(&t->encoder))) {
        uint64_t wall_ns = rec_now_ns(), cpu_ns = rec_cpu_ns();
        rec_flush(t);
        t->cpu_ns += rec_cpu_ns() - cpu_ns;
        t->end_ns += rec_now_ns() - wall_ns;
    }
}

void rec_define(struct rec_thread *t, enum trace_definition what, uint32_t number, uintptr_t address) {
    trace_define(&t->encoder, what, number, address);
    defined(t);
}

static void define_made(struct rec_thread *t, uint32_t object, uint32_t site, uint32_t size) {
    trace_define_made(&t->encoder, object, site, size);
    defined(t);
}

/*
 * Write down what is known of an object if its init was not seen: it was made by a parent process, or is in static
 * storage.
 */
static SBT_NOINLINE void seen_first(struct rec_call *c, struct rec_node *node, uint8_t type, const void *object) {
    int value = 0;
    uint32_t initial = 0;
    if (type == SBT_TRACE_BARRIER) /* glibc and our engines have the count in the same place */
        initial = c->event.size = ((const struct sbt_barrier *)object)->count;
    if (type == SBT_TRACE_SEM && sbt_sem_getvalue((sem_t *)(uintptr_t)object, &value) == 0)
        initial = (uint32_t)(value > 0 ? value : 0);
    __atomic_store_n(&node->initial, initial, __ATOMIC_RELAXED);
}

bool rec_may_define(const struct rec_call *c, struct rec_node *node) {
    if (c->nested)
        __atomic_store_n(&node->undefined, 1, __ATOMIC_RELAXED);
    return !c->nested;
}

static void define_life(const struct rec_call *c, uint32_t number, const void *object, bool made, uint32_t site,
                        uint32_t size) {
    rec_define(c->thread, TRACE_DEFINE_OBJECT, number, (uintptr_t)object);
    if (made)
        define_made(c->thread, number, site, size);
}

/* In a profile, of a lock of which the init was seen. If another thread is quicker a number is lost. */
static bool claim_lock(const struct rec_call *c, struct rec_node *node, uint8_t type, const void *object,
                       uint32_t site) {
    if (!rec_is_lock(type) || !rec.profile)
        return false;
    uint32_t number = __atomic_fetch_add(&rec.n_objects, 1, __ATOMIC_RELAXED); /* it only has to be unique */
    if (!rec_node_claim_made(node, type, number, c->nested))
        return false;
    if (!c->nested)
        define_life(c, number, object, true, site, 0);
    return true;
}

/* The node is of another type: a life begins there, if no other thread is quicker. */
void rec_claim(struct rec_call *c, struct rec_node *node, uint8_t type, const void *object) {
    uint64_t worked = rec_apart_begin(c), signals;
    bool made = __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) == REC_MADE;
    uint32_t site = rec_life_of(node), size = rec_initial_of(node);
    if (made && claim_lock(c, node, type, object, site)) {
        rec_apart_end(c, worked);
        return;
    }
    if (rec_node_claim(node, type, &rec.n_objects, &signals)) {
        if (made) /* its number was a site's */
            __atomic_store_n(&node->before, SBT_TRACE_NONE, __ATOMIC_RELAXED);
        if (!c->is_over)
            seen_first(c, node, type, object);
        bool defines = rec_may_define(c, node);
        rec_node_claimed(node, type, signals);
        if (defines)
            define_life(c, rec_life_of(node), object, made, site, size);
    }
    rec_apart_end(c, worked);
}

/* A call site that no thread has used yet. The time that this takes counts neither as work nor as waiting. */
static SBT_NOINLINE void new_site(struct rec_thread *t, struct rec_node *node, uintptr_t address) {
    uint64_t wall_ns = rec_now_ns(), cpu_ns = rec_cpu_ns();
    rec_module_of(address);
    t->cpu_ns += rec_cpu_ns() - cpu_ns;
    t->end_ns += rec_now_ns() - wall_ns;
    rec_define(t, TRACE_DEFINE_SITE, rec_life_of(node), address);
}

uint32_t rec_site_find(struct rec_call *c, uintptr_t address) {
    struct rec_thread *t = c->thread;
    uint64_t worked = rec_apart_begin(c), signals;
    struct rec_node *node = rec_node_at(address);
    if (node == NULL)
        return SBT_TRACE_NONE;
    if (__atomic_load_n(&node->type, __ATOMIC_ACQUIRE) != REC_SITE &&
        rec_node_claim(node, REC_SITE, &rec.n_sites, &signals)) {
        bool defines = rec_may_define(c, node);
        rec_node_claimed(node, REC_SITE, signals);
        if (defines)
            new_site(t, node, address);
    }
    if (rec_takes_definition(c, node))
        new_site(t, node, address);
    if (!c->nested)
        REC_CACHE(&t->sites[REC_CACHE_PLACE(address)], address, number, rec_life_of(node));
    if (SBT_UNLIKELY(!t->is_live) && !c->nested) /* it is older than the file, as the first thread's is */
        rec_live_adopt(t);
    rec_apart_end(c, worked);
    return rec_life_of(node);
}

uint32_t rec_number_of(struct rec_thread *t, uint8_t type, uintptr_t object) {
    struct rec_call c = {.thread = t, .is_over = true};
    return rec_object_number(&c, &c.node, type, (const void *)object);
}

uint32_t rec_site_of(struct rec_thread *t, uintptr_t site) {
    struct rec_call c = {.thread = t};
    return rec_site_number(&c, (const void *)site);
}

void rec_define_late(struct rec_thread *t, uintptr_t object, uint32_t number) {
    struct rec_call c = {.thread = t};
    struct rec_node *node = rec_node_find(object);
    if (node != NULL && rec_takes_definition(&c, node))
        rec_define(t, TRACE_DEFINE_OBJECT, number, object);
}

void rec_define_pending(struct rec_thread *t, uint32_t i) {
    if (t->pending_object[i] != 0)
        rec_define_late(t, t->pending_object[i], t->pending[i].object);
    if (t->pending_site[i] != 0)
        (void)rec_site_of(t, t->pending_site[i]);
}

/* The site of a routine is behind its first byte, as a return address is behind its call. */
void rec_routine(uint32_t thread, const void *routine) {
    struct rec_thread *t = rec_self;
    if (t == NULL || t->generation != sbt_fork_generation() || rec_is_busy(t) || !rec_busy_begin(t))
        return;
    uint32_t site = rec_site_of(t, (uintptr_t)routine + 1);
    if (site != SBT_TRACE_NONE) {
        trace_define_routine(&t->encoder, thread, site);
        defined(t);
    }
    rec_busy_end(t);
}

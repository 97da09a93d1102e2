/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Primitives for objects: libsubutai/engine/ni/ids.c in virtual time.
 *
 * An object gets its primitive at its first use: a mutex or barrier at the NIs in turn, a condition at its mutex's NI.
 * If all control elements are taken an idle primitive is evicted. The object of that primitive finds out at its next
 * use. If no primitive is idle, the new object is served in software from then on.
 */
#include "primitive.h"

#include "core.h"
#include "noc.h"

enum {
    TRIES = 8,            /* attempts at an NI: another thread may take the element that was made free for this one */
    OBTAINED_IN_VAIN = 64 /* primitives that a thread loses before it can use them, until software serves the object */
};

static void allocate_next(struct sim *sim, struct sim_thread *t);
static void evict_next(struct sim *sim, struct sim_thread *t);
static void condition_next(struct sim *sim, struct sim_thread *t);

static bool is_full(const struct sim *sim, uint32_t tile) {
    return sim->tiles[tile].ni.n_control_used >= sim->hw.n_control;
}

static uint32_t next_tile(struct sim *sim) {
    return sim->next_ni++ % sim->n_cores;
}

/* Ask an idle primitive of t->obtain.tile to go; `then` sees the answer. False: there is none. */
static bool evict(struct sim *sim, struct sim_thread *t, sim_then *then) {
    struct sim_tile *tile = &sim->tiles[t->obtain.tile];
    uint32_t id =
        t->obtain.n_victims++ < sim->hw.n_control ? hw_spm_next_idle(&tile->ni.spm, &tile->hand, t->obtain.mutex) : 0;
    if (id == 0)
        return false;
    sim_noc_post(sim, t, HW_OP_EVICT, NULL, id);
    sim_core_wait(sim, t, SIM_WHY_ANSWER, then);
    return true;
}

static bool made_room(struct sim *sim, const struct sim_thread *t) {
    struct hw_message answer = sim_noc_answer_of(sim, t);
    if (answer.op == HW_OP_EVICTED)
        sim->summary.n_evictions++;
    return answer.op == HW_OP_EVICTED || answer.op == HW_OP_NACK; /* refused as stale: another thread has made room */
}

/*
 * The NI refuses this if a request for the primitive is under way. Then the primitive stays, without an owner, and is
 * evicted when it is idle.
 */
void sim_primitive_give_back(struct sim *sim, struct sim_thread *t, const struct sim_object *o, uint32_t id) {
    struct sim_object **owner = &sim->tiles[hw_id_ni(&sim->layout, id)].owner[hw_id_index(&sim->layout, id)];
    if (*owner != o)
        return;
    *owner = NULL;
    sim_noc_post(sim, t, HW_OP_DEALLOC, NULL, id);
}

/* ---- mutexes and barriers ---- */

/* Has the primitive been evicted already? The thread may have waited for a core before it saw the answer. */
static bool is_gone(const struct sim *sim, uint32_t id) {
    const struct hw_spm *spm = &sim->tiles[hw_id_ni(&sim->layout, id)].ni.spm;
    return hw_spm_tag(spm, hw_id_index(&sim->layout, id)) != id;
}

/*
 * The object gets this primitive, or falls to software (0). If another thread was quicker, the object keeps that
 * thread's primitive.
 */
static void finish_obtain(struct sim *sim, struct sim_thread *t, uint32_t id) {
    struct sim_object *o = t->obtain.object;
    if (o->id == t->obtain.seen) {
        o->id = id != 0 ? id : SIM_ID_SOFTWARE;
        o->evicted = id != 0 && is_gone(sim, id);
        sim->summary.n_software_objects += id == 0;
    } else if (id != 0) {
        sim_primitive_give_back(sim, t, o, id);
    }
    t->obtained(sim, t);
}

static void allocate_answered(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_noc_answer_of(sim, t);
    if (answer.op == HW_OP_ALLOCATED) {
        finish_obtain(sim, t, answer.primitive);
        return;
    }
    if (t->obtain.evicting && (answer.argument == HW_SPACE_QUEUE || ++t->obtain.n_tries >= TRIES))
        t->obtain.tile = UINT32_MAX; /* no room at this NI */
    allocate_next(sim, t);
}

static void allocate_here(struct sim *sim, struct sim_thread *t) {
    sim_noc_post_alloc(sim, t, (enum hw_op)t->obtain.op, t->obtain.tile, t->obtain.flit1);
    sim_core_wait(sim, t, SIM_WHY_ANSWER, allocate_answered);
}

static void evicted(struct sim *sim, struct sim_thread *t) {
    if (made_room(sim, t))
        allocate_here(sim, t);
    else
        evict_next(sim, t);
}

static void evict_next(struct sim *sim, struct sim_thread *t) {
    if (!is_full(sim, t->obtain.tile)) {
        allocate_here(sim, t);
    } else if (!evict(sim, t, evicted)) {
        t->obtain.tile = UINT32_MAX;
        allocate_next(sim, t);
    }
}

/* First round: the NIs that have room. Second round: the NIs where room can be made. */
static void allocate_next(struct sim *sim, struct sim_thread *t) {
    while (!t->obtain.evicting && t->obtain.n_tiles++ < sim->n_cores) {
        t->obtain.tile = next_tile(sim);
        if (is_full(sim, t->obtain.tile))
            continue;
        allocate_here(sim, t);
        return;
    }
    if (!sim->config.evict || sim->config.strict_paper) {
        finish_obtain(sim, t, 0);
        return;
    }
    if (!t->obtain.evicting) {
        t->obtain.evicting = true;
        t->obtain.n_tiles = 0;
        t->obtain.tile = UINT32_MAX;
    }
    if (t->obtain.tile == UINT32_MAX) {
        if (t->obtain.n_tiles++ >= sim->n_cores) {
            finish_obtain(sim, t, 0);
            return;
        }
        t->obtain.tile = next_tile(sim);
        t->obtain.n_tries = 0;
    }
    t->obtain.n_victims = 0;
    evict_next(sim, t);
}

void sim_primitive_obtain(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t seen, enum hw_op op,
                          uint32_t flit1, sim_then *then) {
    t->obtained = then;
    t->obtain.object = o;
    t->obtain.seen = seen;
    t->obtain.op = (uint8_t)op;
    t->obtain.flit1 = flit1;
    t->obtain.mutex = 0;
    t->obtain.n_tiles = 0;
    t->obtain.evicting = false;
    /* With very few elements, threads in step could take them from each other for ever. Software ends that. */
    if (o->id == seen && (seen == 0 || o->evicted) && t->n_obtained++ >= OBTAINED_IN_VAIN) {
        finish_obtain(sim, t, 0);
        return;
    }
    allocate_next(sim, t);
}

/* ---- conditions ---- */

static void condition_allocated(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_noc_answer_of(sim, t);
    struct sim_object *c = t->obtain.object;
    if (answer.op == HW_OP_ALLOCATED) {
        if (c->id == t->obtain.seen || c->evicted) {
            c->id = answer.primitive;
            c->evicted = is_gone(sim, c->id);
        } else {
            sim_primitive_give_back(sim, t, c, answer.primitive);
        }
        t->obtained(sim, t);
    } else if (answer.op == HW_OP_NO_SPACE && ++t->obtain.n_tries < TRIES) {
        condition_next(sim, t);
    } else {
        t->obtained(sim, t);
    }
}

static void condition_evicted(struct sim *sim, struct sim_thread *t) {
    t->obtain.n_victims = made_room(sim, t) ? 0 : t->obtain.n_victims;
    condition_next(sim, t);
}

static void condition_next(struct sim *sim, struct sim_thread *t) {
    if (!is_full(sim, t->obtain.tile)) {
        sim_noc_post_alloc(sim, t, HW_OP_ALLOC_CONDITION, t->obtain.tile, t->obtain.mutex);
        sim_core_wait(sim, t, SIM_WHY_ANSWER, condition_allocated);
    } else if (!sim->config.evict || sim->config.strict_paper || !evict(sim, t, condition_evicted)) {
        t->obtained(sim, t);
    }
}

/* The condition was evicted, or it lives with another mutex. If threads wait on it, it stays there. */
static void condition_moved(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_noc_answer_of(sim, t);
    if (answer.op == HW_OP_EVICTED || answer.op == HW_OP_NACK)
        condition_next(sim, t);
    else
        t->obtained(sim, t);
}

void sim_primitive_obtain_condition(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t mutex,
                                    sim_then *then) {
    t->obtained = then;
    t->obtain.object = o;
    t->obtain.seen = o->id;
    t->obtain.mutex = mutex;
    t->obtain.tile = hw_id_ni(&sim->layout, mutex);
    t->obtain.n_tries = t->obtain.n_victims = 0;
    if (!sim_object_has_id(o)) {
        condition_next(sim, t);
        return;
    }
    sim_noc_post(sim, t, HW_OP_EVICT, o, o->id);
    sim_core_wait(sim, t, SIM_WHY_ANSWER, condition_moved);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Primitives for objects: what libsubutai/engine/ni/ids.c does, in virtual time. Allocated at first use, at the NI
 * whose turn it is, a condition where its mutex is; when all control elements are taken an idle primitive is evicted,
 * whose object finds out at its next use. When nothing is idle the object is served in software from then on.
 */
#include "model.h"

enum { TRIES = 8, OBTAINED_IN_VAIN = 64 };

static void allocate_next(struct sim *sim, struct sim_thread *t);
static void evict_next(struct sim *sim, struct sim_thread *t);
static void condition_next(struct sim *sim, struct sim_thread *t);

static bool is_full(const struct sim *sim, uint32_t tile) {
    return sim->tiles[tile].ni.n_control_used >= sim->hw.n_control;
}

static uint32_t next_tile(struct sim *sim) {
    return sim->next_ni++ % sim->n_cores;
}

/* Asks for an idle primitive of t->obtain.tile to go; false: there is none. Its answer goes to `then`. */
static bool evict(struct sim *sim, struct sim_thread *t, sim_then *then) {
    struct sim_tile *tile = &sim->tiles[t->obtain.tile];
    uint32_t id =
        t->obtain.n_victims++ < sim->hw.n_control ? hw_spm_next_idle(&tile->ni.spm, &tile->hand, t->obtain.mutex) : 0;
    if (id == 0)
        return false;
    sim_post(sim, t, HW_OP_EVICT, NULL, id);
    sim_wait(sim, t, SIM_WHY_ANSWER, then);
    return true;
}

static bool made_room(struct sim *sim, const struct sim_thread *t) {
    struct hw_message answer = sim_answer_of(sim, t);
    if (answer.op == HW_OP_EVICTED)
        sim->summary.n_evictions++;
    return answer.op == HW_OP_EVICTED || answer.op == HW_OP_NACK; /* stale: somebody else has made room */
}

/* One that is refused because a request for it is under way stays, without an owner, and makes room when it is idle. */
void sim_give_back(struct sim *sim, struct sim_thread *t, const struct sim_object *o, uint32_t id) {
    struct sim_object **owner = &sim->tiles[hw_id_ni(&sim->layout, id)].owner[hw_id_index(&sim->layout, id)];
    if (*owner != o)
        return;
    *owner = NULL;
    sim_post(sim, t, HW_OP_DEALLOC, NULL, id);
}

/* ---- mutexes and barriers ---- */

/* The answer can have waited for a core, and the primitive been evicted meanwhile. */
static bool is_gone(const struct sim *sim, uint32_t id) {
    const struct hw_spm *spm = &sim->tiles[hw_id_ni(&sim->layout, id)].ni.spm;
    return hw_spm_tag(spm, hw_id_index(&sim->layout, id)) != id;
}

/* Not if somebody was quicker: then theirs is it. */
static void settle(struct sim *sim, struct sim_thread *t, uint32_t id) {
    struct sim_object *o = t->obtain.object;
    if (o->id == t->obtain.seen) {
        o->id = id != 0 ? id : SIM_ID_SOFTWARE;
        o->evicted = id != 0 && is_gone(sim, id);
        sim->summary.n_software_objects += id == 0;
    } else if (id != 0) {
        sim_give_back(sim, t, o, id);
    }
    t->obtained(sim, t);
}

static void allocate_answered(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_answer_of(sim, t);
    if (answer.op == HW_OP_ALLOCATED) {
        settle(sim, t, answer.primitive);
        return;
    }
    if (t->obtain.evicting && (answer.argument == HW_SPACE_QUEUE || ++t->obtain.n_tries >= TRIES))
        t->obtain.tile = UINT32_MAX; /* not here */
    allocate_next(sim, t);
}

static void allocate_here(struct sim *sim, struct sim_thread *t) {
    sim_post_alloc(sim, t, (enum hw_op)t->obtain.op, t->obtain.tile, t->obtain.flit1);
    sim_wait(sim, t, SIM_WHY_ANSWER, allocate_answered);
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

/* First round: where there is room. Second round: where room can be made. */
static void allocate_next(struct sim *sim, struct sim_thread *t) {
    while (!t->obtain.evicting && t->obtain.n_tiles++ < sim->n_cores) {
        t->obtain.tile = next_tile(sim);
        if (is_full(sim, t->obtain.tile))
            continue;
        allocate_here(sim, t);
        return;
    }
    if (!sim->config.evict || sim->config.strict_paper) {
        settle(sim, t, 0);
        return;
    }
    if (!t->obtain.evicting) {
        t->obtain.evicting = true;
        t->obtain.n_tiles = 0;
        t->obtain.tile = UINT32_MAX;
    }
    if (t->obtain.tile == UINT32_MAX) {
        if (t->obtain.n_tiles++ >= sim->n_cores) {
            settle(sim, t, 0);
            return;
        }
        t->obtain.tile = next_tile(sim);
        t->obtain.n_tries = 0;
    }
    t->obtain.n_victims = 0;
    evict_next(sim, t);
}

void sim_obtain(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t seen, enum hw_op op,
                uint32_t flit1, sim_then *then) {
    t->obtained = then;
    t->obtain.object = o;
    t->obtain.seen = seen;
    t->obtain.op = (uint8_t)op;
    t->obtain.flit1 = flit1;
    t->obtain.mutex = 0;
    t->obtain.n_tiles = 0;
    t->obtain.evicting = false;
    /* With very few elements threads can take them from each other for ever, in step; software then ends it. */
    if (o->id == seen && (seen == 0 || o->evicted) && t->n_obtained++ >= OBTAINED_IN_VAIN) {
        settle(sim, t, 0);
        return;
    }
    allocate_next(sim, t);
}

/* ---- conditions ---- */

static void condition_allocated(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_answer_of(sim, t);
    struct sim_object *c = t->obtain.object;
    if (answer.op == HW_OP_ALLOCATED) {
        if (c->id == t->obtain.seen || c->evicted) {
            c->id = answer.primitive;
            c->evicted = is_gone(sim, c->id);
        } else {
            sim_give_back(sim, t, c, answer.primitive);
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
        sim_post_alloc(sim, t, HW_OP_ALLOC_CONDITION, t->obtain.tile, t->obtain.mutex);
        sim_wait(sim, t, SIM_WHY_ANSWER, condition_allocated);
    } else if (!sim->config.evict || sim->config.strict_paper || !evict(sim, t, condition_evicted)) {
        t->obtained(sim, t);
    }
}

/* It has lived with another mutex, or was evicted. Who waits on it keeps it where it is. */
static void condition_moved(struct sim *sim, struct sim_thread *t) {
    struct hw_message answer = sim_answer_of(sim, t);
    if (answer.op == HW_OP_EVICTED || answer.op == HW_OP_NACK)
        condition_next(sim, t);
    else
        t->obtained(sim, t);
}

void sim_obtain_condition(struct sim *sim, struct sim_thread *t, struct sim_object *o, uint32_t mutex, sim_then *then) {
    t->obtained = then;
    t->obtain.object = o;
    t->obtain.seen = o->id;
    t->obtain.mutex = mutex;
    t->obtain.tile = hw_id_ni(&sim->layout, mutex);
    t->obtain.n_tries = t->obtain.n_victims = 0;
    if (!sim_is_id(o->id)) {
        condition_next(sim, t);
        return;
    }
    sim_post(sim, t, HW_OP_EVICT, o, o->id);
    sim_wait(sim, t, SIM_WHY_ANSWER, condition_moved);
}

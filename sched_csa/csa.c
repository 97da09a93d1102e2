/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * RR and CSA: two queues, one for threads that have priority and one for all others. A thread is in the queue of the
 * kind that it had when it was queued. While the cap is reached the kinds make no difference, and the tickets decide.
 */
#include "csa.h"

enum { OTHERS, CRITICAL };

struct csa_config csa_config_default(void) {
    return (struct csa_config){.policy = CSA_RR, .slot_ns = 1000000, .frame_ns = 100000000, .cap_ns = 50000000};
}

void csa_init(struct csa_sched *s, const struct csa_config *config) {
    *s = (struct csa_sched){.config = *config};
}

/* ---- limits ---- */

static bool has_priority(const struct csa_sched *s, const struct csa_thread *t) {
    return s->config.policy == CSA_CSA && t->enabled && t->n_held > 0 && !t->limited;
}

static bool is_capped(const struct csa_sched *s) {
    return s->config.frame_ns != 0 && s->frame_used_ns >= s->config.cap_ns;
}

/* The thread is inside a section, and ready or running: it gains the priority, if it has not gained it before. */
static void gain(struct csa_sched *s, struct csa_thread *t, uint64_t n_ready, uint64_t n_running) {
    if (t->gained || !has_priority(s, t))
        return;
    t->gained = true;
    t->limit_ns = csa_limit_ns(n_ready, n_running, s->config.slot_ns);
    if (t->limit_ns == 0)
        s->stats.n_alone++;
}

static uint64_t limit_ns(const struct csa_sched *s, const struct csa_thread *t) {
    return s->config.limit_varies ? csa_limit_ns(s->n_ready, s->running != NULL, s->config.slot_ns) : t->limit_ns;
}

/* Other threads are ready: has this one used up its limit? */
static void look(struct csa_sched *s, struct csa_thread *t) {
    if (!has_priority(s, t) || t->used_ns < limit_ns(s, t))
        return;
    t->limited = true;
    s->stats.n_limited++;
}

/* The running thread has run for `ns`, within one frame. A thread that is alone is in no other thread's way: its limit
 * is not looked at, and the time does not count for the cap. */
static void use(struct csa_sched *s, uint64_t ns) {
    struct csa_thread *t = s->running;
    bool alone = s->n_ready == 0;
    if (is_capped(s) || !has_priority(s, t))
        return;
    if (!alone || !s->config.limit_varies)
        t->used_ns += ns;
    if (alone)
        return;
    s->frame_used_ns += ns;
    if (is_capped(s))
        s->stats.n_capped++;
    look(s, t);
}

/* `now` is in another time frame, or there are no frames. */
static __attribute__((noinline)) void begin_frame(struct csa_sched *s, uint64_t now_ns) {
    uint64_t frame = s->config.frame_ns != 0 ? now_ns / s->config.frame_ns : 0;
    s->frame_end_ns = s->config.frame_ns != 0 ? (frame + 1) * s->config.frame_ns : UINT64_MAX;
    if (frame == s->frame)
        return;
    if (s->running != NULL)
        use(s, frame * s->config.frame_ns - s->charged_ns);
    s->charged_ns = frame * s->config.frame_ns;
    s->frame = frame;
    s->frame_used_ns = 0;
}

/* Brings the accounts up to `now`: each function that gets the time calls it first. RR has no accounts. */
static inline void charge(struct csa_sched *s, uint64_t now_ns) {
    if (s->config.policy != CSA_CSA)
        return;
    if (now_ns >= s->frame_end_ns)
        begin_frame(s, now_ns);
    if (s->running != NULL)
        use(s, now_ns - s->charged_ns);
    s->charged_ns = now_ns;
}

/* ---- queues ---- */

static void put(struct csa_sched *s, struct csa_thread *t) {
    uint32_t kind = has_priority(s, t) ? CRITICAL : OTHERS;
    struct csa_queue *q = &s->queue[kind];
    struct csa_thread *before =
        q->last; /* usually the last place; a thread that changes its kind may come before others */
    while (before != NULL && before->ticket > t->ticket)
        before = before->prev;
    t->prev = before;
    t->next = before != NULL ? before->next : q->first;
    *(t->prev != NULL ? &t->prev->next : &q->first) = t;
    *(t->next != NULL ? &t->next->prev : &q->last) = t;
    t->queued = (uint8_t)(kind + 1);
    s->n_ready++;
}

static void take(struct csa_sched *s, struct csa_thread *t) {
    struct csa_queue *q = &s->queue[t->queued - 1];
    *(t->prev != NULL ? &t->prev->next : &q->first) = t->next;
    *(t->next != NULL ? &t->next->prev : &q->last) = t->prev;
    t->next = t->prev = NULL;
    t->queued = 0;
    s->n_ready--;
}

void csa_add(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns) {
    charge(s, now_ns);
    if (s->n_ready == 0 &&
        s->running != NULL) /* the running thread was alone, and had slot after slot: only the last of these counts */
        s->slot_from_ns = now_ns - (now_ns - s->slot_from_ns) % s->config.slot_ns;
    t->ticket = s->n_tickets++;
    gain(s, t, s->n_ready + 1, s->running != NULL);
    if (s->n_ready > 0 || s->running != NULL) {
        s->n_ready++; /* Eq. 2 counts it; look() decides the queue that it goes into */
        look(s, t);
        s->n_ready--;
    }
    put(s, t);
}

void csa_remove(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns) {
    charge(s, now_ns);
    take(s, t);
}

struct csa_thread *csa_pick(struct csa_sched *s, uint64_t now_ns) {
    charge(s, now_ns);
    struct csa_thread *critical = s->queue[CRITICAL].first, *other = s->queue[OTHERS].first;
    struct csa_thread *t = critical == NULL                                                    ? other
                           : other != NULL && is_capped(s) && other->ticket < critical->ticket ? other
                                                                                               : critical;
    if (t == NULL)
        return NULL;
    take(s, t);
    s->running = t;
    s->slot_from_ns = s->charged_ns = now_ns;
    if (t->n_held == 0)
        s->stats.n_outside++;
    else if (has_priority(s, t) && !is_capped(s))
        s->stats.n_priority++;
    else if (has_priority(s, t))
        s->stats.n_rr_capped++;
    else
        s->stats.n_rr++;
    return t;
}

void csa_stop(struct csa_sched *s, uint64_t now_ns) {
    charge(s, now_ns);
    s->running = NULL;
}

void csa_yield(struct csa_sched *s, uint64_t now_ns) {
    struct csa_thread *t = s->running;
    csa_stop(s, now_ns);
    csa_add(s, t, now_ns);
}

/* ---- when to switch ---- */

uint64_t csa_until(struct csa_sched *s, uint64_t now_ns) {
    if (s->n_ready == 0 || s->running == NULL)
        return UINT64_MAX;
    charge(s, now_ns);
    struct csa_thread *t = s->running;
    uint64_t until = s->slot_from_ns + s->config.slot_ns;
    if (is_capped(s)) {
        uint64_t next_frame = (s->frame + 1) * s->config.frame_ns;
        bool matters = s->queue[CRITICAL].first != NULL && !has_priority(s, t);
        return matters && next_frame < until ? next_frame : until;
    }
    if (!has_priority(s, t))
        return s->queue[CRITICAL].first != NULL ? now_ns : until;
    /* It goes before all other kinds. Its own kind takes turns. */
    uint64_t end = now_ns + (limit_ns(s, t) - t->used_ns);
    if (s->config.frame_ns != 0) {
        uint64_t capped = now_ns + (s->config.cap_ns - s->frame_used_ns);
        end = capped < end ? capped : end;
    }
    return s->queue[CRITICAL].first != NULL && until < end ? until : end;
}

bool csa_due(struct csa_sched *s, uint64_t now_ns) {
    return csa_until(s, now_ns) <= now_ns;
}

/* ---- critical sections ---- */

static void requeue(struct csa_sched *s, struct csa_thread *t) {
    if (t->queued == 0)
        return;
    take(s, t);
    put(s, t);
}

void csa_hold(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns) {
    charge(s, now_ns);
    if (t->n_held++ == 0) {
        t->used_ns = 0;
        t->limited = t->gained = false;
        if (t->queued != 0 || s->running == t)
            gain(s, t, s->n_ready, s->running != NULL);
        requeue(s, t);
    }
}

void csa_unhold(struct csa_sched *s, struct csa_thread *t, uint64_t now_ns) {
    charge(s, now_ns);
    if (t->n_held == 0)
        return;
    t->n_held--;
    if (t->n_held == 0)
        requeue(s, t);
}

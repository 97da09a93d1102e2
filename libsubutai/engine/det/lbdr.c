/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/det/lbdr.h"

#include <stddef.h>

#define WORD_BITS 64

void lbdr_begin(struct lbdr *l) {
    l->n_stages = 1;
}

static uint8_t stage_of(struct lbdr *l, uintptr_t routine) {
    if (routine == 0)
        return 0;
    for (uint32_t i = 1; i < l->n_stages; i++)
        if (l->stage[i] == routine)
            return (uint8_t)i;
    if (l->n_stages == LBDR_STAGES)
        return LBDR_STAGES - 1;
    l->stage[l->n_stages] = routine;
    return (uint8_t)l->n_stages++;
}

void lbdr_create(struct lbdr *l, uint32_t i, uintptr_t routine) {
    l->thread[i].clock = 0;
    l->thread[i].stage = stage_of(l, routine);
}

void lbdr_count(struct lbdr *l, uint32_t i, uint64_t weight) {
    l->thread[i].clock++;
    l->thread[i].work += weight;
}

/* NULL: there are too many. */
static struct lbdr_supplement *supplement_of(struct lbdr *l, uint32_t hint, uint64_t stages) {
    uint64_t at = ((stages ^ (uint64_t)hint << 32) * 0x9E3779B97F4A7C15u) >> 40;
    for (uint32_t n = 0; n < LBDR_SUPPLEMENTS; n++, at++) {
        struct lbdr_supplement *s = &l->supplement[at % LBDR_SUPPLEMENTS];
        if (s->hint == 0)
            *s = (struct lbdr_supplement){.hint = hint + 1, .stages = stages};
        if (s->hint == hint + 1 && s->stages == stages)
            return s;
    }
    return NULL;
}

/* NULL: all are used. */
static struct lbdr_section *new_section(struct lbdr *l, uint32_t i) {
    for (uint8_t k = 0; k < LBDR_SECTIONS; k++)
        if (!l->section[k].is_used) {
            l->thread[i].measured = (uint8_t)(k + 1);
            return &l->section[k];
        }
    return NULL;
}

static uint64_t at_most(uint64_t amount) {
    return amount < LBDR_MOST ? amount : LBDR_MOST;
}

static void measure(struct lbdr *l, uint32_t i, struct lbdr_section *s, const struct turn *t) {
    for (uint32_t w = 0; w * WORD_BITS < t->n_threads; w++) {
        s->active[w] = t->runnable[w];
        if (w == i / WORD_BITS)
            s->active[w] &= ~((uint64_t)1 << i % WORD_BITS);
        for (uint64_t bits = s->active[w]; bits != 0; bits &= bits - 1) {
            uint32_t k = w * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
            s->work[k] = l->thread[k].work;
        }
    }
    for (uint32_t w = (t->n_threads + WORD_BITS - 1) / WORD_BITS; w < TURN_THREADS / WORD_BITS; w++)
        s->active[w] = 0;
}

uint64_t lbdr_start(struct lbdr *l, uint32_t i, uint32_t hint, uint64_t weight, const struct turn *t) {
    uint64_t sum = 0, stages = 0;
    for (uint32_t w = 0; w * WORD_BITS < t->n_threads; w++)
        for (uint64_t bits = t->runnable[w]; bits != 0; bits &= bits - 1) {
            const struct lbdr_thread *active = &l->thread[w * WORD_BITS + (uint32_t)__builtin_ctzll(bits)];
            sum += active->clock;
            stages |= (uint64_t)1 << active->stage;
        }
    const struct lbdr_supplement *supplement = supplement_of(l, hint, stages);
    uint64_t clock = l->thread[i].clock != 0 ? l->thread[i].clock : 1; /* the turn with the hint may be its first */
    uint64_t budget = at_most(sum * LBDR_UNIT / clock + (supplement != NULL ? supplement->amount : 0));
    struct lbdr_section *s = new_section(l, i);
    if (s != NULL) {
        s->is_used = true;
        s->hint = hint;
        s->stages = stages;
        s->weight = weight;
        s->budget = budget;
        measure(l, i, s, t);
    }
    return budget < LBDR_UNIT ? 1 : budget / LBDR_UNIT;
}

/* Has the section more weight than what any other active thread has done meanwhile? */
static bool is_small(const struct lbdr *l, const struct lbdr_section *s) {
    for (uint32_t w = 0; w < TURN_THREADS / WORD_BITS; w++)
        for (uint64_t bits = s->active[w]; bits != 0; bits &= bits - 1) {
            uint32_t k = w * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
            if (l->thread[k].work - s->work[k] >= s->weight)
                return false;
        }
    return true;
}

void lbdr_end(struct lbdr *l, uint32_t i, bool is_exhausted) {
    if (l->thread[i].measured == 0)
        return;
    struct lbdr_section *s = &l->section[l->thread[i].measured - 1];
    struct lbdr_supplement *supplement = supplement_of(l, s->hint, s->stages);
    if (is_exhausted && supplement != NULL && is_small(l, s))
        supplement->amount = at_most(supplement->amount + s->budget / 10);
    s->is_used = false;
    l->thread[i].measured = 0;
}

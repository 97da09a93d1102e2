/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "turn_state.h"

#include <string.h>

struct turn turn;
struct lbdr lbdr;
static const uintptr_t keys[] = {MUTEX, CONDITION, BARRIER};
_Static_assert(sizeof keys / sizeof *keys == TURN_KEYS, "one for each queue");
static int n_threads;
static uint32_t supplements[SUPPLEMENTS], n_supplements; /* where they have been seen */

static void load_lbdr(const struct state *s) {
    memcpy(lbdr.thread, s->lbdr.thread, sizeof s->lbdr.thread);
    for (int i = 0; i < MAX_THREADS; i++) {
        lbdr.section[i].is_used = s->lbdr.section[i].is_used != 0;
        lbdr.section[i].hint = s->lbdr.section[i].hint;
        lbdr.section[i].stages = s->lbdr.section[i].stages;
        lbdr.section[i].weight = s->lbdr.section[i].weight;
        lbdr.section[i].budget = s->lbdr.section[i].budget;
        lbdr.section[i].active[0] = s->lbdr.section[i].active;
        memcpy(lbdr.section[i].work, s->lbdr.section[i].work, sizeof s->lbdr.section[i].work);
    }
    for (uint32_t i = 0; i < n_supplements; i++)
        lbdr.supplement[supplements[i]].amount = s->lbdr.supplement[i] == 0 ? 0 : s->lbdr.supplement[i] - 1;
}

/* A supplement that no path has had before. */
bool state_find_supplements(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < LBDR_SUPPLEMENTS; i++)
        n += lbdr.supplement[i].hint != 0;
    if (n == n_supplements || n > SUPPLEMENTS)
        return n <= SUPPLEMENTS;
    for (uint32_t i = 0; i < LBDR_SUPPLEMENTS; i++) {
        bool is_known = lbdr.supplement[i].hint == 0;
        for (uint32_t k = 0; k < n_supplements; k++)
            is_known = is_known || supplements[k] == i;
        if (!is_known)
            supplements[n_supplements++] = i;
    }
    return true;
}

static void save_lbdr(struct state *s) {
    memcpy(s->lbdr.thread, lbdr.thread, sizeof s->lbdr.thread); /* with what is between the fields */
    for (int i = 0; i < MAX_THREADS; i++) {
        s->lbdr.section[i].is_used = lbdr.section[i].is_used;
        s->lbdr.section[i].hint = lbdr.section[i].hint;
        s->lbdr.section[i].stages = lbdr.section[i].stages;
        s->lbdr.section[i].weight = lbdr.section[i].weight;
        s->lbdr.section[i].budget = lbdr.section[i].budget;
        s->lbdr.section[i].active = lbdr.section[i].active[0];
        memcpy(s->lbdr.section[i].work, lbdr.section[i].work, sizeof s->lbdr.section[i].work);
    }
    for (uint32_t i = 0; i < n_supplements; i++)
        s->lbdr.supplement[i] =
            lbdr.supplement[supplements[i]].amount == 0 ? 0 : lbdr.supplement[supplements[i]].amount + 1;
}

void state_load(const struct state *s) {
    memset(turn.runnable, 0, sizeof turn.runnable);
    turn.holder = s->turn.holder;
    turn.n_runnable = s->turn.n_runnable;
    turn.n_back = s->turn.n_back;
    turn.n_soft = s->turn.n_soft;
    turn.now = s->turn.now;
    turn.kept_ns = s->turn.kept_ns;
    turn.next_due = s->turn.next_due;
    turn.random = s->turn.random;
    turn.runnable[0] = s->turn.runnable;
    turn.n_threads = (uint32_t)n_threads;
    memset(turn.queue, 0, sizeof turn.queue);
    for (int k = 0; k < TURN_KEYS; k++) {
        turn.queue[turn_queue_of(keys[k])].first = s->turn.first[k];
        turn.queue[turn_queue_of(keys[k])].last = s->turn.last[k];
    }
    memcpy(turn.thread, s->turn.thread, sizeof s->turn.thread);
    memcpy(turn.offer, s->turn.offer, sizeof s->turn.offer);
    load_lbdr(s);
}

void state_save(struct state *s) {
    s->turn.holder = turn.holder;
    s->turn.n_runnable = turn.n_runnable;
    s->turn.n_back = turn.n_back;
    s->turn.n_soft = turn.n_soft;
    s->turn.now = turn.now;
    s->turn.kept_ns = turn.kept_ns;
    s->turn.next_due = turn.next_due;
    s->turn.random = turn.random;
    s->turn.runnable = turn.runnable[0];
    for (int k = 0; k < TURN_KEYS; k++) {
        s->turn.first[k] = turn.queue[turn_queue_of(keys[k])].first;
        s->turn.last[k] = turn.queue[turn_queue_of(keys[k])].last;
    }
    memcpy(s->turn.thread, turn.thread, sizeof s->turn.thread);
    memcpy(s->turn.offer, turn.offer, sizeof s->turn.offer);
    save_lbdr(s);
}

void state_begin(int n) {
    memset(&turn, 0, sizeof turn);
    memset(&lbdr, 0, sizeof lbdr);
    n_threads = n;
    n_supplements = 0;
}

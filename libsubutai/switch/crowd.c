/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Crowds: a stack of contexts, linked by their numbers. They are never freed, so a number is always good to follow; the
 * generation of the process is in the word, because what a forked child finds there are contexts of its parent's.
 *
 * A context is in one crowd at most, and remains in it, whatever wakes it and even if its thread ends, until it is
 * taken out. Only then may it join another: so its token is given before that is said, and to one who was awake once
 * more afterwards, lest it has spent the first and waits again.
 */
#include "switch/inner.h"

#define NUMBER_BITS 17 /* contexts are fewer than 1 << 16; 0 is nobody */

_Static_assert(SBT_POOL_MAX < 1 << NUMBER_BITS, "a context's number must fit beside the generation");

static uint32_t generation(void) {
    return sbt_thread_process_generation() << NUMBER_BITS;
}

bool sbt_crowd_join(uint32_t *crowd, uint32_t ticket) {
    struct sbt_context *c = sbt_self.context;
    if (c == NULL || sbt_self.in_switch != 0 || __atomic_load_n(&c->in_crowd, __ATOMIC_ACQUIRE) != SBT_CROWD_NOT ||
        !sbt_switch_roams())
        return false;
    sbt_switch_enter();
    c->ticket = ticket;
    __atomic_store_n(&c->in_crowd, SBT_CROWD_JOINED, __ATOMIC_RELAXED);
    uint32_t seen = __atomic_load_n(crowd, __ATOMIC_RELAXED), me = (sbt_pool_index(c) + 1) | generation();
    do {
        c->crowd_next = seen;
        /* Pairs with the exchange in take: what has been written of c. And either that finds c here, or c, which looks
         * at the object next, finds there what has happened. */
    } while (!__atomic_compare_exchange_n(crowd, &seen, me, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return true;
}

bool sbt_crowd_wait(void) {
    struct sbt_context *c = sbt_self.context;
    uint8_t now;
    sbt_switch_leave();
    do {
        if (c == NULL || sbt_self.context != c) /* a handler has forked, and this is the child: nobody takes it out */
            return false;
        now = __atomic_load_n(&c->in_crowd, __ATOMIC_ACQUIRE); /* pairs with take */
        if (now == SBT_CROWD_JOINED)
            sbt_context_park(NULL);
    } while (now == SBT_CROWD_JOINED);
    __atomic_store_n(&c->in_crowd, SBT_CROWD_NOT, __ATOMIC_RELAXED);
    return now == SBT_CROWD_COUNTED;
}

uint32_t sbt_crowd_take(uint32_t *crowd, uint32_t ticket, bool joined, struct sbt_chain *chain) {
    uint32_t n_left = 0, own = generation();
    bool asleep;
    sbt_handlers_hold();
    *chain = (struct sbt_chain){.in_handler = sbt_self.in_switch > joined};
    sbt_switch_enter();
    uint32_t at = __atomic_exchange_n(crowd, 0, __ATOMIC_SEQ_CST);
    uint32_t n_known = __atomic_load_n(&SBT_SWITCH->pool_used, __ATOMIC_RELAXED); /* after that: theirs among them */
    while (at != 0) {
        uint32_t number = at & ((1u << NUMBER_BITS) - 1);
        if (number > n_known || at - number != own)
            break;
        struct sbt_context *c = sbt_pool_nth(number - 1);
        at = c->crowd_next;
        bool happened = (int32_t)(ticket - c->ticket) >= 0;
        bool held = sbt_token_give(c, &asleep), counted = held && happened;
        n_left += counted;
        __atomic_store_n(&c->in_crowd, counted ? SBT_CROWD_COUNTED : SBT_CROWD_OUT, __ATOMIC_RELEASE);
        if (!held && !sbt_token_give(c, &asleep))
            continue;
        c->next = chain->first; /* the last to join comes first: the order of joining */
        chain->first = c;
        if (chain->last == NULL)
            chain->last = c;
        chain->n++;
    }
    return n_left;
}

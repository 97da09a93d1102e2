/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiter stacks (Treiber's stack): the fibers that wait for an event of an object. They are linked by their numbers in
 * the pool. Fibers are never freed, so a number is always good to follow. The word also holds the fork generation,
 * because a forked child finds fibers of its parent's there: 14 bits of it, so that the fiber of a process is taken for
 * one of the 16,384th of its ancestors.
 *
 * A fiber is in one waiter stack at most. It remains there until it is taken out, even if it is woken otherwise or its
 * thread ends. Only then may it join another stack. That decides the order in take:
 *  1. Give the fiber its token. After step 2 the fiber may join another stack, and a token would come too late.
 *  2. Say that the fiber is out.
 *  3. If the fiber was awake in step 1, give the token once more. It may have spent the first token before step 2, and
 *     wait again.
 */
#include "switch/state.h"

/* Of a fiber's place in the pool plus 1; 0 is the end of the stack. In units for which no division is needed. */
#define PLACE_BITS 18
#define UNIT 64
#define UNITS (sizeof(struct sbt_fiber) / UNIT) /* of a fiber */

_Static_assert(sizeof(struct sbt_fiber) % UNIT == 0, "a fiber begins at a unit");
_Static_assert(UNITS *SBT_POOL_MAX < 1 << PLACE_BITS, "a fiber's place must fit beside the generation");

static uint32_t generation(void) {
    return sbt_fork_generation() << PLACE_BITS;
}

static uint32_t place_of(const struct sbt_fiber *f) {
    return (uint32_t)((size_t)((const char *)f - (const char *)sbt_pool) / UNIT) + 1;
}

static struct sbt_fiber *fiber_at(uint32_t place) {
    return (struct sbt_fiber *)(void *)((char *)sbt_pool + (size_t)(place - 1) * UNIT);
}

/* In a signal handler, f may have joined one already. */
static inline bool may_join(const struct sbt_fiber *f) {
    return sbt_self.in_switch == 0 && __atomic_load_n(&f->on_stack, __ATOMIC_ACQUIRE) == SBT_STACK_NONE;
}

static inline void join(struct sbt_fiber *f, uint32_t *stack, uint32_t ticket, uint32_t me) {
    sbt_switch_enter();
    f->ticket = ticket;
    __atomic_store_n(&f->on_stack, SBT_STACK_JOINED, __ATOMIC_RELAXED);
    uint32_t seen = __atomic_load_n(stack, __ATOMIC_RELAXED);
    do {
        f->stack_next = seen;
        /*
         * Pairs with the exchange in take, which reads the fields that were written here. And either take finds the
         * fiber, or the fiber, which looks at the object next, sees there what has happened.
         */
    } while (!__atomic_compare_exchange_n(stack, &seen, me, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

bool sbt_waiter_stack_join(uint32_t *stack, uint32_t ticket) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (f == NULL || !may_join(f) || !(f->carrier != NULL || sbt_switch_roams()))
        return false;
    join(f, stack, ticket, place_of(f) | generation());
    return true;
}

bool sbt_waiter_stack_join_behind(uint32_t *stack, uint32_t ticket) {
    struct sbt_fiber *f = sbt_self.fiber;
    const struct sbt_carrier *x = f != NULL ? f->carrier : NULL;
    if (x == NULL || __atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0 || !may_join(f) || !sbt_fork_is_noticed())
        return false; /* the last: then this calls no function, and needs no stack */
    join(f, stack, ticket, place_of(f) | generation());
    return true;
}

bool sbt_waiter_stack_wait(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    uint8_t now;
    if (SBT_UNLIKELY(f == NULL))
        sbt_switch_leave();
    else
        sbt_fiber_park_entered(f); /* not for long if it is out already: it has its token */
    do {
        if (f == NULL || sbt_self.fiber != f) /* a handler has forked; this is the child */
            return false;
        now = __atomic_load_n(&f->on_stack, __ATOMIC_ACQUIRE); /* pairs with take */
        if (now == SBT_STACK_JOINED)
            sbt_fiber_park(NULL);
    } while (now == SBT_STACK_JOINED);
    __atomic_store_n(&f->on_stack, SBT_STACK_NONE, __ATOMIC_RELAXED);
    return now == SBT_STACK_COUNTED;
}

uint32_t sbt_waiter_stack_take(uint32_t *stack, uint32_t ticket, bool joined, struct sbt_wake_list *list) {
    uint32_t n_left = 0, own = generation();
    bool asleep;
    sbt_handlers_hold();
    struct sbt_fiber *first = NULL, *last = NULL;
    uint32_t n = 0;
    bool in_handler = sbt_self.in_switch > joined;
    sbt_switch_enter();
    uint32_t at = __atomic_exchange_n(stack, 0, __ATOMIC_SEQ_CST);
    /* read after the stack, so it counts the fibers there */
    uint32_t known = __atomic_load_n(&SBT_SWITCH->pool_used, __ATOMIC_RELAXED) * UNITS;
    while (at != 0) {
        uint32_t place = at & ((1u << PLACE_BITS) - 1);
        if (place > known || at - place != own)
            break;
        struct sbt_fiber *f = fiber_at(place);
        at = f->stack_next;
        bool happened = (int32_t)(ticket - f->ticket) >= 0;
        bool held = sbt_token_give(f, &asleep), counted = held && happened;
        n_left += counted;
        __atomic_store_n(&f->on_stack, counted ? SBT_STACK_COUNTED : SBT_STACK_OUT, __ATOMIC_RELEASE);
        if (!held && !sbt_token_give(f, &asleep))
            continue;
        f->next = first; /* the fiber that joined last is found first: this restores the order of joining */
        first = f;
        last = n++ == 0 ? f : last;
    }
    *list = (struct sbt_wake_list){first, last, n, in_handler};
    return n_left;
}

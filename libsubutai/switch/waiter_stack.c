/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiter stacks (Treiber's stack): the fibers that wait for an event of an object. They are linked by their numbers in
 * the pool. Fibers are never freed, so a number is always good to follow. The word also holds the fork generation,
 * because a forked child finds fibers of its parent's there.
 *
 * A fiber is in one waiter stack at most. It remains there until it is taken out, even if it is woken otherwise or its
 * thread ends. Only then may it join another stack. That decides the order in take:
 *  1. Give the fiber its token. After step 2 the fiber may join another stack, and a token would come too late.
 *  2. Say that the fiber is out.
 *  3. If the fiber was awake in step 1, give the token once more. It may have spent the first token before step 2, and
 *     wait again.
 */
#include "switch/state.h"

#define NUMBER_BITS 17 /* of a fiber's number plus 1; 0 is the end of the stack */

_Static_assert(SBT_POOL_MAX < 1 << NUMBER_BITS, "a fiber's number must fit beside the generation");

static uint32_t generation(void) {
    return sbt_fork_generation() << NUMBER_BITS;
}

/* In a signal handler, f may have joined one already. */
static inline bool may_join(const struct sbt_fiber *f) {
    return sbt_self.in_switch == 0 && __atomic_load_n(&f->on_stack, __ATOMIC_ACQUIRE) == SBT_STACK_NONE;
}

static inline void join(struct sbt_fiber *f, uint32_t *stack, uint32_t ticket) {
    sbt_switch_enter();
    f->ticket = ticket;
    __atomic_store_n(&f->on_stack, SBT_STACK_JOINED, __ATOMIC_RELAXED);
    uint32_t seen = __atomic_load_n(stack, __ATOMIC_RELAXED), me = (sbt_pool_index(f) + 1) | generation();
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
    join(f, stack, ticket);
    return true;
}

bool sbt_waiter_stack_join_behind(uint32_t *stack, uint32_t ticket) {
    struct sbt_fiber *f = sbt_self.fiber;
    const struct sbt_carrier *x = f != NULL ? f->carrier : NULL;
    if (x == NULL || __atomic_load_n(&x->n, __ATOMIC_RELAXED) == 0 || !may_join(f))
        return false;
    join(f, stack, ticket);
    return true;
}

bool sbt_waiter_stack_wait(void) {
    struct sbt_fiber *f = sbt_self.fiber;
    uint8_t now;
    if (SBT_UNLIKELY(f == NULL) || __atomic_load_n(&f->on_stack, __ATOMIC_RELAXED) != SBT_STACK_JOINED)
        sbt_switch_leave();
    else
        sbt_fiber_park_as_usual(f);
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
    *list = (struct sbt_wake_list){.in_handler = sbt_self.in_switch > joined};
    sbt_switch_enter();
    uint32_t at = __atomic_exchange_n(stack, 0, __ATOMIC_SEQ_CST);
    uint32_t n_known = __atomic_load_n(&SBT_SWITCH->pool_used,
                                       __ATOMIC_RELAXED); /* read after the stack, so it counts the fibers there */
    while (at != 0) {
        uint32_t number = at & ((1u << NUMBER_BITS) - 1);
        if (number > n_known || at - number != own)
            break;
        struct sbt_fiber *f = sbt_pool_nth(number - 1);
        at = f->stack_next;
        bool happened = (int32_t)(ticket - f->ticket) >= 0;
        bool held = sbt_token_give(f, &asleep), counted = held && happened;
        n_left += counted;
        __atomic_store_n(&f->on_stack, counted ? SBT_STACK_COUNTED : SBT_STACK_OUT, __ATOMIC_RELEASE);
        if (!held && !sbt_token_give(f, &asleep))
            continue;
        f->next = list->first; /* the fiber that joined last is found first: this restores the order of joining */
        list->first = f;
        if (list->last == NULL)
            list->last = f;
        list->n++;
    }
    return n_left;
}

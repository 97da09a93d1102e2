/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The pool of fibers: free fibers in a list, unused ones behind pool_used. Its lock is never held together with
 * another. */
#include "switch/pool.h"

#include "os/memory.h"
#include "switch/state.h"

struct sbt_fiber *sbt_pool;

bool sbt_pool_start(void) {
    if (sbt_pool != NULL)
        return true;
    sbt_pool = sbt_memory_map(SBT_POOL_BYTES);
    return sbt_pool != NULL;
}

/* The first fiber of each group brings the group's home stacks. In a forked child they are there already. */
static bool has_home_stack(const struct sbt_fiber *f) {
    uint32_t first = sbt_pool_index(f) / SBT_HOME_STACKS * SBT_HOME_STACKS;
    if (f->home_stack != NULL)
        return true;
    char *stacks = sbt_memory_map(SBT_HOME_STACKS * SBT_HOME_STACK_BYTES);
    for (uint32_t i = 0; stacks != NULL && i < SBT_HOME_STACKS; i++)
        sbt_pool[first + i].home_stack = stacks + i * SBT_HOME_STACK_BYTES;
    return stacks != NULL;
}

static struct sbt_fiber *next_unused(struct sbt_switch_state *s) {
    if (s->pool_used + 1 == s->pool_gone)
        __atomic_store_n(&s->pool_used, s->pool_used + 1, __ATOMIC_RELEASE);
    return s->pool_used < SBT_POOL_MAX && has_home_stack(&sbt_pool[s->pool_used]) ? &sbt_pool[s->pool_used] : NULL;
}

struct sbt_fiber *sbt_pool_get(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    sbt_switch_enter();
    sbt_switch_lock(&s->pool_lock);
    struct sbt_fiber *f = s->pool_free;
    if (f != NULL)
        s->pool_free = f->next;
    else
        f = next_unused(s);
    /*
     * A fiber that is still in a waiter stack, because its last thread ended there, may join no other stack. It may
     * join if this process uses it for the first time, or if it was taken out after that thread had ended.
     */
    if (f != NULL &&
        (f == &sbt_pool[s->pool_used] || __atomic_load_n(&f->on_stack, __ATOMIC_RELAXED) != SBT_STACK_JOINED))
        __atomic_store_n(&f->on_stack, SBT_STACK_NONE, __ATOMIC_RELAXED);
    if (f == &sbt_pool[s->pool_used])
        __atomic_store_n(&s->pool_used, s->pool_used + 1, __ATOMIC_RELEASE);
    sbt_switch_unlock(&s->pool_lock);
    sbt_switch_leave();
    return f;
}

void sbt_pool_put(struct sbt_fiber *f) {
    struct sbt_switch_state *s = SBT_SWITCH;
    sbt_switch_enter();
    sbt_switch_lock(&s->pool_lock);
    f->next = s->pool_free;
    s->pool_free = f;
    sbt_switch_unlock(&s->pool_lock);
    sbt_switch_leave();
}

void sbt_pool_fork_child(struct sbt_fiber *f) {
    __atomic_store_n(&f->thread, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&f->tid, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&f->away, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&f->token, SBT_TOKEN_TOKEN, __ATOMIC_RELAXED);
    SBT_SWITCH->pool_gone = sbt_pool_index(f) + 1;
}

struct sbt_fiber *sbt_pool_find(pthread_t thread, uint32_t tid) {
    uint32_t n = __atomic_load_n(&SBT_SWITCH->pool_used, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < n; i++)
        if ((thread != 0 && __atomic_load_n(&sbt_pool[i].thread, __ATOMIC_RELAXED) == thread) ||
            (tid != 0 && __atomic_load_n(&sbt_pool[i].tid, __ATOMIC_RELAXED) == tid))
            return &sbt_pool[i];
    return NULL;
}

bool sbt_fiber_is_word(const uint32_t *word) {
    return sbt_pool != NULL && (uintptr_t)word - (uintptr_t)sbt_pool < SBT_POOL_BYTES;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs that wait by calling trylock again and again: for the engines that keep mutexes. */
#ifndef SBT_ENGINE_DIRECT_TRYLOCK_H
#define SBT_ENGINE_DIRECT_TRYLOCK_H

#include <stdbool.h>

#include "engine/direct/self.h"

/*
 * A program that calls trylock in a loop is waiting without saying so; with more threads than cores it keeps the owner
 * from running. To be called when a trylock has failed: true, it is one of several in a row, give the core away. Such a
 * program often spins on a flag of its own as well, between its unlock and its first trylock, where it makes no call at
 * all (PARSEC's barrier: up to 350 000 looks). So the mutex should remember, and for DIRECT_SPUN_UNLOCKS each unlock
 * give the core away too, if threads outnumber cores. A trylock that succeeds clears direct_self.trylock_last.
 */
#define DIRECT_SPUN_UNLOCKS 100
#define DIRECT_TRYLOCKS_BEFORE_YIELD 4

static inline bool direct_trylock_spins(const void *object) {
    if (direct_self.trylock_last != object) {
        direct_self.trylock_last = object;
        direct_self.trylock_fails = 0;
        return false;
    }
    return ++direct_self.trylock_fails >= DIRECT_TRYLOCKS_BEFORE_YIELD;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `--delegate auto`: mutexes that are delegated while that pays (delegate_auto.c). What decides is in delegate_share.h.
 */
#ifndef SBT_ENGINE_DIRECT_DELEGATE_AUTO_H
#define SBT_ENGINE_DIRECT_DELEGATE_AUTO_H

#include <stdbool.h>
#include <stdint.h>

#include "core/object.h"
#include "engine/direct/delegate_share.h"
#include "engine/direct/self.h"
#include "os/arch.h"
#include "os/clock.h"

struct sbt_switch_look;

/* Set once at start-up, with how it is decided. */
extern bool direct_auto;
void direct_auto_start(enum direct_share_how how);

/* Is it delegated at present? It changes at any time. */
bool direct_auto_delegates(const struct sbt_mutex *mx);

/* Threads are switched, and the monitor looks at samples. Atomic, the monitor's; relaxed: any answer is right. */
extern bool direct_auto_samples;

/* The caller has found a mutex locked. 0, or the time if this wait and its section are timed. */
static inline uint64_t direct_auto_begin_wait(void) {
    if (SBT_LIKELY(!__atomic_load_n(&direct_auto_samples, __ATOMIC_RELAXED)))
        return 0;
    return ++direct_self.n_contended % DIRECT_SHARE_EVERY == 0 ? sbt_now_ns() : 0;
}

/* The caller has it now, and the wait is timed, since then. Sets TIMED. */
void direct_auto_begin_section(struct sbt_mutex *mx, uint64_t since_ns);

/* The caller is about to unlock a mutex of which TIMED is set. Clears it, and returns what the word is then. */
uint32_t direct_auto_end_section(struct sbt_mutex *mx);

/* A section of the mutex has been handed over; `behind`: to a server at which others' go before. */
void direct_auto_handed(const struct sbt_mutex *mx, bool behind);

/* The server that is to run the mutex's sections. It changes at any time. There are servers. */
uint32_t direct_auto_server(const struct sbt_mutex *mx);

/* The monitor has looked. */
void direct_auto_look(const struct sbt_switch_look *look);

/* In a forked child: nothing is known of any mutex. */
void direct_auto_fork_child(void);

/* How often a mutex began to be delegated, how often that was ended, and moves to other servers. Trials do not count.
 */
struct direct_auto_counts {
    uint64_t begun, ended, moved;
};
struct direct_auto_counts direct_auto_counted(void);

#endif

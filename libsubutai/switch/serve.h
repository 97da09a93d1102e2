/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Servers: carriers that run sections and nothing else (serve.c). What the engine uses is in switch.h. */
#ifndef SBT_SWITCH_SERVE_H
#define SBT_SWITCH_SERVE_H

#include "switch/state.h"

static inline bool sbt_serves(const struct sbt_carrier *x) {
    return SBT_UNLIKELY(sbt_switch_servers != 0) && x != NULL &&
           (uint32_t)(x - SBT_SWITCH->carrier) < sbt_switch_servers;
}

/* For the fiber itself and for the thread that owns it. */
static inline bool sbt_in_section(const struct sbt_fiber *f) {
    return SBT_UNLIKELY(sbt_switch_servers != 0) && __atomic_load_n(&f->section, __ATOMIC_RELAXED) != NULL;
}

/* Of a fiber in a section. */
static inline struct sbt_carrier *sbt_server_of(const struct sbt_fiber *f) {
    return &SBT_SWITCH->carrier[f->server - 1];
}

/* f, which carrier x runs, may go on elsewhere: is x the place for `next`, which the caller owns? */
static inline bool sbt_serve_is_here(const struct sbt_carrier *x, const struct sbt_fiber *f,
                                     const struct sbt_fiber *next) {
    return SBT_LIKELY(sbt_switch_servers == 0) ||
           (sbt_in_section(next) ? x == sbt_server_of(next) && !sbt_in_section(f) : !sbt_serves(x));
}

/* Queue again a fiber that carrier x has run, or that was to run there next. The caller owns it, and x runs the caller.
 */
void sbt_serve_queue(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_runq_of which);

/* Make n fibers runnable that `next` links: sections on their servers. x runs the caller; NULL: no carrier does. */
void sbt_serve_woken(struct sbt_carrier *x, struct sbt_fiber *first, uint32_t n);

/* The monitor has looked at a server: while it is held up, other carriers run its sections. */
void sbt_serve_elsewhere(struct sbt_carrier *x, bool held_up);

#endif

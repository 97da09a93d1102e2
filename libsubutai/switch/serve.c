/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Servers, as in Remote Core Locking (Lozi): the first carriers run sections and nothing else. The section's fiber
 * comes to the server, and goes to another carrier, a worker, when the section is over.
 *
 *  1. A thread that gives a fiber what it has waited for (an unlock that grants a mutex) owns that fiber. It notes of
 *     which object the section is, and which server has it. Then the fiber is queued there.
 *  2. The server runs the queue in the order of arrival. If its own section's end begins the next one of the same
 *     object, it runs that without the queue, at most a batch of them.
 *  3. The end of the section takes the note away, and the fiber leaves to the workers' run queues.
 *
 * The note (`section`) stays until then. So a fiber that waits within its section comes back to its server, while the
 * server goes on with other sections. A section within a section does not take the note away: when it ends the fiber
 * stays, because the outer one goes on.
 *
 * Servers take no fibers from other carriers, and no carrier takes theirs: their bits of `idle` and `searching` are
 * never set. What a section wakes, and does not grant, is queued at the workers.
 *
 * A section that blocks in the kernel blocks its server. So does one that computes for long, or spins until another one
 * has run, and the server itself may have no core. The monitor sees that the server makes no progress (`held`). It
 * moves what is queued to the workers, and sections that are granted later go there too, until the server makes
 * progress. So no section waits for another one for good, and a thousand of them wait for no longer than the first.
 *
 * A server is not pinned to a CPU. What a section reads of its thread's affinity, and what it passes on to a process
 * that it starts, would be the server's.
 */
#include "switch/serve.h"

#include "switch/pin.h"

uint32_t sbt_switch_servers;

/*
 * Is that fiber, which a server runs or has just run, in a section of another object? Its last section may have been of
 * this object: that is over, and the fiber about to leave.
 */
static bool is_in_the_way(const struct sbt_fiber *f, const void *object) {
    const void *section = f != NULL && f != sbt_self.fiber ? __atomic_load_n(&f->section, __ATOMIC_RELAXED) : NULL;
    return section != NULL && section != object;
}

/*
 * A fiber that was on no server has left each section that it had: it ended there, or goes on where the fiber is. The
 * caller owns the fiber, so `carrier` is the one that the fiber has left last.
 */
bool sbt_fiber_begin_section(uint32_t *word, const void *object, uint32_t server) {
    struct sbt_fiber *f = (struct sbt_fiber *)(void *)word;
    const struct sbt_carrier *x = &SBT_SWITCH->carrier[server];
    bool others = is_in_the_way(__atomic_load_n(&x->current, __ATOMIC_RELAXED), object) ||
                  __atomic_load_n(&x->n, __ATOMIC_RELAXED) != 0; /* not of this object: its owner is the caller */
    if (!sbt_serves(f->carrier) || !sbt_in_section(f))
        __atomic_store_n(&f->section, object, __ATOMIC_RELAXED);
    f->server = (uint8_t)(server + 1);
    return others;
}

void sbt_switch_end_section(const void *object) {
    struct sbt_fiber *f = sbt_self.fiber;
    if (f != NULL && __atomic_load_n(&f->section, __ATOMIC_RELAXED) == object)
        __atomic_store_n(&f->section, NULL, __ATOMIC_RELAXED);
}

void sbt_serve_queue(struct sbt_carrier *x, struct sbt_fiber *f, enum sbt_runq_of which) {
    if (sbt_serves(x) && sbt_in_section(f))
        sbt_runq_serve(x, f, which, false);
    else
        sbt_runq_push(x, f, f, 1, which);
}

void sbt_serve_woken(struct sbt_carrier *x, struct sbt_fiber *first, uint32_t n) {
    for (struct sbt_fiber *next; n > 0; first = next, n--) {
        next = first->next;
        if (sbt_in_section(first))
            sbt_runq_serve(sbt_server_of(first), first, SBT_WOKEN, false);
        else
            sbt_runq_push(x, first, first, 1, SBT_WOKEN);
    }
}

/* A fiber that is queued between the two steps, or after the server has cleared `held` just now, waits for a tick. */
void sbt_serve_elsewhere(struct sbt_carrier *x, bool held_up) {
    if (held_up != (__atomic_load_n(&x->held, __ATOMIC_RELAXED) != 0))
        __atomic_store_n(&x->held, held_up, __ATOMIC_RELAXED);
    if (held_up)
        sbt_runq_give_away(x);
}

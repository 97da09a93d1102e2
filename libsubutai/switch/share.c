/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What threads tell of their waits and their progress, for the decision whether switching pays (pays.h); and the sign
 * that begins a trial: waits are often, for the CPU time that the process gets (share.h).
 */
#include "switch/share.h"

#include "core/cpus.h"
#include "core/sites.h"
#include "os/clock.h"
#include "os/fence.h"
#include "os/proc.h"
#include "switch/pays.h"
#include "switch/state.h"

/* What a thread writes to `often` of the state. */
enum {
    OFTEN_IN_ALL = 1,    /* by the clock */
    OFTEN_FOR_SHARE = 2, /* by the CPU time that the process has had, of which it has had little */
};

#define READ_EVERY_NS 50000000u
#define OLD_NS 1000000000u /* the monitor has slept meanwhile */

/* No sign for the CPU time after one in vain: longer each time, as long as no other process wants that time. */
#define VAIN_FIRST_NS 250000000u
#define VAIN_MOST_NS 8000000000u

/* ---- the share ---- */

/*
 * 0: not known. A filter of system calls may end the process for a call that the program does not make: the vDSO does
 * not know this clock.
 */
static uint64_t used_ns(void) {
    struct timespec t = {0, 0};
    if (!sbt_fence_is_forbidden())
        sbt_clock_read(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * Thousandths that are lacking to all of the CPUs' time between two readings; 0 if that is less than half, or if one is
 * not known. Never all of them: even a process that was given nothing is idle then if it does not switch at all.
 */
static uint32_t unused(uint64_t ns, uint64_t from, uint64_t to) {
    uint64_t all = ns * sbt_usable_cpus();
    if (from == 0 || to < from || 2 * (to - from) >= all)
        return 0;
    return (uint32_t)(999 - 999 * (to - from) / all);
}

static bool is_machine_crowded(void) {
    return !sbt_fence_is_forbidden() && sbt_proc_n_runnable() > sbt_cpus_most();
}

static void restart(struct sbt_share *share, uint64_t now_ns, uint32_t lacks) {
    share->since_ns = now_ns;
    share->used_ns = used_ns();
    share->lacks = lacks;
}

static void read_share(struct sbt_share *share, uint64_t now_ns) {
    uint64_t ns = now_ns - share->since_ns, before = share->used_ns;
    restart(share, now_ns, 0);
    uint32_t lacks = ns < OLD_NS ? unused(ns, before, share->used_ns) : 0;
    share->lacks = lacks != 0 && is_machine_crowded() ? lacks : 0;
}

uint32_t sbt_share_lacks(struct sbt_share *share, uint64_t now_ns) {
    if (now_ns - share->since_ns >= READ_EVERY_NS)
        read_share(share, now_ns);
    return share->lacks;
}

/* The monitor has slept until the sign: what it has read before is of another time, and would be read soon. */
bool sbt_share_sees_sign(struct sbt_share *share, uint64_t now_ns) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t often = __atomic_exchange_n(&s->often, 0, __ATOMIC_RELAXED);
    if (often != OFTEN_FOR_SHARE)
        return often != 0;
    if (is_machine_crowded()) {
        share->vain_ns = 0;
        restart(share, now_ns, __atomic_load_n(&s->lacks_told, __ATOMIC_RELAXED));
        return true;
    }
    share->vain_ns = share->vain_ns == 0             ? VAIN_FIRST_NS
                     : share->vain_ns < VAIN_MOST_NS ? 2 * share->vain_ns
                                                     : VAIN_MOST_NS;
    __atomic_store_n(&s->no_share_until_ns, now_ns + share->vain_ns, __ATOMIC_RELAXED);
    return false;
}

/* ---- what threads tell ---- */

/* Do more threads wait than CPUs may be used? What has been told of a round may not be enough to know. */
static void look_at_crowd(struct sbt_switch_state *s, uint64_t n_told) {
    uint32_t n_cpus = sbt_usable_cpus(), n_tellers = __atomic_load_n(&s->n_tellers, __ATOMIC_RELAXED);
    uint64_t n = (n_told - __atomic_load_n(&s->round_began, __ATOMIC_RELAXED)) / SBT_SWITCH_WAITS_TOLD;
    if (!sbt_pays_knows_crowd(n_tellers, n, n_cpus))
        return;
    __atomic_store_n(&s->crowded, n_tellers > n_cpus, __ATOMIC_RELAXED);
    __atomic_store_n(&s->round_began, n_told, __ATOMIC_RELAXED);
    __atomic_store_n(&s->n_tellers, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&s->round, 1, __ATOMIC_RELAXED);
}

/* Tell so many more. The result is how many waits there have been if it is time to look at the clock, or 0. */
static uint64_t tell(struct sbt_switch_state *s, bool are_yields) {
    uint32_t round = __atomic_load_n(&s->round, __ATOMIC_RELAXED) + 1; /* a thread's is 0 at first */
    if (sbt_self.told_round != round) {
        sbt_self.told_round = round;
        __atomic_fetch_add(&s->n_tellers, 1, __ATOMIC_RELAXED);
    }
    if (!are_yields)
        __atomic_fetch_add(&s->n_waits, SBT_SWITCH_WAITS_TOLD, __ATOMIC_RELAXED);
    uint64_t n_told = __atomic_add_fetch(&s->n_told, SBT_SWITCH_WAITS_TOLD, __ATOMIC_RELAXED);
    if (n_told % SBT_PAYS_WAITS != 0)
        return 0;
    look_at_crowd(s, n_told);
    uint64_t n = __atomic_exchange_n(&s->n_waits, 0, __ATOMIC_RELAXED);
    return __atomic_load_n(&s->crowded, __ATOMIC_RELAXED) != 0 ? SBT_PAYS_WAITS : n;
}

/*
 * Do threads keep each other from the CPUs? They do if more of them wait than CPUs may be used. And threads of an
 * OpenMP team do, however few they are: a process that lacks CPU time has other programs beside it, and a thread of the
 * team that looks in a loop keeps its CPU from the one that it waits for.
 */
static bool may_gain(const struct sbt_switch_state *s) {
    return __atomic_load_n(&s->crowded, __ATOMIC_RELAXED) != 0 || sbt_sites_n_threads() > 0;
}

/*
 * After `n` waits in the `ns` until now. The reading of the CPU time costs up to some microseconds, and is made every
 * 1024 waits. The last reading may be older than `ns`: then more was used since, and the process lacks less.
 */
static uint32_t how_often(struct sbt_switch_state *s, uint64_t n, uint64_t ns, uint64_t now_ns) {
    uint32_t n_cpus = sbt_usable_cpus();
    if (sbt_pays_is_often(n, ns, n_cpus))
        return OFTEN_IN_ALL;
    if (!may_gain(s) || now_ns < __atomic_load_n(&s->no_share_until_ns, __ATOMIC_RELAXED))
        return 0;
    uint64_t used = used_ns(), before = __atomic_exchange_n(&s->often_since_used_ns, used, __ATOMIC_RELAXED);
    uint32_t lacks = unused(ns, before, used);
    if (lacks == 0 || !sbt_pays_is_often(n, (used - before) / n_cpus, n_cpus))
        return 0;
    __atomic_store_n(&s->lacks_told, lacks, __ATOMIC_RELAXED);
    return OFTEN_FOR_SHARE;
}

void sbt_share_begin(void) {
    __atomic_store_n(&SBT_SWITCH->often_since_ns, sbt_now_ns(), __ATOMIC_RELAXED);
}

/* What threads tell. The thread that tells the last of SBT_PAYS_WAITS looks at the clock. */
void sbt_switch_note_waits(bool are_yields) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint64_t n = __atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED) != 0 ? tell(s, are_yields) : 0;
    if (n == 0)
        return;
    uint64_t now = sbt_now_ns(), since = __atomic_exchange_n(&s->often_since_ns, now, __ATOMIC_RELAXED);
    uint32_t often = now < __atomic_load_n(&s->rest_until_ns, __ATOMIC_RELAXED) ? 0 : how_often(s, n, now - since, now);
    if (often == 0)
        return;
    __atomic_store_n(&s->often, often, __ATOMIC_RELAXED);
    sbt_runq_wake_monitor();
}

/*
 * Threads that meet at barriers get done the same. If each told of its first 32, and of every 32 from there on, all
 * would tell at once, and a window of a trial would have all of it or nothing. So a thread begins with fewer, each with
 * another number: 13 has no divisor in common with 32.
 */
static uint32_t kept_at_first(void) {
    return 13 * __atomic_fetch_add(&SBT_SWITCH->n_first_tells, 1, __ATOMIC_RELAXED) % SBT_SWITCH_PROGRESS_TOLD;
}

void sbt_switch_tell_progress(void) {
    uint32_t told = sbt_self.progress - sbt_self.progress_told;
    if (SBT_UNLIKELY(sbt_self.progress_told == 0))
        told -= kept_at_first();
    sbt_self.progress_told += told;
    __atomic_fetch_add(&SBT_SWITCH->progress, told, __ATOMIC_RELAXED);
}

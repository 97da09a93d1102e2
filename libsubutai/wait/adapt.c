/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "wait/adapt.h"

#include "core/cpus.h"
#include "core/thread.h"
#include "os/arch.h"
#include "os/clock.h"
#include "switch/switch.h"
#include "wait/yield_gate.h"

/*
 * Measured on 2 cores: parking and being woken costs 5 to 20 us of latency, most of it for a core that has gone idle; a
 * yield that switches to another thread costs about 1 us, a yield that finds no other thread 0.4 us.
 *
 * There are two kinds of yield; their lengths tell which is which.
 *
 * A yield that switches gives the core to another thread. It is well spent if the other threads are on their way to
 * what this one waits for (a barrier with more threads than cores: after one round through the run queue all have
 * arrived). It is wasted if the wait takes many such yields (a ring of 64: each step switches all threads to and fro).
 * So the object remembers the mean number that its waits took. If that is above WORTH_SWITCHES (6, in 16ths) a wait
 * parks at once. It also does on an object with long waits.
 *
 * A yield that does not switch keeps a core awake that would go idle: that is worth IDLE_NS.
 *
 * With one CPU there is no core that goes idle, so parking costs little. There the limit is WORTH_SWITCHES_ALONE:
 * beyond it rings of 16 and of 64 are quicker asleep. The yields of a wait that parked at once say nothing then, and
 * are not remembered: otherwise the mean would keep to the limit, and every other wait would try. A wait after a
 * futile wake-up starts with the count of switches of the wait before it, up to GOES_ON_MOST. With more, three threads
 * that pass items through a queue would sleep because of the thread that hardly gets any; with fewer, sixteen would
 * stay awake.
 *
 * A yield longer than SBT_LONG_YIELD_NS gave the core to a thread that computes: more yields would only move this
 * thread to the back of the run queue. Of the waits that park at once, every SBT_ADAPT_PROBE_EVERY-th finds out whether
 * times have changed. LONG_NS and SBT_LONG_YIELD_NS are well above a round through a run queue of 32 threads that run
 * shortly (100 to 200 us here): a barrier with many threads waits for such a round.
 *
 * A spin looks at growing intervals. Every look takes the object's cache line away from the thread that works on it,
 * and two threads that fight for a line get less done than a thread that has it for a while.
 */
#define LONG_NS 1000000u
#define WORTH_SWITCHES (6 * 16)
#define WORTH_SWITCHES_ALONE (3 * 16)
#define GOES_ON_MOST 6
#define IDLE_NS 40000u
#define PROBE_YIELDS 10
#define SPIN_GAP_NS 500 /* longest interval between two looks */
#define CALIBRATION_PAUSES 64
#define VAIN_FIRST 2
#define SPARED_MOST_LOG2 9

/*
 * Shared yields: the thread's last yields, in a row, that gave the core to another thread. After
 * SBT_SHARED_YIELDS_MOST of them, with no more threads than cores, two fibers share a core. Each leaves it in time for
 * the other, so the kernel does not see that the other core is idle; it does when a thread that sleeps is woken.
 */
static _Thread_local uint8_t shared_yields __attribute__((tls_model("initial-exec")));

static uint32_t spin_pauses; /* per wait */
static uint32_t gap_pauses = 8;
static uint32_t pause_ns_256 = 256 * 16; /* what a pause takes, in 1/256 ns */
static uint32_t yields = 12;

/*
 * The quickest yield so far, which found no thread to switch to: a yield that takes half as long again has switched.
 * Not measured at start-up, when a yield on a busy machine may take milliseconds. Relaxed: every value it has had is
 * good enough.
 */
static uint32_t quickest_yield_ns = 800;

#define N_MEMORIES 256
static struct sbt_adapt memories[N_MEMORIES];

struct sbt_adapt *sbt_adapt_of_word(const uint32_t *word) {
    uint64_t h = (uint64_t)(uintptr_t)word * 0x9E3779B97F4A7C15u;
    return &memories[h >> (64 - __builtin_ctz(N_MEMORIES))];
}

static bool has_switched(uint64_t yield_ns) {
    uint32_t quickest = __atomic_load_n(&quickest_yield_ns, __ATOMIC_RELAXED);
    if (yield_ns < quickest)
        __atomic_store_n(&quickest_yield_ns, (uint32_t)yield_ns, __ATOMIC_RELAXED);
    return yield_ns > quickest + quickest / 2;
}

void sbt_adapt_start(uint32_t spin_ns, uint32_t max_yields) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 4; i++) { /* the quickest: the others were interrupted, or ran on a cold core */
        uint64_t begin = sbt_wait_ops->now_ns();
        for (int j = 0; j < CALIBRATION_PAUSES; j++)
            sbt_cpu_relax();
        uint64_t took = sbt_wait_ops->now_ns() - begin;
        best = took < best ? took : best;
    }
    pause_ns_256 = (uint32_t)(best * 256 / CALIBRATION_PAUSES) + 1;
    spin_pauses = (uint32_t)((uint64_t)spin_ns * 256 / pause_ns_256);
    gap_pauses = SPIN_GAP_NS * 256 / pause_ns_256 + 1;
    yields = max_yields < UINT16_MAX ? max_yields : UINT16_MAX;
}

/*
 * While yields do not pay (wait/yield_gate.h) a spin does not either: the thread that is waited for may have no core.
 * With many more cores than threads it has one, and the busy core may be another thread's. A fiber comes to the gate in
 * loops of yields only, so it might go without its spins for ever.
 */
static bool spins_in_vain(void) {
    uint32_t n = __atomic_load_n(&sbt_n_runnable, __ATOMIC_RELAXED);
    return yields != 0 && !sbt_switch_roams() && 2 * (int32_t)n > (int32_t)sbt_usable_cpus();
}

static bool is_alone(void) {
    return sbt_usable_cpus() == 1;
}

/* Does the caller sleep in this wait? Fibers only: for threads it changes nothing that could be measured. */
static bool spreads(void) {
    shared_yields = 0;
    return sbt_self.fiber != NULL && sbt_switch_takes_part() && sbt_cores_to_spare() && sbt_switch_spread();
}

void sbt_active_begin(struct sbt_active *a, const struct sbt_adapt *memory) {
    uint32_t mean_ns = (uint32_t)__atomic_load_n(&memory->mean_64ns, __ATOMIC_RELAXED) * 64;
    uint32_t switches = __atomic_load_n(&memory->mean_switches, __ATOMIC_RELAXED);
    sbt_switch_about_to_wait();
    *a = (struct sbt_active){.yields_left = (uint16_t)yields, .idle_ns = IDLE_NS, .next_pauses = spin_pauses != 0};
    if (yields == 0 || SBT_UNLIKELY(shared_yields == SBT_SHARED_YIELDS_MOST && spreads()))
        a->idle_ns = 0;
    if (SBT_UNLIKELY(sbt_yield_gate_closed(&sbt_yield_gate)) && spins_in_vain())
        a->next_pauses = 0;
    if (mean_ns <= LONG_NS && switches <= (is_alone() ? WORTH_SWITCHES_ALONE : WORTH_SWITCHES))
        return;
    a->yields_left = 0;
    if (__atomic_load_n(&memory->probe, __ATOMIC_RELAXED) % SBT_ADAPT_PROBE_EVERY == SBT_ADAPT_PROBE_EVERY - 1) {
        a->yields_left = (uint16_t)(yields < PROBE_YIELDS ? yields : PROBE_YIELDS);
        return;
    }
    a->parks = is_alone();
    if (mean_ns > LONG_NS || !sbt_cores_to_spare())
        a->next_pauses = a->idle_ns = 0;
}

void sbt_active_force_spin(struct sbt_active *a) {
    if (is_alone() || (SBT_UNLIKELY(sbt_self.fiber != NULL) && sbt_switch_takes_part() && !sbt_switch_among_carriers()))
        return;
    a->next_pauses = spin_pauses != 0;
    a->spun_pauses = 0;
    a->forced = true;
}

static bool may_spin(const struct sbt_active *a) {
    return a->forced || sbt_cores_to_spare();
}

/*
 * A fiber does not wait actively while another fiber is runnable on its carrier: to switch to that one is a better use
 * of the core than a look or a yield. If no other is, and there are no more threads than cores, it waits as a thread
 * does. If it switched away it would come back by way of the carrier that has woken it, and either take the place of
 * that carrier's fiber or be fetched from there.
 */
static bool rather_switch(struct sbt_active *a) {
    bool looks = a->next_pauses != 0 ? may_spin(a) : a->idle_ns != 0 && sbt_cores_to_spare();
    if (!looks || sbt_switch_others_runnable()) {
        a->next_pauses = a->idle_ns = 0;
        return true;
    }
    return false;
}

bool sbt_active_step(struct sbt_active *a) {
    if (SBT_UNLIKELY(sbt_self.fiber != NULL) && sbt_switch_roams() && rather_switch(a))
        return false;
    if (a->next_pauses != 0 && may_spin(a)) {
        for (uint32_t i = 0; i < a->next_pauses; i++)
            sbt_cpu_relax();
        a->spun_pauses += a->next_pauses;
        a->next_pauses = a->next_pauses < gap_pauses ? a->next_pauses * 2 : gap_pauses;
        if (a->spun_pauses >= spin_pauses)
            a->next_pauses = 0;
        return true;
    }
    a->next_pauses = 0;
    if (a->start_ns == 0) {
        a->last_ns = sbt_wait_ops->now_ns();
        a->start_ns = a->last_ns - (uint64_t)a->spun_pauses * pause_ns_256 / 256;
    }
    if (a->idle_ns == 0)
        return false;
    uint64_t took = sbt_yield_gate_pass(&sbt_yield_gate, &a->last_ns);
    if (took == 0) {
        a->idle_ns = 0;
        return false;
    }
    if (!has_switched(took)) {
        shared_yields = 0;
        a->idle_ns = a->idle_ns > took ? a->idle_ns - (uint32_t)took : 0;
    } else {
        __atomic_store_n(&a->switches, a->switches + 1, __ATOMIC_RELAXED);
        sbt_switch_note_wait();
        sbt_cpus_look(); /* all waits may end by yields, and no thread sleeps: as where all share one CPU */
        shared_yields += shared_yields < SBT_SHARED_YIELDS_MOST;
        if (a->yields_left == 0 || took > SBT_LONG_YIELD_NS)
            a->idle_ns = 0; /* another thread has use for the core */
        else
            a->yields_left--;
    }
    return true;
}

uint64_t sbt_active_since_ns(const struct sbt_active *a) {
    return a->start_ns != 0 ? a->start_ns : sbt_wait_ops->now_ns();
}

uint64_t sbt_active_waited_ns(const struct sbt_active *a) {
    return a->start_ns != 0 ? sbt_wait_ops->now_ns() - a->start_ns : (uint64_t)a->spun_pauses * pause_ns_256 / 256;
}

void sbt_active_end(const struct sbt_active *a, struct sbt_adapt *memory) {
    uint64_t waited = sbt_active_waited_ns(a) / 64;
    uint32_t switched = (uint32_t)__atomic_load_n(&a->switches, __ATOMIC_RELAXED) * 16;
    uint32_t mean = __atomic_load_n(&memory->mean_64ns, __ATOMIC_RELAXED);
    uint32_t mean_switches = __atomic_load_n(&memory->mean_switches, __ATOMIC_RELAXED);
    uint8_t probe = __atomic_load_n(&memory->probe, __ATOMIC_RELAXED);
    mean = (mean * 3 + (uint32_t)(waited < UINT16_MAX ? waited : UINT16_MAX)) / 4;
    mean_switches = (mean_switches * 7 + (switched < UINT8_MAX ? switched : UINT8_MAX)) / 8;
    __atomic_store_n(&memory->mean_64ns, (uint16_t)mean, __ATOMIC_RELAXED);
    if (!a->parks)
        __atomic_store_n(&memory->mean_switches, (uint8_t)mean_switches, __ATOMIC_RELAXED);
    __atomic_store_n(&memory->probe, (uint8_t)(probe + 1), __ATOMIC_RELAXED);
}

void sbt_active_futile(struct sbt_active *a, uint16_t switches) {
    if (is_alone())
        a->switches = switches < GOES_ON_MOST ? switches : GOES_ON_MOST;
}

static uint32_t n_not_in_vain; /* relaxed: a hint */

static bool was_not_in_vain(struct sbt_spared *spared) {
    spared->seen = __atomic_add_fetch(&n_not_in_vain, 1, __ATOMIC_RELAXED);
    spared->left = spared->vain = 0;
    return true;
}

/*
 * True: the core went to another thread, or sleeping for a moment is better. The end of a quota falls into some yields,
 * which last for tens of milliseconds then. That says nothing, and would close the gate.
 */
static bool yields_to_another(void) {
    uint64_t now = sbt_wait_ops->now_ns(), took;
    if (sbt_has_quota()) {
        sbt_wait_ops->yield();
        took = sbt_wait_ops->now_ns() - now;
        return took <= SBT_LONG_YIELD_NS && has_switched(took);
    }
    took = sbt_yield_gate_pass(&sbt_yield_gate, &now);
    if (took == 0)
        sbt_wait_ops->pause_ns(SBT_YIELD_GATE_PAUSE_NS);
    return took == 0 || has_switched(took);
}

bool sbt_spared_yield(struct sbt_spared *spared) {
    uint32_t seen = __atomic_load_n(&n_not_in_vain, __ATOMIC_RELAXED);
    if (seen != spared->seen)
        *spared = (struct sbt_spared){.seen = seen};
    if (spared->left != 0) {
        spared->left--;
        return false;
    }
    if (yields_to_another())
        return was_not_in_vain(spared);
    if (spared->vain < VAIN_FIRST + SPARED_MOST_LOG2)
        spared->vain++;
    if (spared->vain >= VAIN_FIRST)
        spared->left = (uint16_t)(1u << (spared->vain - VAIN_FIRST));
    return spared->left == 0;
}

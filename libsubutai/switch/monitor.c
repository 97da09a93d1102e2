/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The monitor (Go: sysmon): a kernel thread that looks every few milliseconds, while there is anything to see, whether
 * runnable fibers wait behind carriers that make no progress. It sends those fibers home, where the kernel runs them. A
 * fiber may sleep in the kernel on a carrier, compute for a second, or spin until another thread does something: it
 * delays other fibers by a few milliseconds and never for good. The fibers' home threads exist already, so this needs
 * no new thread.
 *
 * A fiber that is found asleep in the kernel on its carrier does input or output: it is told to wait on its home thread
 * for a while. If many fibers are found asleep, and the program switches seldom, it loses more by that than it gains by
 * switching. Then all fibers wait on their home threads for some time. That time is doubled whenever it proves too
 * short.
 *
 * The monitor takes a run queue's lock and no other. All that it reads of carriers are hints.
 */
#include "switch/monitor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <string.h>
#include <unistd.h>

#include "core/cpus.h"
#include "core/log.h"
#include "core/sites.h"
#include "os/fence.h"
#include "os/proc.h"
#include "switch/pays.h"
#include "switch/pin.h"
#include "switch/serve.h"
#include "switch/share.h"
#include "switch/state.h"
#include "switch/tuning.h"

#define CLOSING_NS 100000 /* between looks whether the monitor has closed its descriptors */
#define SAYS_WHAT_PAYS 3  /* from this verbosity on the monitor says when switching begins and ends */
#define SAYS_ANYTHING 2   /* from this one on it says how many CPUs may be used, if it finds that (core/cpus.h) */

/*
 * Give the monitor its own, empty table of file descriptors. The program must not meet the monitor's descriptors, nor
 * lose its lowest free one to them, and a forked child must not inherit one. Carriers that the monitor creates come
 * first: they share its table, and need the program's. Only a monitor that has something to say keeps stderr: a reader
 * of a pipe waits until the last thread has closed it. False: the kernel cannot do that, and the monitor does not look
 * whether fibers sleep.
 */
static bool empty_descriptors(void) {
    if (!sbt_log_is_on(SAYS_ANYTHING))
        return sbt_syscall3(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) == 0;
    return sbt_syscall3(SYS_close_range, STDERR_FILENO + 1, ~0u, CLOSE_RANGE_UNSHARE) == 0 &&
           sbt_syscall3(SYS_close_range, 0, STDERR_FILENO - 1, 0) == 0;
}

/*
 * The kernel copies up to 64 descriptors into the new table before it closes them there. To close any descriptor of a
 * message queue ends the process's notification of that queue (mq_notify), so the table stays the program's if there
 * may be one. False then, too.
 */
static bool own_descriptors(struct sbt_switch_state *s) {
    uint32_t expected = SBT_DESCRIPTORS_SHARED;
    /* acquire, release: the notification comes either before the exchange here, or after the closing */
    if (!__atomic_compare_exchange_n(&s->descriptors, &expected, SBT_DESCRIPTORS_CLOSING, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return false;
    bool empty = empty_descriptors();
    __atomic_store_n(&s->descriptors, SBT_DESCRIPTORS_OWN, __ATOMIC_RELEASE);
    return empty;
}

void sbt_monitor_keep_descriptors(void) {
    struct sbt_switch_state *s = SBT_SWITCH;
    uint32_t expected = SBT_DESCRIPTORS_SHARED;
    while (!__atomic_compare_exchange_n(&s->descriptors, &expected, SBT_DESCRIPTORS_KEPT, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE) &&
           expected == SBT_DESCRIPTORS_CLOSING) {
        sbt_pause_ns(CLOSING_NS);
        expected = SBT_DESCRIPTORS_SHARED;
    }
}

/* Is the kernel thread asleep? */
static bool sleeps(uint32_t tid) {
    char state = sbt_proc_state(tid);
    return state != '\0' && state != 'R';
}

/* Tell the fiber to wait on its home thread for a while. False: it has been told already. */
static bool pin_waits(struct sbt_fiber *f) {
    if (__atomic_load_n(&f->pinned_waits, __ATOMIC_RELAXED) != 0)
        return false;
    uint32_t next = f->pinned_waits_next;
    next = next == 0 ? PINNED_WAITS_FIRST : next < PINNED_WAITS_MOST ? next * 2 : next;
    f->pinned_waits_next = next;
    __atomic_store_n(&f->pinned_waits, next, __ATOMIC_RELAXED);
    return true;
}

struct watch {
    bool sees_sleepers;
    uint32_t pops[SBT_CARRIERS_MAX];                   /* pops of each carrier at the last look */
    uint32_t stuck[SBT_CARRIERS_MAX];                  /* looks in a row that saw runnable fibers and no progress */
    const struct sbt_fiber *current[SBT_CARRIERS_MAX]; /* fiber of each carrier at the last look, to be compared only */
    uint32_t cost, switches;                           /* recent cost and recent switches */
    uint32_t ticks;
    /* how long all fibers are pinned the next time; until when they were pinned the last time */
    uint64_t all_pinned_ns, until_ns;
    struct sbt_pays pays;
    struct sbt_share share;
    uint64_t all_switches; /* since the beginning */
    bool started;          /* there are carriers */
    uint32_t n_held_up;    /* active carriers but servers on which a fiber sleeps in the kernel, in this look */
};

/* Do sleeps in the kernel cost more than switches save? */
static bool is_costly(struct sbt_switch_state *s, struct watch *w) {
    if (++w->ticks % MEMORY_TICKS == 0) {
        w->cost /= 2;
        w->switches /= 2;
    }
    w->cost += __atomic_exchange_n(&s->sleeps, 0, __ATOMIC_RELAXED) * COST_OF_SLEEP;
    if (__atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED) != 0) /* fibers found asleep now are only on their way home */
        w->cost = w->switches = 0;
    if (w->cost < COST_MANY || w->switches >= w->cost)
        return false;
    w->cost = w->switches = 0;
    return true;
}

/* The program is to be switched: it would do better without. */
static void pin_all(struct sbt_switch_state *s, struct watch *w) {
    uint64_t now = sbt_now_ns();
    if (w->all_pinned_ns == 0 || now - w->until_ns > 16 * w->all_pinned_ns)
        w->all_pinned_ns = ALL_PINNED_FIRST_NS;
    else if (w->all_pinned_ns < ALL_PINNED_MOST_NS)
        w->all_pinned_ns *= 2;
    w->until_ns = now + w->all_pinned_ns;
    __atomic_store_n(&s->all_pinned, 1, __ATOMIC_RELAXED);
}

static void end_all_pinned(struct sbt_switch_state *s, const struct watch *w) {
    if (__atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED) != 0 && sbt_now_ns() >= w->until_ns)
        __atomic_store_n(&s->all_pinned, 0, __ATOMIC_RELAXED);
}

/* ---- does switching pay? ---- */

/*
 * Switching is to begin for the first time. The main thread is pinned before any fiber leaves its home thread. False:
 * the program may not be switched, or carriers cannot be created. That is for good, whichever monitor has found it: the
 * next one would be told only of objects that were loaded since.
 */
static bool begin(struct sbt_switch_state *s, struct watch *w) {
    bool pins_main = false, has_carriers = __atomic_load_n(&s->n_own, __ATOMIC_ACQUIRE) != 0; /* it is judged then */
    const char *why = has_carriers ? NULL : sbt_switch_judge(&pins_main);
    struct sbt_fiber *f = pins_main && s->main_thread != 0 ? sbt_pool_find(s->main_thread, 0) : NULL;
    if (f != NULL)
        __atomic_fetch_or(&f->pinned, SBT_PIN_ITSELF, __ATOMIC_RELAXED);
    if (why == NULL && !sbt_switch_start_carriers())
        why = "the carrier threads cannot be created";
    if (why != NULL) {
        __atomic_store_n(&s->is_refused, 1, __ATOMIC_RELAXED);
        sbt_switch_say(false, why);
        return false;
    }
    w->started = true;
    w->sees_sleepers = own_descriptors(s);
    return true;
}

static bool has_ended(const struct sbt_switch_state *s) {
    return (__atomic_load_n(&s->no_more, __ATOMIC_RELAXED) & SBT_SWITCH_ENDED) != 0;
}

/* Libraries that spin before they sleep do so while threads wait adaptively. */
static void set_switching(struct sbt_switch_state *s, struct watch *w, bool begins) {
    if (begins && !w->started && !begin(s, w))
        return;
    sbt_sites_spin(!begins);
    /* Pairs with the fence of sbt_switch_end: the later of the two says that libraries spin. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (has_ended(s))
        sbt_sites_spin(true);
    __atomic_store_n(&s->all_pinned, !begins, __ATOMIC_RELAXED);
}

/* An answer is new if a trial has ended with it, or without one the way of waiting has changed. */
static void say_what_pays(const struct watch *w, bool was_in_trial, bool has_changed) {
    if (sbt_switch_how == SBT_SWITCH_IF_IT_PAYS && !sbt_pays_is_in_trial(&w->pays) && (was_in_trial || has_changed))
        sbt_log(SAYS_WHAT_PAYS, w->pays.switches ? "switching pays" : "switching does not pay", NULL);
}

static void decide(struct sbt_switch_state *s, struct watch *w, bool costly) {
    uint64_t now = sbt_now_ns();
    bool often = sbt_share_sees_sign(&w->share, now);
    struct sbt_pays_seen seen = {
        .now_ns = now,
        .progress = __atomic_load_n(&s->progress, __ATOMIC_RELAXED),
        .n_switches = w->all_switches,
        .n_cpus = sbt_usable_cpus(),
        .crowded = __atomic_load_n(&s->crowded, __ATOMIC_RELAXED) != 0,
        .often = often,
        .lacks = sbt_share_lacks(&w->share, now),
        .costly = costly,
        .by_turns = sbt_switch_how == SBT_SWITCH_BY_TURNS,
    };
    bool switches = w->pays.switches, was_in_trial = sbt_pays_is_in_trial(&w->pays);
    if (sbt_pays_step(&w->pays, &seen) != switches)
        set_switching(s, w, !switches);
    say_what_pays(w, was_in_trial, w->pays.switches != switches);
    __atomic_store_n(&s->rest_until_ns, w->pays.next_ns, __ATOMIC_RELAXED);
}

/*
 * The program is not switched, whatever pays. A trial may have been under way, a thread may have said that it waits
 * often, and none is to wake the monitor any more.
 */
static void rest_for_good(struct sbt_switch_state *s, struct watch *w) {
    w->pays = (struct sbt_pays){0};
    __atomic_store_n(&s->rest_until_ns, UINT64_MAX, __ATOMIC_RELAXED);
    __atomic_store_n(&s->often, 0, __ATOMIC_RELAXED);
}

/* How many fibers to send home from a carrier that is stuck: more each time, and all if no carrier can run them. */
static uint32_t n_to_send(uint32_t stuck, bool all_held_up) {
    return all_held_up || stuck > 16 ? UINT32_MAX : 1u << (stuck - 1);
}

/*
 * Fibers wait behind this carrier, and it seldom wakes idle carriers, because fibers that those found soon waited
 * again. The fibers that wait now are of another kind: few of them were taken in a whole tick, or the carrier makes no
 * progress at all. So the carrier is to wake idle carriers again.
 */
static void wake_more_for(struct sbt_carrier *x) {
    __atomic_store_n(&x->skip, __atomic_load_n(&x->skip, __ATOMIC_RELAXED) / 4, __ATOMIC_RELAXED);
    __atomic_store_n(&x->skip_left, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&x->robbed_in_vain, 0, __ATOMIC_RELAXED);
}

static bool are_fibers_queued(const struct sbt_switch_state *s) {
    for (uint32_t i = 0; i < sbt_switch_n_carriers(s); i++)
        if (__atomic_load_n(&s->carrier[i].n, __ATOMIC_RELAXED) != 0)
            return true;
    return false;
}

/*
 * Has the carrier's fiber been asleep in the kernel since the last look? The number of fibers taken is still the same
 * then.
 */
static bool sleeps_on(const struct sbt_carrier *x, const struct sbt_fiber *f, uint32_t pops) {
    return sleeps(__atomic_load_n(&x->tid, __ATOMIC_RELAXED)) && __atomic_load_n(&x->current, __ATOMIC_RELAXED) == f &&
           __atomic_load_n(&x->pops, __ATOMIC_RELAXED) == pops;
}

/* Look at carrier i. The result is how many fibers wait behind it. */
static uint32_t look_at(struct sbt_switch_state *s, struct watch *w, uint32_t i, bool sleepers_matter, bool any_idle) {
    struct sbt_carrier *x = &s->carrier[i];
    uint32_t n = __atomic_load_n(&x->n, __ATOMIC_RELAXED), now = __atomic_load_n(&x->pops, __ATOMIC_RELAXED);
    w->stuck[i] = n > 0 && now == w->pops[i] ? w->stuck[i] + 1 : 0;
    if (n > 0 && (now == w->pops[i] || (any_idle && now - w->pops[i] < SHORT_RUNS)))
        wake_more_for(x);
    struct sbt_fiber *f = __atomic_load_n(&x->current, __ATOMIC_RELAXED);
    bool held_up = f != NULL && now == w->pops[i] && sleepers_matter && sleeps_on(x, f, now);
    if (held_up) {
        w->n_held_up += i >= sbt_switch_servers && i < __atomic_load_n(&s->n_active, __ATOMIC_RELAXED);
        w->cost += pin_waits(f) ? COST_OF_SLEEPER : 0;
    }
    if (i < sbt_switch_servers)
        sbt_serve_elsewhere(x, held_up || (f != NULL && f == w->current[i] && now == w->pops[i]));
    w->current[i] = f;
    w->switches += now - w->pops[i];
    w->all_switches += now - w->pops[i];
    w->pops[i] = now;
    return n;
}

/* Is every active carrier held up in the kernel, that runs more than sections? */
static bool are_all_held_up(const struct sbt_switch_state *s, const struct watch *w) {
    return w->n_held_up + sbt_switch_servers >= __atomic_load_n(&s->n_active, __ATOMIC_RELAXED);
}

static void help_stuck(struct sbt_switch_state *s, const struct watch *w) {
    for (uint32_t i = 0; i < sbt_switch_n_carriers(s); i++) {
        if (w->stuck[i] == 0)
            continue;
        for (uint32_t k = n_to_send(w->stuck[i], are_all_held_up(s, w)); k > 0; k--) {
            struct sbt_fiber *f = sbt_runq_take(&s->carrier[i]);
            if (f == NULL)
                break;
            sbt_pin_send_home(f);
        }
    }
}

/*
 * Look at all carriers once. True: a runnable fiber waits.
 *
 * A fiber that sleeps on its carrier is in no other fiber's way while no fiber becomes runnable. So it is not looked
 * for then: to find out whether it sleeps costs as much as a hundred switches, on a core that a thread of the program
 * may have to itself. After switching has ended it is not looked for either: the program may have forbidden system
 * calls.
 */
static bool look(struct sbt_switch_state *s, struct watch *w, bool pushed) {
    uint32_t n_waiting = 0;
    bool sleepers_matter = w->sees_sleepers && !has_ended(s) &&
                           (pushed || are_fibers_queued(s) || __atomic_load_n(&s->all_held, __ATOMIC_RELAXED) != 0);
    bool any_idle = __atomic_load_n(&s->idle, __ATOMIC_RELAXED) != 0;
    w->n_held_up = 0;
    for (uint32_t i = 0; i < sbt_switch_n_carriers(s); i++)
        n_waiting += look_at(s, w, i, sleepers_matter, any_idle);
    __atomic_store_n(&s->all_held, are_all_held_up(s, w), __ATOMIC_RELAXED);
    /* Pairs with the heavy fence of a carrier that has run out of fibers after it was looked at (find). */
    sbt_fence_light();
    if (__atomic_load_n(&s->idle, __ATOMIC_RELAXED) != 0)
        __atomic_store_n(&s->all_held, 0, __ATOMIC_RELAXED);
    help_stuck(s, w);
    return n_waiting > 0;
}

static bool has_work(const struct sbt_switch_state *s) {
    return __atomic_load_n(&s->pushes, __ATOMIC_RELAXED) != 0 || __atomic_load_n(&s->often, __ATOMIC_RELAXED) != 0 ||
           __atomic_load_n(&s->quit, __ATOMIC_RELAXED) != 0;
}

static bool is_alone(const struct sbt_switch_state *s) {
    return __atomic_load_n(&s->n_threads, __ATOMIC_RELAXED) == 0;
}

/*
 * Has switching ended, before there were carriers, because the program filters the system calls of all its threads?
 * Then there is nothing to do, and a call may be fatal that the program's own threads do not make. They make futex
 * calls; and the monitor does not leave, since it is not known whether their end is allowed.
 */
static bool is_over(const struct sbt_switch_state *s) {
    return sbt_fence_is_forbidden() && has_ended(s) && __atomic_load_n(&s->n_own, __ATOMIC_RELAXED) == 0;
}

/*
 * Sleep until there is work, or all fibers have been pinned for long enough.
 *
 * In a program that has one thread left the monitor would be the second for ever. Some programs wait until /proc shows
 * no thread but their own, so it leaves, if nothing has been switched so far. It does so after a while: many programs
 * create their threads, join them and create some again. True: it must return.
 */
static bool sleep_long(struct sbt_switch_state *s, const struct watch *w) {
    const uint64_t second = 1000000000;
    const bool may_leave = sbt_switch_how == SBT_SWITCH_IF_IT_PAYS && __atomic_load_n(&s->n_own, __ATOMIC_RELAXED) == 0,
               ends = !sbt_switch_weighs && __atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED) != 0;
    for (bool goes_on = true; goes_on;) {
        const bool alone = may_leave && is_alone(s);
        const uint32_t how = may_leave && !alone ? SBT_MONITOR_SLEEPS_UNTIL_ALONE : SBT_MONITOR_SLEEPS;
        const uint64_t until_ns = alone ? sbt_now_ns() + ALONE_NS : w->until_ns;
        const struct sbt_deadline until = {CLOCK_MONOTONIC, {(time_t)(until_ns / second), (long)(until_ns % second)}};
        __atomic_store_n(&s->monitor_sleeps, how, __ATOMIC_RELAXED);
        /*
         * Pairs with the light fences in sbt_runq_push, sbt_runq_wake_monitor and sbt_runq_tell_monitor_alone. If the
         * kernel refuses the heavy fence, the monitor goes on looking.
         */
        goes_on = sbt_fence_heavy() && !has_work(s);
        if (goes_on && alone == (may_leave && is_alone(s)))
            sbt_futex_wait(&s->monitor_sleeps, how, alone || ends ? &until : NULL);
        __atomic_store_n(&s->monitor_sleeps, SBT_MONITOR_AWAKE, __ATOMIC_RELAXED);
        goes_on = goes_on && may_leave && !has_work(s) && !is_over(s);
        if (goes_on && alone && is_alone(s) && sbt_switch_monitor_leaves())
            return true;
    }
    return false;
}

/* Sleep until the program's last thread ends. Without a heavy fence: quit has full ones. */
static void sleep_to_the_end(struct sbt_switch_state *s) {
    for (bool over = false; !over;) {
        __atomic_store_n(&s->monitor_sleeps, SBT_MONITOR_SLEEPS, __ATOMIC_SEQ_CST);
        over = __atomic_load_n(&s->quit, __ATOMIC_SEQ_CST) != 0;
        if (!over)
            sbt_futex_wait(&s->monitor_sleeps, SBT_MONITOR_SLEEPS, NULL);
    }
}

/* Decide how threads wait. The result is how long until the next look, ns. */
static uint64_t weigh(struct sbt_switch_state *s, struct watch *w) {
    bool costly = is_costly(s, w);
    if (!sbt_switch_weighs) {
        if (costly)
            pin_all(s, w);
        end_all_pinned(s, w);
        return TICK_NS;
    }
    if (__atomic_load_n(&s->is_refused, __ATOMIC_RELAXED) != 0 || has_ended(s))
        rest_for_good(s, w);
    else
        decide(s, w, costly);
    return sbt_pays_is_in_trial(&w->pays) ? TRIAL_TICK_NS : TICK_NS;
}

static void tell_engine(const struct sbt_switch_state *s, const struct watch *w, bool goes_on) {
    if (sbt_switch_each_look == NULL)
        return;
    struct sbt_switch_look look = {
        .now_ns = sbt_now_ns(),
        .progress = __atomic_load_n(&s->progress, __ATOMIC_RELAXED),
        .n_threads = (uint32_t)__atomic_load_n(&s->n_threads, __ATOMIC_RELAXED) + 1,
        .steady = goes_on && !has_ended(s) && !sbt_pays_is_in_trial(&w->pays) &&
                  __atomic_load_n(&s->all_pinned, __ATOMIC_RELAXED) == 0,
    };
    sbt_switch_each_look(&look);
}

/* May the monitor sleep until a fiber becomes runnable, or threads begin to wait often? */
static bool may_sleep(const struct watch *w, uint32_t quiet) {
    return sbt_switch_how != SBT_SWITCH_BY_TURNS && !sbt_pays_is_in_trial(&w->pays) && quiet >= QUIET_TICKS;
}

void *sbt_monitor_main(void *unused) {
    struct sbt_switch_state *s = SBT_SWITCH;
    struct watch w = {.started = !sbt_switch_weighs};
    uint32_t quiet = 0;
    uint64_t tick_ns = TICK_NS;
    if (w.started)
        w.sees_sleepers = own_descriptors(s);
    while (__atomic_load_n(&s->quit, __ATOMIC_RELAXED) == 0 && !is_over(s)) {
        sbt_pause_ns(tick_ns);
        if (is_over(s))
            break;
        sbt_cpus_look();
        if (w.started && !has_ended(s))
            sbt_switch_follow_cpus();
        bool pushed = __atomic_exchange_n(&s->pushes, 0, __ATOMIC_RELAXED) != 0;
        quiet = look(s, &w, pushed) || pushed ? 0 : quiet + 1;
        tick_ns = weigh(s, &w);
        bool sleeps = may_sleep(&w, quiet);
        tell_engine(s, &w, !sleeps);
        if (!sleeps)
            continue;
        quiet = 0;
        if (sleep_long(s, &w))
            return unused;
    }
    if (is_over(s)) {
        rest_for_good(s, &w);
        sleep_to_the_end(s);
    }
    return unused;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the figures say that should be done. Each cause has a rule: when it holds, the figure that it rests on, and what
 * would be gained at most, from the critical path. Advice is ordered by that gain. What is or may be wrong (a deadlock,
 * a circle of locks) comes before what may be slow; what is only said so that it is not taken for contention comes
 * last.
 *
 * The thresholds are parts of a whole, most of them of the program's time.
 */
#include <math.h>
#include <stdlib.h>

#include "walk.h"

#define GAIN_LEAST 0.05
#define WAITS_LEAST 3
#define BESIDE_LEAST 0.15
#define IDLE_LEAST 0.25
#define TURNS_LEAST 0.1
#define MOSTLY 0.5
#define FEW_HOLDS 0.05
#define FUTILE_LEAST 0.3
#define STORM_LEAST 0.1
#define SPIN_LEAST 0.05
#define FAILED_LEAST 1000
#define SERIAL_LEAST 0.7
#define CALLS_LEAST 0.1
/* Of the generations: if more stall, it is the program that keeps its threads off the processor. */
#define STALLS_MOST 0.1
/* All threads wait for that long: a thread that has been woken would have gone on. */
#define STUCK_LEAST_NS 100000000

static double part(double of, double whole) {
    return whole > 0 ? of / whole : 0;
}

static struct rep_advice *advise(struct rep_report *r, struct rep_advice a) {
    unsigned at;
    if ((a.basis == REP_BASIS_PATH || a.basis == REP_BASIS_COUNTED) && a.gain_ns > (double)r->path.ns)
        a.gain_ns = (double)r->path.ns;
    if (r->n_advice < REP_MOST_ADVICE)
        at = r->n_advice++;
    else if (a.gain_ns > r->advice[REP_MOST_ADVICE - 1].gain_ns)
        at = REP_MOST_ADVICE - 1;
    else
        return NULL;
    for (; at > 0 && r->advice[at - 1].gain_ns < a.gain_ns; at--)
        r->advice[at] = r->advice[at - 1];
    r->advice[at] = a;
    return &r->advice[at];
}

static struct rep_advice about(const struct rep_report *r, enum rep_cause cause, uint32_t object) {
    struct rep_advice a = {.cause = cause, .object = object, .group = REP_NONE, .thread = REP_NONE, .site = REP_NONE};
    if (object != REP_NONE) {
        a.group = r->objects[object].group;
        a.objects[a.n_objects++] = object;
    }
    return a;
}

static const struct rep_detail *detail_of(const struct rep_report *r, uint32_t object) {
    return r->objects[object].detail != REP_NONE ? &r->details[r->objects[object].detail] : NULL;
}

static uint32_t most_held_site(const struct rep_detail *d) {
    uint32_t site = REP_NONE;
    uint64_t most = 0;
    for (unsigned i = 0; d != NULL && i < d->n_sites; i++)
        if (d->sites[i].hold.ns > most) {
            most = d->sites[i].hold.ns;
            site = d->sites[i].site;
        }
    return site;
}

/* ---- locks ---- */

/* Time of holds in which the thread did not run, if that is most of the holds' time, and not of a few preempted ones.
 */
static bool held_over_io(const struct rep_report *r, uint32_t object, double *off_share) {
    const struct rep_object *o = &r->objects[object];
    const struct rep_detail *d = detail_of(r, object);
    *off_share = 1 - part((double)o->hold_work_ns, (double)o->known_hold_ns);
    /* Most long holds, and not a few of all: else they are the holds in which the thread was preempted. */
    return d != NULL && d->held_off_cpu.n >= 3 && *off_share > MOSTLY &&
           (double)d->held_off_cpu.n > MOSTLY * (double)o->n_long_holds &&
           (double)d->held_off_cpu.n > FEW_HOLDS * (double)o->n_known_holds;
}

static bool in_convoys(const struct rep_report *r, uint32_t object) {
    const struct rep_detail *d = detail_of(r, object);
    return d != NULL && d->convoys.n > 0 && 2 * d->convoys.n_acquisitions > r->objects[object].n_contended &&
           d->convoys.handover_ns > d->convoys.held_ns;
}

/* Is the lock what waits for a storm's threads, or a condition's? Then the advice is about the condition. */
static bool belongs_to_storm(const struct rep_report *r, uint32_t mutex) {
    for (unsigned i = 0; i < r->n_advice; i++)
        if (r->advice[i].cause == REP_BROADCAST_STORM && r->objects[r->advice[i].object].mutex == mutex)
            return true;
    return false;
}

/*
 * The lock's part of the path that other threads made so long. A call that waited for no thread is none of it. Nor is a
 * wait that no call is known to have ended: the lock was given back as the wait began, and the thread got no processor.
 * Waits that timed out, or that a killed program was in, are of that kind too, and the lock was held then.
 */
static uint64_t contended_path_ns(const struct rep_report *r, const struct rep_object *o) {
    const uint64_t held_ns = r->info.completed || !r->info.whole ? UINT64_MAX : o->timed_out.ns;
    return o->path.held_ns + o->path.wakeup_ns + (o->path.waiting_ns < held_ns ? o->path.waiting_ns : held_ns);
}

/*
 * The thread that ended the program slept for most of the time, as a server's main thread does. So the path has nothing
 * of what other threads do. Then the share of the threads' time in the lock's sections counts, from RCL's authors'
 * limit on. If one wait is most of all waits, the thread is parked there: so redis keeps its threads for input that it
 * does not need.
 */
static bool is_beside_the_path(const struct rep_report *r, const struct rep_object *o) {
    return part((double)r->path.off_cpu_ns, (double)r->path.ns) > MOSTLY &&
           part((double)o->wait_max_ns, (double)o->wait_ns) < MOSTLY &&
           part((double)o->section_ns, (double)rep_active_ns(&r->times)) > BESIDE_LEAST;
}

static void advise_lock(struct rep_report *r, uint32_t object) {
    const struct rep_object *o = &r->objects[object];
    double path_ns = (double)contended_path_ns(r, o), share = part(path_ns, (double)r->path.ns), off_share;
    struct rep_advice a = about(r, REP_HOT_LOCK, object);
    bool beside = share < GAIN_LEAST && is_beside_the_path(r, o);
    if ((!rep_is_held(o) && !o->beside_lock) || o->n_contended < WAITS_LEAST || (share < GAIN_LEAST && !beside) ||
        belongs_to_storm(r, object))
        return;
    /* A lock for which threads hardly wait is only a place where time is spent. */
    if ((double)o->wait_ns < GAIN_LEAST * (double)r->path.ns)
        return;
    a.basis = beside ? REP_BASIS_NONE : REP_BASIS_PATH;
    a.gain_ns = beside ? 0 : path_ns;
    a.figure = beside ? REP_SECTION_SHARE : "critical_path_share";
    a.unit = REP_SHARE;
    a.value = beside ? part((double)o->section_ns, (double)rep_active_ns(&r->times)) : share;
    a.site = most_held_site(detail_of(r, object));
    if (part((double)o->poll_ns, (double)r->times.cpu_ns) > SPIN_LEAST ||
        (o->type == SBT_TRACE_SPIN && o->wait_ns > o->hold_ns)) {
        a.cause = REP_FALSE_SPIN;
        a.figure = "spin_ns";
        a.unit = REP_NS;
        a.value = o->type == SBT_TRACE_SPIN ? (double)o->wait_ns : (double)o->poll_ns;
    } else if (held_over_io(r, object, &off_share)) {
        a.cause = REP_LOCK_OVER_IO;
        a.figure = "hold_off_cpu_share";
        a.value = off_share;
    } else if (in_convoys(r, object)) {
        const struct rep_convoys *c = &detail_of(r, object)->convoys;
        a.cause = REP_CONVOY;
        a.figure = "handover_by_hold";
        a.unit = REP_RATIO;
        a.value = part((double)c->handover_ns, (double)(c->held_ns > 0 ? c->held_ns : 1));
        a.gain_ns = beside ? 0 : (double)o->path.wakeup_ns;
    }
    advise(r, a);
}

/* Polled locks with waits that are not on the path still burn processor time. */
static void advise_polling(struct rep_report *r, uint32_t object) {
    const struct rep_object *o = &r->objects[object];
    struct rep_advice a = about(r, REP_FALSE_SPIN, object);
    for (unsigned i = 0; i < r->n_advice; i++)
        if (r->advice[i].object == object)
            return;
    bool counted = r->info.profile && o->n_failed >= FAILED_LEAST && o->n_failed > 10 * o->n;
    if (!counted && part((double)o->poll_ns, (double)r->times.cpu_ns) < SPIN_LEAST)
        return;
    a.basis = REP_BASIS_NONE;
    a.figure = "spin_ns";
    a.unit = REP_NS;
    a.value = (double)o->poll_ns;
    if (counted) { /* of calls that are only counted the times are not known */
        a.figure = "failed_trylocks";
        a.unit = REP_COUNT;
        a.value = (double)o->n_failed;
    }
    advise(r, a);
}

/* ---- conditions ---- */

static void advise_cond(struct rep_report *r, uint32_t object) {
    const struct rep_object *o = &r->objects[object];
    uint64_t futile = o->n_futile_broadcast + o->n_futile_signal;
    uint64_t woken = o->n_woken_by_broadcast + o->n_woken_by_signal;
    bool storm = o->n_futile_broadcast >= o->n_futile_signal;
    struct rep_advice a = about(r, storm ? REP_BROADCAST_STORM : REP_FUTILE_WAKEUPS, object);
    if (o->type != SBT_TRACE_COND || o->turns || woken < 8 || part((double)futile, (double)woken) < FUTILE_LEAST)
        return;
    double path_ns = (double)rep_path_of(o);
    if (o->mutex != REP_NONE) {
        path_ns += (double)rep_path_of(&r->objects[o->mutex]);
        a.objects[a.n_objects++] = o->mutex;
    }
    double wait_ns = o->mutex != REP_NONE ? (double)r->objects[o->mutex].wait_ns : 0;
    double in_vain = part((double)futile, (double)woken); /* a few wake-ups in vain are not all of the path's part */
    if (part(in_vain * path_ns, (double)r->path.ns) < GAIN_LEAST &&
        part(in_vain * wait_ns, (double)r->times.life_ns) < STORM_LEAST)
        return;
    a.basis = REP_BASIS_PATH;
    a.gain_ns = path_ns;
    a.figure = "futile_wakeups";
    a.unit = REP_COUNT;
    a.value = (double)futile;
    advise(r, a);
}

/* ---- barriers ---- */

static uint32_t last_most_often(const struct rep_barrier *b) {
    uint32_t thread = REP_NONE;
    uint64_t most = 0;
    for (uint32_t i = 0; i < b->n_threads; i++)
        if (b->threads[i].n_last > most) {
            most = b->threads[i].n_last;
            thread = b->threads[i].thread;
        }
    return thread;
}

/* Did threads come late in a few generations only because they were off the processor? */
static bool stalled(const struct rep_barrier *b) {
    return b->n_stalled == 1 || (double)b->n_stalled <= STALLS_MOST * (double)b->n_generations;
}

static void advise_stall(struct rep_report *r, const struct rep_barrier *b) {
    struct rep_advice a = about(r, REP_BARRIER_STALL, b->object);
    a.figure = "stalled_generations";
    a.unit = REP_COUNT;
    a.value = (double)b->n_stalled;
    a.thread = b->stalled_thread;
    advise(r, a);
}

static void advise_barrier(struct rep_report *r, const struct rep_barrier *b) {
    struct rep_advice a = about(r, REP_BARRIER_IMBALANCE, b->object);
    double whole = (double)r->path.ns;
    if (b->n_generations == 0)
        return;
    a.basis = REP_BASIS_PATH;
    bool few = stalled(b);
    a.gain_ns = (double)(b->balance_ns - (few ? b->stalled_ns : 0));
    a.figure = "imbalance_share";
    a.unit = REP_SHARE;
    a.value = part((double)(b->imbalance.ns - (few ? b->stalled_imbalance_ns : 0)), whole);
    a.thread = last_most_often(b);
    if (part(a.gain_ns, whole) >= GAIN_LEAST)
        advise(r, a);
    if (few && part((double)b->stalled_ns, whole) >= GAIN_LEAST)
        advise_stall(r, b);
    a.cause = REP_BARRIER_RELEASE;
    a.gain_ns = (double)rep_path_of(&r->objects[b->object]);
    a.figure = "median_release_ns";
    a.unit = REP_NS;
    a.value = rep_histogram_quantile(&b->release, 0.5);
    a.thread = REP_NONE;
    if (part(a.gain_ns, whole) >= GAIN_LEAST)
        advise(r, a);
}

/* ---- the program as a whole ---- */

static bool is_advised(const struct rep_report *r, uint32_t object) {
    for (unsigned i = 0; i < r->n_advice; i++)
        if (r->advice[i].object == object)
            return true;
    return false;
}

/*
 * So many locks were taken of those that were made at one place that the calls themselves cost time, and hardly one
 * waited. What the calls took in a trace is the recorder's time for the most part, or that of a thread that lost its
 * processor in one; so they are counted, and taken for REP_CALL_NS each.
 */
static void advise_many_locks(struct rep_report *r) {
    const struct rep_group *most = NULL;
    uint32_t number = 0;
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (rep_is_lock_type(r->groups[i].type) && (most == NULL || r->groups[i].n > most->n)) {
            most = &r->groups[i];
            number = i;
        }
    if (most == NULL || most->n_contended * 20 > most->n || most->n < 1000)
        return;
    double calls_ns = 2.0 * REP_CALL_NS * (double)(most->n + r->rest.n), work_ns = (double)r->times.cpu_ns;
    double share = part(calls_ns, r->info.profile ? work_ns : work_ns + calls_ns); /* a profile's calls are work */
    if (share < CALLS_LEAST)
        return;
    struct rep_advice a = about(r, REP_MANY_LOCKS, REP_NONE);
    for (uint32_t i = 0; i < r->info.n_objects && a.object == REP_NONE; i++)
        if (r->objects[i].group == number)
            a = about(r, REP_MANY_LOCKS, i);
    if (most->n_objects == 1 && is_advised(r, a.object)) /* threads wait for it: what it takes to lock it is less */
        return;
    a.basis = REP_BASIS_COUNTED;
    a.gain_ns = part(calls_ns, work_ns) * (double)(r->path.work_ns + r->path.held_ns);
    a.gain_ns = a.gain_ns < calls_ns ? a.gain_ns : calls_ns;
    a.figure = "calls_share";
    a.unit = REP_SHARE;
    a.value = share;
    advise(r, a);
}

/* The path has no hold of it: what its threads run meanwhile is work like any other. So nothing is known of a gain. */
static void advise_interpreter(struct rep_report *r) {
    struct rep_advice a = about(r, REP_INTERPRETER_LOCK, REP_NONE);
    uint64_t waited_ns = 0;
    for (uint32_t i = 0; i < r->info.n_objects; i++) {
        const struct rep_object *o = &r->objects[i];
        if (!o->turns)
            continue;
        waited_ns += o->wait_ns;
        if (a.object == REP_NONE || o->wait_ns > r->objects[a.object].wait_ns)
            a.object = i;
    }
    a.value = part((double)waited_ns, (double)r->times.life_ns);
    if (a.object == REP_NONE || a.value < TURNS_LEAST)
        return;
    a.group = r->objects[a.object].group;
    a.objects[a.n_objects++] = a.object;
    a.figure = "waiting_share";
    a.unit = REP_SHARE;
    advise(r, a);
}

static double idle_share(const struct rep_report *r) {
    return part((double)r->times.idle_ns, (double)r->times.life_ns);
}

/* Do threads that this one has started end most of its waits of which it is known what ended them? */
static bool is_woken_by_its_own(const struct rep_report *r, uint32_t thread) {
    uint64_t own_ns = 0, all_ns = 0;
    for (size_t i = 0; i < r->n_pairs; i++) {
        const struct rep_pair *p = &r->pairs[i];
        bool counts = p->kind == REP_COND || p->kind == REP_SEM || p->kind == REP_FUTEX;
        if (p->waiter != thread || p->holder >= r->info.n_threads || !counts)
            continue;
        all_ns += p->sum.ns;
        own_ns += r->threads[p->holder].creator == thread ? p->sum.ns : 0;
    }
    return part((double)own_ns, (double)all_ns) > MOSTLY;
}

/* A thread with most of the idle time that does not wait for work, but for what threads do that it has started. */
static uint32_t waits_for_results(const struct rep_report *r) {
    for (uint32_t i = 0; i < r->info.n_threads; i++)
        if (part((double)r->threads[i].times.idle_ns, (double)r->times.idle_ns) > MOSTLY)
            return is_woken_by_its_own(r, i) ? i : REP_NONE;
    return REP_NONE;
}

static void advise_idle(struct rep_report *r) {
    uint32_t most = REP_NONE;
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        if (r->objects[i].idle_ns > 0 && (most == REP_NONE || r->objects[i].idle_ns > r->objects[most].idle_ns))
            most = i;
    if (most == REP_NONE || idle_share(r) < IDLE_LEAST)
        return;
    struct rep_advice a = about(r, REP_IDLE, most);
    a.thread = waits_for_results(r);
    a.figure = "idle_share";
    a.unit = REP_SHARE;
    a.value = idle_share(r);
    advise(r, a);
}

static double off_cpu_share(const struct rep_report *r) {
    return part((double)r->path.off_cpu_ns, (double)r->path.ns);
}

static void advise_off_cpu(struct rep_report *r) {
    struct rep_advice a = about(r, REP_OFF_CPU, REP_NONE);
    a.figure = "critical_path_share";
    a.unit = REP_SHARE;
    a.value = off_cpu_share(r);
    a.thread = 0;
    for (uint32_t i = 1; i < r->info.n_threads; i++)
        if (r->threads[i].path_off_ns > r->threads[a.thread].path_off_ns)
            a.thread = i;
    if (a.value >= 0.3)
        advise(r, a);
}

/* Neither has a gain that is known, so the larger share comes first. */
static void advise_waste(struct rep_report *r) {
    bool idle_first = idle_share(r) >= off_cpu_share(r);
    if (idle_first)
        advise_idle(r);
    advise_off_cpu(r);
    if (!idle_first)
        advise_idle(r);
}

/* In the mean. A program that starts a thread for each task has many, and few at a time. */
static double threads_at_a_time(const struct rep_report *r) {
    return part((double)r->times.life_ns, (double)r->wall_ns);
}

/* Twice as many as run at a time, and one: while some wait for locks, others run. And fewer than there are. */
unsigned rep_fewer_threads(const struct rep_report *r) {
    double few = ceil(2 * part((double)r->times.cpu_ns, (double)r->wall_ns)) + 1;
    return (unsigned)fmax(1, fmin(few, ceil(threads_at_a_time(r)) - 1));
}

static void advise_program(struct rep_report *r) {
    double parallelism = part((double)r->times.cpu_ns, (double)r->wall_ns);
    struct rep_advice a = about(r, REP_TOO_MANY_THREADS, REP_NONE);
    a.figure = "threads_by_parallelism";
    a.unit = REP_RATIO;
    a.value = part(r->n_live, parallelism);
    double contended = part((double)rep_contention_ns(&r->times), (double)r->times.life_ns);
    if (r->n_live >= 4 && contended > 0.3 && parallelism >= 1 && threads_at_a_time(r) >= 3 * parallelism)
        advise(r, a);
    a.cause = REP_SERIAL;
    a.figure = "critical_path_share";
    a.unit = REP_SHARE;
    a.value = 0;
    for (uint32_t i = 0; i < r->info.n_threads; i++)
        if (part((double)r->threads[i].path_ns, (double)r->path.ns) > a.value) {
            a.value = part((double)r->threads[i].path_ns, (double)r->path.ns);
            a.thread = i;
        }
    bool guessed = r->info.completed && (r->n_guessed > 1 || !r->info.cpu_is_known) && a.thread != REP_NONE &&
                   part((double)r->threads[a.thread].guessed_ns, (double)r->threads[a.thread].path_ns) >= MOSTLY;
    if (r->n_live > 1 && !guessed && a.value >= SERIAL_LEAST &&
        part((double)r->path.work_ns, (double)r->path.ns) >= MOSTLY)
        advise(r, a);
}

static void put_first(struct rep_report *r, const struct rep_advice *a) {
    if (r->n_advice == REP_MOST_ADVICE)
        r->n_advice--;
    for (unsigned i = r->n_advice++; i > 0; i--)
        r->advice[i] = r->advice[i - 1];
    r->advice[0] = *a;
}

static void advise_order(struct rep_report *r) {
    if (r->n_circles == 0)
        return;
    const struct rep_circle *c = &r->circles[0];
    struct rep_advice a = about(r, REP_LOCK_ORDER, c->order[0]->held);
    a.n_objects = 0;
    for (unsigned i = 0; i < c->n; i++)
        a.objects[a.n_objects++] = c->order[i]->held;
    a.figure = "locks_in_circle";
    a.unit = REP_COUNT;
    a.value = c->n;
    a.circle = c;
    put_first(r, &a);
}

static void note_object(struct rep_advice *a, uint32_t object) {
    for (unsigned i = 0; i < a->n_objects; i++)
        if (a->objects[i] == object)
            return;
    if (object != REP_NONE && a->n_objects < REP_MOST_LINKS)
        a->objects[a->n_objects++] = object;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/*
 * Did each thread that had not ended wait for another one, and for long? A wait for the outside is none of these. The
 * threads are stuck since the last one that ended did: one that ends the process leaves idle threads behind, which it
 * could have woken. When a killed program's threads began to wait is known, and how long they waited only if its death
 * was seen.
 */
static void advise_deadlock(struct rep_report *r) {
    struct rep_advice a = about(r, REP_DEADLOCK, REP_NONE);
    uint64_t least_ns = UINT64_MAX, alone_ns = UINT64_MAX;
    for (uint32_t i = 0; i < r->info.n_threads; i++) {
        const struct rep_unended *u = &r->threads[i].unended;
        if (!r->threads[i].still_runs) {
            alone_ns = earlier(alone_ns, r->wall_ns - earlier(r->threads[i].end_ns, r->wall_ns));
            continue;
        }
        note_object(&a, u->object);
        if (u->ns < least_ns) { /* 0: the thread is in no such wait */
            least_ns = u->ns;
            a.thread = i;
            a.object = u->object;
            a.site = u->site;
        }
    }
    least_ns = earlier(least_ns, alone_ns);
    if (a.thread == REP_NONE || least_ns < STUCK_LEAST_NS)
        return;
    if (a.object != REP_NONE)
        a.group = r->objects[a.object].group;
    a.figure = "stuck_ns";
    a.unit = REP_NS;
    a.value = (double)least_ns;
    put_first(r, &a);
}

void rep_advise(struct rep_report *r) {
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        advise_cond(r, i);
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        advise_lock(r, i);
    for (uint32_t i = 0; i < r->info.n_objects; i++)
        advise_polling(r, i);
    for (uint32_t i = 0; i < r->n_details; i++)
        if (r->details[i].barrier != NULL)
            advise_barrier(r, r->details[i].barrier);
    advise_many_locks(r);
    advise_interpreter(r);
    advise_waste(r);
    advise_program(r);
    advise_order(r);
    advise_deadlock(r);
}

const char *rep_cause_name(unsigned cause) {
    static const char *const names[REP_N_CAUSES] = {[REP_DEADLOCK] = "deadlock",
                                                    [REP_LOCK_ORDER] = "lock-order",
                                                    [REP_HOT_LOCK] = "hot-lock",
                                                    [REP_CONVOY] = "convoy",
                                                    [REP_LOCK_OVER_IO] = "lock-over-io",
                                                    [REP_BARRIER_IMBALANCE] = "barrier-imbalance",
                                                    [REP_BARRIER_RELEASE] = "barrier-release",
                                                    [REP_BARRIER_STALL] = "barrier-stall",
                                                    [REP_BROADCAST_STORM] = "broadcast-storm",
                                                    [REP_FUTILE_WAKEUPS] = "futile-wakeups",
                                                    [REP_FALSE_SPIN] = "false-spin",
                                                    [REP_MANY_LOCKS] = "many-locks",
                                                    [REP_INTERPRETER_LOCK] = "interpreter-lock",
                                                    [REP_IDLE] = "idle",
                                                    [REP_OFF_CPU] = "off-cpu",
                                                    [REP_TOO_MANY_THREADS] = "too-many-threads",
                                                    [REP_SERIAL] = "serial"};
    return cause < REP_N_CAUSES ? names[cause] : NULL;
}

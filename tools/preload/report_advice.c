/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The sentences of advice. Each names its object, the figure that it rests on, and what would help. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "report_print.h"
#include "table.h"

/* Per cent of the threads' active time in a lock's sections: by RCL's authors, or as measured. */
static double beats_posix = 15, beats_all = 60;
static bool is_measured;

struct writer {
    const struct report_page *page;
    const struct rep_advice *advice;
    const struct rep_object *object; /* NULL: none */
    const struct rep_detail *detail; /* NULL: none */
    const char *name;
};

typedef char *sentence(const struct writer *w);

static double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

static bool read_share(const char **text, char end, double *share) {
    char *after;
    bool never = strncmp(*text, "never", strlen("never")) == 0;
    *share = never ? INFINITY : strtod(*text, &after);
    if (never)
        after = (char *)(uintptr_t)*text + strlen("never");
    bool legal = *after == end && (never || (**text >= '0' && **text <= '9' && *share <= 100));
    *text = after + 1;
    return legal;
}

bool report_delegate_from(const char *shares) {
    is_measured = read_share(&shares, ',', &beats_posix) && read_share(&shares, '\0', &beats_all);
    return is_measured;
}

/* Allocated; empty: it beats none of them. */
static char *what_delegation_beats(double share) {
    if (share <= beats_posix && share <= beats_all)
        return cmd_format("%s", "");
    bool all = share > beats_all;
    return cmd_format(" That is above the %.0f %% from which delegation (RCL) %s %s locks %s.",
                      all ? beats_all : beats_posix, is_measured ? "beats" : "beat", all ? "all other" : "POSIX",
                      is_measured ? "here" : "on 48 cores");
}

static const char *place(const struct writer *w, uint32_t site) {
    return names_place(w->page->names, site);
}

/* The calls of a lock of a run-time library's are within that library: its callers are further out. Allocated. */
static char *callers(const struct writer *w) {
    enum { FRAMES = 4 };
    char *stack = w->detail != NULL ? names_stack(w->page->names, w->detail->longest_stack, FRAMES) : NULL;
    char *text = stack != NULL ? cmd_format(" Its longest wait: %s.", stack)
                               : cmd_format(" Call stacks show its callers (--stacks).");
    free(stack);
    return text;
}

static char *deadlock(const struct writer *w) {
    char stuck[32];
    const struct rep_report *r = w->page->report;
    return cmd_format(
        "Deadlock: when the program ended, all %ju threads that were left had waited for each other, the "
        "last one, %s, for %s. Only a signal's handler could have woken one, or another process that shares an "
        "object. The table of waits that had not ended says what each waits for, and where.",
        (uintmax_t)r->unended.n, names_thread(w->page->names, w->advice->thread), format_ns(stuck, w->advice->value));
}

/*
 * What of its time is no work under the lock: woken threads that do not run yet, and holders that lost the processor.
 * So it is on a machine where others compute. Allocated; empty: nothing of that.
 */
static char *without_a_processor(const struct rep_object *o) {
    const double least = 30;
    double off = o->known_hold_ns > 0
                     ? percent((double)o->known_hold_ns - (double)o->hold_work_ns, (double)o->known_hold_ns)
                     : 0;
    char *woken =
        cmd_format("%s", o->path.wakeup_ns > o->path.held_ns
                             ? " Most of its part of the path is no hold, but the time until a woken thread runs."
                             : "");
    char *lost = off < least
                     ? cmd_format("%s", "")
                     : cmd_format(" For %.1f %% of the holds' time the holder did not run, in few of the holds: most "
                                  "likely others had the processor.",
                                  off);
    char *both =
        woken[0] == '\0' && lost[0] == '\0'
            ? cmd_format("%s", "")
            : cmd_format("%s%s Measure again on a quiet machine, with no more threads than CPUs.", woken, lost);
    free(woken);
    free(lost);
    return both;
}

static char *hot_lock(const struct writer *w) {
    char wait[32], hold[32];
    double share =
        percent(w->object != NULL ? (double)w->object->section_ns : 0, (double)rep_active_ns(&w->page->report->times));
    const char *own = w->object == NULL                    ? ""
                      : w->object->type == SBT_TRACE_SEM   ? ", a semaphore that threads use as a lock,"
                      : w->object->type == SBT_TRACE_FUTEX ? ", a futex that threads use as a lock,"
                                                           : "";
    char *more = own[0] != '\0' ? callers(w) : what_delegation_beats(share), *lost = without_a_processor(w->object);
    char *times = cmd_format(
        "mean hold %s%s, mean wait %s",
        w->object->hold_n > 0 ? format_ns(hold, (double)w->object->hold_ns / (double)w->object->hold_n) : "not known",
        w->object != NULL && rep_holds_waited(w->page->report, w->object) ? " of those that waited" : "",
        format_ns(wait, w->object->n_contended > 0 ? (double)w->object->wait_ns / (double)w->object->n_contended : 0));
    char *where =
        strcmp(w->advice->figure, REP_SECTION_SHARE) == 0
            ? cmd_format("is held or waited for in %.1f %% of the threads' active time (%s). What that costs is not "
                         "known: the thread that ended the program slept for most of the time, so the critical path "
                         "is not that of the threads that use the lock.",
                         share, times)
            : cmd_format("is held or handed over on %.1f %% of the critical path (%s); %.1f %% of the threads' active "
                         "time is in its sections.",
                         100 * w->advice->value, times, share);
    char *text =
        cmd_format("%s%s %s%s%s Split it, or do less while it is held, most of all at %s.%s", w->name, own, where,
                   own[0] == '\0' ? more : "", lost, place(w, w->advice->site), own[0] != '\0' ? more : "");
    free(times);
    free(where);
    free(more);
    free(lost);
    return text;
}

static char *convoy(const struct writer *w) {
    const struct rep_convoys *c = &w->detail->convoys;
    char hold[32], over[32];
    double n = c->n_acquisitions > 0 ? (double)c->n_acquisitions : 1;
    return cmd_format(
        "A convoy of %u threads stands at %s: it is held for %s and then handed over in %s, %.1f times as long. "
        "Waiting by switching, or waiting actively for a moment, makes hand-overs short.",
        c->n_threads, w->name, format_ns(hold, (double)c->held_ns / n), format_ns(over, (double)c->handover_ns / n),
        w->advice->value);
}

static char *lock_over_io(const struct writer *w) {
    char hold[32];
    const struct rep_times *t = &w->page->report->times;
    return cmd_format(
        "%s is held while its thread does not run: %.1f %% of its holds' time (mean hold %s) is input, output or "
        "sleep. Do that without the lock; the place is %s.%s",
        w->name, 100 * w->advice->value,
        format_ns(hold, (double)w->object->hold_ns / (double)(w->object->hold_n > 0 ? w->object->hold_n : 1)),
        place(w, w->advice->site),
        2 * t->no_core_ns > t->off_cpu_ns ? " Or holders lost their cores: for most of the threads' time off the "
                                            "processor the kernel says that they could have run. Measure again on a "
                                            "quiet machine, with no more threads than CPUs."
                                          : "");
}

static char *barrier_imbalance(const struct writer *w) {
    const struct rep_barrier *b = w->detail->barrier;
    uint64_t n_last = 0;
    char mean[32];
    for (uint32_t i = 0; i < b->n_threads; i++)
        if (b->threads[i].thread == w->advice->thread)
            n_last = b->threads[i].n_last;
    return cmd_format(
        "At %s threads arrive at different times: from the first to the last, %s on average, %.1f %% of the "
        "program's time. %s is last in %ju of %ju generations. Share the work more evenly; a faster barrier "
        "would not help.",
        w->name, format_ns(mean, rep_histogram_mean(&b->imbalance)), 100 * w->advice->value,
        names_thread(w->page->names, w->advice->thread), (uintmax_t)n_last, (uintmax_t)b->n_generations);
}

static char *barrier_release(const struct writer *w) {
    const struct rep_barrier *b = w->detail->barrier;
    char median[32], imbalance[32];
    return cmd_format(
        "Threads leave %s late: from the last arrival until the last thread goes on, %s (median of %ju "
        "generations; imbalance: %s). That is the barrier's own cost. Waiting by switching shortens it; more "
        "threads than CPUs lengthen it.",
        w->name, format_ns(median, w->advice->value), (uintmax_t)b->n_generations,
        format_ns(imbalance, rep_histogram_quantile(&b->imbalance, 0.5)));
}

static char *barrier_stall(const struct writer *w) {
    const struct rep_barrier *b = w->detail->barrier;
    char sum[32];
    return cmd_format(
        "In %ju of %ju generations of %s the last thread came late, by %s in all, and was off the processor for most "
        "of that: most of all %s. The machine had no core for it, or it slept. So rarely, that says nothing about "
        "how the work is shared: measure again on a quiet machine.",
        (uintmax_t)b->n_stalled, (uintmax_t)b->n_generations, w->name, format_ns(sum, (double)b->stalled_ns),
        names_thread(w->page->names, w->advice->thread));
}

static char *broadcast_storm(const struct writer *w) {
    return cmd_format(
        "%ju broadcasts of %s ended %ju waits, and after %ju of these the thread waited again at once. Signal "
        "one thread for one piece of work, or give threads that wait for different things conditions of their own.",
        (uintmax_t)w->object->n_broadcasts, w->name, (uintmax_t)w->object->n_woken_by_broadcast,
        (uintmax_t)w->object->n_futile_broadcast);
}

static char *futile_wakeups(const struct writer *w) {
    return cmd_format(
        "%s wakes threads in vain: after %ju of %ju signals the thread waited again at once. Signal when what "
        "the thread waits for is true, or use one condition for each thing that is waited for.",
        w->name, (uintmax_t)w->object->n_futile_signal, (uintmax_t)w->object->n_woken_by_signal);
}

static char *lock_order(const struct writer *w) {
    char *text = cmd_format("Locks are taken in different orders; threads may wait for each other for ever:");
    for (unsigned i = 0; i < w->advice->circle->n; i++) {
        const struct rep_order *o = w->advice->circle->order[i];
        char *longer = cmd_format("%s%s %s (%s) and then %s (%s) by %s", text, i > 0 ? ";" : "",
                                  names_object(w->page->names, o->held), place(w, o->held_site),
                                  names_object(w->page->names, o->taken), place(w, o->taken_site),
                                  names_thread(w->page->names, o->thread));
        free(text);
        text = longer;
    }
    char *whole = cmd_format("%s. Take them in one order everywhere.", text);
    free(text);
    return whole;
}

static char *false_spin(const struct writer *w) {
    char burnt[32];
    if (w->advice->unit == REP_COUNT)
        return cmd_format(
            "%s is asked for by trylock again and again: %.0f times in vain, for %ju times that a thread got it. "
            "Wait by a mutex or a condition instead: a thread that sleeps leaves its processor to the lock's "
            "holder.",
            w->name, w->advice->value, (uintmax_t)w->object->n);
    return cmd_format(
        "Threads burn %s of processor time waiting for %s, %s. Wait by a mutex or a condition instead: a thread "
        "that sleeps leaves its processor to the lock's holder.",
        format_ns(burnt, w->advice->value), w->name,
        w->object->type == SBT_TRACE_SPIN && w->object->polls == 0 ? "a spin lock" : "which they try again and again");
}

static char *many_locks(const struct writer *w) {
    const struct rep_group *g = &w->page->report->groups[w->advice->group];
    return cmd_format("Locking and unlocking %ju %s object%s made at %s takes some %.1f %% of the processor time: %ju "
                      "times, at %d ns "
                      "for both, and %.2f %% waited. Take one lock for more work.",
                      (uintmax_t)g->n_objects, sbt_trace_type_name(g->type), g->n_objects == 1 ? "" : "s",
                      place(w, g->made), 100 * w->advice->value, (uintmax_t)(g->n + w->page->report->rest.n),
                      2 * REP_CALL_NS, percent((double)g->n_contended, (double)(g->n + w->page->report->rest.n)));
}

static char *interpreter_lock(const struct writer *w) {
    return cmd_format(
        "Threads wait for CPython's interpreter lock (GIL) for %.1f %% of their time, at %s: Python code of "
        "one thread runs at a time, so more threads do not make it faster. Processes "
        "(multiprocessing) do, and work in calls that give the lock up, as numpy's do; and a "
        "CPython that is built without it.",
        100 * w->advice->value, w->name);
}

static bool may_be_lock(const struct writer *w) {
    return w->object->unclear && !names_is_openmps(w->page->names, w->advice->object);
}

/* The thread has started those that it waits for. */
static char *waits_for_results(const struct writer *w) {
    const struct rep_times *t = &w->page->report->threads[w->advice->thread].times;
    return cmd_format(
        "%s waits for threads that it has started, for %.1f %% of its time, most at %s, and no thread waits "
        "for it meanwhile. That is no contention: the program is as fast as those threads.",
        names_thread(w->page->names, w->advice->thread), percent((double)t->idle_ns, (double)t->life_ns), w->name);
}

static char *idle(const struct writer *w) {
    if (w->advice->thread != REP_NONE)
        return waits_for_results(w);
    return cmd_format(
        "Threads wait for work for %.1f %% of their time, most at %s, and no thread waits for them meanwhile. That "
        "is no contention: no lock makes it faster. Fewer threads would do as well, or give them more work.%s",
        100 * w->advice->value, w->name,
        may_be_lock(w)
            ? " But if that futex is of a lock that parks each thread, as parking_lot, abseil and nsync do, it is "
              "contention."
            : "");
}

/* A thread that waits for a signal, or at a pipe, may wait for threads of its program. The trace does not have that. */
static char *off_cpu(const struct writer *w) {
    const struct rep_report *r = w->page->report;
    const struct rep_times *t = &r->threads[w->advice->thread].times;
    const uint64_t others_ns = r->times.cpu_ns - t->cpu_ns;
    const char *name = names_thread(w->page->names, w->advice->thread);
    const bool had_cores =
        r->threads[w->advice->thread].queued_is_known && 10 * t->no_core_ns < t->off_cpu_ns; /* nearly always */
    const char *what =
        had_cores ? "input, output, or sleep, and hardly for want of a core" : "input, output, sleep, or preemption";
    /* Of the rest no call is known. An OpenMP library may be there, without the functions that the recorder has. A
     * profile has no calls that wait for the outside. */
    const char *known =
        2 * t->outside_ns > t->off_cpu_ns ? "Locks, conditions and the like are not what it waits for there."
        : r->info.profile ? "A profile does not have what it waits for there: subutai record has calls that wait for "
                            "files, other processes and time."
                          : "It waits there in no call that is recorded. A futex call of a library's own "
                            "is none.";
    char worked[32];
    if (r->threads[w->advice->thread].queued_is_known && 2 * t->no_core_ns > t->off_cpu_ns)
        return cmd_format("For %.1f %% of the critical path the thread, mostly %s, is off the processor between calls. "
                          "Of most of that the kernel says that it could have run and had no core: other threads had "
                          "them, of this program or of others. Use no more threads than CPUs.",
                          100 * w->advice->value, name);
    if (2 * others_ns < r->path.off_cpu_ns)
        return cmd_format("For %.1f %% of the critical path the thread, mostly %s, is off the processor between calls: "
                          "%s. %s",
                          100 * w->advice->value, name, what, known);
    return cmd_format(
        "For %.1f %% of the critical path the thread, mostly %s, is off the processor between calls: %s. It may wait "
        "for the others, which work for %s: %sby signals and pipes. %s",
        100 * w->advice->value, name, what, format_ns(worked, (double)others_ns),
        had_cores ? "" : "for a processor that one of them has, or ", known);
}

static char *too_many_threads(const struct writer *w) {
    const struct rep_report *r = w->page->report;
    return cmd_format(
        "%u threads keep %.1f CPUs busy, and wait for locks for %.1f %% of their time. Try fewer, %u for a "
        "start: they should get about as much done, with fewer switches and less memory. With as few as "
        "run at a time CPUs are idle while threads wait.",
        r->n_live, (double)r->times.cpu_ns / (double)(r->wall_ns > 0 ? r->wall_ns : 1),
        percent((double)rep_contention_ns(&r->times), (double)r->times.life_ns), rep_fewer_threads(r));
}

static char *serial(const struct writer *w) {
    return cmd_format(
        "%s is on %.1f %% of the critical path, and works outside of locks for most of it. The program is as fast "
        "as this thread: share out its work.",
        names_thread(w->page->names, w->advice->thread), 100 * w->advice->value);
}

static sentence *const sentences[REP_N_CAUSES] = {[REP_DEADLOCK] = deadlock,
                                                  [REP_LOCK_ORDER] = lock_order,
                                                  [REP_HOT_LOCK] = hot_lock,
                                                  [REP_CONVOY] = convoy,
                                                  [REP_LOCK_OVER_IO] = lock_over_io,
                                                  [REP_BARRIER_IMBALANCE] = barrier_imbalance,
                                                  [REP_BARRIER_RELEASE] = barrier_release,
                                                  [REP_BARRIER_STALL] = barrier_stall,
                                                  [REP_BROADCAST_STORM] = broadcast_storm,
                                                  [REP_FUTILE_WAKEUPS] = futile_wakeups,
                                                  [REP_FALSE_SPIN] = false_spin,
                                                  [REP_MANY_LOCKS] = many_locks,
                                                  [REP_INTERPRETER_LOCK] = interpreter_lock,
                                                  [REP_IDLE] = idle,
                                                  [REP_OFF_CPU] = off_cpu,
                                                  [REP_TOO_MANY_THREADS] = too_many_threads,
                                                  [REP_SERIAL] = serial};

static double section_percent(const struct report_page *page, uint32_t object) {
    const struct rep_report *r = page->report;
    return percent((double)r->objects[object].section_ns, (double)rep_active_ns(&r->times));
}

const char *report_delegated(const struct report_page *page, const struct rep_advice *advice) {
    const struct rep_report *r = page->report;
    for (unsigned i = 0; advice == NULL && i < r->n_advice; i++) {
        const char *symbol = report_delegated(page, &r->advice[i]);
        if (symbol != NULL)
            return symbol;
    }
    if (advice == NULL || advice->object == REP_NONE)
        return NULL;
    bool is_hot = advice->cause == REP_HOT_LOCK && section_percent(page, advice->object) > fmin(beats_posix, beats_all);
    if (!is_hot && advice->cause != REP_CONVOY)
        return NULL;
    return names_delegated(page->names, advice->object);
}

/* What can be tried without a change of the program. */
static char *command_of(const struct writer *w) {
    const char *command = w->page->command, *lock = report_delegated(w->page, w->advice);
    switch (w->advice->cause) {
    case REP_DEADLOCK: /* it says which thread holds what */
        return cmd_format("subutai check -- %s", command);
    case REP_HOT_LOCK:
    case REP_CONVOY:
        if (lock != NULL)
            return cmd_format("subutai compare --engines " REPORT_TRY_ENGINES "," REPORT_TRY_DELEGATED "%s -- %s", lock,
                              command);
        return cmd_format("subutai compare --engines " REPORT_TRY_ENGINES " -- %s", command);
    case REP_BARRIER_RELEASE:
    case REP_BROADCAST_STORM:
    case REP_FUTILE_WAKEUPS:
        return cmd_format("subutai compare --engines " REPORT_TRY_ENGINES " -- %s", command);
    case REP_FALSE_SPIN:
        return w->object->type == SBT_TRACE_SPIN
                   ? cmd_format("subutai compare --engines " REPORT_TRY_ENGINES " -- %s", command)
                   : NULL;
    default:
        return NULL;
    }
}

double report_advice_ratio(const struct report_page *page, const struct rep_advice *advice) {
    double wall = (double)page->report->wall_ns;
    return advice->basis == REP_BASIS_NONE || advice->gain_ns >= wall ? NAN : wall / (wall - advice->gain_ns);
}

char *report_advice_text(const struct report_page *page, const struct rep_advice *advice, char **command) {
    struct writer w = {.page = page, .advice = advice, .name = names_object(page->names, advice->object)};
    if (advice->object != REP_NONE) {
        w.object = &page->report->objects[advice->object];
        w.detail = w.object->detail != REP_NONE ? &page->report->details[w.object->detail] : NULL;
    }
    *command = command_of(&w);
    return sentences[advice->cause](&w);
}

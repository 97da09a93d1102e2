/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Does switching pay? The decision of `--wait auto`, as a pure function: it reads no clock and no state but its own.
 * `--delegate auto` asks it of each mutex, with delegation in the place of switching (engine/direct/delegate_share.h).
 *
 * The program itself is the measure. It makes progress by operations that no way of waiting makes more or fewer of:
 * mutexes that it gets, signals, arrivals at barriers, posts of semaphores (core/thread.h). If switching pays, there
 * are more of them in the same time.
 *
 *  - At rest all threads wait adaptively, on their home threads, and no thread of the library runs. The first sign that
 *    switching might pay is that the program's threads wait often, for waits that are over soon.
 *  - Then there is a trial: windows at home and windows of switching by turns. It ends as soon as the answer is clear,
 *    and after three of each. Switching begins if the program then gets more done by a clear margin. Each of few
 *    threads has a CPU to itself, once the kernel has found one for it; after a window of switching that takes longer
 *    than a window. So the margin is wide for a program that is not crowded.
 *  - Where little gets done at home, a window there would last long, and switching may be ten times as fast. So its
 *    windows are cut short at first. If switching then gets a multiple done that is the answer. Otherwise the trial
 *    begins once more, with whole windows.
 *  - While the threads are switched there is a trial now and then, less and less often; and switching ends when few
 *    threads are switched to, or when the monitor finds that sleeps in the kernel cost more than switches save.
 *  - Beside programs that compute, a program gets little done in a trial, either way. Fewer operations are enough
 *    then if they show a difference that is no chance; and a trial that shows none leaves all as it is.
 *  - Each trial in vain doubles the time until the next. So does switching that soon turns out to cost more: a trial
 *    that went well between is no new beginning.
 */
#ifndef SBT_SWITCH_PAYS_H
#define SBT_SWITCH_PAYS_H

#include <stdbool.h>
#include <stdint.h>

enum sbt_pays_phase {
    SBT_PAYS_REST,     /* waiting adaptively */
    SBT_PAYS_SWITCHED, /* waiting by switching */
    SBT_PAYS_SETTLE,   /* in a trial: the way of waiting has just changed */
    SBT_PAYS_WINDOW    /* in a trial: measuring */
};

/* What happened in windows of one way of waiting. */
struct sbt_pays_sum {
    uint64_t ns, progress, n_switches;
};

struct sbt_pays {
    enum sbt_pays_phase phase;
    bool switches;              /* how threads wait now: by switching? */
    bool holds;                 /* the answer before this trial: did switching pay? */
    bool hurries;               /* the first window of this trial was cut short, and so is the second */
    bool is_patient;            /* this trial has hurried, to no clear answer: its windows are whole */
    uint32_t n_windows;         /* of this trial, so far */
    uint64_t since_ns;          /* when the phase began */
    uint64_t progress;          /* at its beginning */
    uint64_t n_switches;        /* likewise */
    struct sbt_pays_sum sum[2]; /* by `switches` */
    uint64_t next_ns;           /* no trial before */
    uint64_t gap_ns;            /* between the last trial's end and next_ns */
    uint64_t vain_ns;           /* and what that was before the success since then; halved by each that confirms it */
};

/* What the monitor has seen. All three counts only grow. */
struct sbt_pays_seen {
    uint64_t now_ns;
    uint64_t progress;   /* of all threads */
    uint64_t n_switches; /* to fibers on carriers */
    uint32_t n_cpus;     /* that may be used */
    bool crowded;        /* more threads than those wait now and then */
    bool often;          /* at rest: threads have begun to wait often */
    bool costly;         /* sleeps in the kernel cost more than switches save */
    bool by_turns;       /* for tests: change at each call */
    uint32_t least_part; /* a trial is in vain if fewer of a thousand operations by switching were switches */
    bool never_idle;     /* few switches do not end it: the caller has another rule, `costly` */
    uint32_t lacks;      /* thousandths of the CPUs' time, if others have more than half of it (switch/share.h) */
};

/*
 * The next step. The result is how threads are to wait from now on: true, by switching. All-zero is the beginning.
 * *p->next_ns says when a trial may begin.
 */
bool sbt_pays_step(struct sbt_pays *p, const struct sbt_pays_seen *seen);

/* A trial that is under way says nothing any more: all is as it was before it. The result is as sbt_pays_step's. */
bool sbt_pays_abandon(struct sbt_pays *p, uint64_t now_ns);

/* Is a trial under way? Then the next step is due in a millisecond; otherwise when something has happened. */
bool sbt_pays_is_in_trial(const struct sbt_pays *p);

/* After so many waits the clock is read: were n waits in that time often enough? The sign that begins a trial. */
#define SBT_PAYS_WAITS 1024
bool sbt_pays_is_often(uint64_t n, uint64_t ns, uint32_t n_cpus);

/*
 * Threads tell of their waits now and then: n_tells times in all, by n_tellers different threads. Is it known whether
 * these are more than the CPUs? If not, each thread may not have told yet.
 */
bool sbt_pays_knows_crowd(uint32_t n_tellers, uint64_t n_tells, uint32_t n_cpus);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "switch/pays.h"

/*
 * A switch saves 3 to 5 us of a wait that sleeps or yields. At OFTEN waits a second on each CPU that is between one and
 * three parts in a hundred: less is not worth a trial.
 */
#define OFTEN 5000u
#define SECOND 1000000000u

#define TELLS_EACH 8 /* for each CPU, until threads that have not told are taken for threads that do not wait */

#define SETTLE_NS 1500000u      /* until all threads wait in the new way */
#define WINDOW_NS 6000000u      /* length of a window, */
#define WINDOW_MOST_NS 50000000 /* and if it takes longer to see that much progress: */
#define PROGRESS_ENOUGH 500u
#define WINDOWS 6

/*
 * A thread of a program that lacks CPU time may have to wait so long for a CPU until it learns that the way of waiting
 * has changed. At a barrier all others wait for it.
 */
#define SETTLE_LACKING_NS 50000000u
#define WINDOW_LACKING_NS 100000000u

/*
 * A program that lacks CPU time may make a tenth of that progress in all windows. So much is enough then for a gain or
 * a loss by that factor. Threads tell of it by 32.
 */
#define PROGRESS_FEW 96u
#define FACTOR 3

/* A window of waiting adaptively that is known to be a waste of time, by that factor, lasts no longer. */
#define WINDOW_WASTE_NS 2000000u
#define FACTOR_WASTE 10

/* In hundredths: progress by switching, where waiting adaptively makes 100. */
#define CLEARLY_MORE 140u /* enough to end a trial early */
#define CLEARLY_LESS 85u
#define MORE 108u       /* enough to begin with switching, */
#define SAME 98u        /* and to go on with it */
#define SPARE_SAME 120u /* the same with a CPU for each thread that waits; CLEARLY_MORE begins it then */

#define GAP_FIRST_NS 250000000u /* between trials; longer each time the answer is the same */
#define GAP_MOST_NS 64000000000u
#define IDLE_NS 100000000u /* so long switching goes on although there is little to switch */

bool sbt_pays_is_often(uint64_t n, uint64_t ns, uint32_t n_cpus) {
    return ns <= n * SECOND / ((uint64_t)OFTEN * n_cpus);
}

bool sbt_pays_knows_crowd(uint32_t n_tellers, uint64_t n_tells, uint32_t n_cpus) {
    return n_tellers > n_cpus || n_tells >= (uint64_t)TELLS_EACH * n_cpus;
}

bool sbt_pays_is_in_trial(const struct sbt_pays *p) {
    return p->phase == SBT_PAYS_SETTLE || p->phase == SBT_PAYS_WINDOW;
}

static void begin(struct sbt_pays *p, enum sbt_pays_phase phase, const struct sbt_pays_seen *seen) {
    p->phase = phase;
    p->since_ns = seen->now_ns;
    p->progress = seen->progress;
    p->n_switches = seen->n_switches;
}

/* The first window is of the present way: it needs no time to settle. */
static void begin_trial(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    p->holds = p->switches;
    p->hurries = p->is_patient = false;
    p->n_windows = 0;
    p->sum[0] = p->sum[1] = (struct sbt_pays_sum){0, 0, 0};
    begin(p, SBT_PAYS_WINDOW, seen);
}

/* Two windows that were cut short have shown nothing. */
static void begin_again(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    begin_trial(p, seen);
    p->holds = p->switches = false;
    p->is_patient = true;
    begin(p, SBT_PAYS_SETTLE, seen);
}

static void end_trial(struct sbt_pays *p, const struct sbt_pays_seen *seen, bool pays) {
    p->vain_ns = !pays ? 0 : p->holds ? p->vain_ns / 2 : p->gap_ns;
    if (pays != p->holds || p->gap_ns == 0)
        p->gap_ns = GAP_FIRST_NS;
    else if (p->gap_ns < GAP_MOST_NS)
        p->gap_ns *= 2;
    p->next_ns = seen->now_ns + p->gap_ns;
    p->switches = pays;
    begin(p, pays ? SBT_PAYS_SWITCHED : SBT_PAYS_REST, seen);
}

#define UNKNOWN UINT64_MAX /* too little to say anything */

/* Progress by switching in hundredths of progress at home, in the same time. */
static uint64_t hundredths(const struct sbt_pays *p, bool few_are_enough) {
    const struct sbt_pays_sum *home = &p->sum[0], *switched = &p->sum[1];
    double at_home = (double)home->progress / (double)home->ns,
           by_switching = (double)switched->progress / (double)switched->ns;
    bool few = home->progress + switched->progress < PROGRESS_ENOUGH;
    if (few && (!few_are_enough || home->progress + switched->progress < PROGRESS_FEW ||
                (by_switching < FACTOR * at_home && at_home < FACTOR * by_switching)))
        return UNKNOWN;
    if (at_home <= 0)
        return CLEARLY_MORE;
    return by_switching >= 1000 * at_home ? 100000 : (uint64_t)(100 * by_switching / at_home);
}

/* A window of switching in which there was hardly a switch may have been a better one by chance. */
static bool is_by_chance(const struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    return 1000 * p->sum[1].n_switches < seen->least_part * p->sum[1].progress;
}

static uint64_t enough(const struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    if (p->holds)
        return seen->crowded ? SAME : SPARE_SAME;
    return seen->crowded ? MORE : CLEARLY_MORE;
}

/* The answer of a trial. Where it shows nothing a program that lacks CPU time goes on as it was, others adaptively. */
static bool is_gain(const struct sbt_pays *p, const struct sbt_pays_seen *seen, uint64_t pays) {
    if (pays == UNKNOWN)
        return seen->lacks != 0 && p->holds;
    return pays >= enough(p, seen) && !is_by_chance(p, seen);
}

/* A window has ended. */
static void judge(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    struct sbt_pays_sum *sum = &p->sum[p->switches];
    sum->ns += seen->now_ns - p->since_ns;
    sum->progress += seen->progress - p->progress;
    sum->n_switches += seen->n_switches - p->n_switches;
    p->n_windows++;
    if (p->n_windows % 2 == 0) {
        uint64_t pays = hundredths(p, seen->lacks != 0);
        if (p->hurries && (pays == UNKNOWN || pays < 100 * FACTOR || is_by_chance(p, seen))) {
            begin_again(p, seen);
            return;
        }
        bool is_unclear = pays == UNKNOWN ? seen->lacks != 0 : pays >= CLEARLY_LESS && pays < CLEARLY_MORE;
        if (!is_unclear || p->n_windows == WINDOWS) {
            end_trial(p, seen, is_gain(p, seen, pays));
            return;
        }
    }
    p->switches = !p->switches;
    begin(p, SBT_PAYS_SETTLE, seen);
}

/* As much may have been done in a window as threads have told of, or as they tell of at once by chance. */
static uint64_t at_most(uint64_t progress) {
    return progress < PROGRESS_FEW ? PROGRESS_FEW : progress;
}

/* Has switching got so many times as much done, in a window before this one at home, whatever threads tell of it? */
static bool is_less(const struct sbt_pays *p, uint64_t ns, uint64_t progress, unsigned factor) {
    const struct sbt_pays_sum *switched = &p->sum[1];
    return p->holds && !p->switches && switched->progress >= PROGRESS_ENOUGH &&
           factor * (double)at_most(progress) / (double)ns < (double)switched->progress / (double)switched->ns;
}

/*
 * Is this window of waiting adaptively cut short? The first one is, at little progress, and what follows must show
 * that switching gets a multiple done. A later one is if a window of switching before it shows that already, of
 * however little progress.
 */
static bool is_cut(const struct sbt_pays *p, uint64_t ns, uint64_t progress) {
    if (p->switches || p->is_patient)
        return false;
    return p->n_windows == 0 ? progress >= PROGRESS_FEW : is_less(p, ns, progress, FACTOR);
}

static bool is_full(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    uint64_t ns = seen->now_ns - p->since_ns, progress = seen->progress - p->progress;
    if (ns >= (seen->lacks != 0 ? WINDOW_LACKING_NS : WINDOW_MOST_NS))
        return true;
    if (ns < WINDOW_NS)
        return ns >= WINDOW_WASTE_NS && seen->lacks == 0 && is_less(p, ns, progress, FACTOR_WASTE);
    if (progress >= PROGRESS_ENOUGH || p->hurries)
        return true;
    bool cut = seen->lacks == 0 && is_cut(p, ns, progress);
    p->hurries = cut && p->n_windows == 0;
    return cut;
}

/* Are there few switches? Then threads compute, and are better off where the kernel runs them. */
static bool is_idle(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    uint64_t ns = seen->now_ns - p->since_ns, n = seen->n_switches - p->n_switches;
    if (seen->never_idle || ns < IDLE_NS)
        return false;
    p->since_ns = seen->now_ns;
    p->n_switches = seen->n_switches;
    return n < (uint64_t)OFTEN * seen->n_cpus * (ns / 1000) / (SECOND / 1000) * (1000 - seen->lacks) / 1000;
}

static void go_to_rest(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    p->switches = false;
    begin(p, SBT_PAYS_REST, seen);
}

bool sbt_pays_abandon(struct sbt_pays *p, uint64_t now_ns) {
    if (sbt_pays_is_in_trial(p)) {
        p->switches = p->holds;
        p->phase = p->holds ? SBT_PAYS_SWITCHED : SBT_PAYS_REST;
        p->since_ns = now_ns;
    }
    return p->switches;
}

bool sbt_pays_step(struct sbt_pays *p, const struct sbt_pays_seen *seen) {
    if (seen->by_turns)
        return p->switches = !p->switches;
    if (seen->costly && p->switches) {
        p->holds = false; /* a trial in vain, whatever came before */
        p->gap_ns = p->gap_ns > p->vain_ns ? p->gap_ns : p->vain_ns;
        end_trial(p, seen, false);
        return false;
    }
    switch (p->phase) {
    case SBT_PAYS_REST:
        if (seen->often && seen->now_ns >= p->next_ns)
            begin_trial(p, seen);
        break;
    case SBT_PAYS_SWITCHED:
        if (is_idle(p, seen))
            go_to_rest(p, seen);
        else if (seen->now_ns >= p->next_ns)
            begin_trial(p, seen);
        break;
    case SBT_PAYS_SETTLE:
        if (seen->now_ns - p->since_ns >= (seen->lacks != 0 ? SETTLE_LACKING_NS : SETTLE_NS))
            begin(p, SBT_PAYS_WINDOW, seen);
        break;
    case SBT_PAYS_WINDOW:
        if (is_full(p, seen))
            judge(p, seen);
        break;
    }
    return p->switches;
}

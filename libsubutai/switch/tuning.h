/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The numbers by which switch/ decides when to look, to sleep, to wake, and to send a fiber to its home thread. None of
 * them changes what a program computes. docs/tuning.md says what was measured for each.
 *
 * The model test compiles the same sources with its own tuning.h, which stands earlier in the include path. There a
 * search lasts for a few looks, so that a walk reaches every decision within a short schedule.
 */
#ifndef SBT_SWITCH_TUNING_H
#define SBT_SWITCH_TUNING_H

/* An idle carrier searches: CPU time, and cache lines of the busy carriers, against the latency of a wake-up. */
#define SEARCH_NS 30000    /* length of a search before the carrier sleeps */
#define LOOKS_PER_CLOCK 8  /* looks between two readings of the clock */
#define LOOK_GAP_PAUSES 24 /* CPU pauses between two looks */
#define PATIENCE 32        /* looks without progress, times fibers queued, before it takes from another carrier */
#define VAIN_NS 10000      /* a find is in vain if the fiber waits again within this time */
#define VAIN_MANY 4        /* finds in vain in a row after which a carrier sleeps at once and is seldom woken */

/* A carrier wakes an idle one for a fiber: a system call and a second core, against the latency of that fiber. */
#define SOON_NS 10000         /* a wake-up was for nothing if the waker waits within this CPU time */
#define SKIP_MOST 16384       /* occasions to wake that are skipped after such wake-ups, at most */
#define PREFERRED_MOST 64     /* woken fibers in a row that go before fibers that only yielded */
#define FRESH_MOST 16         /* fibers in a row that have got something done, before one that yields in vain */
#define POPS_PER_COUNT 256    /* fibers taken between two counts of sleeps in the kernel: a system call each */
#define POPS_PER_SYS_YIELD 64 /* fibers taken, after which a fiber that yields also yields to the kernel, once */
#define BATCH_MOST 64 /* fibers in a row that run in their wakers' places, or first, while others are runnable */

/* The count of runnable threads is a word that all carriers write: its cache line against a count that is off. */
#define PARKED_MOST 16 /* parked fibers of a carrier before it takes them off the count, */
#define PARKED_FEW 2   /* and with an empty run queue, when the running fiber may run for long */

/*
 * The lock of a run queue is its carrier's own: a heavy fence for each visit against a locked operation a switch. The
 * fence interrupts all CPUs that run threads of the process.
 */
#define OWN_AFTER 64         /* entries of the carrier under the lock before it owns it, the first time; */
#define OWN_AFTER_MOST 16384 /* twice as many each time that a visitor came soon, and at most so many */
#define OWN_SOON_US 500      /* a visitor came soon if the lock was owned for less than this for each usable CPU; */
#define OWN_SOON_IN_ALL_US (OWN_SOON_US * sbt_usable_cpus())
#define OWN_REST_CPU_US 1000 /* from a visit until it is owned again, at least, for each CPU */
#define OWN_REST_US (OWN_REST_CPU_US * sbt_usable_cpus())
#define OWN_LOOKS 200    /* of a visitor, before it sleeps between them: the carrier was preempted in a section; */
#define OWN_GAP_NS 50000 /* and for so long */

/* A fiber waits in the kernel on its home thread, where the kernel can move it to an idle core. */
#define SPREAD_WAITS 64         /* waits there of a fiber that has shared a core again and again */
#define PINNED_WAITS_FIRST 64   /* waits there of a fiber that was found asleep on its carrier, the first time; */
#define PINNED_WAITS_MOST 65536 /* twice as many each further time, and at most so many */

/* The monitor: its own CPU time against the time for which a carrier that is held up delays other fibers. */
#define TICK_NS 2000000       /* between two looks */
#define TRIAL_TICK_NS 1000000 /* the same, while a trial is under way whether switching pays */
#define QUIET_TICKS 10 /* ticks without a fiber that becomes runnable, before the monitor sleeps until there is one */
#define SHORT_RUNS 200 /* fibers that a carrier takes in a tick if each runs for less than 10 us */
#define ALONE_NS 20000000u /* a program has one thread, before the monitor leaves it, if it was never switched */

/* Whether switching pays is counted in switches, each of which saves 3 to 5 us. */
#define COST_OF_SLEEPER 500             /* of a fiber found asleep: it has kept its carrier for up to a tick */
#define COST_OF_SLEEP 8                 /* of one sleep in the kernel on a carrier */
#define COST_MANY (8 * COST_OF_SLEEPER) /* costs from which on the monitor weighs them against the switches */
#define MEMORY_TICKS 64                 /* ticks after which older counts weigh half */
#define ALL_PINNED_FIRST_NS 250000000u  /* how long all fibers wait on their home threads, the first time; */
#define ALL_PINNED_MOST_NS 64000000000u /* twice as long each time that proved too short, and at most so long */

/* A recall looks again until the fiber has left its carrier, for 20 ms in all. */
#define RECALL_LOOKS 200
#define RECALL_GAP_NS 100000 /* between two looks */

/* The program's first handler, or first change of a mask, waits until idle carriers block all signals. */
#define RECEIVE_GAP_NS 20000 /* between two looks */

/* The end of switching waits until all fibers are on their home threads. */
#define END_NS 5000000000u /* after that it gives up: the call that needs it fails with EAGAIN */
#define END_GAP_NS 100000  /* between two looks, each of which recalls every fiber that is still away */

#endif

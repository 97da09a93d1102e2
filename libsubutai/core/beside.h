/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Do other programs keep threads that spin from the CPUs? A pure function: it reads no clock and no file.
 *
 * A thread that spins before it sleeps wants its CPU nearly all the time. If such threads get less, the kernel has
 * taken CPUs from them again and again, more threads of the machine are runnable than it has CPUs, and it is so at two
 * looks in a row, then others have that time. Where others are runnable and take no CPU from the process, they have a
 * low priority or run elsewhere, and are no matter: what is lacking then is time in which the program has one thread.
 *
 * If the answer is yes these threads spin for a moment only. They use little CPU time then, so the answer is yes as
 * long as the machine has more runnable threads than CPUs; but now and then it is forgotten, and found again.
 */
#ifndef SBT_CORE_BESIDE_H
#define SBT_CORE_BESIDE_H

#include <stdbool.h>
#include <stdint.h>

#define SBT_BESIDE_AGREE 2   /* looks in a row that change the answer */
#define SBT_BESIDE_LOOKS 16u /* until a yes is forgotten */

/* The owner's. All-zero is the beginning: no. */
struct sbt_beside {
    uint64_t since_ns, used_ns; /* the clock, and the process's CPU time, at the last look */
    uint64_t n_preempted;       /* likewise */
    uint32_t n_other, n_looks;  /* looks in a row that saw the other answer; looks since the answer changed */
    bool answer;
};

struct sbt_beside_seen {
    uint64_t now_ns, used_ns; /* a clock, and the process's CPU time; used_ns 0: not known */
    uint64_t n_preempted;     /* times that the kernel has taken the CPU from a thread of the process */
    uint32_t n_spin;          /* threads that spin before they sleep */
    uint32_t n_cpus;          /* that the process may use */
    uint32_t n_runnable;      /* threads of the machine; 0: not known */
    uint32_t n_cpus_most;     /* of the machine */
};

/* Does it matter at this look how many threads of the machine are runnable? To find out costs a file. */
bool sbt_beside_asks(const struct sbt_beside *b, const struct sbt_beside_seen *seen);

/* The answer after this look. */
bool sbt_beside_step(struct sbt_beside *b, const struct sbt_beside_seen *seen);

#endif

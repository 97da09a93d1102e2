/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What share of the CPUs' time the process gets. Beside programs that compute it gets little: its threads seldom wait
 * then, in a second, and get little done. So how often they wait is judged by the CPU time that the process has had.
 *
 * A process that uses little CPU time may also have little to do. It lacks CPU time only if there are more runnable
 * threads on the machine than CPUs.
 */
#ifndef SBT_SWITCH_SHARE_H
#define SBT_SWITCH_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* The monitor's. All-zero is the beginning. */
struct sbt_share {
    uint64_t since_ns, used_ns; /* the clock, and the process's CPU time, at the last reading */
    uint64_t vain_ns;           /* how long the last sign that was in vain has kept others back; 0: it was none */
    uint32_t lacks;             /* as sbt_share_lacks */
};

/* The program is about to create its first thread: its waits are counted from here on. */
void sbt_share_begin(void);

/*
 * The thousandths of the CPUs' time that the process has not had of late, if other processes want that time; 0: it has
 * had half of it at least, or no other process wants it, or that is not known: there is no reading of a moment ago, or
 * the program filters system calls. At most 999. Reads the CPU time twenty times a second, and then /proc if little was
 * used.
 */
uint32_t sbt_share_lacks(struct sbt_share *share, uint64_t now_ns);

/*
 * Has a thread given the sign since the last call: do threads wait often, for the CPU time that the process gets? A
 * program that only has little to do would wake the monitor again and again: a sign in vain keeps others back.
 */
bool sbt_share_sees_sign(struct sbt_share *share, uint64_t now_ns);

#endif

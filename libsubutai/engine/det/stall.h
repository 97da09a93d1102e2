/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that keep the turn, waits that are late (stall.c), and threads none of which can have it again (deadlock.c).
 */
#ifndef SBT_ENGINE_DET_STALL_H
#define SBT_ENGINE_DET_STALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/clock.h"

/* In ns: how long a thread keeps the turn without an operation until that is a stall. */
#define DET_STALL_NS 200000000
#define DET_STALL_RELEASE_NS 20000000
/* The same, if the thread has not come back from its wait for the turn: the machine may be busy. */
#define DET_STALL_ASLEEP_NS 1000000000
/* With --serial: to compute is what the holder is there for. */
#define DET_STALL_SERIAL_NS 2000000000
/* How long ago the deadline of a wait has passed in the kernel's time until the wait is late; with --stall release. */
#define DET_LATE_NS 2000000000
#define DET_LATE_RELEASE_NS 200000000
/* A waiting thread looks less often by one interval for each so many runnable threads. */
#define DET_LOOKERS 4
/*
 * Lookers. A thread that is runnable when it begins to wait for the turn looks for stalls meanwhile, and so does one
 * that waits for turns of others. A thread that was blocked sleeps until it is given the turn, also after its wake-up.
 * If only such threads wait, one of them is called: it wakes up, and goes on waiting as a looker.
 */
void det_look(uint32_t number);
void det_look_no_more(uint32_t number);
/* A thread has been given the turn. */
void det_call_looker(uint32_t holder);
/* How long a waiting thread sleeps until it looks. */
uint64_t det_look_every_ns(void);
/*
 * If the same thread has had the turn for that long: let it go on outside, if it waits in the kernel; else say so
 * once, and with --stall release let it go on outside too. A thread that sleeps off what logical time is ahead is in an
 * operation: that is no stall. True: the holder stalls.
 */
bool det_look_for_stall(void);
/*
 * By a thread that waits, with such a deadline: if it is late, and logical time goes on and lags, say so once; with
 * --stall release the wait ends too.
 */
void det_look_for_late(uint32_t number, const struct sbt_deadline *deadline);

/*
 * deadlock.c. A thread that has blocked is about to sleep until it is woken. True: no thread can go on; *logical is
 * the time at which that is so.
 */
bool det_is_stuck(uint64_t *logical);
/* It has been so for a while: say so once, if it still is, and if nothing is known that could end it. */
void det_look_for_deadlock(uint64_t logical);
/* A thread has ended, and no thread has the turn: if none can go on, one of them is woken, to look. */
void det_call_stuck(void);
/* With the lock: that was told, and a thread has come back. */
void det_take_back_deadlock(void);
/* Of det_round.told_stuck. */
enum { DET_NOT_STUCK, DET_STUCK, DET_STUCK_NO_MORE };
/* How long a thread sleeps until it looks for the nth time, from 0 on. */
uint64_t det_stuck_ns(unsigned n_looks);

/* place.c. "MODULE+0xOFFSET" of the call with that return address; "" if that is not known, or the program has set a
 * filter of system calls. Reads /proc/self/maps. */
#define DET_PLACE_BYTES 300
void det_place_text(uintptr_t return_address, char text[static DET_PLACE_BYTES]);

#endif

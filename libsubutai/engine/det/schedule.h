/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The schedule log (schedule_format.h): written as the program runs, in bounded memory.
 *
 * The log is a shared mapping of a window of its file: what is in it is in the file, whatever ends the process. The
 * window's bytes are allocated in the file before it is mapped, so a full disk ends the log and not the program. A
 * token's first byte is written last: a log that is cut ends between two tokens. The file is made at the first
 * operation that is more than a fork or a call outside; until then the window is memory of the process's own. So a
 * program that only starts another program leaves the name to that.
 *
 * The first process writes FILE, all others FILE.PID; no existing file is ever written to.
 *
 * The holder of the turn writes operations; threads that come back from outside, or find a stall, write too. So the log
 * has a lock; it is the innermost.
 */
#ifndef SBT_ENGINE_DET_SCHEDULE_H
#define SBT_ENGINE_DET_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "schedule_format.h"

/* Once: the file that the option asks for. False: there is no memory. */
bool det_schedule_start(const char *path, bool is_timed, unsigned n_callers);
/*
 * A process's schedule begins; in a forked child the parent's log is forgotten. `hints` NULL: there are none, and all
 * of LBDR is on. True: it is logged.
 */
bool det_schedule_begin(uint64_t seed, bool is_forked, const struct schedule_hints *hints);

/* How many callers of the function that makes an operation the log is to have. */
unsigned det_schedule_callers(void);
/*
 * By the holder, after the operation has the turn. `thread` made it. Return addresses; 0: not known. `chain` has
 * det_schedule_callers() of them; NULL: none is known.
 */
void det_schedule_op(enum schedule_op op, uint32_t thread, uintptr_t site, const uintptr_t *chain);
void det_schedule_object(uint32_t object);
void det_schedule_other(uint32_t thread);
void det_schedule_resume(uint32_t thread, enum schedule_reason reason);
/* It gives the turn up, for that hint (struct schedule_event) and so many turns. */
void det_schedule_section(uint32_t thread, uint64_t hint, uint64_t turns);
/* By any thread. */
void det_schedule_return(uint32_t thread, enum schedule_return how);
/* With the round's lock: that thread keeps the turn without an operation. */
void det_schedule_stall(uint32_t thread);
/* With the round's lock: the turn has been taken away from it, and no other thread has got it yet. */
void det_schedule_released(uint32_t thread);
/*
 * With the round's lock, while no thread can go on: that one waits for the object of such an operation, which another
 * thread has (TURN_NO_THREAD: not known), or for that thread's end. Return address; 0: not known.
 */
struct schedule_deadlock {
    uint32_t thread;
    enum schedule_op op;
    uint32_t object, other;
};
void det_schedule_deadlock(const struct schedule_deadlock *d, uintptr_t site);

/* By the holder: the process will open no more files. */
void det_schedule_keep(void);

/* The log is complete: nothing is written any more. */
void det_schedule_end(const struct schedule_totals *totals);

#endif

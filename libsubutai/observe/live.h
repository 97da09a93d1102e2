/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Records of threads that outlive the process: they lie in a file beside the trace, mapped shared
 * (trace/live_format.h). What a killed process had not written yet is added to its trace by the next reader
 * (trace/complete.c).
 *
 * A thread that is killed stops between two instructions, and all that it has stored before is in the file. So a killed
 * thread's record is as good as that of a thread that was interrupted for good anywhere (rec_flush_interrupted), and
 * costs not an instruction more than a record in private memory.
 *
 * Where the file cannot be made, or has no room, a record is in private memory, and is lost with the process.
 */
#ifndef SBT_OBSERVE_LIVE_H
#define SBT_OBSERVE_LIVE_H

#include <stdint.h>
#include <sys/types.h>

struct rec_thread;

/* The trace at that path has been made, with this first block; the caller has blocked signals. */
void rec_live_begin(const char *trace, uint64_t first_block_sum);
/* A zeroed record; NULL: it is to be in private memory. */
struct rec_thread *rec_live_new(void);
/* By the thread itself, which is busy: its record goes to the file, and stays at its address. */
void rec_live_adopt(struct rec_thread *t);
/* The trace is whole, or will not be: the file goes. */
void rec_live_end(void);
/* The process becomes that user for good. */
void rec_live_give(uid_t user);
/* In a forked child: the records that it may still write to become its own, and the file is its parent's. */
void rec_live_forget(void);

#endif

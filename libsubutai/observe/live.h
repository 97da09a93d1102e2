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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rec_thread;

/* The trace at that path has been made, with this first block; the caller has blocked signals. */
void rec_live_begin(const char *trace, uint64_t first_block_sum);
/* A zeroed record; NULL: it is to be in private memory. */
struct rec_thread *rec_live_new(void);
/* By the thread itself, which is busy: its record, with what it has counted, goes to the file and stays at its address.
 */
void rec_live_adopt(struct rec_thread *t);
/* Zeroed memory in the file, of whole pages, and where it is there. NULL: it is to be in private memory. */
void *rec_live_area(size_t n_bytes, uint64_t *offset);
/* By the one thread that writes to it: private memory of whole pages goes to the file, and stays at its address. The
 * result is where it is in the file; 0: it is still private. */
uint64_t rec_live_move(void *area, size_t n_bytes);
/* In a forked child: a private copy takes its place. False: there is no memory. */
bool rec_live_take_home(void *area, size_t n_bytes);
/* The trace is whole, or will not be: the file goes. */
void rec_live_end(void);
/* The record becomes another thread's; the one that had it has ended, and had so much processor time. */
void rec_live_past(uint64_t cpu_ns);
/* The process becomes that user for good. */
void rec_live_give(uid_t user);
/* In a forked child: the records that it may still write to become its own, and the file is its parent's. */
void rec_live_forget(void);

#endif

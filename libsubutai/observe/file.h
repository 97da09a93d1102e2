/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The trace's file, for record.c; blocks go there by rec_write (record.h). */
#ifndef SBT_OBSERVE_FILE_H
#define SBT_OBSERVE_FILE_H

#include <stdbool.h>
#include <stdint.h>

enum { LOOK_PAUSE_NS = 100000 }; /* between two looks at the end of the trace: longer than an event */

/* The path from now on, wherever the program goes. */
void rec_file_name(const char *path);
bool rec_file_is_begun(void);
/* Writing has failed, for good: also in forked children. */
bool rec_file_has_failed(void);
/* Make the file, although there is nothing to write yet, if its name is free. False: there is none. */
bool rec_file_begin(void);
/* In a forked child, which has a file of its own. */
void rec_file_forget(void);
/* From here on only the last block is written. False: a block is under way at that time of the clock. */
bool rec_file_end(uint64_t until_ns);

#endif

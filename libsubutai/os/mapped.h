/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Is memory mapped? A system call fails with EFAULT where an access of ours would end the process. The kernel is asked
 * once for each page: the answer is remembered for the last pages asked about. So an answer may be old. A page that
 * was unmapped since is a fault of the program's, as it would be in a function of the C library's that reads it.
 */
#ifndef SBT_OS_MAPPED_H
#define SBT_OS_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Can all these bytes be read? At most two system calls, none for pages that are remembered. */
bool sbt_mapped_readable(const void *from, size_t bytes);

/* Can the word be written? A system call. The word is written, with its own value. */
bool sbt_mapped_writable(uint32_t *word);

#endif

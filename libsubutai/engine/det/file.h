/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that is written by a window into it (schedule.h). No descriptor stays open: programs close descriptors that
 * they have not opened. A program that is about to forbid itself to open files is the exception. The caller serializes
 * the calls, and signal handlers are deferred.
 *
 * Another process that shortens the file while the program runs ends the program by SIGBUS, as with every mapped file.
 * Nothing prevents that: the kernel has no lock that a descriptor or a mapping keeps up against a process of the same
 * user. The alternative is a system call for each token, or a log that a killed program takes with it. Starting a
 * second run with the same name is safe: the command removes the old file and does not shorten it.
 */
#ifndef SBT_ENGINE_DET_FILE_H
#define SBT_ENGINE_DET_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/own_file.h"

enum { DET_FILE_WINDOW = 1 << 18 };

struct det_file {
    uint8_t *window;    /* NULL: nothing is written (any more) */
    uint8_t full;       /* the byte that ends a file that cannot grow; there is always room for it */
    uint64_t window_at; /* its place in the file */
    size_t n;           /* bytes of the window that are written */
    bool is_made;       /* the file; otherwise the window is memory of the process's own */
    int kept;           /* a descriptor of the file, for a process that cannot open it again; 0: none */
    struct sbt_own_file own;
};

/* Once, with a zeroed struct: the path from now on, wherever the program goes. */
void det_file_start(struct det_file *f, const char *path, uint8_t full);
/* A process's file begins with these bytes. In a forked child the parent's is forgotten. False: there is no memory. */
bool det_file_begin(struct det_file *f, const void *bytes, size_t n, bool is_child);
/* The file is made, unless it is already. */
void det_file_make(struct det_file *f);
/* The same, and it can be written when the process cannot open files any more. */
void det_file_keep(struct det_file *f);
/*
 * Append both parts; together at most half a window. The first byte is written last. False: nothing is written any
 * more; a line has said why, unless the file had ended before.
 */
bool det_file_write(struct det_file *f, const void *bytes, size_t n, const void *more, size_t n_more);
/* Cut the file behind the last byte that is written. What has not been made never will be. */
void det_file_end(struct det_file *f);

#endif

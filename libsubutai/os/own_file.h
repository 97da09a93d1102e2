/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file that the library makes for a process: FILE for the first process of the program, and FILE with the process's
 * id for all others. No existing file is ever written to. By system calls alone; none of them allocates or takes a lock
 * of libc's. The caller serializes the calls, and blocks signals around those that make or write the file: a write
 * beyond a limit sends SIGXFSZ, and on some file systems a signal ends a call with EINTR.
 */
#ifndef SBT_OS_OWN_FILE_H
#define SBT_OS_OWN_FILE_H

#include <stdbool.h>
#include <sys/types.h>

enum { SBT_OWN_FILE_PATH = 4096, SBT_OWN_FILE_NAMES = 100 };

/* All-zero at first. */
struct sbt_own_file {
    const char *ending; /* of the name, in front of which the process's id goes */
    bool is_child;      /* made by fork: FILE is its parent's */
    dev_t device;
    ino_t inode;
    char wanted[SBT_OWN_FILE_PATH], path[SBT_OWN_FILE_PATH]; /* what was asked for; the file that is written, or "" */
};

/* The path from now on, wherever the program goes. */
void sbt_own_file_name(struct sbt_own_file *f, const char *path, const char *ending);
/*
 * Make the file, under the first of up to `n_names` names (at most SBT_OWN_FILE_NAMES) that is free, and open it with
 * these flags. The result is the system call's: the descriptor, or a negated errno value.
 */
long sbt_own_file_create(struct sbt_own_file *f, int flags, unsigned n_names);
/* Open the file that was made, and no other. */
long sbt_own_file_open(const struct sbt_own_file *f, int flags);
/* Remove the file that was made, and no other. */
void sbt_own_file_remove(const struct sbt_own_file *f);
/* Is it that file? A program may have closed the descriptor, and have got its number for a file of its own. */
bool sbt_own_file_is(const struct sbt_own_file *f, int fd);
/*
 * The open descriptor under a number that programs seldom have, or as it is: a program that opens its own files gets
 * the numbers that it would get without the library. Never 0, which is free where a program has closed its standard
 * input; 0: there is no other number, and the descriptor is closed.
 */
int sbt_own_file_out_of_the_way(long fd);
/* After EFBIG: the blocked signal that would end the program is taken here. */
void sbt_own_file_take_limit(void);

#endif

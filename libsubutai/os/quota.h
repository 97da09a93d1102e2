/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The quota of CPU time that the process's control group and the groups above it have: cpu.max of version 2,
 * cpu.cfs_quota_us of version 1. Reads /proc and the mounted hierarchies by system calls of its own: no allocation, no
 * lock of libc's; a file descriptor for the time of each file.
 */
#ifndef SBT_OS_QUOTA_H
#define SBT_OS_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#define SBT_QUOTA_NONE UINT32_MAX
#define SBT_QUOTA_PATH_BYTES 256

/* Where the groups with CPU time are mounted. */
struct sbt_quota {
    struct sbt_quota_mount {
        bool found;
        bool v2;
        char top[SBT_QUOTA_PATH_BYTES];   /* the group that is mounted, "" for the root of all */
        char place[SBT_QUOTA_PATH_BYTES]; /* and where */
    } mount[2];
};

/* Find the mounts; once, because they hardly change. `root` is put before each path: "", or a test's directory. */
void sbt_quota_find(struct sbt_quota *quota, const char *root);

/*
 * The smallest quota of the process's group and those above it, in CPUs, rounded up: 1 or more. SBT_QUOTA_NONE: there
 * is none. *files: how many files with a quota were read; 0: no group can have one. *files -1: /proc does not say which
 * group it is, for example because there is no file descriptor left. Six system calls and three for each file.
 */
uint32_t sbt_quota_cpus(const struct sbt_quota *quota, const char *root, int *files);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For commands that wait for the program that they run: record and profile, which say when it ended. */
#ifndef CMD_LAUNCH_H
#define CMD_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launched {
    pid_t pid;
    uint64_t cpu_ns; /* of its threads, without its children; 0: not known */
};

/*
 * Run the program in a child, and wait for it. The result is its wait status. A failure is
 * refused by a line that names the subcommand: in the child, that with status 2.
 *
 * The child stays in this process group, so that what a terminal sends reaches it as ever. What is sent to this process
 * alone is passed on, and if the child stops on a terminal so does this process. `lasts`: the child goes on if this
 * process is killed, and this process keeps its files; otherwise it keeps its standard error only.
 */
int launch_and_wait(const char *subcommand, const char *path, char **command_line, char **env, bool lasts,
                    struct launched *program);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes that compute; see background_load.h. */
#include "background_load.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

static pid_t processes[BACKGROUND_LOAD_MAX];
static size_t n_processes;

_Noreturn static void compute(pid_t parent) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(1);
    for (;;)
        __asm__ volatile("");
}

void background_load_start(const char *subcommand, size_t n) {
    pid_t parent = getpid();
    while (n_processes < n) {
        pid_t pid = fork();
        if (pid < 0)
            cmd_refuse("%s: fork: %s", subcommand, strerror(errno));
        if (pid == 0)
            compute(parent);
        processes[n_processes++] = pid;
    }
}

void background_load_end(void) {
    for (size_t i = 0; i < n_processes; i++)
        if (waitpid(processes[i], NULL, WNOHANG) != 0)
            cmd_refuse("--beside: a process of the background load ended before the runs did");
    for (size_t i = 0; i < n_processes; i++)
        kill(processes[i], SIGKILL);
    for (; n_processes > 0; n_processes--)
        waitpid(processes[n_processes - 1], NULL, 0);
}

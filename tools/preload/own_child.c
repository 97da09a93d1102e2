/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See own_child.h. */
#include "own_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

_Noreturn static void become(const char *const *words, int out) {
    if (dup2(out, STDOUT_FILENO) >= 0)
        execv("/proc/self/exe", (char *const *)(uintptr_t)words);
    cmd_warn("%s: cannot be run: %s", words[1], strerror(errno));
    _exit(CMD_REFUSED);
}

static bool ended_well(pid_t pid, int most_status) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) <= most_status;
}

json_t *own_child_json(const char *const *words, int most_status) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        cmd_warn("%s: cannot be run: %s", words[1], strerror(errno));
        return NULL;
    }
    pid_t pid = fork();
    if (pid == 0)
        become(words, ends[1]);
    if (pid < 0)
        cmd_warn("%s: cannot be run: %s", words[1], strerror(errno));
    close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    json_t *document = from != NULL ? json_loadf(from, 0, NULL) : NULL;
    if (from != NULL)
        fclose(from);
    else
        close(ends[0]);
    if (pid > 0 && ended_well(pid, most_status))
        return document;
    json_decref(document);
    return NULL;
}

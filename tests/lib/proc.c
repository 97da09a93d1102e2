/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "proc.h"

#include "checks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

long proc_kernel_thread(void) {
    char link[64] = "";
    CHECK(readlink("/proc/thread-self", link, sizeof link - 1) > 0);
    const char *last = strrchr(link, '/');
    CHECK(last != NULL);
    return last != NULL ? atol(last + 1) : 0;
}

/* The state stands behind the name, in which there may be anything. */
char proc_thread_state(pid_t tid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return '?';
    bool read = fgets(line, sizeof line, file) != NULL; /* not, if it ends now */
    fclose(file);
    const char *state = strrchr(line, ')');
    CHECK(!read || (state != NULL && state[1] == ' '));
    return state != NULL ? state[2] : '?';
}

bool proc_status(const char *task, const char *key, char *value, size_t size) {
    char path[64], line[512];
    bool found = false;
    value[0] = '\0';
    snprintf(path, sizeof path, "/proc/%s/status", task);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *text = line + strlen(key) + strspn(line + strlen(key), " \t");
            snprintf(value, size, "%.*s", (int)strcspn(text, "\n"), text);
            found = true;
        }
    fclose(file);
    return found;
}

long proc_kib(const char *key) {
    char value[64];
    CHECK(proc_status("self", key, value, sizeof value));
    return atol(value);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See folder.h. */
#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

static char folder[PATH_MAX]; /* "": none */

void folder_visit(const char *prefix, void (*visit)(void *context, int directory, const char *name), void *context) {
    DIR *d = folder[0] != '\0' ? opendir(folder) : NULL;
    for (struct dirent *entry; d != NULL && (entry = readdir(d)) != NULL;)
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            visit(context, dirfd(d), entry->d_name);
    if (d != NULL)
        closedir(d);
}

static void remove_file(void *unused, int directory, const char *name) {
    (void)unused;
    unlinkat(directory, name, 0);
}

void folder_remove_files(const char *prefix) {
    folder_visit(prefix, remove_file, NULL);
}

void folder_remove(void) {
    folder_remove_files("");
    if (folder[0] != '\0')
        rmdir(folder);
    folder[0] = '\0';
}

const char *folder_make(const char *subcommand) {
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/subutai-%s-XXXXXX", parent != NULL && parent[0] == '/' ? parent : "/tmp",
             subcommand);
    if (mkdtemp(path) == NULL)
        cmd_refuse("%s: '%s': %s (legal: TMPDIR, a folder that can be written)", subcommand, path, strerror(errno));
    memcpy(folder, path, sizeof folder);
    atexit(folder_remove);
    return folder;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "schedule_input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool schedule_input_open(struct schedule_input *in, const char *path, char **error) {
    struct stat st;
    const char *why = NULL;
    in->fd = -1;
    in->path = strdup(path);
    if (in->path == NULL) {
        *error = strdup("out of memory");
        return false;
    }
    in->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (in->fd < 0 || fstat(in->fd, &st) != 0)
        why = strerror(errno);
    else if (!S_ISREG(st.st_mode))
        why = "no regular file (legal: a schedule log)";
    else if (st.st_size == 0)
        why = "the file is empty: its process could not write it (legal: a schedule log)";
    else
        in->n_bytes = (size_t)st.st_size;
    if (why != NULL && asprintf(error, "'%s': %s", path, why) < 0)
        *error = NULL;
    return why == NULL;
}

void schedule_input_close(struct schedule_input *in) {
    if (in->fd >= 0)
        close(in->fd);
    free(in->path);
}

int schedule_input_byte(struct schedule_input *in, size_t at) {
    if (at >= in->n_bytes)
        return -1;
    if (at - in->from >= in->n_here) {
        ssize_t n;
        while ((n = pread(in->fd, in->buffer, sizeof in->buffer, (off_t)at)) < 0 && errno == EINTR)
            ;
        if (n <= 0) {
            in->read_error = n < 0 ? errno : 0;
            in->n_bytes = at;
            return -1;
        }
        in->from = at;
        in->n_here = (size_t)n;
    }
    return in->buffer[at - in->from];
}

size_t schedule_input_copy(struct schedule_input *in, size_t at, void *to, size_t n) {
    size_t i = 0;
    for (int byte; i < n && (byte = schedule_input_byte(in, at + i)) >= 0; i++)
        ((uint8_t *)to)[i] = (uint8_t)byte;
    return i;
}

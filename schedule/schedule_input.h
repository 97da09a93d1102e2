/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bytes of a schedule log. The file is not mapped: its process may be at work, and cut the file to its size now, or
 * another process may shorten it. Then the log is cut there.
 */
#ifndef SCHEDULE_SCHEDULE_INPUT_H
#define SCHEDULE_SCHEDULE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCHEDULE_INPUT_BUFFER = 1 << 16 };

struct schedule_input {
    char *path;
    int fd;              /* -1: none */
    int read_error;      /* errno value; 0: none */
    size_t n_bytes;      /* of the file */
    size_t from, n_here; /* the part of it that is in `buffer` */
    uint8_t buffer[SCHEDULE_INPUT_BUFFER];
};

/* An all-zero input. False: *error has one line, allocated; it is to be closed all the same. */
bool schedule_input_open(struct schedule_input *in, const char *path, char **error);
void schedule_input_close(struct schedule_input *in);
/* The byte at that place, or -1: there is none. */
int schedule_input_byte(struct schedule_input *in, size_t at);
/* At most n bytes from that place on: how many there are. */
size_t schedule_input_copy(struct schedule_input *in, size_t at, void *to, size_t n);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A writer of protocol buffers into memory: the fields that a caller names by their numbers, in the order of its calls.
 * Source: Protocol Buffers Documentation, Encoding (wire types 0, 1 and 2).
 *
 * A message inside another has a length in front of it. Its place is kept, four bytes of a varint with leading zeros,
 * which readers accept, and filled in when the message ends.
 */
#ifndef TEXT_PROTOBUF_H
#define TEXT_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All-zero: empty. Memory grows by realloc; `failed`: there was none, and the bytes are not whole. */
struct protobuf {
    uint8_t *bytes;
    size_t n, room;
    bool failed;
};

void protobuf_free(struct protobuf *p);
/* Empty again; the memory is kept. */
void protobuf_clear(struct protobuf *p);

void protobuf_uint(struct protobuf *p, unsigned field, uint64_t value);
void protobuf_fixed64(struct protobuf *p, unsigned field, uint64_t value);
void protobuf_bytes(struct protobuf *p, unsigned field, const void *bytes, size_t n);
void protobuf_text(struct protobuf *p, unsigned field, const char *text);

/* What is written until protobuf_close is a message of its own, of less than 256 MiB. The result is for that call. */
size_t protobuf_open(struct protobuf *p, unsigned field);
void protobuf_close(struct protobuf *p, size_t opened);

#endif

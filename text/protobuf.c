/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The writer of protocol buffers; see protobuf.h. */
#include "protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, LENGTH_SIZE = 4, FIRST_ROOM = 4096 };

void protobuf_free(struct protobuf *p) {
    free(p->bytes);
    *p = (struct protobuf){0};
}

void protobuf_clear(struct protobuf *p) {
    p->n = 0;
}

static void put(struct protobuf *p, const void *bytes, size_t n) {
    if (p->room - p->n < n) {
        size_t room = p->room > FIRST_ROOM ? p->room : FIRST_ROOM;
        while (room - p->n < n)
            room *= 2;
        uint8_t *more = realloc(p->bytes, room);
        if (more == NULL) {
            p->failed = true;
            return;
        }
        p->bytes = more;
        p->room = room;
    }
    if (n > 0)
        memcpy(p->bytes + p->n, bytes, n);
    p->n += n;
}

static void put_varint(struct protobuf *p, uint64_t value) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (uint8_t)(value | 0x80);
    bytes[n++] = (uint8_t)value;
    put(p, bytes, n);
}

static void put_tag(struct protobuf *p, unsigned field, unsigned wire_type) {
    put_varint(p, (uint64_t)field << 3 | wire_type);
}

void protobuf_uint(struct protobuf *p, unsigned field, uint64_t value) {
    put_tag(p, field, VARINT);
    put_varint(p, value);
}

void protobuf_fixed64(struct protobuf *p, unsigned field, uint64_t value) {
    uint8_t bytes[8];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    put_tag(p, field, FIXED64);
    put(p, bytes, sizeof bytes);
}

void protobuf_bytes(struct protobuf *p, unsigned field, const void *bytes, size_t n) {
    put_tag(p, field, LENGTH);
    put_varint(p, n);
    put(p, bytes, n);
}

void protobuf_text(struct protobuf *p, unsigned field, const char *text) {
    protobuf_bytes(p, field, text, strlen(text));
}

size_t protobuf_open(struct protobuf *p, unsigned field) {
    static const uint8_t length[LENGTH_SIZE];
    put_tag(p, field, LENGTH);
    put(p, length, LENGTH_SIZE);
    return p->n;
}

void protobuf_close(struct protobuf *p, size_t opened) {
    if (p->failed)
        return;
    size_t length = p->n - opened;
    for (unsigned i = 0; i < LENGTH_SIZE; i++)
        p->bytes[opened - LENGTH_SIZE + i] = (uint8_t)((length >> (7 * i) & 0x7F) | (i + 1 < LENGTH_SIZE ? 0x80 : 0));
}

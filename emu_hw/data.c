/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "data.h"

enum { GAPS_OF_EPOCH = 64 };

struct hw_data hw_data_init(uint32_t load_permille, uint64_t length, enum hw_qos qos, uint64_t seed) {
    struct hw_data data = {.length = length, .seed = seed, .qos = qos};
    if (load_permille != 0)
        data.gap = length * 1000 / load_permille;
    data.epoch = GAPS_OF_EPOCH * data.gap;
    return data;
}

/* A permutation of 64-bit numbers in which each bit depends on all bits (the finalizer of SplitMix64). */
static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* From 0 to n - 1; n is less than 2^32. */
static uint64_t draw(struct hw_data_stream *stream, uint64_t n) {
    uint64_t x = stream->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    stream->random = x;
    return (x >> 32) * n >> 32;
}

/*
 * The time from any moment to the next packet of a process that has always been going on is the smaller of two numbers
 * that are uniform up to the longest gap.
 */
static void begin_epoch(const struct hw_data *data, uint32_t port, uint64_t epoch, struct hw_data_stream *stream) {
    stream->random = mix(mix(data->seed + UINT64_C(0x9e3779b97f4a7c15) * (port + 1)) ^ epoch) | 1;
    stream->end = (epoch + 1) * data->epoch;
    uint64_t a = draw(stream, 2 * data->gap), b = draw(stream, 2 * data->gap);
    stream->next = epoch * data->epoch + (a < b ? a : b);
}

void hw_data_seek(const struct hw_data *data, uint32_t port, uint64_t at, struct hw_data_stream *stream) {
    begin_epoch(data, port, at / data->epoch, stream);
}

static void advance(const struct hw_data *data, uint32_t port, struct hw_data_stream *stream) {
    stream->next += 1 + draw(stream, 2 * data->gap - 1);
    if (stream->next >= stream->end)
        begin_epoch(data, port, stream->end / data->epoch, stream);
}

void hw_data_pass(const struct hw_data *data, uint32_t port, uint64_t at, struct hw_data_stream *stream,
                  uint64_t *until) {
    while (stream->next <= at) {
        *until = (*until > stream->next ? *until : stream->next) + data->length;
        advance(data, port, stream);
    }
}

uint64_t hw_data_until_at(const struct hw_data *data, uint32_t port, uint64_t at) {
    struct hw_data_stream stream;
    uint64_t until = 0;
    hw_data_seek(data, port, at > data->epoch ? at - data->epoch : 0, &stream);
    hw_data_pass(data, port, at, &stream, &until);
    return until;
}

uint64_t hw_data_wait_at(const struct hw_data *data, uint32_t port, uint64_t at) {
    return hw_data_wait(data, at, hw_data_until_at(data, port, at));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Data traffic: packets of a fixed length that come to a port at random times.
 *
 * When they come is a pure function of the seed, the port and the time, so that callers may ask about any time in any
 * order. Time is cut into epochs of 64 mean gaps. In each epoch the gaps between packets are random numbers from a
 * generator that begins anew, from a hash of seed, port and epoch. Gaps are uniform from 1 to twice the mean, the first
 * of an epoch as if the packets had come for ever: so the load is the same at all times.
 *
 * Data packets do not travel: each port has its own.
 */
#ifndef HW_DATA_H
#define HW_DATA_H

#include <stdint.h>

enum hw_qos { HW_QOS_CONTROL_FIRST, HW_QOS_NONE };

struct hw_data {
    uint64_t gap;    /* mean cycles from one packet's coming to the next one's; 0: there is no data */
    uint64_t length; /* cycles for which a data packet takes a port */
    uint64_t epoch;  /* cycles */
    uint64_t seed;
    enum hw_qos qos;
};

/* A port's packets, one after the other. */
struct hw_data_stream {
    uint64_t next; /* when the next packet comes */
    uint64_t end;  /* of its epoch */
    uint64_t random;
};

struct hw_data hw_data_init(uint32_t load_permille, uint64_t length, enum hw_qos qos, uint64_t seed);

/* The stream from the beginning of the epoch of `at` on. */
void hw_data_seek(const struct hw_data *data, uint32_t port, uint64_t at, struct hw_data_stream *stream);

/* Queue all packets that come until `at`, included: *until, when all data has left, is later then. */
void hw_data_pass(const struct hw_data *data, uint32_t port, uint64_t at, struct hw_data_stream *stream,
                  uint64_t *until);

/* How long a control packet waits that is ready at `at`, if the data that has come has left at `until`. */
static inline uint64_t hw_data_wait(const struct hw_data *data, uint64_t at, uint64_t until) {
    if (until <= at)
        return 0;
    return data->qos == HW_QOS_NONE ? until - at : (until - at) % data->length;
}

/*
 * The same as a pure function of the time: control packets take no time from data. The queue is empty when the epoch
 * before that of `at` begins; data that came before has left, but for an error far below that of the random numbers.
 */
uint64_t hw_data_wait_at(const struct hw_data *data, uint32_t port, uint64_t at);

/* When all data that has come until `at`, included, has left; the same pure function of the time. May be before `at`.
 */
uint64_t hw_data_until_at(const struct hw_data *data, uint32_t port, uint64_t at);

#endif

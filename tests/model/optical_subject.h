/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An optical network beside a reference that goes through time cycle by cycle, in lists without an order: the same
 * calls to both, the answers compared, and the network's state checked after each.
 */
#ifndef MODEL_OPTICAL_SUBJECT_H
#define MODEL_OPTICAL_SUBJECT_H

#include "optical.h"

#ifndef OPTICAL_MAX_CORES
#define OPTICAL_MAX_CORES 9
#endif
#ifndef OPTICAL_MAX_MESSAGES
#define OPTICAL_MAX_MESSAGES 64 /* that some core can still take */
#endif
enum {
    OPTICAL_CHANNELS = 3,
    OPTICAL_RECORDS = OPTICAL_MAX_MESSAGES * (OPTICAL_MAX_CORES - 1),
    OPTICAL_LISTS = OPTICAL_MAX_CORES * OPTICAL_MAX_CORES + OPTICAL_MAX_CORES * OPTICAL_CHANNELS
};

enum record_state { RECORD_COMING = 1, RECORD_QUEUED, RECORD_MOVED };

/* A message at one receiver. */
struct record {
    uint64_t at;               /* arrival, then end of the transfer */
    uint32_t signature, moved; /* moved: its place in the order of transfers to this core */
    uint32_t number;           /* number: a sender's messages are counted from 1 */
    uint8_t from, to, channel, state;
};

struct optical_ref {
    uint64_t now[OPTICAL_MAX_CORES], free[OPTICAL_MAX_CORES];
    uint64_t bound[OPTICAL_MAX_CORES][OPTICAL_CHANNELS]; /* what hw_optical_next has said last */
    struct hw_filter filter[OPTICAL_MAX_CORES];
    uint32_t position[OPTICAL_MAX_CORES], moving[OPTICAL_MAX_CORES], n_sent[OPTICAL_MAX_CORES];
    uint32_t last_number[OPTICAL_MAX_CORES][OPTICAL_MAX_CORES][OPTICAL_CHANNELS]; /* [to][from]: retrieved last */
    uint32_t n_moved[OPTICAL_MAX_CORES];
    uint32_t n_filtered, n_received, n_refused;
    bool subscribed[OPTICAL_MAX_CORES][OPTICAL_CHANNELS];
    bool overflowed[OPTICAL_MAX_CORES][OPTICAL_CHANNELS]; /* had more messages than buffer_limit */
    uint32_t n_records;
    struct record records[OPTICAL_RECORDS]; /* in the order of sending */
};

struct optical_subject {
    struct hw_optical net;
    struct hw_optical_node nodes[OPTICAL_RECORDS];
    struct hw_optical_slot slots[OPTICAL_MAX_MESSAGES];
    uint32_t numbers[OPTICAL_MAX_MESSAGES]; /* of the sender's message in each slot: the driver's data */
    _Alignas(64) uint8_t
        memory[OPTICAL_MAX_CORES * sizeof(struct hw_optical_core) + OPTICAL_LISTS * sizeof(struct hw_optical_queue) +
               (OPTICAL_MAX_CORES + 3) * 64 * sizeof(uint64_t)];
    struct optical_ref ref;
};

/* False: there can be no such network, or it is too large for a subject. */
bool optical_subject_init(struct optical_subject *s, const struct hw_optical_config *config);
/* NULL, or what is wrong. Times do not go back. */
const char *optical_subject_send(struct optical_subject *s, const struct hw_optical_message *message, uint64_t at);
const char *optical_subject_receive(struct optical_subject *s, uint32_t core, uint32_t channel, uint64_t now);
const char *optical_subject_subscribe(struct optical_subject *s, uint32_t core, uint32_t channel, bool on,
                                      uint64_t now);
const char *optical_subject_filter(struct optical_subject *s, uint32_t core, const struct hw_filter *filter,
                                   uint64_t now);

#endif

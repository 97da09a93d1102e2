/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "optical_calls.h"

static uint32_t byte(struct optical_calls *calls) {
    if (calls->data != NULL) {
        if (calls->size == 0)
            return 0;
        calls->size--;
        return *calls->data++;
    }
    calls->random ^= calls->random << 13;
    calls->random ^= calls->random >> 7;
    calls->random ^= calls->random << 17;
    return calls->random >> 24 & 0xff;
}

struct hw_optical_config optical_calls_config(struct optical_calls *calls) {
    struct hw_optical_config config = hw_optical_config_default();
    uint32_t a = byte(calls), b = byte(calls), c = byte(calls);
    config.n_cores = 1 + a % OPTICAL_MAX_CORES;
    config.n_channels = OPTICAL_CHANNELS;
    config.transport_cycles = 1 + (b & 7);
    config.controller_cycles = (b >> 3 & 3) == 0 ? 0 : b >> 3 & 15;
    config.lambda_limit = c & 1 ? 1 + (c >> 1 & 3) : 0;
    config.buffer_limit = c & 8 ? 1 + (c >> 4 & 3) : 0;
    config.shape = c & 64 ? HW_OPTICAL_CLUSTERS : HW_OPTICAL_FLAT;
    config.clusters.receive = c & 128 ? HW_RECEIVE_HTREE : HW_RECEIVE_STAR;
    config.clusters.n_cores = 1 + (a >> 4);
    config.clusters.n_receive_networks = 1 + (b >> 7);
    return config;
}

/* Few bits, so that filters decide both ways. */
static uint32_t word(struct optical_calls *calls) {
    uint32_t b = byte(calls);
    return b & 128 ? b & 7 : (b & 1) * UINT32_MAX;
}

bool optical_calls_next(struct optical_calls *calls, struct optical_subject *subject, const char **why) {
    *why = NULL;
    if (calls->data != NULL && calls->size == 0)
        return false;
    uint32_t what = byte(calls), where = byte(calls), out_of_range = what % 16 == 15;
    uint32_t core = (where & 15) % (subject->net.config.n_cores + out_of_range);
    uint32_t channel = (where >> 4) % (OPTICAL_CHANNELS + out_of_range);
    calls->now += what % 4 == 0 ? byte(calls) % 20 : what % 4 == 1;
    if (what < 16) {
        struct hw_filter filter = {.mask = word(calls), .signature = word(calls)};
        filter.op = (enum hw_filter_op)(byte(calls) % 4);
        *why = optical_subject_filter(subject, core, &filter, calls->now);
    } else if (what < 32) {
        *why = optical_subject_subscribe(subject, core, channel, byte(calls) % 4 != 0, calls->now);
    } else if (what < 110) {
        struct hw_optical_message m = {.size = what == 32 ? HW_OPTICAL_MAX_BYTES + 1 : what % 64,
                                       .channel = channel,
                                       .signature = word(calls),
                                       .wavelength = core};
        *why = optical_subject_send(subject, &m, calls->now);
    } else if (core < subject->net.config.n_cores && channel < OPTICAL_CHANNELS) {
        *why = optical_subject_receive(subject, core, channel, calls->now);
    }
    return true;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "requests.h"

#include <string.h>

static uint32_t byte(struct request_source *source) {
    if (source->data) {
        if (source->size == 0)
            return 0;
        source->size--;
        return *source->data++;
    }
    source->random ^= source->random << 13;
    source->random ^= source->random >> 7;
    source->random ^= source->random << 17;
    return source->random >> 24 & 0xff;
}

static uint32_t word(struct request_source *source) {
    uint32_t high = byte(source) << 24 | byte(source) << 16;
    return high | byte(source) << 8 | byte(source);
}

struct hw_config request_config(struct request_source *source, uint32_t *number) {
    static const uint16_t tiles[] = {1, 4, 64, 128, 129, 256, 1024, 7};
    struct hw_config config = hw_config_default();
    uint32_t a = byte(source), b = byte(source);
    config.n_tiles = tiles[a & 7];
    config.n_control = (a >> 3) % REF_MAX_PRIMITIVES + 1;
    config.n_queue = (b & 3) == 0 ? b >> 2 : b >> 4;
    config.full = b & 4 ? HW_FULL_HOLD : HW_FULL_AGAIN;
    config.reserve = (b & 8) != 0;
    *number = config.n_tiles * 3 / 4;
    return config;
}

bool request_next(struct request_source *source, const struct subject *subject, struct hw_packet *packet) {
    if (source->data && source->size == 0)
        return false;
    const struct hw_spm *spm = &subject->ni.spm;
    const struct hw_layout *layout = &spm->layout;
    uint32_t shape = byte(source);
    if (shape < 8) {
        for (uint32_t i = 0; i < HW_N_FLITS; i++)
            packet->flit[i] = word(source);
        return true;
    }
    /* Waiting and waking are more frequent than allocating, or the queues never fill. */
    static const uint8_t ops[32] = {HW_OP_ALLOC_MUTEX,   HW_OP_ALLOC_CONDITION,
                                    HW_OP_ALLOC_BARRIER, HW_OP_DEALLOC,
                                    HW_OP_EVICT,         HW_OP_LOCK,
                                    HW_OP_LOCK,          HW_OP_LOCK,
                                    HW_OP_LOCK,          HW_OP_LOCK,
                                    HW_OP_UNLOCK,        HW_OP_UNLOCK,
                                    HW_OP_UNLOCK,        HW_OP_UNLOCK,
                                    HW_OP_TRYLOCK,       HW_OP_TRYLOCK,
                                    HW_OP_BARRIER_WAIT,  HW_OP_BARRIER_WAIT,
                                    HW_OP_BARRIER_WAIT,  HW_OP_BARRIER_WAIT,
                                    HW_OP_COND_WAIT,     HW_OP_COND_WAIT,
                                    HW_OP_COND_WAIT,     HW_OP_COND_WAIT,
                                    HW_OP_BROADCAST,     HW_OP_SIGNAL,
                                    HW_OP_SIGNAL,        HW_OP_SIGNAL,
                                    HW_OP_WITHDRAW,      HW_OP_WITHDRAW,
                                    HW_OP_WITHDRAW,      HW_OP_DEALLOC};
    uint32_t b = byte(source), c = byte(source);
    enum hw_op op = (enum hw_op)ops[b & 31];
    uint32_t core = (c & 15) % layout->n_tiles, thread = c >> 4 & 3, id = 0;
    /* Look for a primitive of the right kind, starting anywhere. */
    static const enum hw_kind wanted[HW_N_REQUESTS] = {
        [HW_OP_ALLOC_CONDITION] = HW_KIND_MUTEX, [HW_OP_LOCK] = HW_KIND_MUTEX,
        [HW_OP_UNLOCK] = HW_KIND_MUTEX,          [HW_OP_TRYLOCK] = HW_KIND_MUTEX,
        [HW_OP_BARRIER_WAIT] = HW_KIND_BARRIER,  [HW_OP_COND_WAIT] = HW_KIND_CONDITION,
        [HW_OP_BROADCAST] = HW_KIND_CONDITION,   [HW_OP_SIGNAL] = HW_KIND_CONDITION};
    uint32_t start = shape % spm->n_control;
    for (uint32_t i = 0; i < spm->n_control; i++) {
        uint32_t tag = hw_spm_tag(spm, (start + i) % spm->n_control);
        if (tag & HW_ID_IN_USE && (wanted[op] == HW_KIND_NONE || hw_id_kind(layout, tag) == wanted[op])) {
            id = tag;
            break;
        }
    }
    if (shape < 12)
        id = source->old_ids[shape & 3];
    else if (shape < 16)
        id ^= UINT32_C(1) << (c & 31);
    if (op == HW_OP_ALLOC_MUTEX)
        id = 0;
    else if (op == HW_OP_ALLOC_BARRIER)
        id = c % 7 == 6 ? word(source) & 0xffff : 1 + c % 7;
    else if (op == HW_OP_DEALLOC || op == HW_OP_EVICT)
        source->old_ids[source->n_old++ & 3] = id;
    *packet = hw_packet_alloc(layout, op, spm->ni, id, core, thread);
    return true;
}

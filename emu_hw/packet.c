/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "packet.h"

enum { OP_BITS = 5, ARGUMENT_BITS = 7 };

struct hw_packet hw_packet_encode(const struct hw_layout *layout, const struct hw_message *message) {
    uint32_t bits = layout->tile_bits;
    uint32_t header =
        hw_bits(message->destination, 0, bits) << (32 - bits) | hw_bits(message->source, 0, bits) << (32 - 2 * bits) |
        hw_bits((uint32_t)message->op, 0, OP_BITS) << ARGUMENT_BITS | hw_bits(message->argument, 0, ARGUMENT_BITS);
    return (struct hw_packet){{header, message->primitive, (uint32_t)message->thread << 16 | message->core}};
}

struct hw_message hw_packet_decode(const struct hw_layout *layout, const struct hw_packet *packet) {
    uint32_t bits = layout->tile_bits, header = packet->flit[0];
    return (struct hw_message){.destination = hw_bits(header, 32 - bits, bits),
                               .source = hw_bits(header, 32 - 2 * bits, bits),
                               .op = (enum hw_op)hw_bits(header, ARGUMENT_BITS, OP_BITS),
                               .argument = hw_bits(header, 0, ARGUMENT_BITS),
                               .primitive = packet->flit[1],
                               .thread = (uint16_t)(packet->flit[2] >> 16),
                               .core = (uint16_t)packet->flit[2]};
}

bool hw_packet_is_request(const struct hw_layout *layout, const struct hw_packet *packet, uint32_t ni) {
    struct hw_message m = hw_packet_decode(layout, packet);
    uint32_t unused = 32u - 2u * layout->tile_bits - OP_BITS - ARGUMENT_BITS;
    if (hw_bits(packet->flit[0], OP_BITS + ARGUMENT_BITS, unused) != 0 || m.argument != 0)
        return false;
    if (m.destination != ni || m.source >= layout->n_tiles || m.core != m.source || !hw_op_is_request((uint32_t)m.op))
        return false;
    if (m.op == HW_OP_ALLOC_MUTEX)
        return m.primitive == 0;
    if (m.op == HW_OP_ALLOC_BARRIER)
        return m.primitive >= 1 && m.primitive <= UINT16_MAX;
    return hw_id_ni(layout, m.primitive) == ni;
}

struct hw_packet hw_packet_request(const struct hw_layout *layout, enum hw_op op, uint32_t id, uint32_t core,
                                   uint32_t thread) {
    return hw_packet_alloc(layout, op, hw_id_ni(layout, id), id, core, thread);
}

struct hw_packet hw_packet_alloc(const struct hw_layout *layout, enum hw_op op, uint32_t ni, uint32_t flit1,
                                 uint32_t core, uint32_t thread) {
    return hw_packet_encode(layout, &(struct hw_message){.destination = ni,
                                                         .source = core,
                                                         .op = op,
                                                         .primitive = flit1,
                                                         .thread = (uint16_t)thread,
                                                         .core = (uint16_t)core});
}

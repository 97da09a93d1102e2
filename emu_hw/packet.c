/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "packet.h"

bool hw_packet_is_request(const struct hw_layout *layout, const struct hw_packet *packet, uint32_t ni) {
    struct hw_message m = hw_packet_decode(layout, packet);
    uint32_t unused = 32u - 2u * layout->tile_bits - HW_OP_BITS - HW_ARGUMENT_BITS;
    if (hw_bits(packet->flit[0], HW_OP_BITS + HW_ARGUMENT_BITS, unused) != 0 || m.argument != 0)
        return false;
    if (m.destination != ni || m.source >= layout->n_tiles || m.core != m.source || !hw_op_is_request((uint32_t)m.op))
        return false;
    if (m.op == HW_OP_ALLOC_MUTEX)
        return m.primitive == 0;
    if (m.op == HW_OP_ALLOC_BARRIER)
        return m.primitive >= 1 && m.primitive <= UINT16_MAX;
    return hw_id_ni(layout, m.primitive) == ni;
}

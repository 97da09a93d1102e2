/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Virtual channels and their ports, in virtual time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "port.h"
#include "run.h"
#include "subutai/atac.h"

_Static_assert((int)ATAC_MAX_BYTES == (int)HW_OPTICAL_MAX_BYTES, "the network carries what the interface promises");
_Static_assert((int)ATAC_AND == (int)HW_FILTER_AND && (int)ATAC_OR == (int)HW_FILTER_OR &&
                   (int)ATAC_XOR == (int)HW_FILTER_XOR,
               "operations have the hardware's numbers");

struct VirtualChannel {
    uint32_t number;
};

struct VirtualChannelPort {
    uint32_t channel, thread;
};

static bool refuse(int error) {
    errno = error;
    return false;
}

VirtualChannel *VirtualChannel_create(void) {
    struct sim_program *chip = atac_chip();
    if (sim_n_channels(chip) == 0) {
        errno = ENOSPC;
        return NULL;
    }
    VirtualChannel *vc = malloc(sizeof *vc);
    if (vc != NULL)
        vc->number = sim_channel(chip);
    return vc;
}

VirtualChannelPort *VirtualChannelPort_new(VirtualChannel *vc) {
    struct sim_program *chip = atac_chip();
    VirtualChannelPort *port = malloc(sizeof *port);
    if (port == NULL)
        return NULL;
    *port = (VirtualChannelPort){.channel = vc->number, .thread = sim_self(chip)};
    sim_subscribe(chip, port->channel);
    return port;
}

void VirtualChannelPort_delete(VirtualChannelPort *port) {
    free(port);
}

static bool is_own(const VirtualChannelPort *port) {
    return port->thread == sim_self(atac_chip()) || refuse(EPERM);
}

/* ---- sending ---- */

static bool send_bytes(const VirtualChannelPort *port, const void *data, int size, int signature, int tag) {
    if (!is_own(port))
        return false;
    if (size < 0)
        return refuse(EINVAL);
    if (size > ATAC_MAX_BYTES)
        return refuse(EMSGSIZE);
    sim_compute(atac_chip(), atac_running()->software_cycles);
    sim_send(atac_chip(), port->channel, (uint32_t)signature, (uint32_t)tag, data, (uint32_t)size);
    return true;
}

bool VirtualChannelPort_send_message(VirtualChannelPort *port, int payload, int message_signature, int tag) {
    return send_bytes(port, &payload, sizeof payload, message_signature, tag);
}

bool VirtualChannelPort_send_message_long(VirtualChannelPort *port, const char *data, int data_size,
                                          int message_signature, int tag) {
    return send_bytes(port, data, data_size, message_signature, tag);
}

/* ---- receiving ---- */

/* deadline: 0 does not wait, UINT64_MAX waits for ever. */
static bool receive(const VirtualChannelPort *port, uint64_t deadline, Message *msg_buffer, char *data, int data_size) {
    struct sim_message m;
    if (!is_own(port))
        return false;
    if (data_size < 0)
        return refuse(EINVAL);
    if (deadline == 0 ? !sim_receive(atac_chip(), port->channel, &m)
                      : !sim_wait_receive_until(atac_chip(), port->channel, deadline, &m))
        return false;
    *msg_buffer = (Message){.size = (int)m.head.size,
                            .tag = (int)m.head.tag,
                            .signature = (int)m.head.signature,
                            .sender = (int)m.head.wavelength};
    if (m.head.size > 0)
        memcpy(&msg_buffer->payload, m.data, m.head.size < sizeof(int) ? m.head.size : sizeof(int));
    if (data_size > 0 && m.head.size > 0)
        memcpy(data, m.data, m.head.size < (uint32_t)data_size ? m.head.size : (uint32_t)data_size);
    sim_compute(atac_chip(), atac_running()->software_cycles);
    return true;
}

bool VirtualChannelPort_receive_message(VirtualChannelPort *port, Message *msg_buffer) {
    return receive(port, 0, msg_buffer, NULL, 0);
}

bool VirtualChannelPort_receive_message_long(VirtualChannelPort *port, Message *msg_buffer, char *data_buffer,
                                             int data_size) {
    return receive(port, 0, msg_buffer, data_buffer, data_size);
}

bool VirtualChannelPort_wait_and_receive_message(VirtualChannelPort *port, Message *msg_buffer) {
    return receive(port, UINT64_MAX, msg_buffer, NULL, 0);
}

bool VirtualChannelPort_wait_and_receive_message_long(VirtualChannelPort *port, Message *msg_buffer, char *data_buffer,
                                                      int data_size) {
    return receive(port, UINT64_MAX, msg_buffer, data_buffer, data_size);
}

bool atac_port_wait_until(VirtualChannelPort *port, uint64_t deadline_cycles, Message *msg_buffer, char *data_buffer,
                          int data_size) {
    return receive(port, deadline_cycles, msg_buffer, data_buffer, data_size);
}

bool VirtualChannelPort_set_local_filter(VirtualChannelPort *port, int mask, int match_operation, int signature) {
    if (!is_own(port))
        return false;
    if (match_operation < ATAC_AND || match_operation > ATAC_XOR)
        return refuse(EINVAL);
    sim_set_filter(atac_chip(), (struct hw_filter){.mask = (uint32_t)mask,
                                                   .op = (enum hw_filter_op)match_operation,
                                                   .signature = (uint32_t)signature});
    return true;
}

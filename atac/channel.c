/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Virtual channels and their ports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "machine.h"
#include "optical_config.h"
#include "port.h"
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
    int error = !atac_may_make() ? EPERM : atac_machine->n_channels() == 0 ? ENOSPC : 0;
    if (error != 0) {
        errno = error;
        return NULL;
    }
    VirtualChannel *vc = malloc(sizeof *vc);
    if (vc == NULL)
        return NULL;
    vc->number = atac_machine->channel();
    if (vc->number == ATAC_NO_CHANNEL) { /* another thread has made the last one */
        free(vc);
        errno = ENOSPC;
        return NULL;
    }
    return vc;
}

void VirtualChannel_delete(VirtualChannel *vc) {
    free(vc);
}

VirtualChannelPort *VirtualChannelPort_new(VirtualChannel *vc) {
    uint32_t self = atac_self();
    if (self == ATAC_NO_THREAD) {
        errno = EPERM;
        return NULL;
    }
    VirtualChannelPort *port = malloc(sizeof *port);
    if (port == NULL)
        return NULL;
    *port = (VirtualChannelPort){.channel = vc->number, .thread = self};
    atac_machine->subscribe(port->channel);
    return port;
}

void VirtualChannelPort_delete(VirtualChannelPort *port) {
    free(port);
}

static bool is_own(const VirtualChannelPort *port) {
    return port->thread == atac_self() || refuse(EPERM);
}

/* ---- sending ---- */

static bool send_bytes(const VirtualChannelPort *port, const void *data, int size, int signature, int tag) {
    if (!is_own(port))
        return false;
    if (size < 0)
        return refuse(EINVAL);
    if (size > ATAC_MAX_BYTES)
        return refuse(EMSGSIZE);
    atac_machine->compute(atac_running.software_cycles);
    atac_machine->send(port->channel, (uint32_t)signature, (uint32_t)tag, data, (uint32_t)size);
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
    struct atac_received m = {.data = data};
    if (!is_own(port))
        return false;
    if (data_size < 0)
        return refuse(EINVAL);
    m.room = data != NULL ? (uint32_t)data_size : 0;
    if (!atac_machine->receive(port->channel, deadline, &m))
        return false;
    *msg_buffer = (Message){.payload = m.payload,
                            .size = (int)m.head.size,
                            .tag = (int)m.head.tag,
                            .signature = (int)m.head.signature,
                            .sender = (int)m.head.wavelength};
    atac_machine->compute(atac_running.software_cycles);
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
    atac_machine->set_filter((struct hw_filter){
        .mask = (uint32_t)mask, .op = (enum hw_filter_op)match_operation, .signature = (uint32_t)signature});
    return true;
}

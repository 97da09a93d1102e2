/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What work stealing needs of a port beside <subutai/atac.h>: a wait with an end. */
#ifndef ATAC_PORT_H
#define ATAC_PORT_H

#include <stdint.h>

#include "subutai/atac.h"

/* As VirtualChannelPort_wait_and_receive_message_long, until that time of the chip. False: there is no message. */
bool atac_port_wait_until(VirtualChannelPort *port, uint64_t deadline_cycles, Message *msg_buffer, char *data_buffer,
                          int data_size);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The barrier of section 5.1. Each thread broadcasts that it has come, and counts the messages of the others.
 *
 * A thread that has all messages of an episode goes on, and may come to the next episode, while a slower one still
 * counts. Its message then is early. It is at most one episode ahead: to be two ahead it would need a message that the
 * slower thread has not sent. So messages carry their episode, and early ones are counted apart.
 */
#include <errno.h>
#include <stdlib.h>

#include "subutai/atac.h"

enum { COME = 1 }; /* the signature */

struct BarrierMaster {
    VirtualChannel *vc;
    int n_threads;
};

struct Barrier {
    VirtualChannelPort *port;
    int n_threads, episode;
    int n_early; /* messages of the next episode */
};

BarrierMaster *BarrierMaster_new(int number_of_threads) {
    if (number_of_threads < 1) {
        errno = EINVAL;
        return NULL;
    }
    BarrierMaster *master = malloc(sizeof *master);
    if (master == NULL)
        return NULL;
    *master = (BarrierMaster){.vc = VirtualChannel_create(), .n_threads = number_of_threads};
    if (master->vc == NULL) {
        free(master);
        return NULL;
    }
    return master;
}

void BarrierMaster_delete(BarrierMaster *master) {
    VirtualChannel_delete(master->vc);
    free(master);
}

Barrier *BarrierMaster_generate_barrier(BarrierMaster *master) {
    Barrier *barrier = malloc(sizeof *barrier);
    if (barrier == NULL)
        return NULL;
    *barrier = (Barrier){.port = VirtualChannelPort_new(master->vc), .n_threads = master->n_threads};
    if (barrier->port == NULL) {
        free(barrier);
        return NULL;
    }
    return barrier;
}

void Barrier_delete(Barrier *barrier) {
    VirtualChannelPort_delete(barrier->port);
    free(barrier);
}

bool Barrier_wait(Barrier *barrier) {
    Message m;
    if (!VirtualChannelPort_send_message(barrier->port, 1, COME, barrier->episode))
        return false;
    int n = barrier->n_early;
    barrier->n_early = 0;
    while (n < barrier->n_threads - 1 && VirtualChannelPort_wait_and_receive_message(barrier->port, &m)) {
        if (m.tag == barrier->episode)
            n++;
        else
            barrier->n_early++;
    }
    barrier->episode++;
    return true;
}

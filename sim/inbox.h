/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Messages of threads that share a core. The hardware has one message buffer and one filter for a core; a program's
 * threads each have what they would have on a core of their own: an inbox for each channel, and a filter. Whichever
 * thread of a core looks into the hardware's buffer sorts what is there into the inboxes of all. So each thread that
 * has subscribed has each message once, in the order of its sender.
 *
 * Filters. While all threads of a core have the same filter the hardware has it; else the hardware lets everything
 * pass, and the inboxes filter.
 *
 * Thread t is on core t modulo the number of cores. Nothing here blocks; one thread at a time.
 */
#ifndef SIM_INBOX_H
#define SIM_INBOX_H

#include "optical_message.h"

#include <stddef.h>

struct sim_letter {
    struct sim_letter *next;
    struct hw_optical_message head; /* its wavelength is the number of the thread that has sent it */
    uint64_t sent_cycles;
    char data[]; /* head.size bytes */
};

struct sim_inbox {
    struct sim_letter *first, *last;
    uint32_t n;
    bool subscribed;
};

/* What all threads have not taken, of a run: more letters end it. What the largest pool of messages under way has. */
#define SIM_INBOXES_MOST_BYTES (UINT64_C(1) << 30)

struct sim_inboxes {
    uint32_t n_threads, n_cores, n_channels;
    struct sim_inbox *inboxes; /* [thread * n_channels + channel] */
    struct hw_filter *filters; /* [thread] */
    uint32_t n_letters;        /* in all inboxes, */
    uint64_t n_bytes;          /* and what they take; the driver ends the run if that is more than */
    uint64_t most_bytes;       /* SIM_INBOXES_MOST_BYTES */
    uint32_t most;             /* letters in an inbox, before it counts as one that is not read; 0: no limit */
    uint32_t crowded_thread, crowded_channel;
    bool crowded; /* there has been such an inbox: the first */
};

/* False: no memory; sim_inboxes_free may be called all the same. */
bool sim_inboxes_init(struct sim_inboxes *all, uint32_t n_threads, uint32_t n_cores, uint32_t n_channels,
                      uint32_t most);
void sim_inboxes_free(struct sim_inboxes *all);

/* The thread takes messages of the channel that are delivered from now on. */
void sim_inboxes_subscribe(struct sim_inboxes *all, uint32_t thread, uint32_t channel);
/* For what is delivered from now on. The answer is the filter of the thread's core. */
struct hw_filter sim_inboxes_set_filter(struct sim_inboxes *all, uint32_t thread, struct hw_filter filter);

/*
 * To all threads of the core that have subscribed, but the one that has sent it, if their filters let it pass. False:
 * no memory.
 */
bool sim_inboxes_deliver(struct sim_inboxes *all, uint32_t core, const struct hw_optical_message *head,
                         uint64_t sent_cycles, const void *data);

bool sim_inboxes_has(const struct sim_inboxes *all, uint32_t thread, uint32_t channel);
/* The first letter, for the caller to free; NULL: there is none. */
struct sim_letter *sim_inboxes_take(struct sim_inboxes *all, uint32_t thread, uint32_t channel);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Broadcast between cores by virtual channels, and barriers on top: the interface of Tables 4.2 and 5.1 of S. J. Park,
 * Analyzing Performance and Usability of Broadcast-Based Inter-Core Communication (ATAC) on Manycore Architecture, MIT,
 * 2013, in C, with the thesis's names.
 *
 * A program runs in virtual time: atac_run (atac/run.h) makes the chip and its threads. All calls are made by its
 * threads. None blocks but VirtualChannelPort_wait_* and Barrier_wait; a send also waits if lambda queues are limited
 * and full.
 *
 * Functions with a bool return false, and set errno, if nothing was done:
 *   EINVAL   a filter operation that does not exist; a size that is negative
 *   EMSGSIZE more than ATAC_MAX_BYTES of data
 *   EPERM    the port was made by another thread
 * receive_message also returns false, with errno unchanged, if there is no message.
 */
#ifndef SUBUTAI_ATAC_H
#define SUBUTAI_ATAC_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATAC_MAX_BYTES = 65536 };

typedef struct VirtualChannel VirtualChannel;
typedef struct VirtualChannelPort VirtualChannelPort;
typedef struct BarrierMaster BarrierMaster;
typedef struct Barrier Barrier;

typedef struct Message {
    int payload;   /* the first bytes of the data */
    int size;      /* bytes of data; send_message sends a payload's */
    int tag;       /* the user's */
    int signature; /* what the filters look at */
    int sender;    /* the number of the thread */
} Message;

enum { ATAC_AND, ATAC_OR, ATAC_XOR }; /* match_operation */

/* A new channel. NULL: there is no memory (ENOMEM), or the chip has no more channels (ENOSPC). */
VirtualChannel *VirtualChannel_create(void);

/* The calling thread subscribes to the channel: it receives what arrives at its core from now on. NULL: ENOMEM. */
VirtualChannelPort *VirtualChannelPort_new(VirtualChannel *vc);
void VirtualChannelPort_delete(VirtualChannelPort *port);

/* To all other ports of the channel, where the filter of the port's core lets the message pass. */
bool VirtualChannelPort_send_message(VirtualChannelPort *port, int payload, int message_signature, int tag);
bool VirtualChannelPort_send_message_long(VirtualChannelPort *port, const char *data, int data_size,
                                          int message_signature, int tag);

/* The first message, if there is one. _long: its data too, at most data_size bytes of it; msg_buffer->size has all. */
bool VirtualChannelPort_receive_message(VirtualChannelPort *port, Message *msg_buffer);
bool VirtualChannelPort_receive_message_long(VirtualChannelPort *port, Message *msg_buffer, char *data_buffer,
                                             int data_size);
/* The same, and wait for one. */
bool VirtualChannelPort_wait_and_receive_message(VirtualChannelPort *port, Message *msg_buffer);
bool VirtualChannelPort_wait_and_receive_message_long(VirtualChannelPort *port, Message *msg_buffer, char *data_buffer,
                                                      int data_size);

/* The filter of this core, for all its channels: a message passes if (its signature & mask) op signature is not 0. */
bool VirtualChannelPort_set_local_filter(VirtualChannelPort *port, int mask, int match_operation, int signature);

/* Reserves a channel. NULL: as VirtualChannel_create, or number_of_threads is not positive (EINVAL). */
BarrierMaster *BarrierMaster_new(int number_of_threads);
void BarrierMaster_delete(BarrierMaster *master);
/* The calling thread's barrier. All threads have one before the first waits. NULL: ENOMEM. */
Barrier *BarrierMaster_generate_barrier(BarrierMaster *master);
void Barrier_delete(Barrier *barrier);
/* Broadcasts that this thread has come, and waits for the messages of all others. */
void Barrier_wait(Barrier *barrier);

/*
 * Work stealing, Table 5.2. A task is run by the thread that gets it. Four systems:
 *
 *   ATAC_VC_DEQUE      section 5.2.1: a double-ended queue with a lock for each thread. A thread with little work
 *                      broadcasts a request, threads with much work answer with an offer, and the thief takes tasks
 *   ATAC_VC_CAS        section 5.2.2: the same, but the owner offers single tasks, and a compare-and-swap takes each
 *   ATAC_GLOBAL_QUEUE  one queue with one lock
 *   ATAC_CILK          a queue for each thread; a thief tries random victims (Frigo, Leiserson, Randall, 1998)
 */
typedef struct IWorkTask {
    void (*run)(struct IWorkTask *task);
} IWorkTask;
typedef struct DWorkPileMaster DWorkPileMaster;
typedef struct DWorkPile DWorkPile;

enum { ATAC_VC_DEQUE, ATAC_VC_CAS, ATAC_GLOBAL_QUEUE, ATAC_CILK, ATAC_N_PILES };

/* capacity: tasks in one queue, at most 65536. NULL: EINVAL, ENOMEM, ENOSPC. Before the threads run, or by one. */
DWorkPileMaster *DWorkPileMaster_new(int kind, int number_of_threads, int capacity);
void DWorkPileMaster_delete(DWorkPileMaster *master);
/* The calling thread's. Each of the threads makes one, and gets until there is no more. NULL: ENOMEM. */
DWorkPile *DWorkPileMaster_generateLocalWorkPile(DWorkPileMaster *master);
void DWorkPile_delete(DWorkPile *pile);

/*
 * A task, from the own queue or a stolen one; the task that this thread has got before has been run. Waits while others
 * run tasks that may put more. NULL: all tasks of all threads have been run.
 */
IWorkTask *DWorkPile_get(DWorkPile *pile);
/* The run ends with an error if the queue is full. */
void DWorkPile_put(DWorkPile *pile, IWorkTask *task_to_push);
/* Answers requests of others, and takes what they offer. Nothing without channels. */
void DWorkPile_process_pending_request(DWorkPile *pile);
/* Lets requests of others come with a probability that grows with the own queue (Fig. 5-4). */
void DWorkPile_update_filter(DWorkPile *pile);
/* All threads' gets return NULL. DWorkPile_get does it when the last task has been run. */
void DWorkPile_finish(DWorkPile *pile, int num_threads);

#ifdef __cplusplus
}
#endif

#endif

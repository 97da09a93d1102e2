/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Broadcast between cores by virtual channels, and barriers and work stealing on top: the interface of Tables 4.2, 5.1
 * and 5.2 of S. J. Park, Analyzing Performance and Usability of Broadcast-Based Inter-Core Communication (ATAC) on
 * Manycore Architecture, MIT, 2013, in C, with the thesis's names. <subutai/atac.hpp> has its C++ classes. Link with
 * -lsubutai-atac.
 *
 * ATAC_run runs a program, in virtual time or on real threads. All other calls are made by its threads, or by its
 * `prepare`; elsewhere they fail with EPERM, and do nothing. None blocks but those that say so; a send also waits if
 * lambda queues are limited and full.
 *
 * Functions with a bool return false, and set errno, if nothing was done:
 *   EINVAL   a filter operation that does not exist; a size that is negative
 *   EMSGSIZE more than ATAC_MAX_BYTES of data
 *   EPERM    the port, or the barrier, was made by another thread
 * receive_message also returns false, with errno unchanged, if there is no message. What a program cannot go on after
 * ends its run, with a text that ATAC_run returns: a queue of tasks that is full or another thread's, a channel with
 * more messages than the limit of the message buffer, threads that wait for ever.
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

/* ---- runs ---- */

/* What the thesis gives (Table 4.1) is the default; times are cycles of a clock of 1 GHz. */
typedef struct ATAC_options {
    int number_of_cores; /* 1 to 1024. 64 */
    /*
     * 1 to 1024; 0, the default: one on each core. Thread t is on core t modulo the number of cores. Threads of one
     * core share its wavelength, its controller and the time in which it computes; each of them has its own filter, and
     * receives each message of the others, those of its own core too.
     */
    int number_of_threads;
    int live; /* 0: virtual time, the same course each time. Else real threads */
    /*
     * Live: a cycle takes so many ns, at most 1000000, and no call takes less than the model says. 0: messages and
     * computation take no time but the host's. -1: what `subutai run --time-scale` says, or 0
     */
    int time_scale;
    int channels;                                          /* 1 to 1024. 64 */
    int transport_cycles, controller_cycles, check_cycles; /* 5, 10, 3 */
    int software_cycles; /* of the thread, for each message that it sends or retrieves. 300; ours */
    int lambda_limit;    /* messages of one sender at one receiver, under way or in its queue. 0: no limit */
    int buffer_limit;    /* messages of a channel in a core's message buffer: more end the run. 0: no limit */
    int stack_bytes;     /* of each thread, 16384 to 16777216. 262144 */
} ATAC_options;

ATAC_options ATAC_options_default(void);

/*
 * Calls prepare(argument), if it is not NULL, for channels and masters that all threads use; then body(argument) in
 * each thread. Blocks until all have ended. NULL, or what went wrong, valid until the next run. One run at a time.
 *
 * *cycles, if not NULL: until the last thread has ended; live with a time scale of 0 in ns. In a run that went wrong
 * threads end where they are: what they have allocated is lost, and a lock that they hold stays locked. Live they end
 * in a call, by unwinding as with pthread_exit: in C++ a catch (...) around a call must throw again, and
 * destructors must not call this interface; both would end the program. In virtual time they do not unwind.
 *
 * In virtual time a thread must not wait for another one by anything but this interface, and must not call
 * pthread_exit. Live pthread_exit ends the thread as a return does. prepare may end by pthread_exit or an exception:
 * the run then does not begin.
 */
const char *ATAC_run(const ATAC_options *options, void (*prepare)(void *argument), void (*body)(void *argument),
                     void *argument, unsigned long long *cycles);

/*
 * Blocks until all threads of the run have called it: behind it their ports, barriers and piles are there. A message to
 * a thread that has no port yet is not received. (The thesis: "set a barrier across all cores".)
 */
void ATAC_ready(void);
/* The calling thread's number, from 0 on; -1: it is none of a run. */
int ATAC_self(void);
/* The time, in cycles. Of threads of a run only, as ATAC_ready and ATAC_compute; elsewhere 0, with EPERM. */
unsigned long long ATAC_cycles(void);
/*
 * The thread computes so many cycles: in virtual time, and live with a time scale it waits until they have passed. With
 * a time scale of 0 it gives way to other threads.
 */
void ATAC_compute(unsigned long long cycles);

/* ---- channels, Table 4.2 ---- */

/*
 * A new channel. NULL: there is no memory (ENOMEM), the chip has no more channels (ENOSPC), or the calling thread is
 * neither of a run nor runs its prepare (EPERM). delete frees the memory; the run does not have its number again.
 */
VirtualChannel *VirtualChannel_create(void);
void VirtualChannel_delete(VirtualChannel *vc);

/*
 * The calling thread subscribes to the channel: it receives what arrives at its core from now on. Two ports of one
 * thread and channel share its messages. NULL: ENOMEM; EPERM: no thread of a run.
 * If another thread of the core has the channel already, also what waits for the core's controller now is received.
 */
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

/* The filter of this core, for all its channels, as this thread has it: a message passes if (its signature & mask) op
 * signature is not 0. For what arrives from now on; where threads share the core, also for what waits for the core's
 * controller now. */
bool VirtualChannelPort_set_local_filter(VirtualChannelPort *port, int mask, int match_operation, int signature);

/* ---- the barrier, Table 5.1 ---- */

/* Reserves a channel. NULL: as VirtualChannel_create, or number_of_threads is not positive (EINVAL). */
BarrierMaster *BarrierMaster_new(int number_of_threads);
void BarrierMaster_delete(BarrierMaster *master);
/* The calling thread's barrier. All threads have one before the first waits (ATAC_ready). NULL: as
 * VirtualChannelPort_new. */
Barrier *BarrierMaster_generate_barrier(BarrierMaster *master);
void Barrier_delete(Barrier *barrier);
/*
 * Broadcasts that this thread has come, and blocks until the messages of all others are there. Messages of the next
 * episode that come early are kept. False: EPERM.
 */
bool Barrier_wait(Barrier *barrier);

/*
 * ---- work stealing, Table 5.2 ----
 *
 * A task is run by the thread that gets it. Four systems:
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

/*
 * capacity: tasks in one queue, 1 to 65536. By prepare, or by one thread. NULL: EINVAL; ENOSPC; EPERM; ENOMEM, also if
 * the queues of all threads do not fit into the 16777216 shared words of a run: each has capacity + 8 of them, rounded
 * up to 8.
 */
DWorkPileMaster *DWorkPileMaster_new(int kind, int number_of_threads, int capacity);
void DWorkPileMaster_delete(DWorkPileMaster *master);
/*
 * The calling thread's. Each of the number_of_threads first threads makes one, and gets until there is no more. NULL:
 * ENOMEM; EINVAL: the thread's number is too large; EPERM: as VirtualChannelPort_new. Another thread's use of a pile
 * ends the run.
 */
DWorkPile *DWorkPileMaster_generateLocalWorkPile(DWorkPileMaster *master);
void DWorkPile_delete(DWorkPile *pile);

/*
 * A task, from the own queue or a stolen one; the task that this thread has got before has been run. Blocks while
 * others run tasks that may put more. NULL: all tasks of all threads have been run.
 */
IWorkTask *DWorkPile_get(DWorkPile *pile);
/* A task that is not NULL. The run ends with an error if the queue is full. May block, for a lock. */
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

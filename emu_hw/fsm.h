/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state machine of a network interface (NI). One step takes one request packet to its end, and says which packets
 * leave, when they leave, and how long the machine was busy. Source: sections V-A and V-B, Tables III and IV of the
 * paper.
 *
 * It knows no thread, clock or file; the live library and the simulator drive the same code. A driver
 *
 *   1. gives each NI its memory and calls hw_ni_init, which builds the free list;
 *   2. allocates a primitive with hw_packet_alloc at an NI of its choice (the paper: round robin), and keeps the ID
 *      of the ALLOCATED answer in the program's object. A condition is allocated at its first wait, for the mutex of
 *      that wait, and lives where the mutex lives; hw_id_is_bound_to tells whether it has to move;
 *   3. sends every other request to hw_id_ni(ID), the requests of one thread in program order;
 *   4. calls hw_fsm_step for one request at a time, with an array of hw_ni_max_outputs() outputs, and carries each
 *      output to the core in its header, at_cycles after the request's header arrived. A request that was HELD has
 *      not happened: the driver sets it aside, so that other threads' requests pass it, and steps it again after a
 *      step of this NI has set made_room. A WITHDRAW for a held request needs no step: the driver takes the request
 *      away, and the thread waits no more;
 *   5. lets a thread go on when the answer comes that it waits for (packet.h: what each means). UNLOCK, SIGNAL,
 *      BROADCAST and DEALLOC have no answer: the caller goes on at once. They can still be refused; the NACK says which
 *      request it is for, so that it is not taken for the answer to a later request. A NACK for a stale SIGNAL or
 *      BROADCAST says that no thread waits; for a stale LOCK or wait it says that the object has a new ID by now.
 *
 * Timed and cancelled waits (ours) send WITHDRAW, with the ID that the thread waits on. WITHDRAWN: the thread waits no
 * more; if it waited on a condition, it does not hold the mutex either. GONE: it is too late. The thread's GRANT has
 * been sent, or the thread is in the mutex's queue after a signal; it must wait for that GRANT. Every WITHDRAW has one
 * answer, which may come after the GRANT (or WOKEN, or AGAIN): the thread goes on when it has both. A condition wait
 * that is cancelled after GONE has consumed a signal, and has to pass it on with SIGNAL.
 *
 * Without a free queue element (ours, except for HW_FULL_AGAIN):
 *
 *   - A LOCK is HELD.
 *   - A COND_WAIT may not be held, since its thread holds the mutex, which other threads may need before they make
 *     room. The mutex is unlocked first, which frees an element if a thread waited for it. If no thread did, the
 *     condition's waiter is WOKEN at once, as by a spurious wake-up, and must LOCK the mutex before it returns.
 *   - A BARRIER_WAIT always finds an element: a barrier reserves all that it will need when it is allocated, and is
 *     refused with NO_SPACE if there are fewer.
 *   - HW_FULL_AGAIN is the paper's way: a request that finds no element is answered AGAIN.
 *
 * No packet can damage the scratchpad. A packet that is malformed, has come to the wrong NI, has a stale ID, or asks a
 * primitive for another kind's operation is answered by NACK without an access: the machine keeps a copy of the control
 * elements' first words in flip-flops (ours). If there is no core to answer to, the packet is dropped.
 */
#ifndef HW_FSM_H
#define HW_FSM_H

#include "packet.h"
#include "spm.h"
#include "timing.h"

enum hw_full { HW_FULL_HOLD, HW_FULL_AGAIN };

struct hw_config {
    uint32_t n_tiles;   /* cores, each with its NI */
    uint32_t n_control; /* for each NI */
    uint32_t n_queue;
    enum hw_full full;
    bool reserve; /* barriers reserve their queue elements */
    struct hw_timing timing;
};

/* 64 tiles, 4 control and 122 queue elements, HW_FULL_HOLD, reserving, Table IV's timing. */
struct hw_config hw_config_default(void);

/* The same with the paper's choices for a full scratchpad: HW_FULL_AGAIN, and nothing reserved. */
struct hw_config hw_config_paper(void);

enum hw_state {
    HW_STATE_ALLOCATION,
    HW_STATE_DEALLOCATION,
    HW_STATE_MUTEX_LOCK,
    HW_STATE_MUTEX_UNLOCK,
    HW_STATE_BARRIER_WAIT,
    HW_STATE_CONDITION_WAIT,
    HW_STATE_CONDITION_BROADCAST,
    HW_STATE_CONDITION_SIGNAL,
    HW_N_STATES_PAPER,
    HW_STATE_TRYLOCK = HW_N_STATES_PAPER, /* this and the states below are ours */
    HW_STATE_WITHDRAW,
    HW_STATE_EVICT,
    HW_STATE_REFUSE,
    HW_N_STATES
};

/* "Mutex Lock" and so on, as in Table III. */
const char *hw_state_name(enum hw_state state);

struct hw_ni_stats {
    uint64_t busy_cycles;            /* of all steps, HELD ones too */
    uint16_t max_control, max_queue; /* most in use at a time */
    uint64_t n_steps[HW_N_STATES];   /* without HELD ones; refused ones are under HW_STATE_REFUSE */
    uint64_t n_held;
    uint64_t n_no_space, n_again, n_woken;
};

struct hw_ni {
    struct hw_spm spm;
    struct hw_timing timing;
    enum hw_full full;
    uint16_t n_control_used;
    struct hw_ni_stats stats;
};

/* Bytes of scratchpad each NI needs. */
static inline size_t hw_config_spm_bytes(const struct hw_config *config) {
    return hw_spm_n_bytes(config->n_control, config->n_queue);
}

/* `bytes` is the caller's and stays in use. False, and nothing done: there can be no such machine, or no NI `number`.
 */
bool hw_ni_init(struct hw_ni *ni, const struct hw_config *config, uint32_t number, uint8_t *bytes);

/* No step of this NI has more outputs: all waiters of a barrier, and the last thread to arrive. */
static inline uint32_t hw_ni_max_outputs(const struct hw_ni *ni) {
    return ni->spm.n_queue + 2u;
}

/*
 * Ours, for a driver in a forked process, with copied NIs: the waiters are not in it. Empties every queue,
 * whatever state a step that was cut short has left it in, and rebuilds the free list. Mutexes stay held. Barriers keep
 * their count of arrivals; their waiters become thread 65535 of this tile. An allocation that was cut short is undone
 * if that shows. From here on the generations of IDs differ from those that the other process deals out: an ID of that
 * process may be in memory that was copied a moment later. The statistics begin anew. Counts no access.
 */
void hw_ni_forget_waiters(struct hw_ni *ni);

enum hw_status {
    HW_STATUS_DONE,
    HW_STATUS_HELD,    /* no queue element: nothing happened, try again later */
    HW_STATUS_REFUSED, /* the one output is a NACK; nothing happened */
    HW_STATUS_DROPPED  /* refused, and there is no core to answer to */
};

struct hw_output {
    struct hw_packet packet;
    uint32_t at_cycles; /* ready for the network, counted from the arrival of the request's header */
};

struct hw_step {
    enum hw_status status;
    enum hw_state state;
    uint32_t n_accesses;      /* times m */
    uint32_t n_cycles;        /* times c */
    uint32_t response_cycles; /* entry + accesses * m + cycles * c + exit: the machine is busy so long */
    uint32_t n_outputs;
    bool made_room; /* a HELD request may succeed now */
};

/*
 * Would this LOCK, which was HELD before, be HELD again? A driver asks before it steps the request again: the answer is
 * in the scratchpad's registers and words, and costs no access.
 */
bool hw_ni_would_hold(const struct hw_ni *ni, const struct hw_packet *lock);

/* Never blocks. outputs: hw_ni_max_outputs() of them, in the order they leave. */
void hw_fsm_step(struct hw_ni *ni, const struct hw_packet *request, struct hw_step *step, struct hw_output *outputs);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The state machine of a network interface (NI): one step takes one request packet to its end and says which packets
 * leave, when, and how long the machine was busy. Source: sections V-A and V-B, Tables III and IV of the paper.
 *
 * It knows no thread, clock or file; the live library and the simulator drive the same code. A driver
 *
 *   1. gives every NI its memory and calls hw_ni_init, which builds the free list;
 *   2. allocates a primitive with hw_packet_alloc at an NI of its choice (the paper: round robin) and keeps the ID
 *      of the ALLOCATED answer in the program's object. A condition is allocated when it is first waited on, for
 *      the mutex it is used with, and lives where that lives; hw_id_is_bound_to tells whether it has to move;
 *   3. sends every other request to hw_id_ni(ID), requests of one thread in program order;
 *   4. calls hw_fsm_step for one request at a time, with an array of hw_ni_max_outputs() outputs, and carries each
 *      output to the core in its header, at_cycles after the request's header arrived. A request that was HELD has
 *      not happened: set it aside, so that other threads' requests pass it, and step it again after a step of this
 *      NI has set made_room. A WITHDRAW for it needs no step: take it away, the thread waits no more;
 *   5. lets a thread that waits for an answer go on when it comes (packet.h: what each means). UNLOCK, SIGNAL,
 *      BROADCAST and DEALLOC have none: the caller goes on at once. They can still be refused; the NACK says which
 *      request it is for, so that it is not taken for the answer to a later one. A NACK for a stale SIGNAL or
 *      BROADCAST says that nobody waits; for a stale LOCK or wait that the object has a new ID by now.
 *
 * Timed and cancelled waits (ours): WITHDRAW, with the ID that is being waited on. WITHDRAWN: the thread waits no
 * more; of a condition, it does not hold the mutex either. GONE: it is too late, its GRANT has been sent or it is in
 * the mutex's queue after a signal, and it must wait for that GRANT. Every WITHDRAW has one answer, which may come
 * after the GRANT (or WOKEN, or AGAIN): the thread goes on when it has both. A condition wait that is cancelled after
 * GONE has consumed a signal and has to pass it on with SIGNAL.
 *
 * Without a free queue element (ours, but HW_FULL_AGAIN): a LOCK is HELD. A COND_WAIT may not be, since its thread
 * holds the mutex that others may need to make room: the mutex is unlocked first, which frees an element if somebody
 * waited for it; if nobody did, the thread is WOKEN at once, as by a spurious wake-up, and must LOCK the mutex before
 * it returns. A BARRIER_WAIT always finds an element, because a barrier reserves all it will need when it is allocated
 * and is refused with NO_SPACE otherwise. HW_FULL_AGAIN is the paper: whoever finds no element is answered AGAIN.
 *
 * No packet can damage the scratchpad: one that is malformed, has come to the wrong NI, has a stale ID or asks a
 * primitive for another's operation is answered by NACK without an access, from the copy of the control elements'
 * first words that the machine keeps in flip-flops (ours). Without a core to answer to it is dropped.
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

/* The same with the paper's choices where there is none left. */
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
    HW_STATE_TRYLOCK = HW_N_STATES_PAPER, /* from here on ours */
    HW_STATE_WITHDRAW,
    HW_STATE_EVICT,
    HW_STATE_REFUSE,
    HW_N_STATES
};

/* "Mutex Lock" and so on, as in Table III. */
const char *hw_state_name(enum hw_state state);

struct hw_ni_stats {
    uint64_t busy_cycles;            /* HELD ones counted */
    uint16_t max_control, max_queue; /* most in use at a time */
    uint64_t n_steps[HW_N_STATES];   /* HELD ones not counted, refused ones under HW_STATE_REFUSE */
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

/* `bytes` is the caller's and stays in use. False, and nothing done, if there is no such machine or no NI `number`. */
bool hw_ni_init(struct hw_ni *ni, const struct hw_config *config, uint32_t number, uint8_t *bytes);

/* No step of this NI has more outputs: all waiters of a barrier and the last to arrive. */
static inline uint32_t hw_ni_max_outputs(const struct hw_ni *ni) {
    return ni->spm.n_queue + 2u;
}

/*
 * Ours, for a driver whose NIs were copied by a fork: whoever waited is not in the new process. Empties every queue, in
 * whatever state a step that was cut short has left them, and rebuilds the free list. Mutexes stay held; barriers keep
 * their count of arrivals, with the waiters made thread 65535 of this tile. An allocation that was cut short is undone
 * if it shows. From here on the generations of IDs differ from those that the other process deals out, some of which
 * may be in memory that was copied a moment later. The statistics begin anew. Counts no access.
 */
void hw_ni_forget_waiters(struct hw_ni *ni);

enum hw_status {
    HW_STATUS_DONE,
    HW_STATUS_HELD,    /* no queue element: nothing happened, try again later */
    HW_STATUS_REFUSED, /* the one output is a NACK; nothing happened */
    HW_STATUS_DROPPED  /* refused, and nobody to tell */
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

/* Never blocks. outputs: hw_ni_max_outputs() of them, in the order they leave. */
void hw_fsm_step(struct hw_ni *ni, const struct hw_packet *request, struct hw_step *step, struct hw_output *outputs);

#endif

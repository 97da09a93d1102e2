/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A thread's record: its answers are delivered there. Its thread writes it, and the server that answers. A field
 * without another note is its thread's own.
 */
#ifndef SBT_ENGINE_NI_RECORD_H
#define SBT_ENGINE_NI_RECORD_H

#include "engine/ni/eager.h"
#include "engine/ni/held.h"
#include "engine/ni/ring.h"
#include "wait/adapt.h"

/*
 * An answer as it arrived. A thread has room for two, because a WITHDRAW has an answer of its own. The answer of the
 * withdrawn request may come before or after that.
 */
struct ni_answer {
    struct hw_packet packet;
    uint32_t rest_ns;   /* the thread's own: of its call, see ni_wait_until; less than a cycle's */
    uint64_t at_cycles; /* when the core sees it */
};

enum { NI_ANSWER_MAIN, NI_ANSWER_WITHDRAW, NI_N_ANSWERS };

/* Where the answer to a request is put, if it has one. */
static inline int ni_answer_of(enum hw_op op) {
    return op == HW_OP_WITHDRAW ? NI_ANSWER_WITHDRAW : NI_ANSWER_MAIN;
}

#define NI_ANSWERED(which) (1u << (which))
#define NI_PARKED 4u

/*
 * What a thread knows of its NI thread; its own (service.h, ni_service_leave). All-zero: it answers in time.
 */
struct ni_trust {
    uint16_t n_own; /* requests that the thread serves itself before it thinks of the NI thread again */
    uint8_t n_late; /* how often in a row the NI thread was late; decides about the next n_own */
    bool called;    /* it has been woken, without a request */
    bool left;      /* the last request was left to it */
};

enum ni_use { NI_UNUSED, NI_USED, NI_NESTED, NI_LOST };

/* For each thread id there is a record. Records are never unmapped, so a late wake-up finds one. */
struct ni_thread {
    uint32_t state;      /* atomic, futex: NI_ANSWERED bits, NI_PARKED */
    uint32_t *wake_word; /* the word by which it is woken, NULL: `state` (sbt_park_own); atomic */
    uint16_t id, tile;
    uint32_t tid; /* kernel thread id, to find out whether the thread still exists */
    uint32_t use; /* enum ni_use; atomic */
    struct ni_answer answer[NI_N_ANSWERS];
    volatile uint32_t busy;                /* 1: an operation is under way; a further operation is a signal handler's */
    volatile uint32_t inside;              /* 1: it hands in, or holds an NI; a handler must keep out of both */
    volatile uint8_t posted[NI_N_ANSWERS]; /* enum hw_op of a request, until its answer is taken; 0: none */
    volatile uint32_t deferred;            /* 1: a handler has left requests to hand in */
    struct ni_thread *outer;               /* of a handler's record: the interrupted record */
    uint64_t last;         /* position of its last request, plus 1, also of an earlier thread; 0: none */
    struct ni_eager eager; /* with a time scale only */
    struct ni_trust trust;
    uint16_t home, last_tile;              /* of its last request: the NI; the tile that has `last` in its mailbox */
    struct sbt_adapt barriers, conditions; /* how long they last; not in the objects, which a waiter may not touch */
    /* For the statistics: the request that the thread waits for. Written by the server of its home. */
    uint64_t asked_cycles;
    uint64_t network_cycles, fsm_cycles;
    uint8_t asked; /* enum hw_op */
    bool asked_locally;
    bool woken; /* its last condition wait found no queue element; its own */
    /* Its request that is set aside for want of a queue element, and the links. Under the lock of that tile. */
    struct hw_packet held;
    struct ni_origin held_origin;
    struct ni_held_request place;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct ni_thread) <= 256, "each further cache line maps 4 MiB more in every process");

#endif

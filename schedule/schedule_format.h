/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The schedule log of the engine det: every operation of a process in the order in which they were made
 * (docs/schedule-format.md). The engine writes it, and schedule_read.h reads it.
 *
 * A header, then tokens. A token is a byte with the kind, and fields: numbers are LEB128 (7 bits a byte, the lowest
 * first; the top bit says that more follow). A token of kind 0 is what the writer has not reached: the process was
 * killed, has crashed, has become another program, or has ended by a system call of its own. Kinds and operations keep
 * their numbers; new ones are added at the end.
 */
#ifndef SCHEDULE_SCHEDULE_FORMAT_H
#define SCHEDULE_SCHEDULE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#define SCHEDULE_MAGIC                                                                                                 \
    { 'S', 'B', 'T', 'S', 'C', 'H', 'E', 'D' }
#define SCHEDULE_VERSION 1

/* At the beginning of the file. Little-endian. */
struct schedule_header {
    char magic[8];
    uint32_t version, bytes; /* of this header */
    uint64_t seed;           /* of the order; 0: by creation */
    uint32_t process, parent;
    uint32_t turn_ns;   /* logical time of a turn that is kept */
    uint32_t is_forked; /* 1: the schedule of a forked child, from the fork on */
};
_Static_assert(sizeof(struct schedule_header) == 40, "no holes: part of the format");

enum schedule_op {
    SCHEDULE_MUTEX_LOCK,
    SCHEDULE_MUTEX_TRYLOCK,
    SCHEDULE_MUTEX_UNLOCK,
    SCHEDULE_COND_WAIT,
    SCHEDULE_COND_SIGNAL,
    SCHEDULE_COND_BROADCAST,
    SCHEDULE_BARRIER,
    SCHEDULE_READ_LOCK,
    SCHEDULE_READ_TRYLOCK,
    SCHEDULE_WRITE_LOCK,
    SCHEDULE_WRITE_TRYLOCK,
    SCHEDULE_RWLOCK_UNLOCK,
    SCHEDULE_SEM_WAIT,
    SCHEDULE_SEM_TRYWAIT,
    SCHEDULE_SEM_POST,
    SCHEDULE_SPIN_LOCK,
    SCHEDULE_SPIN_UNLOCK,
    SCHEDULE_ONCE,
    SCHEDULE_CREATE,
    SCHEDULE_BEGIN,
    SCHEDULE_END,
    SCHEDULE_JOIN,
    SCHEDULE_DETACH,
    SCHEDULE_CANCEL,
    SCHEDULE_YIELD,
    SCHEDULE_SLEEP,
    SCHEDULE_LEAVE,
    SCHEDULE_FORK,
    SCHEDULE_GIVE_UP,
    SCHEDULE_SOFT_BARRIER,
    SCHEDULE_PCS,
    SCHEDULE_FUTEX_WAIT,
    SCHEDULE_FUTEX_WAKE,
    SCHEDULE_FUTEX_REQUEUE,
    SCHEDULE_N_OPS
};

/* Why a thread that waited goes on. */
enum schedule_reason {
    SCHEDULE_WOKEN,
    SCHEDULE_TIMED_OUT,
    SCHEDULE_CANCELLED,
    SCHEDULE_INTERRUPTED,
    SCHEDULE_N_REASONS
};

/* How a thread comes back, at a point that the outside decides. */
enum schedule_return {
    SCHEDULE_FROM_CALL,    /* from a call that waits for other processes or devices */
    SCHEDULE_FROM_HANDLER, /* a signal handler has interrupted its wait, or ended it */
    SCHEDULE_FROM_ABSENCE, /* a handler has run in its place, or a stall or a late wait was released */
    SCHEDULE_FROM_NOWHERE, /* a handler's operation, or a thread that no operation has created */
    SCHEDULE_FROM_PCS,     /* an operation in, or behind, a performance-critical section */
    SCHEDULE_N_RETURNS
};

/*
 * Kinds of tokens. Those below 80 begin with a head: if SCHEDULE_NEXT is set in the kind's byte, the thread is that of
 * the head before, a kept turn later; otherwise follow the thread's number and the logical time since the head before,
 * in ns. The first head is after thread 0, time 0.
 */
enum schedule_kind {
    SCHEDULE_CUT = 0,
    SCHEDULE_OP = 1,          /* + enum schedule_op: head, call site (0: not known) */
    SCHEDULE_RESUME = 64,     /* + enum schedule_reason: head. The wait of that thread's last operation is over */
    SCHEDULE_RETURN = 68,     /* + enum schedule_return, but for FROM_PCS: head. It is no part of the hash */
    SCHEDULE_STALL = 72,      /* head: that thread keeps the turn without an operation */
    SCHEDULE_RELEASED = 73,   /* head: the turn has been taken away from that thread, and it goes on outside */
    SCHEDULE_SECTION = 74,    /* head, hint, turns: that thread gives the turn up. It is no part of the hash */
    SCHEDULE_PCS_RETURN = 75, /* head: a return FROM_PCS */
    SCHEDULE_DEADLOCK = 76,   /* head, enum schedule_op, call site, object, thread that has it or is joined plus 1: no
                                 thread can go on, and that one waits for that; 0: not known. It is no part of the
                                 hash */
    SCHEDULE_OBJECT = 80,     /* number of the object of the last operation, in the order of first use from 1 on */
    SCHEDULE_OTHER = 81,      /* number of the thread that the last operation is about */
    SCHEDULE_MODULE = 82,     /* bytes of its path, the path: a file with code; they are counted from 0 on */
    SCHEDULE_SITE = 83,       /* module, offset in that file of the call's last byte; they are counted from 1 on */
    SCHEDULE_HINTS = 84,      /* struct schedule_hints, its three numbers: before the first event */
    SCHEDULE_TIME = 85,    /* ns from the last event with a time; ns that the next one's thread waited for the turn */
    SCHEDULE_CALLER = 86,  /* site: the call of the function that makes the next operation, and so on up the stack. No
                              part of the hash */
    SCHEDULE_FULL = 126,   /* the last token: the file could not grow, and the process went on without a log */
    SCHEDULE_FINISH = 127, /* struct schedule_totals */
    SCHEDULE_NEXT = 128
};
_Static_assert(SCHEDULE_OP + SCHEDULE_N_OPS <= (int)SCHEDULE_RESUME, "kinds do not overlap");

/* What hints the run had. Without this token there were none, and each of these was on but for FILE. */
enum schedule_flag { SCHEDULE_WITH_FILE = 1, SCHEDULE_SFS = 2, SCHEDULE_STS = 4, SCHEDULE_SOFT_BARRIERS = 8 };
struct schedule_hints {
    uint64_t flags, hash, n; /* enum schedule_flag; of the file, and how many it has */
};

/* At the end, each number in 8 bytes. */
struct schedule_totals {
    uint64_t hash, n_ops, n_outside, n_stalls, n_objects;
};

enum {
    SCHEDULE_MAX_NUMBER = 10, /* bytes of a number */
    SCHEDULE_MAX_CALLERS = 3,
    SCHEDULE_MAX_PATH = 4096,
    SCHEDULE_MAX_TOKEN = 1 + 3 * SCHEDULE_MAX_NUMBER /* bytes of a token without a path or totals */
};

static inline uint8_t *schedule_put(uint8_t *at, uint64_t number) {
    for (; number >= 128; number >>= 7)
        *at++ = (uint8_t)(number | 128);
    *at++ = (uint8_t)number;
    return at;
}

/* The hash of the schedule: operations, their objects, and how waits ended. */
#define SCHEDULE_HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)

static inline uint64_t schedule_hash_op(uint64_t hash, uint32_t thread, enum schedule_op op) {
    hash = (hash ^ ((uint64_t)thread << 8 | (uint64_t)op)) * SCHEDULE_HASH_FACTOR;
    return hash ^ hash >> 32;
}

static inline uint64_t schedule_hash_object(uint64_t hash, uint32_t object) {
    return (hash ^ object) * SCHEDULE_HASH_FACTOR;
}

static inline uint64_t schedule_hash_resume(uint64_t hash, uint32_t thread, enum schedule_reason reason) {
    hash = (hash ^ ((uint64_t)thread << 8 | 128u | (uint64_t)reason)) * SCHEDULE_HASH_FACTOR;
    return hash ^ hash >> 32;
}

#endif

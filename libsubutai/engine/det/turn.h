/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The turn: which thread may make the next synchronization operation. A pure state machine: it knows no clock, memory
 * allocation or atomic, and never blocks. The caller serializes the calls.
 *
 * Threads have numbers: a new thread gets the lowest free one. The turn goes round in the order of the numbers among
 * the runnable threads, as in PARROT (SOSP 2013); with a seed, the next thread is drawn instead. A blocked thread waits
 * in a first-in first-out queue by its key. The next thread depends on the operations so far and on the seed alone,
 * unless a thread was outside: when it returns is not decided here.
 *
 * Logical time counts TURN_NS for each pass of the turn. A turn that a thread keeps counts TURN_KEPT_NS, about what it
 * takes: at TURN_NS a thread that goes on alone would run ahead of the outside's time, and sleep it off at each
 * deadline of another one. But where threads wait for turns, it counts as any other. A blocked thread may have a
 * deadline in it. If no thread is runnable, time jumps to the earliest deadline, but for those of absent threads; but
 * only if the caller has said of that thread that its time is over for the outside too (turn_overdue).
 *
 * A thread may give the turn up for a number of turns (LBDR's synchronization-free section): it computes, and is passed
 * over until so many turns of others are over. Such a thread, and a blocked one with a soft deadline, wait for turns
 * alone. If no thread is runnable, the earliest of them goes on at once, and time does not jump.
 *
 * A thread that waits for the turn may offer its operation. The thread that passes the turn to it performs the
 * operation in its place, and passes the turn on: no thread has to wake up for that. The order is the same as without
 * offers.
 *
 * | state    | runnable bit | in a queue | may hold the turn |
 * |----------|--------------|------------|-------------------|
 * | RUNNABLE | set          | no         | yes               |
 * | BLOCKED  | clear        | yes        | no                |
 * | SECTION  | clear        | no         | no                |
 * | OUTSIDE  | clear        | no         | no                |
 * | ENDED    | clear        | no         | no                |
 * | FREE     | clear        | no         | no                |
 */
#ifndef SBT_ENGINE_DET_TURN_H
#define SBT_ENGINE_DET_TURN_H

#include <stdbool.h>
#include <stdint.h>

#define TURN_NS 1000
#define TURN_KEPT_NS 100
#define TURN_THREADS 16384 /* at most */
#define TURN_QUEUES 256
#define TURN_NO_THREAD UINT32_MAX
#define TURN_NEVER UINT64_MAX
/* The tag of a wait with a wake-up for that thread alone; any other wake-up says that an object may be had. */
#define TURN_EXACT UINT8_MAX

enum turn_state { TURN_FREE, TURN_RUNNABLE, TURN_BLOCKED, TURN_OUTSIDE, TURN_ENDED, TURN_SECTION };
/* Why a blocked thread is runnable again. */
enum turn_reason { TURN_WOKEN, TURN_TIMED_OUT, TURN_CANCELLED, TURN_INTERRUPTED }; /* as enum schedule_reason */

/* An operation that another thread may perform. */
enum turn_offer {
    TURN_NO_OFFER,
    TURN_OFFERED, /* RUNNABLE: the thread waits for the turn, or has it and has not looked */
    TURN_SERVED   /* until the thread looks */
};

struct turn_thread {
    uintptr_t key;     /* BLOCKED: what it waits for */
    uint64_t deadline; /* BLOCKED: logical ns, or TURN_NEVER; SECTION: when it is over */
    uint32_t next;     /* BLOCKED: the next in its queue, plus 1; 0: it is the last */
    uint32_t bits;     /* BLOCKED: for turn_wake_bits; the caller's */
    uint8_t state;     /* enum turn_state */
    uint8_t reason;    /* enum turn_reason, of its last wait; of a section: TURN_TIMED_OUT, or TURN_WOKEN before */
    uint8_t tag;       /* BLOCKED: the caller's */
    bool overdue;      /* BLOCKED: its deadline has passed outside */
    bool can_cancel;   /* BLOCKED: at a cancellation point */
    bool is_absent;    /* BLOCKED: when it is woken it is OUTSIDE */
    bool is_back;      /* RUNNABLE: it has been woken, and has not had the turn since */
    bool is_soft;      /* SECTION, or BLOCKED: its deadline has come if no thread is runnable */
};

/* All-zero, then turn_begin. */
struct turn {
    uint32_t holder;     /* or TURN_NO_THREAD: no thread is runnable */
    uint32_t n_runnable; /* bits of `runnable` that are set */
    uint32_t n_back;     /* threads that are back */
    uint32_t n_soft;     /* threads with a soft deadline */
    uint64_t now;        /* logical ns */
    uint64_t kept_ns;    /* what a kept turn counts: TURN_KEPT_NS, or TURN_NS if n_soft is not 0 */
    uint64_t next_due;   /* no deadline is earlier */
    uint64_t random;     /* state of the generator; 0: no seed */
    uint32_t n_threads;  /* numbers from here on have never been used */
    struct {
        uint32_t first, last; /* plus 1; 0: empty */
    } queue[TURN_QUEUES];
    uint64_t runnable[TURN_THREADS / 64];
    struct turn_thread thread[TURN_THREADS];
    uint8_t offer[TURN_THREADS]; /* enum turn_offer */
};

/* `seed` 0: in the order of creation. The first thread has number 0 and the turn. */
void turn_begin(struct turn *t, uint64_t seed);

/* A new runnable thread; TURN_NO_THREAD: there are too many. */
uint32_t turn_create(struct turn *t);
/* The holder ends, and has the turn until it is passed. */
void turn_end(struct turn *t);
/* The number of a thread that has ended, that has never run, or that is no more, may be used again. */
void turn_release(struct turn *t, uint32_t i);

/* Time goes on by a turn. The next holder is chosen, also among threads with a deadline that has come, and returned. */
uint32_t turn_pass(struct turn *t);
/* The same, but the holder keeps the turn. False: a deadline comes with this turn, and the turn must be passed. */
bool turn_keep(struct turn *t);
/* No thread has the turn: choose one, if one is runnable or time may jump. The holder, or TURN_NO_THREAD. */
uint32_t turn_choose(struct turn *t);

/*
 * That thread waits for the turn, and offers its operation. False: it has the turn, or is not in the round.
 */
bool turn_offer(struct turn *t, uint32_t i);
/* If the holder has offered its operation, it is served: the caller performs it. The holder, or TURN_NO_THREAD. */
uint32_t turn_serve(struct turn *t);
/* The thread takes its offer back, and forgets that it was served. True: it was not. */
bool turn_withdraw(struct turn *t, uint32_t i);

/* Also without what keeps the rest from changing. */
static inline enum turn_state turn_state_of(const struct turn *t, uint32_t i) {
    return (enum turn_state)__atomic_load_n(&t->thread[i].state, __ATOMIC_SEQ_CST);
}

/* The holder blocks, and has the turn until it is passed. */
void turn_block(struct turn *t, uintptr_t key, uint64_t deadline, uint8_t tag, bool can_cancel);
/* The deadline of the holder, which has blocked, is soft. */
void turn_soften(struct turn *t);
/* The holder gives the turn up for so many turns of others, from 1 on, and has it until it is passed. */
void turn_give_up(struct turn *t, uint64_t turns);
/*
 * Wake at most n threads that wait for `key`, first come first. How many. An absent thread is woken too, but does not
 * count, unless its wait is exact: it may be long until it takes what it was woken for.
 */
uint32_t turn_wake(struct turn *t, uintptr_t key, uint32_t n);
/*
 * The same for the threads with one of those bits. Absent threads are woken too and never count: in the kernel no
 * thread waits while a handler runs in its place.
 */
uint32_t turn_wake_bits(struct turn *t, uintptr_t key, uint32_t n, uint32_t bits);
/*
 * Move at most n threads that wait for `from`, first come first, to the end of those that wait for `to`. How many. If
 * the keys are the same they stay where they are. Absent threads stay too, and do not count.
 */
uint32_t turn_move(struct turn *t, uintptr_t from, uintptr_t to, uint32_t n);
/* The thread that has waited for `key` longest; TURN_NO_THREAD: none does. */
uint32_t turn_first(const struct turn *t, uintptr_t key);
/* Wake this thread, if it is blocked. */
void turn_wake_thread(struct turn *t, uint32_t i, enum turn_reason reason);
/* That thread has been woken, and goes on without the turn: it is not back. */
void turn_go_on(struct turn *t, uint32_t i);
/* Of the threads that are back, one that a round robin reaches last; TURN_NO_THREAD: none is. */
uint32_t turn_last_back(const struct turn *t);
/* How many threads wait for `key` with that tag. */
uint32_t turn_waiting(const struct turn *t, uintptr_t key, uint8_t tag);

/* Where the threads wait that wait for `key`. */
static inline uint32_t turn_queue_of(uintptr_t key) {
    return (uint32_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> 56);
}
_Static_assert(TURN_QUEUES == 1 << (64 - 56), "as many bits of the hash");

/* The holder leaves the round, and has the turn until it is passed; it comes back. */
void turn_leave(struct turn *t);
void turn_return(struct turn *t, uint32_t i);

/* The thread that had the turn leaves the round in its absence; the turn has been taken from it. */
void turn_expel(struct turn *t, uint32_t i);

/*
 * That thread is blocked, or runnable and back from its wait: it is absent until turn_present, since a signal handler
 * runs in its place. If it was woken already, the wake-up is passed on; if it had the turn, the caller chooses.
 */
void turn_absent(struct turn *t, uint32_t i);
/* It is there again: what has come meanwhile has woken it. True: it returns from outside. */
bool turn_present(struct turn *t, uint32_t i);

/* The deadline of that blocked thread has passed outside too. */
void turn_overdue(struct turn *t, uint32_t i);

#endif

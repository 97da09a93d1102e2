/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine det: every synchronization operation happens while its thread has the turn (turn.h), so the order of all
 * operations is the same in each run (docs/deterministic.md).
 *
 * An operation is det_take, a look at the object and changes of it, and det_pass. If the operation must wait, det_block
 * passes the turn and returns when the thread has it again; then the operation looks again. Objects hold plain fields:
 * only the holder of the turn touches them, and passing the turn publishes them. Signal handlers of the program are
 * deferred between det_take and det_pass. A handler that interrupts a thread that is blocked or outside has a number of
 * its own for each of its operations, as if it came from outside (a guest). From its first operation until it returns
 * the interrupted thread is absent: if it is woken it is outside, and what it was woken for goes to others.
 */
#ifndef SBT_ENGINE_DET_DET_H
#define SBT_ENGINE_DET_DET_H

#include "core/handlers.h"
#include "core/object.h"
#include "core/thread.h"
#include "engine/det/round.h"
#include "engine/det/stall.h"
#include "engine/engine.h"
#include "os/fence.h"
#include "os/fork.h"

/* The slow path of det_take: another thread has the turn, or the caller has no number. Blocks. */
void det_take_slow(void);
/*
 * The caller has the turn and did not wait for it; a thread has been cancelled. If that is the caller, and it is to be
 * cancelled asynchronously, that acts here.
 */
void det_look_at_cancellation(void);
/* The slow path of det_pass. */
void det_pass_slow(void);
/*
 * The process's first operation, or a forked child's, unless another thread makes it at once: then the round has begun
 * when this returns, and does not know the caller. Blocks.
 */
void det_begin_round(void);
/* The round is beginning, by another thread: until it has. Blocks. */
void det_await_begun(void);
/* watch.c: an operation, and the end of a wait, are logged and looked at for hints. */
void det_watch_op(enum det_op op);
/* The call site of an operation that is offered; 0: none is needed. False: another thread looks for one just now, or
 * the holder is to look for its caller too. */
bool det_watch_offer(uintptr_t *site);
/* In a forked child: another thread may have been in det_watch_offer. */
void det_watch_forked(void);
/* The same as det_watch_op, of the holder, which has offered. */
void det_watch_served(enum det_op op, uint32_t number, uintptr_t site);
/* The holder needs the turn for its operation: there is a hint. */
bool det_watch_needs_turn(uintptr_t site);
void det_watch_resume(enum turn_reason reason);
static inline bool det_is_watched(void) {
    return SBT_UNLIKELY(det_round->is_watched);
}
/*
 * With --serial only the holder of the turn runs the program: a thread that has passed the turn, or has come back into
 * the round, waits here. The order is the same as without: the turn would wait for the thread at its next operation.
 * Handlers are deferred, but for the length of the wait. Nothing for a guest.
 */
extern bool det_is_serial;
void det_wait_serially(void);

/* The caller has the turn for an operation. */
static inline bool det_in_operation(void) {
    return det_self.in_op == 1 && det_self.generation == sbt_fork_generation() + 1;
}

/* The caller is about to make an operation: it has the turn when this returns. */
static inline void det_get(void) {
    __atomic_store_n(&det_self.in_op, 1, __ATOMIC_RELAXED);
    sbt_fence_light();                                             /* pairs with the heavy fence of expel (stall.c) */
    if (SBT_UNLIKELY(det_self.generation != sbt_fork_page.known || /* 0 in a child that has not noticed */
                     __atomic_load_n(&det_round->turn.holder, __ATOMIC_ACQUIRE) != det_self.number))
        det_take_slow();
}

/*
 * Wait for the turn. Blocks; no cancellation point. Handlers are deferred until det_pass. An operation inside of
 * another one has the turn already, and does not pass it: an allocator's locks in the C library's pthread_create, the
 * locks that handlers of fork take.
 */
static inline void det_begin_op(void) {
    sbt_handlers_hold();
    if (SBT_UNLIKELY(det_in_operation()))
        det_self.n_inner++;
    else
        det_get();
    det_round->n_ops++;
}
/* The rest of it, where operations are watched. */
void det_take_watched(enum det_op op);
static inline void det_take(enum det_op op) {
    det_begin_op();
    struct det_round *r = det_round;
    if (det_is_watched())
        det_take_watched(op);
    else
        r->hash = schedule_hash_op(r->hash, det_self.number, (enum schedule_op)op);
}

/*
 * The object of the operation, by its number, which it gets at its first use. The number is in the object: an address
 * may be another in the next run.
 */
static inline void det_object(uint32_t *number) {
    struct det_round *r = det_round;
    if (SBT_UNLIKELY(*number == 0))
        *number = ++r->n_objects;
    r->hash = schedule_hash_object(r->hash, *number);
    if (SBT_UNLIKELY(__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED)))
        det_schedule_object(*number);
}

/*
 * det_take and det_object. The hash is read and written once: all operations are a chain through that word, and its way
 * through memory is half of what an operation takes of a thread that has the turn.
 */
void det_take_object_slow(enum det_op op, uint32_t *number);
static inline void det_take_object(enum det_op op, uint32_t *number) {
    det_begin_op();
    struct det_round *r = det_round;
    if (det_is_watched() || SBT_UNLIKELY(*number == 0)) {
        det_take_object_slow(op, number);
        return;
    }
    r->hash = schedule_hash_object(schedule_hash_op(r->hash, det_self.number, (enum schedule_op)op), *number);
}

/* The thread that the operation is about. */
static inline void det_other(uint32_t thread) {
    if (SBT_UNLIKELY(__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED)) && thread != TURN_NO_THREAD)
        det_schedule_other(thread);
}

/* With the lock: that thread is back from outside. */
static inline void det_returned(uint32_t thread, enum schedule_return how) {
    det_round->n_outside++;
    if (SBT_UNLIKELY(det_round->told_stuck == DET_STUCK))
        det_take_back_deadlock();
    if (SBT_UNLIKELY(__atomic_load_n(&det_round->is_logged, __ATOMIC_RELAXED)))
        det_schedule_return(thread, how);
}

/* What logical time is when the holder has kept this turn. */
static inline uint64_t det_after_kept(const struct turn *t) {
    return t->now + __atomic_load_n(&t->kept_ns, __ATOMIC_RELAXED);
}
/* No other thread is runnable, and no deadline comes with this turn: LBDR's single-threaded section. */
static inline bool det_is_alone(void) {
    const struct turn *t = &det_round->turn;
    return __atomic_load_n(&t->n_runnable, __ATOMIC_RELAXED) == 1 && det_after_kept(t) < t->next_due;
}

/* The operation is over, and the turn is passed: the fiber that has it now goes before what the caller computes. */
void det_make_way(void);

/* The operation is over. If no other thread is runnable, the caller keeps the turn. */
static inline void det_pass(void) {
    struct turn *t = &det_round->turn;
    if (SBT_UNLIKELY(det_self.n_inner != 0)) {
        if (det_self.creates && det_self.n_inner == 1)
            __atomic_store_n(&det_self.in_op, DET_CREATES, __ATOMIC_RELEASE);
        else
            det_self.n_inner--;
        sbt_handlers_release();
        return;
    }
    det_self.last_ns = t->now;
    bool keeps = det_is_alone() && !det_self.is_guest && det_self.hint == NULL;
    if (SBT_LIKELY(keeps))
        __atomic_store_n(&t->now, det_after_kept(t), __ATOMIC_RELAXED);
    else
        det_pass_slow();
    __atomic_store_n(&det_self.in_op, 0, __ATOMIC_RELEASE);
    sbt_handlers_release();
    if (SBT_UNLIKELY(!keeps))
        det_make_way();
}

/* What a wait may end by, besides a wake-up. */
struct det_wait {
    const struct sbt_deadline *deadline; /* NULL: none */
    uint64_t ns;                         /* 0, or how far away the deadline is in logical time */
    uint64_t turns;                      /* 0, or how many turns away the end is: a soft deadline, without `deadline` */
    uint8_t tag;
    uint8_t op;           /* enum det_op: what kind of object it is that is waited for */
    bool can_cancel;      /* TURN_CANCELLED */
    bool can_interrupt;   /* TURN_INTERRUPTED: a signal handler has run */
    bool goes_on;         /* det_release wakes it, and it returns without the turn: det_self.has_gone_on */
    bool is_offer;        /* it is over, too, if a handler has taken the offer back */
    bool looks_again;     /* the same after a handler that restarts system calls: det_self.is_restarted */
    uint32_t bits;        /* for turn_wake_bits */
    const uint32_t *word; /* with looks_again: while det_futex_compare says 0 of it, such a handler does not end */
    uint32_t expected;    /* the wait, which keeps its place in the queue */
};

/* 0, EAGAIN: the word has another value, or EFAULT: it is not mapped. */
int det_futex_compare(const uint32_t *word, uint32_t expected);

/*
 * det_take at a cancellation point. What comes later than this wakes the caller from det_block. `has_acted`: the caller
 * has found pthread_testcancel to return in spite of TURN_CANCELLED.
 */
void det_take_cancelable(enum det_op op);
void det_cancel_has_acted(void);

/* With the lock, before that thread, the caller, blocks: another thread looks at its handlers then (deadlock.c). */
static inline void det_note_handlers(uint32_t number) {
    det_self.handlers = &sbt_self.handlers_running;
    det_round->thread[number].handlers_before = sbt_self.handlers_running;
}

/*
 * The caller has the turn. It passes the turn, waits for `key`, and returns with the turn. Handlers run meanwhile.
 * Cancellation is deferred; a caller that gets TURN_CANCELLED passes the turn and calls pthread_testcancel.
 */
enum turn_reason det_block(const void *key, const struct det_wait *wait);

/*
 * The thread is blocked, or stands aside with an offer: until it has the turn with handlers deferred, or may go on
 * without. False: neither, the process is a child that a handler has forked.
 */
bool det_await_woken(const struct det_wait *wait, uint32_t number, uint32_t generation);
/* With the turn, at the end of a wait of a thread with asynchronous cancellation, which was deferred meanwhile. */
void det_be_asynchronous_again(void);

/* The caller has the turn: only its holder adds to a queue. */
static inline bool det_nobody_waits(const void *key) {
    return __atomic_load_n(&det_round->turn.queue[turn_queue_of((uintptr_t)key)].first, __ATOMIC_RELAXED) == 0;
}
/* The caller has the turn. How many were woken. */
uint32_t det_wake_waiters(const void *key, uint32_t n);
static inline uint32_t det_wake(const void *key, uint32_t n) {
    return SBT_LIKELY(det_nobody_waits(key)) ? 0 : det_wake_waiters(key, n);
}
uint32_t det_waiting(const void *key, uint8_t tag);

/* The caller, which has a number and makes no operation, returns from outside if it has been expelled. */
void det_be_present(void);
/* The calling thread's number is `number` from now on. */
void det_adopt(uint32_t number);
/* The same of a thread that no operation has created. */
void det_adopt_unknown(uint32_t number, bool is_detached);
/* The caller has no number, or is none of this round: it gets one, as a guest or as a thread from outside. */
void det_join_round(void);
/* The caller came from nowhere and has its first turn. */
void det_newcomer_has_turn(void);
/* A handler has ended the thread's wait, by pthread_exit or a cancellation: the thread comes back. */
void det_abandon_wait(void);

/*
 * As det_abandon_wait, of a blocked thread that a handler leaves by a jump (os/cleanup.h). With the wait's det_aside:
 * behind a guest's wait the thread goes on in a handler, and what that has interrupted waits on.
 */
void det_left_wait(void *aside);
void det_stand_aside(struct det_aside *aside);
void det_come_back(const struct det_aside *aside);
/* sbt_handlers_interrupt: a handler is about to run on a thread with such a wait. */
void det_handler_runs(struct sbt_waiter *unused, int signal);

/* That thread sleeps on this one's word: a guest on the interrupted one's, others on their own. */
static inline uint32_t det_root(uint32_t number) {
    uint32_t alias = __atomic_load_n(&det_round->thread[number].alias, __ATOMIC_RELAXED);
    return alias != 0 ? alias - 1 : number;
}
static inline void det_set_alias(struct det_thread *thread, uint32_t alias) {
    __atomic_store_n(&thread->alias, alias, __ATOMIC_RELAXED); /* a thread that gave it the turn may be reading it */
}
/* The caller's last operation. */
void det_end_thread(void);

/*
 * release.c: what a barrier needs. The caller has the turn, and waits; true: it has gone on without the turn, and the
 * operation is over. Otherwise it has the turn.
 */
bool det_await_release(const void *key);
/* All that wait for the key are woken. Those that go on do so at once: the caller still has the turn. */
void det_release(const void *key);
/* The same with the lock: they are woken by det_wake_all, without it. */
#define DET_RELEASED_MOST 64
struct det_released {
    uint32_t n, number[DET_RELEASED_MOST];
};
void det_release_locked(const void *key, struct det_released *released);
void det_let_go(uint32_t number, struct det_released *released);
void det_wake_all(const struct det_released *released);
static inline bool det_is_released(uint32_t number) {
    return __atomic_load_n(&det_round->thread[number].release, __ATOMIC_SEQ_CST) == DET_RELEASED;
}
/* Without the turn. */
static inline bool det_may_go_on(const struct det_wait *wait, uint32_t number) {
    return wait->goes_on && det_is_released(number);
}
/* The wait of a released thread is over: det_come_back has been called. */
void det_go_on(void);

/*
 * offer.c. A thread that is about to wait for the turn offers its operation to the thread that passes the turn to it.
 * False: the caller makes the operation itself. Otherwise it is over, with that result.
 */
bool det_offer(enum det_op op, void *object, int *result);
static inline bool det_has_turn(void) {
    return __atomic_load_n(&det_round->turn.holder, __ATOMIC_RELAXED) == det_self.number;
}
/* The thread that has been given the turn, and those behind it, may have offered: the thread that has it then. */
uint32_t det_serve(uint32_t holder);
/* A handler makes an operation, or ends the thread's wait, while an offer may stand. */
void det_look_at_offer(void);

/* The word of a thread that is not asleep (round.c). */
#define DET_AWAKE 0
/* Wake that thread: it has been given the turn. The caller is deferring handlers. */
void det_give(uint32_t to);
/* Wake that thread: it has been released. */
void det_wake_released(uint32_t number);
/* If that thread sleeps until it has the turn, it wakes up, and waits on. */
void det_wake_waiter(uint32_t number);
/* The same even if it has been woken, as far as its word says. */
void det_wake_again(uint32_t number);

/* hints.c: the hint of this operation is carried out. False: the turn is still to be passed. */
bool det_hints_pass(void);
/* With the lock: a thread has that number, and begins there; 0: not known. */
void det_hints_create(uint32_t number, uintptr_t routine);
/*
 * Hints of the program's own: operations. 0, or EINVAL. What they wait for is not outside, and they are no cancellation
 * points.
 */
int det_give_up_turn(unsigned hint, unsigned weight);
int det_soft_barrier(const void *key, uint32_t *number, uint32_t threads, uint32_t turns);
void det_pcs(bool begins);
/* aside.c: with the turn, which is passed: the thread is outside until its next operation. */
void det_depart(void);

/* thread.c */
void det_thread_start(void);
void det_thread_enter(void);
void *det_create_begin(uintptr_t routine);
void det_create_end(void *record, pthread_t thread, bool is_created, bool is_detached);
void det_created(void *record);
/* The number that the calling thread has got from its creator and not taken yet; TURN_NO_THREAD: none. May wait. */
uint32_t det_number_at_creation(void);
int det_join(pthread_t thread, const struct sbt_deadline *deadline, bool *is_outside);
int det_detach(pthread_t thread);
int det_cancel(pthread_t thread);

/* outside.c */
bool det_outside_begin(struct _pthread_cleanup_buffer *left);
void det_outside_end(struct _pthread_cleanup_buffer *left);
int det_sleep(uint64_t ns, const struct sbt_deadline *until);
void det_clock_read(clockid_t clock, struct timespec *now);
/* With the turn, in which the caller's wait has ended by its deadline. `before_ns`: det_self.last_ns before the wait.
 */
void det_clock_is_due(const struct det_wait *wait, uint64_t before_ns);
bool det_looks(void);
/* In logical time: a deadline of the calling thread's, and one that is so far away. */
uint64_t det_logical(const struct sbt_deadline *deadline);
uint64_t det_logical_in(uint64_t ns);
void det_sleep_off(const struct sbt_deadline *deadline);

int det_mutex_destroy(pthread_mutex_t *m);
int det_mutex_lock(pthread_mutex_t *m);
int det_mutex_trylock(pthread_mutex_t *m);
int det_mutex_timedlock(pthread_mutex_t *m, const struct sbt_deadline *deadline);
int det_mutex_unlock(pthread_mutex_t *m);
/* In a forked child: another thread may have been in the unwinder. */
void det_mutex_forked(void);
/* With the turn: until the mutex is the caller's; give it up. */
void det_mutex_acquire(pthread_mutex_t *m);
void det_mutex_release(pthread_mutex_t *m);

int det_cond_destroy(pthread_cond_t *c);
int det_cond_wait(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                  const struct sbt_deadline *deadline);
int det_cond_signal(pthread_cond_t *c);
int det_cond_broadcast(pthread_cond_t *c);

int det_barrier_init(pthread_barrier_t *b, unsigned count);
int det_barrier_destroy(pthread_barrier_t *b);
int det_barrier_wait(pthread_barrier_t *b);

int det_rwlock_destroy(pthread_rwlock_t *l);
int det_rwlock_rdlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
int det_rwlock_tryrdlock(pthread_rwlock_t *l);
int det_rwlock_wrlock(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
int det_rwlock_trywrlock(pthread_rwlock_t *l);
int det_rwlock_unlock(pthread_rwlock_t *l);

int det_sem_init(sem_t *s, unsigned value);
int det_sem_destroy(sem_t *s);
int det_sem_wait(sem_t *s, const struct sbt_deadline *deadline);
int det_sem_trywait(sem_t *s);
int det_sem_post(sem_t *s);
int det_sem_getvalue(sem_t *s, int *value);

int det_futex_wait(uint32_t *word, bool shared, uint32_t expected, uint32_t bits, const struct sbt_deadline *deadline,
                   uint64_t in_ns);
uint32_t det_futex_wake(uint32_t *word, bool shared, uint32_t n, uint32_t bits);
int det_futex_requeue(uint32_t *from, uint32_t *to, bool shared, struct sbt_futex_moved *most,
                      const uint32_t *expected);

int det_spin_lock(pthread_spinlock_t *s);
int det_spin_trylock(pthread_spinlock_t *s);
int det_spin_unlock(pthread_spinlock_t *s);

#endif

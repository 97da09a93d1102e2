/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting by switching: what wait/ and abi/ use of it.
 *
 * A context is a thread of the program: its stack, its registers, its TLS. Its home is the kernel thread that was
 * created with it. When a context waits it leaves its home, which then sleeps with all signals blocked (a husk) and
 * does nothing until the context comes home. A context that is ready again is run by a carrier: a kernel thread of
 * ours, of which there are as many as usable CPUs, with a stack and TLS of its own to be idle on. So a signal handler
 * never finds itself on another thread's TLS, and a context's way home is always free: its home carries nobody else.
 * When carriers are held up, in the kernel or by a computation, the watcher sends ready contexts home, where the
 * kernel schedules them as any thread.
 *
 * A thread without a context (one that existed before, main in many programs, foreign ones) waits as it always did.
 */
#ifndef SBT_SWITCH_SWITCH_H
#define SBT_SWITCH_SWITCH_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arch.h"
#include "core/clock.h"
#include "core/thread.h"

struct sbt_context;

/* Wiped in a forked child, which has no carriers: there it is 0 until threads are created. Relaxed reads. */
uint32_t sbt_switch_running_load(void);

/* Was it asked for at all? Set once at start-up. */
extern bool sbt_switch_wanted;

/*
 * NULL, or what a carrier does while it has nothing to run: the engine's. True: there was something to do. Blocks for
 * no longer than a lock call of the engine does. Set once at start-up.
 */
extern bool (*sbt_switch_idle_work)(void);

/*
 * The program sends signals to threads of its own choice: waits that fail with EINTR then sleep at home. Set before
 * there are contexts.
 */
extern bool sbt_switch_interrupts;

/* Once, at start-up: --wait. `insist`: leave out the question whether the program is one that can be switched. */
void sbt_switch_want(bool insist);

/* Before a thread is created. The first time it decides, and starts the carriers. May allocate. */
void sbt_switch_before_create(void);
/* It was not, or has ended. */
void sbt_switch_thread_gone(void);

/* Why a thread is to have no context, or not to leave home with it, for good. Bits. */
enum sbt_stays {
    SBT_STAYS_NOT = 0,
    SBT_STAYS_ITSELF = 1,   /* it knows its kernel thread, or something that belongs to that */
    SBT_STAYS_HERITABLY = 3 /* it has changed what threads that it creates inherit */
};

/*
 * The calling thread goes home and stays there for good; with or without a context, also before it has one. In a signal
 * handler that interrupted it in the middle of a switch: as soon as it waits. Before there are carriers nothing is
 * heritable: they inherit it too.
 */
void sbt_switch_stay_home(bool heritably);

/*
 * The same, heritably, for the thread of that kernel id (0: the caller) or pthread id: the caller at once, another when
 * it waits.
 */
void sbt_switch_keep_home(uint32_t tid);
void sbt_switch_keep_thread_home(pthread_t thread);

/* What a thread that the caller creates has to know of that. */
enum sbt_stays sbt_switch_stays_heritably(void);

/* What a thread is fetched home for: what becomes of a system call that it is blocked in, and of a wait. */
enum sbt_summons {
    SBT_SUMMONS_TO_GO_ON,  /* the call is made again, the wait goes on */
    SBT_SUMMONS_INTERRUPT, /* both fail with EINTR, if they are such as can */
    SBT_SUMMONS_CANCEL     /* the call fails */
};

/*
 * The thread, or the one of that kernel id, has just been sent a signal or a cancellation: if it is away it comes home,
 * where that reaches it.
 */
void sbt_switch_summon(pthread_t thread, enum sbt_summons how);
void sbt_switch_summon_tid(uint32_t tid, enum sbt_summons how);

/*
 * The calling thread is about to load code: it goes home for good. What has come with it is judged by
 * sbt_switch_after_load, the next time that the thread looks up a function or loads more.
 */
void sbt_switch_before_load(void);
void sbt_switch_after_load(void);

/* The program looks up a function by name. `hidden`: it may get the C library's own, where it would be given ours. */
void sbt_switch_looked_up(const char *symbol, bool hidden);

/*
 * Switching ends, for the reason that is logged: every context comes home and stays there. Waits for that, for five
 * seconds at most. False: some have not come.
 */
bool sbt_switch_end(const char *who, const char *what, const char *why);

/* The program does what does not bear switching: it ends, or does not begin, in forked children too. */
void sbt_switch_refuse(const char *what, const char *why);

/* Leave out signals of our own of those that a thread wants to block. False: there are none. */
bool sbt_switch_spare_kicks(sigset_t *set);

/* The calling thread has changed its signal mask. */
void sbt_switch_mask_changed(void);

/* Room on a thread's own stack for its home to sleep on. */
struct sbt_husk {
    char stack[2048] __attribute__((aligned(16)));
};

/* In a new thread: give it a context. `husk` must stay until sbt_switch_thread_end. */
void sbt_switch_thread_begin(struct sbt_husk *husk);

/* The calling thread is about to end, or to do something else that must be done by its own kernel thread for good. */
void sbt_switch_thread_end(void);

/* Go home and stay there, whatever the thread waits for, until as many releases. Nothing without a context. */
void sbt_switch_hold_home(void);
void sbt_switch_release(void);

/* In a forked child, after hold_home in the parent. */
void sbt_switch_fork_child(void);

/*
 * Wait until somebody calls sbt_context_unpark, or for no reason at all. Calling thread's context only. 0, ETIMEDOUT,
 * or EINTR if it slept in the kernel and a handler ran.
 */
int sbt_context_park(const struct sbt_deadline *deadline);

/*
 * May the caller's next wait be a switch? Not without a context, nor with one that waits at home: that waits as a
 * thread without.
 */
bool sbt_switch_roams(void);

/* The same at the beginning of a wait; counts those that are spent at home. */
bool sbt_switch_begins_wait(void);

/*
 * The caller, a context, shares a core with another again and again while there are cores to spare. True: there are no
 * more threads than cores beyond the first, and it waits at home for a while, from now on: to be woken there on another
 * core.
 */
bool sbt_switch_spread(void);

/*
 * The word by which the caller's context is woken from the wait that begins now; it stays valid when the thread has
 * ended. NULL: it waits as a thread without. Given a word, tell whether it is one.
 */
uint32_t *sbt_context_word(void);
bool sbt_context_is_word(const uint32_t *word);

/* False: it was awake, as sbt_waiter_wake. */
bool sbt_context_unpark(uint32_t *word);

/*
 * To wake several in one go: contexts that are the caller's, and yet to be made ready. From begin to end inside
 * switch/, that is, not to block, and the program's signal handlers are put off.
 */
struct sbt_chain {
    struct sbt_context *first, *last;
    uint32_t n;
    bool in_handler;
};
void sbt_chain_begin(struct sbt_chain *chain);
/*
 * As sbt_context_unpark, later. False: that is not a context's word, or, unless `sleeping` too are to be woken, it
 * sleeps in the kernel, and to wake it is a system call.
 */
bool sbt_chain_add(struct sbt_chain *chain, uint32_t *word, bool sleeping);
void sbt_chain_end(const struct sbt_chain *chain);

/* Futex semantics for contexts: wait while *word == expected; wake up to n, returns how many. */
int sbt_switch_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);
long sbt_switch_wake(uint32_t *word, int n);

/*
 * A crowd: contexts that wait for the same event of an object, in one word of it; all-zero: nobody. Costs each of them
 * one atomic operation, where sbt_switch_wait costs two and more memory. For objects in which
 *   - a waiter joins, and then looks whether the event is still to come;
 *   - who brings the event about takes everybody out, after it has become visible.
 * So each of them is taken out; who comes too late, by its own hand.
 *
 * Join: the caller's context, from here until sbt_crowd_wait inside switch/, that is, not to block. The event is
 * numbered: `ticket`. False: not now, wait otherwise. Then look, in an order that is sequentially consistent with this.
 */
bool sbt_crowd_join(uint32_t *crowd, uint32_t ticket);

/*
 * Wait until it has been taken out. True: by somebody who had seen it wait for an event that has happened, and counted
 * it: the object may be gone. False: it looks at the object again.
 */
bool sbt_crowd_wait(void);

/*
 * Take everybody out, the events up to `ticket` having happened. `joined`: the caller is between join and wait itself.
 * The result is how many it has counted: those never touch the object again. They are woken by sbt_chain_end, and this
 * is their sbt_chain_begin.
 */
uint32_t sbt_crowd_take(uint32_t *crowd, uint32_t ticket, bool joined, struct sbt_chain *chain);

/*
 * Let another ready context run on this carrier. `goes_on`: the caller will have what it wants the next moment, and is
 * queued with those that have been woken; otherwise behind them. False: the caller is on no carrier, or nobody is
 * ready.
 */
bool sbt_switch_yield(bool goes_on);

/* Does a carrier run the caller? */
bool sbt_switch_carried(void);
/* And are there others, that may run whom it waits for? */
bool sbt_switch_among_carriers(void);

/* Is somebody ready to run on the caller's carrier? Then waiting actively is a waste. */
bool sbt_switch_others_ready(void);

#endif

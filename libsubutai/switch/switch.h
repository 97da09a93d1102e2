/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waiting by switching: the interface that wait/, engine/, start/ and abi/ use.
 *
 * A fiber is a thread of the program: its stack, its registers, its TLS. Its home thread is the kernel thread that was
 * created with it. When a fiber waits it leaves its home thread. That then sleeps with all signals blocked (a parked
 * home thread), and does nothing until the fiber comes home. A fiber that is runnable again is run by a carrier: a
 * kernel thread of the library. There are as many active carriers as usable CPUs, each with its own stack and TLS to be
 * idle on.
 *
 * Two things follow: a signal handler never finds itself on the TLS of a kernel thread that runs something else, and a
 * fiber's way home is always free, because its home thread runs no other fiber. When carriers are held up, in the
 * kernel or by a computation, the monitor sends runnable fibers home, where the kernel schedules them as any thread.
 * Between two fibers a handler may find the stack of the one and the TLS of the other (regs_x86_64.S): a signal that
 * was sent to the process, since one that was sent to a thread finds that at home.
 *
 * A thread without a fiber waits as it does without switching: a thread that existed before, main in many programs, and
 * threads that were not created by pthread_create.
 *
 * All functions may be called from any thread at any time after start-up, unless they say otherwise. They do not block,
 * except for internal locks (os/lock.h), and report no error, unless they say so.
 */
#ifndef SBT_SWITCH_SWITCH_H
#define SBT_SWITCH_SWITCH_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/thread.h"
#include "os/arch.h"
#include "os/clock.h"

struct sbt_fiber;

/* A thread tells other threads of that many waits, or of that much progress, at once. */
#define SBT_SWITCH_WAITS_TOLD 32
#define SBT_SWITCH_PROGRESS_TOLD 32

/* ---- beginning and end ---- */

/* Are there carriers? 0 in a forked child until it creates threads. A relaxed read. */
uint32_t sbt_switch_running_load(void);

/* The option --wait allows switching. Set once at start-up. */
extern bool sbt_switch_wanted;

/* --wait=switch!: the program is switched even if something in it may not bear that, or is recorded. Set as the above.
 */
extern bool sbt_switch_insisted;

/* The user has asked for what only switched threads do: where they are not switched that is said. Set as the above. */
extern bool sbt_switch_is_needed;

/* How it is wanted. */
enum sbt_switch_want {
    SBT_SWITCH_IF_IT_PAYS, /* begins and ends while the program runs (pays.h); says nothing where it cannot */
    SBT_SWITCH_IF_SAFE,
    SBT_SWITCH_ANYWAY,  /* do not ask whether the program can be switched */
    SBT_SWITCH_BY_TURNS /* for tests: anyway, and begins and ends all the time */
};

/*
 * The carriers start before the program's first thread, although it is found out later whether switching pays: by a
 * thread of the program. A creation allocates memory, and the allocator may lock: what the monitor locks comes at a
 * point that the clock decides. Set as the above.
 */
extern bool sbt_switch_starts_early;

/*
 * The engine's function that a carrier calls while it has nothing to run; NULL: none. True: there was something to do.
 * It blocks for no longer than a lock call of the engine does. Set once at start-up.
 */
extern bool (*sbt_switch_idle_work)(void);

/*
 * While fibers yield to each other their carrier yields to the kernel now and then, by this function; at first by
 * sched_yield. Set as the above, to the function of wait/ that does so only where it pays.
 */
extern void (*sbt_switch_yield_to_kernel)(void);

/*
 * The engine's function that the monitor calls at each look, which is every few milliseconds while fibers become
 * runnable; NULL: none. `steady`: threads are switched, no trial of that is under way, and another look follows. Set as
 * the above.
 */
struct sbt_switch_look {
    uint64_t now_ns;
    uint64_t progress; /* of all threads, as far as they have told; it only grows */
    uint32_t n_threads;
    bool steady;
};
extern void (*sbt_switch_each_look)(const struct sbt_switch_look *look);

/*
 * The program signals threads of its own choice, so waits that can fail with EINTR sleep on the home thread. Set before
 * there are fibers.
 */
extern bool sbt_switch_interrupts;

/* Once, at start-up, if --wait allows it. */
void sbt_switch_want(enum sbt_switch_want how);

/* Before a thread is created. The first call decides whether to switch, and starts the carriers. May allocate. */
void sbt_switch_before_create(void);

/*
 * A thread was not created after all, or has ended. The last call ends the carriers, and blocks until they have ended.
 */
void sbt_switch_thread_gone(void);

/*
 * The caller is about to make a call that the kernel refuses to a process with several threads. If the program has no
 * other thread, carriers and monitor end now, and begin with the next thread that the program creates. Blocks until
 * they have ended.
 */
void sbt_switch_leave_alone(void);

/* In a new thread: give it a fiber, if there are any. */
void sbt_switch_thread_begin(void);

/*
 * The calling thread is about to end, or to do something else that its own kernel thread must do. It goes home, which
 * may block for as long as its kernel thread takes to be scheduled.
 */
void sbt_switch_thread_end(void);

/* In a forked child, after sbt_pin_hold in the parent. */
void sbt_switch_fork_child(void);

/*
 * End switching, and log the reason: every fiber comes home and stays there. Blocks until that is so, for five seconds
 * at most. False: some fibers have not come.
 */
bool sbt_switch_end(const char *object, const char *what, const char *why);

/*
 * Tell the user why threads are not switched, or no longer. One line in a process tree, if switching was asked for by
 * name; at verbosity 2 a line for each process.
 */
void sbt_switch_say(bool no_longer, const char *why);

/*
 * The program does something that switching does not bear. Switching ends, or does not begin, in forked children too.
 */
void sbt_switch_refuse(const char *what, const char *why);

/*
 * The program is about to filter system calls: of all threads, then as sbt_switch_refuse; or of the caller, which has
 * been pinned heritably, and of the threads that it creates. In forked children switching does not begin.
 */
void sbt_switch_filters(bool of_all);

/* Before that, and before heavy fences are forbidden (os/fence.h). May block for the locks of run queues. */
void sbt_switch_before_filter(void);

/* ---- pinned threads ---- */

/* Why a thread is to have no fiber, or why its fiber may not leave the home thread any more. Bits. */
enum sbt_pin {
    SBT_PIN_NOT = 0,
    SBT_PIN_ITSELF = 1,     /* the program knows its kernel thread, or something that belongs to that */
    SBT_PIN_HERITABLY = 3,  /* it has changed what the threads that it creates inherit */
    SBT_PIN_BOUND = 4,      /* it was alone, and was bound to other CPUs than the process began with */
    SBT_PIN_WHILE_BOUND = 8 /* it is beside others, and heritably; until it has those CPUs again */
};

/*
 * The calling thread goes home and stays there for good. It need not have a fiber, and gets none later. In a signal
 * handler that interrupted it in the middle of a switch, it goes home at its next wait. Before there are carriers
 * nothing is heritable, because the carriers inherit it too.
 */
void sbt_pin_self(bool heritably);

/*
 * The caller is about to choose its CPUs, and has. It is pinned, heritably, while they are others than the process
 * began with: LLVM's OpenMP library looks at each CPU in turn, and Intel's build of it binds the main thread for a
 * moment for each thread that it creates. For good if it has created its first thread meanwhile, or been created.
 */
void sbt_pin_before_affinity(void);
void sbt_pin_after_affinity(void);

/*
 * As sbt_pin_self, for the thread of that kernel id (0: the caller), or heritably for that of the pthread id. If the
 * fiber of another thread is away from home it is recalled.
 */
void sbt_pin_tid(uint32_t tid, bool heritably);
void sbt_pin_thread(pthread_t thread);

/*
 * The kernel id of the caller's home thread, from memory, if its fiber may be elsewhere: there the kernel would say the
 * carrier's. 0: the caller is on its own kernel thread, and the kernel knows best.
 */
uint32_t sbt_switch_home_tid(void);

/*
 * The kernel id of the kernel thread on which the thread of that kernel id runs now: its own; or a carrier's, if its
 * fiber is away from home. 0: the fiber does not run. The answer may be old when it comes.
 */
uint32_t sbt_switch_runs_on(uint32_t home_tid);

/* How many kernel threads are the library's own: carriers and the monitor. The answer may be old when it comes. */
uint32_t sbt_switch_n_own(void);

/*
 * Does a fiber with an alternate signal stack of these flags and this size find one as good on a carrier? If not, it
 * must be pinned.
 */
bool sbt_switch_bears_signal_stack(int flags, size_t size);

/* How a thread that the caller creates is pinned from its beginning. */
enum sbt_pin sbt_pin_inherited(void);

/*
 * Go home and stay there, whatever the thread waits for, until as many releases have been called. Nothing without a
 * fiber.
 */
void sbt_pin_hold(void);
void sbt_pin_release(void);

/*
 * The caller is about to sleep in the kernel, in a call that is never restarted. The main thread does so at home: it is
 * fetched by a signal when another thread installs the first handler, and without Subutai that would interrupt nothing.
 */
void sbt_pin_before_sleep(void);

/* ---- signals ---- */

/* Why a thread is recalled. It decides about a wait, and a system call that blocks. */
enum sbt_recall_how {
    SBT_RECALL_TO_GO_ON,  /* the call is made again, the wait goes on */
    SBT_RECALL_INTERRUPT, /* both fail with EINTR if they can */
    SBT_RECALL_CANCEL     /* the call fails */
};

/*
 * The thread has just been sent a signal or a cancellation. If its fiber is away from home, the fiber comes home, where
 * that reaches it. Blocks until the fiber has left its carrier, for 20 ms at most.
 */
void sbt_recall_thread(pthread_t thread, enum sbt_recall_how how);
void sbt_recall_tid(uint32_t tid, enum sbt_recall_how how);

/*
 * Reserve the library's own signals: at start-up, or before the program learns which signal is the highest. What it
 * takes for the highest stays its own then.
 */
void sbt_recall_reserve(void);

/* Take the library's own signals out of a set that the program wants to block. False: there are none. */
bool sbt_recall_spare_signals(sigset_t *set);

/* The calling thread has changed its signal mask, perhaps in a handler that has just returned. */
void sbt_switch_mask_changed(void);

/*
 * The program is about to install a signal handler or to change a mask, or may do so unseen: from now on it matters
 * which thread takes a signal. The first call may wait for the carriers. The main thread stays on its home thread from
 * now on, where the kernel finds it first. It is there when this returns, or comes soon.
 */
void sbt_switch_handles_signals(void);

/* The program has changed the caller's mask. */
void sbt_receive_mask_set(void);

/* ---- loaded code ---- */

/*
 * The calling thread is about to load code: it goes home for good. sbt_eligibility_after_load judges the new code, the
 * next time that the thread looks up a function or loads more.
 */
void sbt_eligibility_before_load(void);
void sbt_eligibility_after_load(void);

/*
 * The program looks up a function by name. `hidden`: the look-up may find the C library's function where ours should
 * be.
 */
void sbt_eligibility_looked_up(const char *symbol, bool hidden);

/* ---- waiting and waking ---- */

/*
 * Wait until the fiber is unparked; may end spuriously. For the calling thread's own fiber only. 0; ETIMEDOUT; or EINTR
 * if the fiber slept in the kernel and a handler ran.
 */
int sbt_fiber_park(const struct sbt_deadline *deadline);

/*
 * May the caller's next wait be a switch? Not without a fiber, and not if the fiber waits on its home thread: then it
 * waits as a thread without a fiber.
 */
bool sbt_switch_roams(void);

/* The same at the beginning of a wait: this counts the waits that are spent on the home thread. */
bool sbt_switch_begins_wait(void);

/* Has the caller a fiber, and are fibers switched at present? If not, it waits as a thread without a fiber. */
bool sbt_switch_takes_part(void);

/* Is it to be found out whether switching pays? Set once at start-up. */
extern bool sbt_switch_weighs;

/* The caller has waited, asleep or by a yield that gave its core away, and was woken soon: a switch would be cheaper.
 */
void sbt_switch_note_waits(bool are_yields);
static inline void sbt_switch_note_wait(void) {
    if (SBT_UNLIKELY(sbt_switch_weighs) && ++sbt_self.n_waits % SBT_SWITCH_WAITS_TOLD == 0)
        sbt_switch_note_waits(false);
}

/*
 * The program has the caller yield. That is a wait that a switch would make cheaper if more threads wait than CPUs may
 * be used: otherwise no other thread has use for the core.
 */
static inline void sbt_switch_note_yield(void) {
    if (SBT_UNLIKELY(sbt_switch_weighs) && ++sbt_self.n_yields % SBT_SWITCH_WAITS_TOLD == 0)
        sbt_switch_note_waits(true);
}

/* The caller is about to wait: tell of its progress now and then. */
void sbt_switch_tell_progress(void);
static inline void sbt_switch_about_to_wait(void) {
    if (SBT_UNLIKELY((int32_t)(sbt_self.progress - sbt_self.progress_told) >= SBT_SWITCH_PROGRESS_TOLD))
        sbt_switch_tell_progress();
}

/*
 * The caller, a fiber, shares a core with another fiber again and again, although cores are to spare. True: there are
 * no more threads than cores, not counting the first thread. Then the fiber spends its next waits on its home thread,
 * so that the kernel wakes it on another core.
 */
bool sbt_switch_spread(void);

/*
 * The word by which the caller's fiber is woken from the wait that begins now. The word stays valid when the thread has
 * ended. NULL: the caller waits as a thread without a fiber.
 */
uint32_t *sbt_fiber_word(void);

/* Is that word a fiber's? And does that fiber wait by switching now? */
bool sbt_fiber_is_word(const uint32_t *word);
bool sbt_fiber_is_parked(const uint32_t *word);

/* Wake the fiber of that word. False: it was awake, as for sbt_waiter_wake. */
bool sbt_fiber_unpark(uint32_t *word);

/* The same. The caller has deferred the program's signal handlers. */
bool sbt_fiber_unpark_deferred(uint32_t *word);

/*
 * A wake list wakes several fibers in one go: the caller owns them and has not made them runnable yet. From begin to
 * end the caller is inside switch/: it must not block, and the program's signal handlers are deferred.
 */
struct sbt_wake_list {
    struct sbt_fiber *first, *last;
    uint32_t n;
    bool in_handler; /* made by a handler that interrupted its thread inside switch/ */
};
void sbt_wake_list_begin(struct sbt_wake_list *list);

/*
 * As sbt_fiber_unpark, but the fiber is made runnable when the list ends. False: the word is not a fiber's; or
 * `sleeping` is false and the fiber sleeps in the kernel, where waking it is a system call.
 */
bool sbt_wake_list_add(struct sbt_wake_list *list, uint32_t *word, bool sleeping);
void sbt_wake_list_end(const struct sbt_wake_list *list);

/*
 * Running in the caller's place: a waker that hands something over, a mutex for instance, lets the fiber that gets it
 * run next on the caller's carrier, where what the two share is in the cache.
 *
 * seize: take the fiber of that word over, if it waits by switching. False: it does not, and nothing has been done.
 * True: the caller owns the fiber, and passes it to one of the other two, with the program's signal handlers deferred
 * until then.
 */
bool sbt_fiber_seize(uint32_t *word);

/*
 * run_here: the fiber runs now, and the caller's fiber is queued with those that have been woken, where an idle carrier
 * may take it. After so many in a row as a batch has, and where the caller is on no carrier or may not leave it, the
 * fiber is made runnable instead; at the end of a batch the caller yields, too. True: the fiber has been switched to.
 * May last as long as the sections of a batch, and what other fibers do in between.
 */
bool sbt_fiber_run_here(uint32_t *word);

/*
 * The caller is about to compute for long. If a fiber is queued behind it, an idle carrier is woken for that, however
 * often such a wake-up was of no use lately.
 */
void sbt_switch_will_compute(void);

/* Does the caller's fiber run because it was chosen so, and has it not waited or yielded since? */
bool sbt_switch_runs_in_place(void);

/* run_next: the caller's fiber is about to wait. The fiber is made runnable, before all others of the carrier. */
void sbt_fiber_run_next(uint32_t *word);

/*
 * Servers: the carriers 0 to sbt_switch_servers - 1 run sections of objects and nothing else (serve.c). 0: there are
 * none. Set once at start-up, to less than SBT_SWITCH_SERVERS_MOST + 1.
 */
#define SBT_SWITCH_SERVERS_MOST 63
extern uint32_t sbt_switch_servers SBT_HIDDEN;

/*
 * The caller has seized the fiber of that word (sbt_fiber_seize), which has a section of that object from now on: that
 * server is to run it. Then run_here and run_next mean there. True: sections of other objects run there or are queued.
 */
bool sbt_fiber_begin_section(uint32_t *word, const void *object, uint32_t server);

/* The caller's section of that object is over. Nothing if it has none, or has one around it, of another object. */
void sbt_switch_end_section(const void *object);

/* A caller that a server runs, and that is in no section, goes to another carrier. */
void sbt_switch_leave_server(void);

/*
 * A futex for fibers. wait: while *word == expected, as sbt_fiber_park. wake: at most n fibers; the result is how many.
 */
int sbt_switch_wait(uint32_t *word, uint32_t expected, const struct sbt_deadline *deadline);
long sbt_switch_wake(uint32_t *word, int n);

/*
 * A waiter stack (Treiber's stack): fibers that wait for the same event of an object, in one word of it. All-zero is
 * the empty stack. It costs each fiber one atomic operation, where sbt_switch_wait costs two and more memory. It is for
 * objects in which
 *  - a waiter joins, and then looks whether the event is still to come;
 *  - the thread that brings the event about takes all fibers out, after the event has become visible.
 *
 * So each fiber is taken out. A fiber that comes too late for the event takes the whole stack out itself.
 */

/*
 * Join. The event has the number `ticket`. From here until sbt_waiter_stack_wait the caller's fiber is inside switch/:
 * it must not block. Next the caller looks whether the event is still to come, in an order that is sequentially
 * consistent with this. False: the caller cannot join now, and must wait in another way.
 */
bool sbt_waiter_stack_join(uint32_t *stack, uint32_t ticket);

/* The same, only if another fiber is runnable on the caller's carrier: then waiting actively is a waste. */
bool sbt_waiter_stack_join_behind(uint32_t *stack, uint32_t ticket);

/*
 * Wait until the fiber has been taken out. True: by a thread that had seen it wait for an event that has happened, and
 * has counted it: the object may be gone. False: the fiber looks at the object again.
 */
bool sbt_waiter_stack_wait(void);

/*
 * Take all fibers out; the events up to `ticket` have happened. `joined`: the caller is itself between join and wait.
 * The result is how many fibers it has counted: those never touch the object again. This begins the wake list, and
 * sbt_wake_list_end wakes the fibers.
 */
uint32_t sbt_waiter_stack_take(uint32_t *stack, uint32_t ticket, bool joined, struct sbt_wake_list *list);

/* ---- yielding ---- */

/*
 * Let another runnable fiber run on this carrier. `goes_on`: the caller will have what it wants in a moment, and is
 * queued with the fibers that have been woken; otherwise behind them. False: the caller is on no carrier, or no other
 * fiber is runnable.
 */
bool sbt_switch_yield(bool goes_on);

/*
 * The same for a thread that the program has yield. One that has got something done since its last such yield (core/
 * thread.h) is queued before those that have not.
 */
bool sbt_switch_yield_asked(void);

/* Does a carrier run the caller? */
bool sbt_switch_carried(void);

/* Does a carrier run the caller, and are there other carriers, one of which may run the thread that it waits for? */
bool sbt_switch_among_carriers(void);

/* Is another fiber runnable on the caller's carrier? Then waiting actively is a waste. */
bool sbt_switch_others_runnable(void);

/* The same, for a fiber about to wait: that wait is a switch at once, and sbt_switch_roams is true. */
bool sbt_switch_waits_behind(void);

#endif

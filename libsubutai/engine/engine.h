/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine contract: an engine is a struct of functions that serve the synchronization objects.
 *
 * Before an engine is called, abi/ has decided that the object is served and not glibc's: process-shared, robust,
 * priority-inheritance and priority-protect objects never get here. abi/ also does recursion, error checking and the
 * owner fields, so an engine sees plain mutexes.
 *
 * The result is 0 or an errno value; errno is left alone. A `deadline` of NULL waits for ever. A deadline has been
 * checked neither for its clock nor for its range. An engine that has to wait returns EINVAL if sbt_deadline_check says
 * so. An engine that need not wait does not look at the deadline.
 *
 * An object is valid, unlocked and unused if all its bytes but glibc's kind fields are zero. Functions may be called
 * before `start`, in constructors and in destructors.
 *
 * `passes_through`: objects have glibc's layout, and abi/ leaves every operation to glibc.
 */
#ifndef SBT_ENGINE_ENGINE_H
#define SBT_ENGINE_ENGINE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "core/options.h"
#include "os/arch.h"
#include "os/clock.h"

/* What a condition wait does with the mutex. */
enum sbt_released {
    SBT_RELEASE_OURS,
    SBT_RELEASE_THEIRS,
    SBT_RELEASE_NOTHING /* a recursive mutex that is held more than once: as in glibc it stays held during the wait */
};

struct sbt_switch_look; /* switch/switch.h */

/* How many waiters of a futex are to be woken and moved at most; afterwards how many were. */
struct sbt_futex_moved {
    uint32_t woken, moved;
};

/*
 * What an engine does that keeps an order of all operations of a process (engine/det). Every function that waits leaves
 * asynchronous cancellation deferred meanwhile.
 */
struct sbt_order {
    /*
     * A thread creates another: create_begin, the C library's call, create_end. NULL: too many threads. `created` is
     * called in the new thread, before anything else, and blocks until the creator has called create_end. `routine`:
     * where the thread begins.
     */
    void *(*create_begin)(uintptr_t routine);
    void (*create_end)(void *record, pthread_t thread, bool is_created, bool is_detached);
    void (*created)(void *record);
    /*
     * Blocks until the thread has ended in the order, and is a cancellation point. 0: the C library's join is to be
     * made; outside says that it may take long. Or EDEADLK, ETIMEDOUT, EINVAL.
     */
    int (*join)(pthread_t thread, const struct sbt_deadline *deadline, bool *outside);
    /* With the C library's function. */
    int (*detach)(pthread_t thread);
    int (*cancel)(pthread_t thread);

    /* The engine itself calls pthread_once, through libgcc's unwinder. That is no operation. */
    bool (*unwinds)(void);
    /* The library's constructor has loaded that unwinder. Operations may have been made before. */
    void (*unwinder_loaded)(void);
    /* An operation that abi/ makes itself: turn_take, any turn_wait (waits for turn_wake), turn_pass. Blocks. */
    void (*turn_take)(void);
    void (*turn_wait)(const void *key);
    void (*turn_wake)(const void *key);
    void (*turn_pass)(void);
    void (*yield)(void);

    /* The forking thread before the fork, and in the parent. */
    void (*fork_begin)(void);
    void (*fork_parent)(void);
    /* The process is about to forbid itself to open files: what is to be written is opened now. May block. */
    void (*files_end)(void);
    /* The process ends without its destructors: what `stop` does, if that can be done here. */
    void (*leave)(void);

    /*
     * Blocks for `ns`, or until the deadline if it is not NULL; a cancellation point. 0, or EINTR: a handler has run.
     */
    int (*sleep)(uint64_t ns, const struct sbt_deadline *until);
    /*
     * Around a call that waits for what other processes or devices do. They may be called in a signal handler. False:
     * outside_end must not be called. `left` is the caller's until then: for a call that ends by a jump or with the
     * thread (os/cleanup.h).
     */
    bool (*outside_begin)(struct _pthread_cleanup_buffer *left);
    void (*outside_end)(struct _pthread_cleanup_buffer *left);
    /*
     * The caller is about to look for what the outside does, without waiting. True: it looks again and again, so it
     * waits actively, and that look is to be made outside.
     */
    bool (*looks)(void);
    /* The caller has read that clock, and is shown what this leaves in `now`. */
    void (*clock_read)(clockid_t clock, struct timespec *now);

    /* Hints of the program's own (abi/subutai/det.h): each may wait for the turn, and the barrier for other threads. */
    int (*give_up_turn)(unsigned hint, unsigned weight);
    int (*soft_barrier)(const void *key, uint32_t *number, uint32_t threads, uint32_t turns);
    void (*pcs)(bool begins);
};

struct sbt_engine {
    const char *name;
    bool passes_through;

    /*
     * Once per process, when the options are known. 0 or an errno value, which ends the process. EINVAL: the value of
     * an option cannot be used, and the engine has said so. Otherwise the caller prints a message.
     */
    int (*start)(const struct sbt_options *options);
    /* A thread begins (called in that thread; for main, at the start) and ends (before its TSD destructors run). */
    void (*thread_enter)(void);
    void (*thread_exit)(void);
    /* Called at a normal exit, when the program's own exit handlers have begun to run; may be NULL. */
    void (*stop)(void);
    /* Called before a fork by the thread that forks, but not by _Fork, vfork and clone; may be NULL. */
    void (*fork_prepare)(void);
    /*
     * Called in a forked child as an atfork handler; other atfork handlers may have used objects before. Also called
     * before each creation of a thread: a child of _Fork or clone has run no atfork handler. Only the first call in a
     * child does anything.
     */
    void (*fork_child)(void);

    /* NULL: operations are made as they come. */
    const struct sbt_order *order;

    /* With `--wait auto` the program is switched while that gets more done (switch/pays.h). */
    bool weighs_switching;
    /* Why fibers cannot be switched with these options; NULL: they can. The pointer may be NULL too. */
    const char *(*why_not_switched)(const struct sbt_options *options);
    /* The value of sbt_switch_idle_work; may be NULL. */
    bool (*idle_work)(void);
    /* The value of sbt_switch_each_look; may be NULL. */
    void (*each_look)(const struct sbt_switch_look *look);

    /*
     * Mutexes. lock and timedlock may block; they are no cancellation points. destroy: EBUSY if the mutex is locked.
     * init may be NULL, and a mutex with a static initialiser has none; `site`: where the program calls it.
     */
    void (*mutex_init)(pthread_mutex_t *m, const void *site);
    int (*mutex_destroy)(pthread_mutex_t *m);
    int (*mutex_lock)(pthread_mutex_t *m);
    int (*mutex_trylock)(pthread_mutex_t *m);
    int (*mutex_timedlock)(pthread_mutex_t *m, const struct sbt_deadline *deadline);
    int (*mutex_unlock)(pthread_mutex_t *m);

    /*
     * Conditions. wait may block and is a cancellation point: the mutex is held again before wait returns, or before
     * the clean-ups of its caller run. A mutex of glibc's is released and taken by sbt_real, and wait returns what that
     * returned, EOWNERDEAD for instance.
     */
    int (*cond_destroy)(pthread_cond_t *c);
    int (*cond_wait)(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                     const struct sbt_deadline *deadline);
    int (*cond_signal)(pthread_cond_t *c);
    int (*cond_broadcast)(pthread_cond_t *c);

    /*
     * Barriers. wait may block, and returns PTHREAD_BARRIER_SERIAL_THREAD to a single thread. destroy waits for threads
     * that are leaving.
     */
    int (*barrier_init)(pthread_barrier_t *b, unsigned count);
    int (*barrier_destroy)(pthread_barrier_t *b);
    int (*barrier_wait)(pthread_barrier_t *b);

    /* Read-write locks. abi/ has stored the kind (readers or writers first) where glibc's static initialisers store it.
     */
    int (*rwlock_destroy)(pthread_rwlock_t *l);
    int (*rwlock_rdlock)(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
    int (*rwlock_tryrdlock)(pthread_rwlock_t *l);
    int (*rwlock_wrlock)(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
    int (*rwlock_trywrlock)(pthread_rwlock_t *l);
    int (*rwlock_unlock)(pthread_rwlock_t *l);

    /*
     * Unnamed semaphores. post is async-signal-safe. wait is a cancellation point and returns EINTR if a signal handler
     * ran. Results are as above: abi/ turns them into errno.
     */
    int (*sem_init)(sem_t *s, unsigned value);
    int (*sem_destroy)(sem_t *s);
    int (*sem_wait)(sem_t *s, const struct sbt_deadline *deadline);
    int (*sem_trywait)(sem_t *s);
    int (*sem_post)(sem_t *s);
    int (*sem_getvalue)(sem_t *s, int *value);

    /*
     * Futexes in memory of this process alone, as futex(2); NULL: they are the kernel's, all three. Words are aligned,
     * and those that a function reads are mapped. The kernel knows nothing of these waiters.
     * shared: the call was made without FUTEX_PRIVATE_FLAG. Such calls and private ones do not meet, even on one word.
     * wait: blocks while *word == expected. 0: woken, perhaps spuriously; EAGAIN: the word is another; EINTR: a handler
     * ran that restarts no call; ETIMEDOUT. After a handler that restarts calls it looks at the word again. in_ns: how
     * far away the deadline is, if the program said so; 0: it gave a time, or there is none. The caller has deferred
     * asynchronous cancellation; it is no cancellation point. EDEADLK: it cannot wait here, in a handler
     * that has interrupted the library: then the kernel's futex serves.
     * wake: at most n waiters with one of those bits, first come first; the word is only an address. It and requeue
     * make a full fence before they look for waiters.
     * requeue: wakes the first waiters of `from` and moves the next to `to`, which may be `from`. With `expected`:
     * EAGAIN, and nothing done, if *from is another.
     */
    int (*futex_wait)(uint32_t *word, bool shared, uint32_t expected, uint32_t bits,
                      const struct sbt_deadline *deadline, uint64_t in_ns);
    uint32_t (*futex_wake)(uint32_t *word, bool shared, uint32_t n, uint32_t bits);
    int (*futex_requeue)(uint32_t *from, uint32_t *to, bool shared, struct sbt_futex_moved *most,
                         const uint32_t *expected);

    /*
     * Spinlocks in glibc's encoding, because no mark says which processes share them. lock waits actively and yields.
     */
    int (*spin_lock)(pthread_spinlock_t *s);
    int (*spin_trylock)(pthread_spinlock_t *s);
    int (*spin_unlock)(pthread_spinlock_t *s);
};

/* The engine in force. Before the library is initialised: a stand-in that initialises it and makes the call again. */
extern struct sbt_engine sbt_engine SBT_HIDDEN;

/* All engines, by enum sbt_engine_id. */
extern const struct sbt_engine *const sbt_engine_table[SBT_N_ENGINES];

extern const struct sbt_engine sbt_engine_glibc;
extern const struct sbt_engine sbt_engine_direct;
extern const struct sbt_engine sbt_engine_ni;
extern const struct sbt_engine sbt_engine_det;

#endif

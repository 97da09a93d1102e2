/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The engine contract: who serves the synchronization objects.
 *
 * An engine is a struct of functions. abi/ has decided beforehand that the object is the engine's and not glibc's
 * (process-shared, robust, priority-inheritance and priority-protect objects never get here), and does recursion,
 * error checking and the owner fields itself: an engine sees plain mutexes.
 *
 * Results are 0 or an errno value, errno itself is left alone. `deadline` NULL waits for ever; a deadline has been
 * checked neither for its clock nor its range: an engine that has to wait returns EINVAL if sbt_deadline_check says so,
 * and does not look at it when it need not wait.
 *
 * Every object is valid, unlocked and never seen when all its bytes but glibc's kind fields are zero. Functions may be
 * called before `start`, in constructors, and in destructors.
 *
 * `passes_through`: objects have glibc's layout and the operations are glibc's own; abi/ then leaves recursion, error
 * checking and everything else to it.
 */
#ifndef SBT_ENGINE_ENGINE_H
#define SBT_ENGINE_ENGINE_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "core/clock.h"
#include "core/options.h"

/* What a condition wait does with the mutex. */
enum sbt_released {
    SBT_RELEASE_OURS,
    SBT_RELEASE_THEIRS,
    SBT_RELEASE_BY_ENGINE, /* for an engine that lets `direct` serve the wait: by sbt_engine, whoever that is */
    SBT_RELEASE_NOTHING    /* a recursive one that is held more than once: as in glibc it stays held during the wait */
};

struct sbt_engine {
    const char *name;
    bool passes_through;

    /*
     * Once per process, after options are known. 0 or an errno value, which ends the process, with a message unless it
     * is EINVAL: then an option's value cannot be used, and the engine has said so.
     */
    int (*start)(const struct sbt_options *options);
    /* A thread begins (in that thread, or main's at start) and ends (its TSD destructors still run afterwards). */
    void (*thread_enter)(void);
    void (*thread_exit)(void);
    /* NULL, or called at a normal exit, after the program's own exit handlers have begun to run. */
    void (*stop)(void);
    /* NULL, or called before a fork by the thread that forks. Not by _Fork, vfork and clone. */
    void (*fork_prepare)(void);
    /* In a forked child, among its other atfork handlers: some may have used objects before. Not after _Fork. */
    void (*fork_child)(void);

    /* Waiting by switching (switch/): NULL, or why it cannot be had with these options, NULL again if it can. */
    const char *(*why_not_switched)(const struct sbt_options *options);
    /* NULL, or sbt_switch_idle_work. */
    bool (*idle_work)(void);

    /* Mutexes. lock, timedlock may block; they are no cancellation points. destroy: EBUSY if locked. */
    int (*mutex_destroy)(pthread_mutex_t *m);
    int (*mutex_lock)(pthread_mutex_t *m);
    int (*mutex_trylock)(pthread_mutex_t *m);
    int (*mutex_timedlock)(pthread_mutex_t *m, const struct sbt_deadline *deadline);
    int (*mutex_unlock)(pthread_mutex_t *m);

    /*
     * Conditions. wait may block and is a cancellation point: the mutex is held again before it returns or its caller's
     * clean-up runs. If m is one of glibc's the engine releases and takes it by sbt_real and returns what that
     * returned, EOWNERDEAD for instance.
     */
    int (*cond_destroy)(pthread_cond_t *c);
    int (*cond_wait)(pthread_cond_t *c, pthread_mutex_t *m, enum sbt_released released,
                     const struct sbt_deadline *deadline);
    int (*cond_signal)(pthread_cond_t *c);
    int (*cond_broadcast)(pthread_cond_t *c);

    /* Barriers. wait may block; PTHREAD_BARRIER_SERIAL_THREAD to one thread. destroy waits for threads on their way
     * out. */
    int (*barrier_init)(pthread_barrier_t *b, unsigned count);
    int (*barrier_destroy)(pthread_barrier_t *b);
    int (*barrier_wait)(pthread_barrier_t *b);

    /* Read-write locks. abi/ has stored the kind (who is preferred) where glibc's static initialisers store it. */
    int (*rwlock_destroy)(pthread_rwlock_t *l);
    int (*rwlock_rdlock)(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
    int (*rwlock_tryrdlock)(pthread_rwlock_t *l);
    int (*rwlock_wrlock)(pthread_rwlock_t *l, const struct sbt_deadline *deadline);
    int (*rwlock_trywrlock)(pthread_rwlock_t *l);
    int (*rwlock_unlock)(pthread_rwlock_t *l);

    /*
     * Unnamed semaphores. post is async-signal-safe. wait is a cancellation point and returns EINTR when a signal
     * handler ran. Results as above: abi/ turns them into errno.
     */
    int (*sem_init)(sem_t *s, unsigned value);
    int (*sem_destroy)(sem_t *s);
    int (*sem_wait)(sem_t *s, const struct sbt_deadline *deadline);
    int (*sem_trywait)(sem_t *s);
    int (*sem_post)(sem_t *s);
    int (*sem_getvalue)(sem_t *s, int *value);

    /* Spinlocks. Glibc's encoding (they carry no mark that says who may share them). lock busy-waits and yields. */
    int (*spin_lock)(pthread_spinlock_t *s);
    int (*spin_trylock)(pthread_spinlock_t *s);
    int (*spin_unlock)(pthread_spinlock_t *s);
};

/* The engine in force. Until the library is initialised, a stand-in that initialises it and calls again. */
extern struct sbt_engine sbt_engine;

/* All engines, by enum sbt_engine_id. */
extern const struct sbt_engine *const sbt_engine_table[SBT_N_ENGINES];

extern const struct sbt_engine sbt_engine_glibc;
extern const struct sbt_engine sbt_engine_direct;
extern const struct sbt_engine sbt_engine_ni;

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tile of each thread, and the records to which answers are delivered.
 *
 * A packet names a thread by 16 bits, so there is a record for each 16-bit number, in memory that stays. A thread gets
 * a record when it begins, or at its first operation if its beginning was not seen, and gives it back when it ends. If
 * it uses objects after that, in the destructors of its thread-specific data, it gets another record, and never gives
 * that back. When the numbers run out, those of threads that have ended are collected.
 *
 * Requests keep their order record by record (serve.c). So a thread that gets another record first waits until what it
 * has handed in before has been served: the destruction of a condition must not overtake the broadcast before it.
 *
 * A signal handler may interrupt its thread in the middle of an operation, and that may be waiting for an answer. So
 * the handler's operation gets another record for as long as it lasts.
 */
#include "engine/ni/thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "core/thread.h"
#include "engine/ni/fork.h"
#include "engine/ni/machine.h"
#include "engine/ni/mailbox.h"
#include "engine/ni/serve.h"
#include "engine/ni/service.h"
#include "engine/ni/service_thread.h"
#include "os/fork.h"

#define N_DEFERRED 8 /* most requests of handlers while their thread is inside; a handler makes one or two */

struct deferred {
    uint32_t op, id;
};

static _Thread_local struct {
    struct ni_thread *current;
    uint32_t generation;           /* the fork generation in which `current` is this thread's */
    volatile uint32_t registering; /* 1: the thread has the lock below, and a handler must keep out */
    volatile uint32_t n_deferred;
    uint32_t placed; /* its tile + 1; the thread stays there in its destructors */
    struct deferred deferred[N_DEFERRED];
} self __attribute__((tls_model("initial-exec")));

static struct sbt_lock lock;
static uint32_t n_ever;   /* the first record that has never been used */
static uint32_t free_ids; /* records that were given back, a list through `outer`: id + 1, 0: none */
static uint32_t n_placed; /* threads that have been given a tile */

int ni_thread_start(void) {
    ni_machine.threads = ni_get_memory(NI_MAX_THREADS * sizeof *ni_machine.threads);
    return ni_machine.threads != NULL ? 0 : ENOMEM;
}

static bool is_gone(const struct ni_thread *t) {
    return __atomic_load_n(&t->use, __ATOMIC_RELAXED) == NI_USED &&
           sbt_syscall3(SYS_tgkill, sbt_syscall0(SYS_getpid), t->tid, 0) < 0;
}

static void give_back(struct ni_thread *t) {
    /* relaxed: a late server may deliver the refusal of a signal into a free record */
    __atomic_store_n(&t->use, NI_UNUSED, __ATOMIC_RELAXED);
    t->outer = free_ids != 0 ? &ni_machine.threads[free_ids - 1] : NULL;
    free_ids = t->id + 1u;
}

static void collect(void) {
    for (uint32_t i = 0; i < n_ever; i++)
        if (is_gone(&ni_machine.threads[i]))
            give_back(&ni_machine.threads[i]);
}

/* Under the lock. NULL: 65,535 threads are alive. */
static struct ni_thread *new_record(void) {
    if (free_ids == 0 && n_ever == NI_MAX_THREADS)
        collect();
    struct ni_thread *t;
    if (free_ids != 0) {
        t = &ni_machine.threads[free_ids - 1];
        free_ids = t->outer != NULL ? t->outer->id + 1u : 0;
    } else if (n_ever < NI_MAX_THREADS) {
        t = &ni_machine.threads[n_ever];
        t->id = (uint16_t)n_ever++;
    } else {
        return NULL;
    }
    t->tid = sbt_thread_tid();
    t->busy = t->inside = 0;
    t->deferred = self.n_deferred != 0;
    t->outer = NULL; /* `last` stays: what the record's last thread has handed in may not have been served yet */
    t->trust = (struct ni_trust){0};
    t->woken = false;
    t->place.set = NULL;
    t->posted[NI_ANSWER_MAIN] = t->posted[NI_ANSWER_WITHDRAW] = 0;
    t->barriers = t->conditions = (struct sbt_adapt){0};
    __atomic_store_n(&t->state, 0, __ATOMIC_RELAXED);
    return t;
}

static struct ni_thread *acquire(enum ni_use use, struct ni_thread *outer) {
    sbt_handlers_hold();
    self.registering = 1;
    sbt_lock_take(&lock);
    struct ni_thread *t = new_record();
    if (t != NULL) {
        __atomic_store_n(&t->use, use, __ATOMIC_RELAXED);
        if (self.placed == 0)
            self.placed = ni_map(n_placed++) + 1;
        t->tile = (uint16_t)(self.placed - 1);
        t->outer = outer;
    }
    sbt_lock_drop(&lock);
    if (t != NULL)
        ni_service_occupy(t->tile); /* this takes a lock too */
    self.registering = 0;
    sbt_handlers_release();
    if (t == NULL) {
        sbt_log(0, "the emulated hardware tells at most 65535 threads apart, and more are alive", NULL);
        sbt_syscall3(SYS_exit_group, 2, 0, 0);
    }
    return t;
}

static void release(struct ni_thread *t) {
    sbt_handlers_hold();
    self.registering = 1;
    sbt_lock_take(&lock);
    give_back(t);
    sbt_lock_drop(&lock);
    self.registering = 0;
    sbt_handlers_release();
}

/* A handler has interrupted its thread where the engine cannot be entered again. */
static void refuse_handler(void) {
    sbt_log(0,
            "a signal handler waits for a lock while its thread is inside the engine ni; POSIX allows no locking in "
            "handlers, and this one would never end",
            NULL);
    sbt_syscall3(SYS_tgkill, sbt_syscall0(SYS_getpid), sbt_thread_tid(), SIGABRT);
    sbt_syscall3(SYS_exit_group, 2, 0, 0);
}

static struct ni_thread *enter_slowly(bool may_wait) {
    if (self.registering || (self.current != NULL && self.current->inside != 0)) {
        if (may_wait)
            refuse_handler();
        return NULL;
    }
    uint32_t generation = sbt_fork_generation();
    if (SBT_UNLIKELY(__atomic_load_n(&ni_machine.generation, __ATOMIC_RELAXED) != generation)) {
        ni_child_begins();
        ni_machine.generation = generation;
    }
    if (self.current != NULL && self.generation != generation)
        self.generation = generation; /* ni_thread_fork_child has kept this thread's records */
    bool had_another = self.current == NULL && self.placed != 0;
    if (self.current == NULL) {
        self.current = acquire(NI_USED, NULL);
        self.generation = generation;
    }
    if (self.current->busy)
        self.current = acquire(NI_NESTED, self.current);
    struct ni_thread *t = self.current;
    t->busy = 1;
    if (had_another)
        ni_fence(t, t->tile);
    return t;
}

struct ni_thread *ni_enter(bool may_wait) {
    struct ni_thread *t = self.current;
    if (SBT_LIKELY(t != NULL && t->busy == 0 && self.registering == 0 && self.generation == sbt_fork_generation())) {
        t->busy = 1;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        return t;
    }
    return enter_slowly(may_wait);
}

void ni_leave(struct ni_thread *t) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SBT_UNLIKELY(t->outer != NULL)) {
        self.current = t->outer;
        release(t);
        return;
    }
    t->busy = 0;
}

void ni_abandon(struct ni_thread *t) {
    self.current = t->outer;
    __atomic_store_n(&t->use, NI_LOST, __ATOMIC_RELAXED);
}

void ni_defer(enum hw_op op, uint32_t id) {
    uint32_t n = self.n_deferred;
    if (n == N_DEFERRED)
        refuse_handler();
    self.deferred[n].op = op;
    self.deferred[n].id = id;
    self.n_deferred = n + 1;
    if (self.current != NULL)
        self.current->deferred = 1;
}

void ni_deliver_deferred(struct ni_thread *t) {
    struct deferred list[N_DEFERRED]; /* a copy: handing a request in makes the thread be inside again */
    uint32_t n = self.n_deferred;
    uint16_t home = t->home; /* of the request that the thread is about to wait for */
    bool left = t->trust.left;
    t->deferred = 0;
    for (uint32_t i = 0; i < n; i++)
        list[i] = self.deferred[i];
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.n_deferred = 0;
    for (uint32_t i = 0; i < n; i++)
        ni_post(t, (enum hw_op)list[i].op, list[i].id, NULL);
    t->home = home;
    t->trust.left = left;
}

/*
 * A carrier gets no record, because that would take a program thread's place on a tile. A handler that comes now is
 * kept out as it is while a record is made. If it has deferred a request, that gets a record.
 */
bool ni_thread_serve_idly(void) {
    bool any = false;
    sbt_handlers_hold();
    self.registering = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < ni_machine.n_tiles; i++)
        if (ni_has_arrivals(&ni_machine.tiles[i])) {
            ni_serve(&ni_machine.tiles[i]);
            any = true;
        }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.registering = 0;
    if (SBT_UNLIKELY(self.n_deferred != 0)) {
        struct ni_thread *t = ni_enter(true);
        ni_deliver_deferred(t);
        ni_leave(t);
    }
    sbt_handlers_release();
    return any;
}

void ni_thread_enter(void) {
    if (sbt_self.tid == 0)
        sbt_thread_tid();
    /*
     * The first thread is main's, which enters at the start, before there can be a second. Relaxed: it is only a count.
     */
    if (__atomic_fetch_add(&ni_machine.n_threads, 1, __ATOMIC_RELAXED) > 0)
        ni_service_thread_begin();
    ni_leave(ni_enter(true)); /* this places it: threads get tiles in the order in which they begin */
}

void ni_thread_exit(void) {
    struct ni_thread *t = self.current;
    if (t != NULL && t->busy == 0) {
        self.current = NULL;
        release(t);
    }
    if (__atomic_sub_fetch(&ni_machine.n_threads, 1, __ATOMIC_RELAXED) == 0)
        ni_service_thread_end();
}

/* In a forked child, which has one thread: only the caller's own records are in use. */
void ni_thread_fork_child(void) {
    lock = (struct sbt_lock){0};
    self.registering = 0;
    free_ids = 0;
    for (uint32_t i = n_ever; i-- > 0;) {
        struct ni_thread *t = &ni_machine.threads[i];
        t->id = (uint16_t)i; /* its thread may have been about to set it */
        bool own = false;
        for (struct ni_thread *mine = self.current; mine != NULL; mine = mine->outer)
            own |= mine == t;
        if (!own) {
            give_back(t);
            continue;
        }
        t->tid = sbt_thread_tid();
        t->wake_word = NULL; /* it is a fiber of the parent's */
        t->place.set = NULL;
        __atomic_store_n(&t->state, __atomic_load_n(&t->state, __ATOMIC_RELAXED) & ~NI_PARKED, __ATOMIC_RELAXED);
        ni_fork_answer_forgotten(t, NI_ANSWER_MAIN);
        ni_fork_answer_forgotten(t, NI_ANSWER_WITHDRAW);
    }
    self.generation = sbt_fork_generation();
    ni_machine.n_threads = 1;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Which thread sits on which tile, and the records that answers are delivered to.
 *
 * A packet names a thread by 16 bits, so there is a record for each such number, in memory that stays. A thread gets
 * one when it begins (or at its first operation, if nobody told us that it began) and gives it back when it ends. One
 * that uses objects after that, in the destructors of its thread-specific data, gets another, which nobody gives back:
 * when the numbers run out, those of threads that are no more are collected.
 *
 * A signal handler that interrupts its thread in the middle of an operation gets a record of its own for as long as its
 * operation lasts: the interrupted one may be waiting for an answer.
 */
#include <sys/syscall.h>
#include <unistd.h>

#include "core/log.h"
#include "core/thread.h"
#include "engine/ni/ni.h"
#include "wait/futex.h"

#define N_PUT_OFF 8

struct put_off {
    uint32_t op, id;
};

static _Thread_local struct {
    struct ni_thread *current;
    uint32_t generation;           /* of processes, in which `current` is this thread's */
    volatile uint32_t registering; /* a handler has interrupted it while it had the lock below */
    volatile uint32_t n_put_off;
    uint32_t placed; /* its tile + 1: in the destructors it stays on it, so that its requests keep their order */
    struct put_off put_off[N_PUT_OFF];
} self __attribute__((tls_model("initial-exec")));

static uint32_t lock;
static uint32_t n_ever;   /* records from here on have never been used */
static uint32_t free_ids; /* list through `outer` of those given back: id + 1, 0 none */
static uint32_t n_placed; /* threads that were given a tile */

void ni_thread_start(void) {
    for (uint32_t i = 0; i < NI_N_ANSWERS; i++)
        ni_machine.threads[0].answer[i] = (struct ni_answer){.at_cycles = 0};
}

static bool is_gone(const struct ni_thread *t) {
    return __atomic_load_n(&t->use, __ATOMIC_RELAXED) == NI_USED && sbt_syscall3(SYS_tgkill, getpid(), t->tid, 0) < 0;
}

static void give_back(struct ni_thread *t) {
    __atomic_store_n(&t->use, NI_UNUSED, __ATOMIC_RELAXED); /* a server may look: the refusal of a signal comes late */
    t->outer = free_ids != 0 ? &ni_machine.threads[free_ids - 1] : NULL;
    free_ids = t->id + 1u;
}

static void collect(void) {
    for (uint32_t i = 0; i < n_ever; i++)
        if (is_gone(&ni_machine.threads[i]))
            give_back(&ni_machine.threads[i]);
}

/* Under the lock. NULL: 65535 threads are alive. */
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
    t->put_off = self.n_put_off != 0;
    t->outer = NULL;
    t->last = NULL;
    t->woken = false;
    t->posted[NI_ANSWER_MAIN] = t->posted[NI_ANSWER_WITHDRAW] = 0;
    t->barriers = t->conditions = (struct sbt_adapt){0};
    __atomic_store_n(&t->state, 0, __ATOMIC_RELAXED);
    return t;
}

static struct ni_thread *acquire(enum ni_use use, struct ni_thread *outer) {
    sbt_handlers_hold();
    self.registering = 1;
    ni_take(&lock);
    struct ni_thread *t = new_record();
    if (t != NULL) {
        __atomic_store_n(&t->use, use, __ATOMIC_RELAXED);
        if (self.placed == 0)
            self.placed = ni_map(n_placed++) + 1;
        t->tile = (uint16_t)(self.placed - 1);
        t->outer = outer;
    }
    ni_release(&lock);
    if (t != NULL)
        ni_service_occupy(t->tile); /* takes a lock too */
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
    ni_take(&lock);
    give_back(t);
    ni_release(&lock);
    self.registering = 0;
    sbt_handlers_release();
}

/* A handler has interrupted its thread where the engine cannot be entered again. */
static void refuse_handler(void) {
    sbt_log(0,
            "a signal handler waits for a lock while its thread is inside the engine ni; POSIX allows no locking in "
            "handlers, and this one would never end",
            NULL);
    sbt_syscall3(SYS_tgkill, getpid(), sbt_thread_tid(), 6 /* SIGABRT */);
    sbt_syscall3(SYS_exit_group, 2, 0, 0);
}

static struct ni_thread *enter_slowly(bool may_wait) {
    if (self.registering || (self.current != NULL && self.current->inside != 0)) {
        if (may_wait)
            refuse_handler();
        return NULL;
    }
    uint32_t generation = sbt_thread_process_generation();
    if (SBT_UNLIKELY(__atomic_load_n(&ni_machine.generation, __ATOMIC_RELAXED) != generation)) {
        ni_child_begins();
        ni_machine.generation = generation;
    }
    if (self.current != NULL && self.generation != generation)
        self.generation = generation; /* ni_thread_fork_child has kept this thread's records */
    if (self.current == NULL) {
        self.current = acquire(NI_USED, NULL);
        self.generation = generation;
    }
    if (self.current->busy)
        self.current = acquire(NI_NESTED, self.current);
    self.current->busy = 1;
    return self.current;
}

struct ni_thread *ni_enter(bool may_wait) {
    struct ni_thread *t = self.current;
    if (SBT_LIKELY(t != NULL && t->busy == 0 && self.registering == 0 &&
                   self.generation == sbt_thread_process_generation())) {
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

void ni_put_off(enum hw_op op, uint32_t id) {
    uint32_t n = self.n_put_off;
    if (n == N_PUT_OFF)
        refuse_handler();
    self.put_off[n].op = op;
    self.put_off[n].id = id;
    self.n_put_off = n + 1;
    if (self.current != NULL)
        self.current->put_off = 1;
}

void ni_run_put_off(struct ni_thread *t) {
    struct put_off list[N_PUT_OFF]; /* a copy: posting one is to be inside again */
    uint32_t n = self.n_put_off;
    t->put_off = 0;
    for (uint32_t i = 0; i < n; i++)
        list[i] = self.put_off[i];
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self.n_put_off = 0;
    for (uint32_t i = 0; i < n; i++)
        ni_post(t, (enum hw_op)list[i].op, list[i].id, NULL);
}

/*
 * No record, which would take a program thread's place on a tile: a handler that comes now is kept out as from the
 * making of one, and what it had to put off gets one.
 */
bool ni_serve_idly(void) {
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
    if (SBT_UNLIKELY(self.n_put_off != 0)) {
        struct ni_thread *t = ni_enter(true);
        ni_run_put_off(t);
        ni_leave(t);
    }
    sbt_handlers_release();
    return any;
}

void ni_thread_enter(void) {
    if (sbt_self.tid == 0)
        sbt_thread_tid();
    /* The first is main's: it is entered at start, before there can be a second. */
    if (__atomic_fetch_add(&ni_machine.n_threads, 1, __ATOMIC_RELAXED) > 0)
        ni_service_begin();
    ni_leave(ni_enter(true)); /* places it: threads sit on the tiles in the order in which they begin */
}

void ni_thread_exit(void) {
    struct ni_thread *t = self.current;
    if (t != NULL && t->busy == 0) {
        self.current = NULL;
        release(t);
    }
    if (__atomic_sub_fetch(&ni_machine.n_threads, 1, __ATOMIC_RELAXED) == 0)
        ni_service_end();
}

/*
 * The thread was interrupted by a handler that forked, while it waited for an answer; in the child its request has been
 * forgotten. A condition wait is woken for no reason, a lock asks again. Only at a barrier does it wait on, as one of
 * those who have arrived.
 */
static void answer_forgotten(struct ni_thread *t, int which) {
    enum hw_op op;
    switch (t->posted[which]) {
    case HW_OP_COND_WAIT:
        op = t->posted[NI_ANSWER_WITHDRAW] != 0 ? HW_OP_NONE : HW_OP_WOKEN;
        break;
    case HW_OP_LOCK:
        op = t->posted[NI_ANSWER_WITHDRAW] != 0 ? HW_OP_NONE : HW_OP_BUSY;
        break;
    case HW_OP_TRYLOCK:
    case HW_OP_EVICT:
        op = HW_OP_BUSY;
        break;
    case HW_OP_WITHDRAW:
        op = HW_OP_WITHDRAWN;
        break;
    case HW_OP_ALLOC_MUTEX:
    case HW_OP_ALLOC_CONDITION:
    case HW_OP_ALLOC_BARRIER:
        op = HW_OP_NO_SPACE;
        break;
    default:
        op = HW_OP_NONE;
        break;
    }
    if (op == HW_OP_NONE || (t->state & NI_ANSWERED(which)) != 0)
        return;
    struct hw_message message = {.destination = t->tile, .op = op, .thread = t->id, .core = t->tile};
    t->answer[which].packet = hw_packet_encode(&ni_machine.layout, &message);
    t->answer[which].at_cycles = 0;
    t->state |= NI_ANSWERED(which);
}

/* In a forked child: of all records only the caller's own are somebody's. */
void ni_thread_fork_child(void) {
    lock = 0;
    self.registering = 0;
    free_ids = 0;
    for (uint32_t i = n_ever; i-- > 0;) {
        struct ni_thread *t = &ni_machine.threads[i];
        t->id = (uint16_t)i; /* it may just have been given out */
        bool own = false;
        for (struct ni_thread *mine = self.current; mine != NULL; mine = mine->outer)
            own |= mine == t;
        if (!own) {
            give_back(t);
            continue;
        }
        t->tid = sbt_thread_tid();
        t->wake_word = NULL; /* a context of the parent's */
        __atomic_store_n(&t->state, __atomic_load_n(&t->state, __ATOMIC_RELAXED) & ~NI_PARKED, __ATOMIC_RELAXED);
        answer_forgotten(t, NI_ANSWER_MAIN);
        answer_forgotten(t, NI_ANSWER_WITHDRAW);
    }
    self.generation = sbt_thread_process_generation();
    ni_machine.n_threads = 1;
}

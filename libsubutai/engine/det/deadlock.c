/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Deadlocks: threads wait for each other, and no thread of the program can go on. The turn shows that: no thread is
 * runnable, none is outside or in a section, none waits for a time, and no handler runs in the place of one.
 *
 * The thread that blocks last looks for this before it sleeps, and again after DET_STALL_NS; if the last one ends, it
 * wakes a blocked thread, to look. What could still let a thread go on is looked at then:
 *  - A handler that runs in a blocked thread's place, and has made no operation; a kernel thread that the order does
 * not know (of a clone, of io_uring, of the C library's timers); or a signal that the process has asked for (a timer,
 * SIGIO). Then nothing is said, and the thread looks again, ever more seldom.
 *  - A signal that another process sends, if the program has a handler: the line says so.
 * So nothing is ended because of this, unless --deadlock abort says so.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "core/handlers.h"
#include "core/log.h"
#include "core/object.h"
#include "decimal.h"
#include "engine/det/det.h"
#include "os/arch.h"
#include "os/mapped.h"
#include "os/proc.h"
#include "os/real.h"
#include "os/unwind.h"
#include "switch/switch.h"

enum { NAMED_MOST = 8, DOUBLINGS_MOST = 6, HANDLED_ANYWHERE = 32 /* below it: no real-time signal */ };

/* ---- is it one? ---- */

/* Ended and free threads are not live, and neither is one that sleeps until it is woken. */
static bool is_live(const struct turn *t, uint32_t number) {
    const struct turn_thread *thread = &t->thread[number];
    return thread->state == TURN_RUNNABLE || thread->state == TURN_OUTSIDE || thread->state == TURN_SECTION ||
           (thread->state == TURN_BLOCKED && (thread->deadline != TURN_NEVER || thread->is_absent));
}

/* With the lock. The thread that was live the last time is most often live still: a server's, outside. */
static bool is_stuck(struct det_round *r) {
    const struct turn *t = &r->turn;
    bool any_blocked = false;
    if (t->holder != TURN_NO_THREAD || is_live(t, r->live))
        return false;
    for (uint32_t i = 0; i < t->n_threads; i++) {
        if (is_live(t, i)) {
            r->live = i;
            return false;
        }
        any_blocked = any_blocked || t->thread[i].state == TURN_BLOCKED;
    }
    return any_blocked;
}

bool det_is_stuck(uint64_t *logical) {
    struct det_round *r = det_round;
    if (SBT_LIKELY(__atomic_load_n(&r->turn.holder, __ATOMIC_RELAXED) != TURN_NO_THREAD) ||
        __atomic_load_n(&r->told_stuck, __ATOMIC_RELAXED) != DET_NOT_STUCK)
        return false;
    sbt_handlers_hold();
    sbt_lock_take(&r->lock);
    bool is = is_stuck(r);
    *logical = __atomic_load_n(&r->turn.now, __ATOMIC_RELAXED); /* the holder's, without the lock */
    sbt_lock_drop(&r->lock);
    sbt_handlers_release();
    return is;
}

void det_call_stuck(void) {
    struct det_round *r = det_round;
    uint32_t called = 0;
    sbt_lock_take(&r->lock);
    bool is = is_stuck(r);
    while (is && r->turn.thread[called].state != TURN_BLOCKED)
        called++;
    sbt_lock_drop(&r->lock);
    if (is)
        det_wake_waiter(called);
}

uint64_t det_stuck_ns(unsigned n_looks) {
    return (uint64_t)DET_STALL_NS << (n_looks < DOUBLINGS_MOST ? n_looks : DOUBLINGS_MOST);
}

/* ---- what could end it ---- */

/*
 * A blocked thread's, or that of a thread that has ended: a main thread, while others go on. A blocked thread that runs
 * is in a signal handler that the library has not called (is_in_handler). The caller runs, and is in none.
 */
static bool is_known(uint32_t tid, bool is_caller) {
    const struct det_round *r = det_round;
    char state = sbt_proc_state(tid);
    for (uint32_t i = 0; (is_caller || state == 'S') && i < r->turn.n_threads; i++)
        if (turn_state_of(&r->turn, i) == TURN_BLOCKED && __atomic_load_n(&r->thread[i].tid, __ATOMIC_RELAXED) == tid)
            return true;
    return state == 'Z';
}

/*
 * With the lock. A handler has begun in a blocked thread's place, has made no operation yet, and has not returned: it
 * may sleep by a system call that the library does not see.
 */
static bool is_in_handler(const struct det_round *r) {
    for (uint32_t i = 0; i < r->turn.n_threads; i++) {
        if (r->turn.thread[i].state != TURN_BLOCKED)
            continue;
        /* The thread wrote both before it blocked. */
        const char *in_op = (const char *)__atomic_load_n(&r->thread[i].in_op, __ATOMIC_RELAXED);
        const struct det_self *self = (const void *)(in_op - offsetof(struct det_self, in_op));
        if (__atomic_load_n(self->handlers, __ATOMIC_RELAXED) != r->thread[i].handlers_before)
            return true;
    }
    return false;
}

static bool count_unknown(uint32_t tid, void *n) {
    *(uint32_t *)n += !is_known(tid, false);
    return false;
}

/*
 * Carriers and the monitor do nothing of their own. Also true if the kernel does not say which threads there are, and
 * if it is not asked: a filter that the program has set may end it.
 */
static bool has_other_thread(void) {
    if (sbt_fence_is_forbidden())
        return true;
    uint32_t n = !is_known((uint32_t)sbt_syscall0(SYS_gettid), true);
    return sbt_proc_any_thread(count_unknown, &n) || n > sbt_switch_n_own();
}

enum signals { NO_SIGNAL, SIGNAL_FROM_OTHERS, SIGNAL_OF_OWN };

static bool is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP ||
           signal == SIGSYS || signal == SIGABRT;
}

/* Has the program a handler of that signal? The library has some of its own. */
static bool handles(int signal) {
    struct sigaction action;
    return !is_fault(signal) && sbt_handlers_set(signal, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN && !sbt_is_own_code((uintptr_t)action.sa_sigaction);
}

/* Signals of descriptors (SIGIO, or a real-time signal), and of timers. */
static enum signals signals_that_come(void) {
    struct itimerval timer = {.it_value = {0, 0}};
    bool any = false, of_own = false;
    for (int signal = 1; signal <= 64; signal++)
        if (handles(signal)) {
            any = true;
            of_own = of_own || signal == SIGIO || signal > HANDLED_ANYWHERE;
        }
    if (!any)
        return NO_SIGNAL;
    sbt_syscall3(SYS_getitimer, ITIMER_REAL, (long)&timer, 0);
    return of_own || timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 || sbt_proc_has_timers()
               ? SIGNAL_OF_OWN
               : SIGNAL_FROM_OTHERS;
}

/* ---- in words; with the lock ---- */

static char line[900]; /* the teller's */
static size_t n_line;

static void add(const char *text) {
    size_t n = strlen(text);
    if (n > sizeof line - 1 - n_line)
        n = sizeof line - 1 - n_line;
    memcpy(line + n_line, text, n);
    n_line += n;
    line[n_line] = '\0';
}

static void add_number(const char *before, uint64_t number) {
    char digits[DECIMAL_SIZE];
    add(before);
    add(decimal_of(digits, number));
}

/* What a blocked thread waits for. */
struct awaited {
    enum det_op op;
    uint32_t object; /* 0: it has no number */
    uint32_t thread; /* that has it, or is joined; or TURN_NO_THREAD */
    uint32_t n, of;  /* barriers: threads that are there, of so many; read-write locks: n readers */
};

/* In a forked child the holder may be one of the parent's threads. */
static void look_at_mutex(struct awaited *a, const struct sbt_mutex *mx) {
    a->object = mx->hw_id;
    if (det_round->generation == 1 && mx->state != 0 && mx->state <= TURN_THREADS)
        a->thread = mx->state - 1;
}

static void look_at_rwlock(struct awaited *a, const struct sbt_rwlock *lx) {
    const struct det_round *r = det_round;
    a->object = lx->unused;
    a->n = lx->state;
    for (uint32_t i = 0; lx->writer != 0 && i < r->turn.n_threads; i++)
        if (r->turn.thread[i].state != TURN_FREE && r->thread[i].tid == lx->writer)
            a->thread = i;
}

static void look_at_barrier(struct awaited *a, const struct sbt_barrier *bx) {
    a->object = bx->hw_id;
    a->n = (uint32_t)bx->rounds;
    a->of = bx->count;
}

/* The object may be in memory that is gone. */
static struct awaited awaited_by(uint32_t number) {
    const struct det_round *r = det_round;
    const uintptr_t key = r->turn.thread[number].key;
    struct awaited a = {.op = (enum det_op)r->thread[number].awaits, .thread = TURN_NO_THREAD};
    if (a.op == DET_JOIN)
        a.thread = (uint32_t)((const struct det_thread *)key - r->thread);
    else if (a.op == DET_FUTEX_WAIT)
        a.object = r->thread[number].futex;
    else if (!sbt_mapped_now((const void *)key, sizeof(pthread_mutex_t)))
        return a;
    else if (a.op == DET_MUTEX_LOCK)
        look_at_mutex(&a, (const struct sbt_mutex *)key);
    else if (a.op == DET_READ_LOCK || a.op == DET_WRITE_LOCK)
        look_at_rwlock(&a, (const struct sbt_rwlock *)key);
    else if (a.op == DET_BARRIER)
        look_at_barrier(&a, (const struct sbt_barrier *)key);
    else if (a.op == DET_COND_WAIT)
        a.object = ((const struct sbt_cond *)key)->hw_id;
    else if (a.op == DET_SEM_WAIT)
        a.object = ((const struct sbt_sem *)key)->unused;
    return a;
}

static const char *verb_of(enum det_op op) {
    switch (op) {
    case DET_JOIN:
        return " joins";
    case DET_MUTEX_LOCK:
        return " waits for mutex";
    case DET_READ_LOCK:
        return " waits to read-lock rwlock";
    case DET_WRITE_LOCK:
        return " waits to write-lock rwlock";
    case DET_BARRIER:
        return " waits at barrier";
    case DET_COND_WAIT:
        return " waits for cond";
    case DET_SEM_WAIT:
        return " waits for sem";
    case DET_FUTEX_WAIT:
        return " waits for futex";
    default:
        return " waits for another thread's pthread_once";
    }
}

static void add_thread(uint32_t number) {
    enum turn_state state = number < TURN_THREADS ? turn_state_of(&det_round->turn, number) : TURN_FREE;
    add_number(" thread ", number);
    /* the first may also be a thread that no operation has created */
    if (number == 0 &&
        __atomic_load_n(&det_round->thread[0].tid, __ATOMIC_RELAXED) == (uint32_t)sbt_syscall0(SYS_getpid))
        add(" (main)");
    if (state == TURN_FREE || state == TURN_ENDED)
        add(", which has ended");
}

static void add_wait(uint32_t number, const struct awaited *a) {
    char place[DET_PLACE_BYTES];
    add_thread(number);
    add(verb_of(a->op));
    if (a->object != 0)
        add_number("#", a->object);
    if (a->of != 0)
        add_number(" with ", a->n), add_number(" of ", a->of), add(" threads");
    if (a->op == DET_WRITE_LOCK && a->n != 0)
        add_number(" with readers: ", a->n);
    if (a->thread == number)
        add(", which it holds itself");
    else if (a->thread != TURN_NO_THREAD)
        add(a->op == DET_JOIN ? "" : ", held by"), add_thread(a->thread);
    det_place_text(__atomic_load_n(&det_round->thread[number].site, __ATOMIC_RELAXED), place);
    if (place[0] != '\0')
        add(" at "), add(place);
}

/* The log has all of them, and the line the first ones. */
static void describe(void) {
    struct det_round *r = det_round;
    uint32_t n = 0;
    n_line = 0;
    for (uint32_t i = 0; i < r->turn.n_threads; i++) {
        if (r->turn.thread[i].state != TURN_BLOCKED)
            continue;
        struct awaited a = awaited_by(i);
        if (__atomic_load_n(&r->is_logged, __ATOMIC_RELAXED))
            det_schedule_deadlock(&(struct schedule_deadlock){i, (enum schedule_op)a.op, a.object, a.thread},
                                  __atomic_load_n(&r->thread[i].site, __ATOMIC_RELAXED));
        if (n++ < NAMED_MOST) {
            add(n == 1 ? "" : ";");
            add_wait(i, &a);
        }
    }
    if (n > NAMED_MOST)
        add_number("; threads that are not named: ", n - NAMED_MOST);
}

/*
 * By SIGABRT, also if the program has a handler or blocks it: a core file has the stacks of all threads. The first
 * process of a container ignores a signal that is its own.
 */
static void end_process(void) {
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    const uint64_t mask = (uint64_t)1 << (SIGABRT - 1);
    sbt_real.sigaction(SIGABRT, &standard, NULL);
    sbt_syscall6(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&mask, 0, sizeof mask, 0, 0);
    sbt_syscall3(SYS_tgkill, sbt_syscall0(SYS_getpid), sbt_syscall0(SYS_gettid), SIGABRT);
    sbt_syscall3(SYS_exit_group, 128 + SIGABRT, 0, 0);
}

/* With the lock: otherwise a thread that comes back at this moment takes it back before it is told. */
static void tell(enum signals signals) {
    char process[DECIMAL_SIZE];
    sbt_log(1, "deadlock in process ", decimal_of(process, (uint64_t)det_round->process),
            signals == NO_SIGNAL ? "" : ", unless a signal comes", ": no thread can go on:", line, NULL);
    if (sbt_options.value[SBT_OPT_DEADLOCK].u == SBT_DEADLOCK_ABORT)
        end_process();
}

void det_take_back_deadlock(void) {
    char process[DECIMAL_SIZE];
    __atomic_store_n(&det_round->told_stuck, DET_STUCK_NO_MORE, __ATOMIC_RELAXED);
    sbt_log(1, "no deadlock in process ", decimal_of(process, (uint64_t)det_round->process),
            ": a signal handler lets a thread go on", NULL);
}

void det_look_for_deadlock(uint64_t logical) {
    struct det_round *r = det_round;
    enum signals signals = NO_SIGNAL;
    sbt_handlers_hold();
    if (!has_other_thread() && (signals = signals_that_come()) != SIGNAL_OF_OWN) {
        sbt_lock_take(&r->lock);
        if (__atomic_load_n(&r->turn.now, __ATOMIC_RELAXED) == logical && is_stuck(r) && !is_in_handler(r) &&
            r->told_stuck == DET_NOT_STUCK) {
            __atomic_store_n(&r->told_stuck, DET_STUCK, __ATOMIC_RELAXED);
            describe();
            tell(signals);
        }
        sbt_lock_drop(&r->lock);
    }
    sbt_handlers_release();
}

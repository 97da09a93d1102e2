/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Recalls. A thread that has been sent a signal or a cancellation must be on its home thread: those go to its own
 * kernel thread, and stay pending there while that is a parked home thread. So the sender recalls the fiber:
 *  1. The sender sends the signal or the cancellation.
 *  2. It pins the fiber, for good: a thread that was signalled once will be signalled again.
 *  3. A fiber that waits is woken on its home thread instead of on a carrier.
 *  4. A fiber that runs on a carrier, perhaps in a system call that never returns, is sent a signal of the library's
 *     own there. The handler of that signal takes the fiber that it finds home, if that fiber is pinned. On the home
 *     thread the system call is made again, or it fails with EINTR, as the flags of the program's handler ask.
 *  5. The sender looks again until the fiber no longer runs on a carrier, because the fiber may have moved meanwhile.
 *  6. The fiber arrives on its home thread and handles what is pending. A wait that ended spuriously looks whether the
 *     thread is cancelled.
 */
#include "switch/recall.h"

#include <errno.h>
#include <signal.h>

#include "os/real.h"
#include "switch/mask.h"
#include "switch/pin.h"
#include "switch/state.h"
#include "switch/tuning.h"

extern int __libc_allocate_rtsig(int high);

static int reserved[2];
static uint64_t ignored; /* at the start, of the highest two: by the parent */
static int signals[2];   /* index 1: the signal after which an interrupted system call fails; 0: not installed */

uint64_t sbt_recall_signals;

static void on_recall(int signal, siginfo_t *info, void *context) {
    struct sbt_fiber *f = sbt_self.fiber;
    (void)signal, (void)info;
    if (f == NULL || f->carrier == NULL || sbt_switch_is_fixed() ||
        __atomic_load_n(&f->pinned, __ATOMIC_RELAXED) == SBT_PIN_NOT)
        return;
    f->mask_unsure = 1; /* the present mask is this handler's */
    sbt_fiber_leave(f, SBT_LEAVES_FOR_HOME);
    sbt_signal_stack_returned(context);
}

/*
 * The C library gives away its highest real-time signals, and SIGRTMAX is lower from then on. The caller holds the
 * lock.
 */
static void reserve(void) {
    uint64_t bits = 0;
    if (reserved[0] != 0)
        return;
    for (int i = 0; i < 2; i++) {
        reserved[i] = __libc_allocate_rtsig(0);
        bits |= reserved[i] > 0 ? (uint64_t)1 << (reserved[i] - 1) : 0;
    }
    sbt_handlers_spared = bits;
    uint64_t mask = sbt_mask_set(NULL) & ~bits; /* the process that started this one may have blocked them */
    sbt_mask_set(&mask);
}

/* By system calls: the C library's function may be another library's, and that is not ready yet. */
void sbt_recall_begin(void) {
    enum { HIGHEST = 64, MASK_BYTES = 8 };
    struct {
        void (*handler)(int); /* what follows differs between machines, and none is longer than this */
        unsigned long more[8];
    } action;
    for (int signal = HIGHEST - 1; signal <= HIGHEST; signal++)
        if (sbt_syscall6(SYS_rt_sigaction, signal, 0, (long)&action, MASK_BYTES, 0, 0) == 0 &&
            action.handler == SIG_IGN)
            ignored |= (uint64_t)1 << (signal - 1);
}

void sbt_recall_reserve(void) {
    struct sbt_lock *lock = &SBT_SWITCH->recall_lock;
    sbt_switch_lock(lock);
    reserve();
    sbt_switch_unlock(lock);
}

/* Has the program left the signal alone? */
static bool is_free(int signal, const struct sigaction *action) {
    return action->sa_handler == SIG_DFL || action->sa_sigaction == on_recall ||
           (action->sa_handler == SIG_IGN && (ignored >> (signal - 1) & 1) != 0);
}

static bool install(int interrupts) {
    struct sigaction action = {.sa_sigaction = on_recall, .sa_flags = SA_SIGINFO | (interrupts ? 0 : SA_RESTART)}, old;
    int signal = reserved[interrupts];
    if (signal <= 0 || sbt_real.sigaction(signal, NULL, &old) != 0 || !is_free(signal, &old) ||
        sbt_real.sigaction(signal, &action, NULL) != 0)
        return false;
    sbt_recall_signals |= (uint64_t)1 << (signal - 1);
    __atomic_store_n(&signals[interrupts], signal, __ATOMIC_RELEASE);
    return true;
}

bool sbt_recall_start(void) {
    struct sbt_lock *lock = &SBT_SWITCH->recall_lock;
    if (__atomic_load_n(&signals[1], __ATOMIC_ACQUIRE) != 0)
        return true;
    sbt_switch_lock(lock); /* the monitor comes here too, and threads that recall others */
    reserve();
    bool started = signals[1] != 0 || (install(0) && install(1));
    sbt_switch_unlock(lock);
    return started;
}

/* The signal must not be sent if the program has installed a handler of its own for it. */
static bool still_ours(int signal) {
    struct sigaction action;
    return signal != 0 && sbt_real.sigaction(signal, NULL, &action) == 0 && action.sa_sigaction == on_recall;
}

void sbt_recall(struct sbt_fiber *f, enum sbt_recall_how how, int looks) {
    struct sbt_switch_state *s = SBT_SWITCH;
    int error = errno, signal = signals[how != SBT_RECALL_TO_GO_ON];
    __atomic_fetch_or(&f->pinned, SBT_PIN_ITSELF, __ATOMIC_SEQ_CST);
    sbt_handlers_hold(); /* no thread runs a fiber that this thread owns, until it is sent home */
    uint32_t old = __atomic_exchange_n(&f->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL);
    if (old == SBT_TOKEN_BLOCKED)
        sbt_futex_wake(&f->token, 1);
    if (old == SBT_TOKEN_PARKED) {
        f->interrupted = how == SBT_RECALL_INTERRUPT;
        sbt_runnable_add(1);
        sbt_pin_send_home(f);
    }
    sbt_handlers_release();
    if (old == SBT_TOKEN_BLOCKED || old == SBT_TOKEN_PARKED || !still_ours(signal))
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the fence of a fiber that is resumed (obey_recall) */
    for (int i = 0; i < looks; i++) {
        struct sbt_carrier *x = __atomic_load_n(&f->carrier, __ATOMIC_RELAXED);
        if (x == NULL)
            break;
        if (__atomic_load_n(&x->current, __ATOMIC_RELAXED) == f)
            sbt_syscall3(SYS_tgkill, sbt_syscall0(SYS_getpid), x->tid, signal);
        if (sbt_self.in_switch != 0 || s->quit != 0)
            break; /* in a handler that interrupted its thread inside switch/ a single look must do */
        if (i + 1 < looks)
            sbt_pause_ns(RECALL_GAP_NS);
    }
    errno = error;
}

bool sbt_recall_spare_signals(sigset_t *set) {
    for (int i = 0; i < 2; i++)
        if (reserved[i] > 0)
            sigdelset(set, reserved[i]);
    return reserved[0] > 0;
}

static void find_and_recall(pthread_t thread, uint32_t tid, enum sbt_recall_how how) {
    struct sbt_fiber *f = sbt_switch_running_load() != 0 ? sbt_pool_find(thread, tid) : NULL;
    if (f == NULL || f == sbt_self.fiber)
        return;
    sbt_recall_start(); /* the program may not have been known to recall threads */
    sbt_recall(f, how, RECALL_LOOKS);
}

void sbt_recall_thread(pthread_t thread, enum sbt_recall_how how) {
    find_and_recall(thread, 0, how);
}

void sbt_recall_tid(uint32_t tid, enum sbt_recall_how how) {
    find_and_recall(0, tid, how);
}

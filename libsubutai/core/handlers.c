/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/handlers.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "core/object.h"
#include "os/real.h"

#define N_SIGNALS 65
#define FIRST_REAL_TIME 32
#define CANCELLATION 32 /* the C library's own; its sigaction refuses this number */
#define INFO_BYTES 48   /* the part of siginfo_t that the kernel fills in or reads; the rest is zero */
#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* Signals of faults. They are never deferred: a fault ends the process if its signal is blocked. */
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS))
/* When SIGCONT is sent the kernel takes back the pending stop signals, and the other way round. */
#define STOPS_AND_CONT (BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU) | BIT(SIGCONT))

typedef void handler_function(int signal, siginfo_t *info, void *context);

/*
 * The program's handlers, by signal. Relaxed: a handler is code, and nothing orders its installation with a signal that
 * is sent at the same time.
 */
static struct handler {
    handler_function *function;
    bool wants_info;
    bool is_last;    /* no action of another kind has been set since; it may have been reset */
    uint64_t spared; /* the part of its mask that is kept from the kernel */
} theirs[N_SIGNALS];

void (*sbt_handlers_interrupt)(struct sbt_waiter *waiter, int signal);
bool (*sbt_handlers_put_back)(int signal, siginfo_t *info, ucontext_t *context);
void (*sbt_handlers_entered)(void);
void (*sbt_handlers_returned)(void *context);
uint64_t sbt_handlers_spared;

static long process; /* that has these handlers; a child of vfork shares this memory and has other handlers */

static _Thread_local struct {
    uint32_t n;
    bool blocks;   /* the code that was interrupted last goes on with all signals blocked, */
    uint64_t mask; /* in place of this mask */
    struct one {
        handler_function *function; /* at its receipt: one with SA_RESETHAND is the program's no more */
        unsigned char info[INFO_BYTES];
    } one[SBT_HANDLERS_DEFERRED_MOST];
} deferred __attribute__((tls_model("initial-exec")));

static const uint64_t all_but_faults =
    ~(FAULTS | BIT(SIGKILL) | BIT(SIGSTOP)); /* the kernel blocks neither of these two */

/* The kernel's, which the C library's function hides for its own signals. The same on both machines. */
struct kernel_action {
    handler_function *function;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

/* The kernel's masks have 64 bits, the C library's have more. */
static uint64_t mask_get(const sigset_t *set) {
    uint64_t mask;
    memcpy(&mask, set, sizeof mask);
    return mask;
}

static void mask_put(sigset_t *set, uint64_t mask) {
    memcpy(set, &mask, sizeof mask);
}

static uint64_t change_mask(int how, const uint64_t *mask) {
    uint64_t old = 0;
    sbt_syscall6(SYS_rt_sigprocmask, how, (long)mask, (long)&old, sizeof old, 0, 0);
    return old;
}

static bool are_held(void) {
    return sbt_self.handlers_held != 0;
}

static handler_function *load(int signal) {
    return __atomic_load_n(&theirs[signal].function, __ATOMIC_RELAXED);
}

/*
 * The interrupted code goes on with all signals blocked. That code may be the section. It may also be another handler:
 * the kernel has stacked this handler on that one.
 *  - If the handler below was deferred too, it comes here next. Then the mask below it is the one to restore.
 *  - If the handler below cannot be deferred, the section gets its mask back when that handler returns.
 *
 * All signals are blocked while this is written down. False: too many handlers are deferred, and this one runs now.
 */
static bool defer(const siginfo_t *info, ucontext_t *context) {
    change_mask(SIG_BLOCK, &all_but_faults);
    deferred.mask = mask_get(&context->uc_sigmask);
    mask_put(&context->uc_sigmask, deferred.mask | all_but_faults);
    deferred.blocks = true;
    sbt_self.handlers_deferred = 1;
    if (deferred.n == SBT_HANDLERS_DEFERRED_MOST)
        return false;
    deferred.one[deferred.n].function = load(info->si_signo);
    memcpy(deferred.one[deferred.n++].info, info, INFO_BYTES);
    return true;
}

/*
 * A handler with one parameter ignores the others: the calling conventions of both machines allow that. The handler may
 * leave by a jump, so the record of a waiter that it has interrupted is put back behind it only.
 */
static void call(handler_function *function, siginfo_t *info, void *context) {
    struct sbt_waiter *waiter = sbt_self.waiter;
    uint32_t n_running = sbt_self.handlers_running;
    if (SBT_UNLIKELY(waiter != NULL)) {
        if (!are_held() && sbt_handlers_interrupt != NULL && info->si_signo != CANCELLATION)
            sbt_handlers_interrupt(waiter, info->si_signo);
        sbt_self.waiter = NULL;
    }
    if (SBT_UNLIKELY(sbt_handlers_entered != NULL))
        sbt_handlers_entered();
    __atomic_store_n(&sbt_self.handlers_running, n_running + 1, __ATOMIC_RELAXED); /* other threads compare it */
    if (info->si_signo == CANCELLATION)
        sbt_self.in_cancellation = true;
    function(info->si_signo, info, context);
    if (info->si_signo == CANCELLATION) /* it has not acted */
        sbt_self.in_cancellation = false;
    __atomic_store_n(&sbt_self.handlers_running, n_running, __ATOMIC_RELAXED);
    sbt_self.waiter = waiter;
    if (SBT_UNLIKELY(sbt_handlers_returned != NULL))
        sbt_handlers_returned(context);
}

static bool is_fault(int signal) {
    return signal == SIGABRT || (FAULTS & BIT(signal)) != 0;
}

/*
 * The handler that the kernel is given, with SA_RESETHAND where the program's has that. Then the kernel itself has gone
 * back to the default when this begins, in this process alone, and of threads that receive the signal at once all but
 * the first take the default action.
 */
static void handle(int signal, siginfo_t *info, void *context) {
    if (!are_held() && !is_fault(signal) && (STOPS_AND_CONT & BIT(signal)) == 0 && sbt_handlers_put_back != NULL &&
        SBT_UNLIKELY(sbt_handlers_put_back(signal, info, context)))
        return;
    if (SBT_LIKELY(!are_held()) || is_fault(signal) || !defer(info, context))
        call(load(signal), info, context);
}

/* Run a deferred handler here and now, with the mask that the kernel would have set. */
static void run(handler_function *function, siginfo_t *info, uint64_t *mask) {
    ucontext_t here;
    struct sigaction action;
    int signal = info->si_signo;
    uint64_t during = *mask;
    if (sbt_real.sigaction(signal, NULL, &action) == 0) /* they are kept when SA_RESETHAND has been acted upon */
        during |= mask_get(&action.sa_mask) | ((action.sa_flags & SA_NODEFER) != 0 ? 0 : BIT(signal));
    getcontext(&here);
    mask_put(&here.uc_sigmask, *mask);
    change_mask(SIG_SETMASK, &during);
    call(function, info, &here);
    change_mask(SIG_BLOCK, &all_but_faults);
    *mask = mask_get(&here.uc_sigmask); /* the handler may have changed it */
}

/*
 * Send a deferred signal to the thread once more: then its handler gets the stack, the flags and the context that it is
 * entitled to. That is not possible in three cases:
 *  - The handler had SA_RESETHAND: its one call is that of the signal that was deferred.
 *  - The signal is a real-time signal. Several of one number must keep their order.
 *  - The same signal is pending, or the signal stops or continues the process. The kernel keeps one of each number, and
 *    stop and continue take each other back.
 */
static bool is_sent_again(handler_function *function, siginfo_t *info) {
    uint64_t pending = 0;
    int signal = info->si_signo;
    struct sigaction action;
    if (sbt_real.sigaction(signal, NULL, &action) != 0 || action.sa_sigaction != handle || load(signal) != function ||
        (action.sa_flags & (int)SA_RESETHAND) != 0)
        return false;
    sbt_syscall6(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    return signal < FIRST_REAL_TIME && ((pending | STOPS_AND_CONT) & BIT(signal)) == 0 &&
           sbt_syscall6(SYS_rt_tgsigqueueinfo, sbt_syscall0(SYS_getpid), sbt_syscall0(SYS_gettid), signal, (long)info,
                        0, 0) == 0;
}

static siginfo_t first_deferred(void) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    memcpy(&info, deferred.one[0].info, INFO_BYTES);
    return info;
}

/* Each handler runs alone: it may leave by a jump, and it may enter a section itself. */
SBT_NOINLINE void sbt_handlers_deliver(void) {
    if (are_held())
        return;
    uint64_t mask = change_mask(SIG_BLOCK, &all_but_faults);
    /* If a handler below has given the section its mask back, that mask does not block this signal, and it stands. */
    if (deferred.blocks && deferred.n != 0 && (mask & BIT(first_deferred().si_signo)) != 0)
        mask = deferred.mask;
    deferred.blocks = false;
    while (deferred.n != 0) {
        siginfo_t info = first_deferred();
        handler_function *function = deferred.one[0].function;
        deferred.n--;
        memmove(&deferred.one[0], &deferred.one[1], deferred.n * sizeof deferred.one[0]);
        sbt_self.handlers_deferred = deferred.n != 0;
        if (!is_sent_again(function, &info))
            run(function, &info, &mask);
    }
    sbt_self.handlers_deferred = 0;
    change_mask(SIG_SETMASK, &mask);
}

void sbt_handlers_start(void) {
    process = sbt_syscall0(SYS_getpid);
}

/* A deferred handler with SA_RESETHAND has no second signal that would give it the stack of SA_ONSTACK. */
static bool needs_its_stack(int flags) {
    const int both = (int)SA_RESETHAND | SA_ONSTACK;
    return (flags & both) == both;
}

bool sbt_handlers_can(int signal, const struct sigaction *action) {
    return sbt_all_theirs == 0 && signal > 0 && signal < N_SIGNALS &&
           (!is_fault(signal) || sbt_handlers_returned != NULL) && action->sa_handler != SIG_DFL &&
           action->sa_handler != SIG_IGN && action->sa_sigaction != handle && !needs_its_stack(action->sa_flags);
}

static struct handler theirs_for(int signal) {
    return (struct handler){.function = load(signal),
                            .wants_info = __atomic_load_n(&theirs[signal].wants_info, __ATOMIC_RELAXED),
                            .is_last = __atomic_load_n(&theirs[signal].is_last, __ATOMIC_RELAXED),
                            .spared = __atomic_load_n(&theirs[signal].spared, __ATOMIC_RELAXED)};
}

static void store(int signal, const struct handler *handler) {
    __atomic_store_n(&theirs[signal].function, handler->function, __ATOMIC_RELAXED);
    __atomic_store_n(&theirs[signal].wants_info, handler->wants_info, __ATOMIC_RELAXED);
    __atomic_store_n(&theirs[signal].is_last, handler->is_last, __ATOMIC_RELAXED);
    __atomic_store_n(&theirs[signal].spared, handler->spared, __ATOMIC_RELAXED);
}

/*
 * The kernel's action, as the program has set it. With SA_RESETHAND the kernel keeps flags and mask when it has gone
 * back to the default.
 */
static struct sigaction as_set(const struct sigaction *action, const struct handler *handler) {
    struct sigaction shown = *action;
    bool is_installed = action->sa_sigaction == handle;
    bool is_reset = action->sa_handler == SIG_DFL && (action->sa_flags & (int)SA_RESETHAND) != 0 && handler->is_last;
    if (is_installed)
        shown.sa_sigaction = handler->function;
    if (is_installed || is_reset) {
        shown.sa_flags &= ~(handler->wants_info ? 0 : SA_SIGINFO);
        mask_put(&shown.sa_mask, mask_get(&action->sa_mask) | handler->spared);
    }
    return shown;
}

int sbt_handlers_set(int signal, const struct sigaction *action, struct sigaction *old) {
    struct sigaction ours, was;
    if (signal <= 0 || signal >= N_SIGNALS)
        return sbt_real.sigaction(signal, action, old);
    const struct handler before = theirs_for(signal);
    bool is_shared = sbt_syscall0(SYS_getpid) != process;
    bool can = action != NULL && sbt_handlers_can(signal, action) && !is_shared;
    if (action != NULL) {
        ours = *action;
        mask_put(&ours.sa_mask, mask_get(&action->sa_mask) & ~sbt_handlers_spared);
    }
    if (can) { /* before the system call: the handler may run before that returns */
        ours.sa_sigaction = handle;
        ours.sa_flags |= SA_SIGINFO;
        store(signal, &(struct handler){.function = action->sa_sigaction,
                                        .wants_info = (action->sa_flags & SA_SIGINFO) != 0,
                                        .is_last = true,
                                        .spared = mask_get(&action->sa_mask) & sbt_handlers_spared});
    }
    int r = sbt_real.sigaction(signal, action != NULL ? &ours : NULL, &was);
    if (r != 0) {
        if (can)
            store(signal, &before);
        return r;
    }
    if (action != NULL && !can && !is_shared)
        __atomic_store_n(&theirs[signal].is_last, false, __ATOMIC_RELAXED);
    if (old != NULL)
        *old = as_set(&was, &before);
    return 0;
}

/* ---- the C library's cancellation ---- */

/*
 * A cancelled thread with cancellation disabled ends as others do.
 *
 * Its end frees memory, behind the destructors of its data. If that were the first time that it takes the lock of an
 * allocator, an engine that keeps an order would begin to know the thread when it can no longer be told of the end.
 */
static void *cancel_itself(void *unused) {
    void *(*volatile take)(size_t) = malloc;
    free(take(1));
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    sbt_real.pthread_cancel(pthread_self());
    return unused;
}

/*
 * Since 2.34 the C library installs its handler with the first cancellation. That one is to be deferred already. The
 * thread runs no handler of the program's: that might wait for the caller.
 */
static void let_install(void) {
    pthread_t thread;
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    const uint64_t of_program = all_but_faults & ~(BIT(CANCELLATION) | BIT(CANCELLATION + 1)); /* setuid's */
    uint64_t mask = change_mask(SIG_BLOCK, &of_program);
    if (sbt_real.pthread_create(&thread, NULL, cancel_itself, NULL) == 0)
        sbt_real.pthread_join(thread, NULL);
    change_mask(SIG_SETMASK, &mask);
    pthread_setcancelstate(state, NULL);
}

/*
 * Is a handler installed? A process that the C library's posix_spawn has started, as make, system and popen do, begins
 * with this signal ignored, and hands that on. The handler comes with the first cancellation all the same.
 */
static bool has_cancellation(struct kernel_action *action) {
    *action = (struct kernel_action){.function = NULL};
    sbt_syscall6(SYS_rt_sigaction, CANCELLATION, 0, (long)action, sizeof action->mask, 0, 0);
    return action->function != NULL && (uintptr_t)action->function != (uintptr_t)SIG_IGN;
}

/* If no thread can be created now, the next cancellation tries again. */
void sbt_handlers_find_cancellation(void) {
    static uint32_t is_done; /* atomic; a forked child has the parent's handlers */
    struct kernel_action action;
    if (__atomic_load_n(&is_done, __ATOMIC_ACQUIRE) != 0)
        return;
    if (!has_cancellation(&action))
        let_install();
    if (has_cancellation(&action))
        __atomic_store_n(&is_done, 1, __ATOMIC_RELEASE);
}

void sbt_handlers_defer_cancellation(void) {
    static bool is_done;
    struct kernel_action action;
    if (is_done || !has_cancellation(&action))
        return;
    is_done = true;
    if (action.function == handle)
        return;
    store(CANCELLATION, &(struct handler){.function = action.function, .wants_info = true});
    action.function = handle;
    sbt_syscall6(SYS_rt_sigaction, CANCELLATION, (long)&action, 0, sizeof action.mask, 0, 0);
}

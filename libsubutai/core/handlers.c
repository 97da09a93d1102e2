/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/handlers.h"

#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "core/real.h"

#define N_SIGNALS 65
#define PUT_OFF_MOST 4 /* handlers that the kernel has stacked one on the other; more of them are not put off */
#define FIRST_REAL_TIME 32
#define INFO_BYTES 48 /* that the kernel fills in or reads; the rest of siginfo_t is zero */

typedef void handler_function(int signal, siginfo_t *info, void *context);

/* The program's. Relaxed: they are code, and whoever installs one while another thread is sent the signal has no order.
 */
static struct {
    handler_function *function;
    bool wants_info;
} theirs[N_SIGNALS];

/* All signals are blocked from the first entry on until they are caught up with. */
static _Thread_local struct {
    uint32_t n;
    uint64_t mask; /* the thread's own */
    unsigned char info[PUT_OFF_MOST][INFO_BYTES];
} put_off __attribute__((tls_model("initial-exec")));

static const uint64_t all_signals = UINT64_MAX;

static void set_mask(const uint64_t *mask) {
    sbt_syscall6(SYS_rt_sigprocmask, SIG_SETMASK, (long)mask, 0, sizeof *mask, 0, 0);
}

static bool are_held(void) {
    return sbt_self.in_lot != 0 || sbt_self.handlers_held != 0;
}

static handler_function *load(int signal) {
    return __atomic_load_n(&theirs[signal].function, __ATOMIC_RELAXED);
}

/*
 * The kernel may have put another handler onto this one before its first instruction: that returned here with all
 * signals blocked, and the mask that counts is the one under this one. No other comes while this is written down. False
 * if there are too many: it runs now, with all signals blocked.
 */
static bool is_put_off(const siginfo_t *info, ucontext_t *context) {
    set_mask(&all_signals);
    memcpy(&put_off.mask, &context->uc_sigmask, sizeof put_off.mask);
    memcpy(&context->uc_sigmask, &all_signals, sizeof all_signals); /* the kernel's are 64 bits */
    sbt_self.handlers_put_off = 1;
    if (put_off.n == PUT_OFF_MOST)
        return false;
    memcpy(put_off.info[put_off.n++], info, INFO_BYTES);
    return true;
}

/* What the kernel calls. A handler with one parameter ignores the others, in the calling conventions of both machines.
 */
static void handle(int signal, siginfo_t *info, void *context) {
    if (SBT_UNLIKELY(are_held()) && is_put_off(info, context))
        return;
    load(signal)(signal, info, context);
}

/* Here and now, with the mask that the kernel would have given it. */
static void run(siginfo_t *info, uint64_t *mask) {
    ucontext_t here;
    struct sigaction action;
    int signal = info->si_signo;
    uint64_t during = *mask, more;
    if (sbt_real.sigaction(signal, NULL, &action) == 0) {
        memcpy(&more, &action.sa_mask, sizeof more);
        during |= more | ((action.sa_flags & SA_NODEFER) != 0 ? 0 : UINT64_C(1) << (signal - 1));
    }
    getcontext(&here);
    memcpy(&here.uc_sigmask, mask, sizeof *mask);
    set_mask(&during);
    load(signal)(signal, info, &here);
    set_mask(&all_signals);
    memcpy(mask, &here.uc_sigmask, sizeof *mask); /* which the handler may have changed */
}

/*
 * They are sent to the thread once more, which gives them the stack, the flags and the context that they are entitled
 * to. But of several real-time signals with one number the first sent comes first, and others may have been sent
 * meanwhile: those are run from here, as is what the kernel has no memory for.
 */
SBT_NOINLINE void sbt_handlers_catch_up(void) {
    siginfo_t info[PUT_OFF_MOST];
    if (are_held())
        return;
    uint64_t mask = put_off.mask;
    uint32_t n = put_off.n, n_here = 0;
    long pid = sbt_syscall0(SYS_getpid), tid = sbt_syscall0(SYS_gettid);
    for (uint32_t i = 0; i < n; i++) {
        siginfo_t *next = &info[n_here];
        memset(next, 0, sizeof *next);
        memcpy(next, put_off.info[i], INFO_BYTES);
        n_here += next->si_signo >= FIRST_REAL_TIME ||
                  sbt_syscall6(SYS_rt_tgsigqueueinfo, pid, tid, next->si_signo, (long)next, 0, 0) != 0;
    }
    put_off.n = 0;
    sbt_self.handlers_put_off = 0;
    for (uint32_t i = 0; i < n_here; i++)
        run(&info[i], &mask);
    set_mask(&mask);
}

static bool is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL || signal == SIGTRAP ||
           signal == SIGSYS || signal == SIGABRT;
}

bool sbt_handlers_can(int signal, const struct sigaction *action) {
    return signal > 0 && signal < N_SIGNALS && !is_fault(signal) && action->sa_handler != SIG_DFL &&
           action->sa_handler != SIG_IGN && action->sa_sigaction != handle && (action->sa_flags & SA_RESETHAND) == 0;
}

static void store(int signal, handler_function *function, bool wants_info) {
    __atomic_store_n(&theirs[signal].function, function, __ATOMIC_RELAXED);
    __atomic_store_n(&theirs[signal].wants_info, wants_info, __ATOMIC_RELAXED);
}

int sbt_handlers_set(int signal, const struct sigaction *action, struct sigaction *old) {
    struct sigaction ours, was;
    if (signal <= 0 || signal >= N_SIGNALS)
        return sbt_real.sigaction(signal, action, old);
    handler_function *function = load(signal);
    bool wants_info = __atomic_load_n(&theirs[signal].wants_info, __ATOMIC_RELAXED);
    bool can = action != NULL && sbt_handlers_can(signal, action);
    if (can) { /* first: it may be called before the kernel returns */
        ours = *action;
        ours.sa_sigaction = handle;
        ours.sa_flags |= SA_SIGINFO;
        store(signal, action->sa_sigaction, (action->sa_flags & SA_SIGINFO) != 0);
    }
    int r = sbt_real.sigaction(signal, can ? &ours : action, &was);
    if (r != 0) {
        if (can)
            store(signal, function, wants_info);
        return r;
    }
    if (old != NULL) {
        *old = was;
        if (was.sa_sigaction == handle) {
            old->sa_sigaction = function;
            old->sa_flags = was.sa_flags & ~(wants_info ? 0 : SA_SIGINFO);
        }
    }
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "core/handlers.h"

#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "core/object.h"
#include "core/real.h"

#define N_SIGNALS 65
#define PUT_OFF_MOST 4 /* handlers that the kernel has stacked one on the other; more of them are not put off */
#define FIRST_REAL_TIME 32
#define INFO_BYTES 48 /* that the kernel fills in or reads; the rest of siginfo_t is zero */
#define BIT(signal) (UINT64_C(1) << ((signal)-1))

/* Blocked, these end the process when they come; and they are never put off. */
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGFPE) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGSYS))
/* The kernel takes back those of one kind when one of the other is sent. */
#define STOPS_AND_CONT (BIT(SIGTSTP) | BIT(SIGTTIN) | BIT(SIGTTOU) | BIT(SIGCONT))

typedef void handler_function(int signal, siginfo_t *info, void *context);

/* The program's. Relaxed: they are code, and whoever installs one while another thread is sent the signal has no order.
 */
static struct {
    handler_function *function;
    bool wants_info;
    uint64_t spared; /* of its mask, what the kernel is not told */
} theirs[N_SIGNALS];

void (*sbt_handlers_returned)(void);
uint64_t sbt_handlers_spared;

static long process; /* whose they are: not a child of vfork, which has this memory and dispositions of its own */

static _Thread_local struct {
    uint32_t n;
    bool blocks;   /* who was interrupted last goes on with all signals blocked, */
    uint64_t mask; /* in place of this */
    unsigned char info[PUT_OFF_MOST][INFO_BYTES];
} put_off __attribute__((tls_model("initial-exec")));

static const uint64_t all_but_faults = ~(FAULTS | BIT(SIGKILL) | BIT(SIGSTOP)); /* the kernel blocks neither of these */

/* The kernel's masks are 64 bits, the C library's more. */
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
    return sbt_self.in_lot != 0 || sbt_self.handlers_held != 0;
}

static handler_function *load(int signal) {
    return __atomic_load_n(&theirs[signal].function, __ATOMIC_RELAXED);
}

/*
 * Whom it has interrupted goes on with all signals blocked. That need not be the section itself, but may be another
 * handler, which the kernel has put under this one: was it put off as well, it comes here next, and the mask that
 * counts is the one under it; is it one that cannot be, it gives the section its mask back when it returns. No other
 * comes while this is written down. False if there are too many: it runs now.
 */
static bool is_put_off(const siginfo_t *info, ucontext_t *context) {
    change_mask(SIG_BLOCK, &all_but_faults);
    put_off.mask = mask_get(&context->uc_sigmask);
    mask_put(&context->uc_sigmask, put_off.mask | all_but_faults);
    put_off.blocks = true;
    sbt_self.handlers_put_off = 1;
    if (put_off.n == PUT_OFF_MOST)
        return false;
    memcpy(put_off.info[put_off.n++], info, INFO_BYTES);
    return true;
}

/* A handler with one parameter ignores the others, in the calling conventions of both machines. */
static void call(int signal, siginfo_t *info, void *context) {
    load(signal)(signal, info, context);
    if (SBT_UNLIKELY(sbt_handlers_returned != NULL))
        sbt_handlers_returned();
}

/* What the kernel calls. */
static void handle(int signal, siginfo_t *info, void *context) {
    if (SBT_LIKELY(!are_held()) || !is_put_off(info, context))
        call(signal, info, context);
}

/* Here and now, with the mask that the kernel would have given it. */
static void run(siginfo_t *info, uint64_t *mask) {
    ucontext_t here;
    struct sigaction action;
    int signal = info->si_signo;
    uint64_t during = *mask;
    if (sbt_real.sigaction(signal, NULL, &action) == 0)
        during |= mask_get(&action.sa_mask) | ((action.sa_flags & SA_NODEFER) != 0 ? 0 : BIT(signal));
    getcontext(&here);
    mask_put(&here.uc_sigmask, *mask);
    change_mask(SIG_SETMASK, &during);
    call(signal, info, &here);
    change_mask(SIG_BLOCK, &all_but_faults);
    *mask = mask_get(&here.uc_sigmask); /* which the handler may have changed */
}

/*
 * Sent to the thread once more, it gets the stack, the flags and the context that it is entitled to. But of several
 * real-time signals with one number the first sent comes first, of others one is enough for the kernel, and some take
 * each other back.
 */
static bool is_sent_again(siginfo_t *info) {
    uint64_t pending = 0;
    int signal = info->si_signo;
    sbt_syscall6(SYS_rt_sigpending, (long)&pending, sizeof pending, 0, 0, 0, 0);
    return signal < FIRST_REAL_TIME && ((pending | STOPS_AND_CONT) & BIT(signal)) == 0 &&
           sbt_syscall6(SYS_rt_tgsigqueueinfo, sbt_syscall0(SYS_getpid), sbt_syscall0(SYS_gettid), signal, (long)info,
                        0, 0) == 0;
}

static siginfo_t first_put_off(void) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    memcpy(&info, put_off.info[0], INFO_BYTES);
    return info;
}

/* One by one: a handler may leave by a jump, and hold something itself. */
SBT_NOINLINE void sbt_handlers_catch_up(void) {
    if (are_held())
        return;
    uint64_t mask = change_mask(SIG_BLOCK, &all_but_faults);
    /* Not if it was in another handler, which has given the section its mask back: that does not block this signal. */
    if (put_off.blocks && put_off.n != 0 && (mask & BIT(first_put_off().si_signo)) != 0)
        mask = put_off.mask;
    put_off.blocks = false;
    while (put_off.n != 0) {
        siginfo_t info = first_put_off();
        put_off.n--;
        memmove(put_off.info[0], put_off.info[1], put_off.n * sizeof put_off.info[0]);
        sbt_self.handlers_put_off = put_off.n != 0;
        if (!is_sent_again(&info))
            run(&info, &mask);
    }
    sbt_self.handlers_put_off = 0;
    change_mask(SIG_SETMASK, &mask);
}

void sbt_handlers_start(void) {
    process = sbt_syscall0(SYS_getpid);
}

static bool is_fault(int signal) {
    return signal == SIGABRT || (FAULTS & BIT(signal)) != 0;
}

bool sbt_handlers_can(int signal, const struct sigaction *action) {
    return sbt_all_theirs == 0 && signal > 0 && signal < N_SIGNALS && !is_fault(signal) &&
           action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN && action->sa_sigaction != handle &&
           (action->sa_flags & SA_RESETHAND) == 0;
}

static void store(int signal, handler_function *function, bool wants_info, uint64_t spared) {
    __atomic_store_n(&theirs[signal].function, function, __ATOMIC_RELAXED);
    __atomic_store_n(&theirs[signal].wants_info, wants_info, __ATOMIC_RELAXED);
    __atomic_store_n(&theirs[signal].spared, spared, __ATOMIC_RELAXED);
}

int sbt_handlers_set(int signal, const struct sigaction *action, struct sigaction *old) {
    struct sigaction ours, was;
    if (signal <= 0 || signal >= N_SIGNALS)
        return sbt_real.sigaction(signal, action, old);
    handler_function *function = load(signal);
    bool wants_info = __atomic_load_n(&theirs[signal].wants_info, __ATOMIC_RELAXED);
    uint64_t spared = __atomic_load_n(&theirs[signal].spared, __ATOMIC_RELAXED);
    bool can = action != NULL && sbt_handlers_can(signal, action) && sbt_syscall0(SYS_getpid) == process;
    if (action != NULL) {
        ours = *action;
        mask_put(&ours.sa_mask, mask_get(&action->sa_mask) & ~sbt_handlers_spared);
    }
    if (can) { /* first: it may be called before the kernel returns */
        ours.sa_sigaction = handle;
        ours.sa_flags |= SA_SIGINFO;
        store(signal, action->sa_sigaction, (action->sa_flags & SA_SIGINFO) != 0,
              mask_get(&action->sa_mask) & sbt_handlers_spared);
    }
    int r = sbt_real.sigaction(signal, action != NULL ? &ours : NULL, &was);
    if (r != 0) {
        if (can)
            store(signal, function, wants_info, spared);
        return r;
    }
    if (old != NULL) {
        *old = was;
        if (was.sa_sigaction == handle) {
            old->sa_sigaction = function;
            old->sa_flags = was.sa_flags & ~(wants_info ? 0 : SA_SIGINFO);
            mask_put(&old->sa_mask, mask_get(&was.sa_mask) | spared);
        }
    }
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Bringing another thread home, because it has been sent a signal or a cancellation: those go to its own kernel thread,
 * where they are pending while that is a husk. The sender first sends, then summons: a wait that is ended for no reason
 * looks whether the thread is cancelled, and a thread that arrives at home handles what is pending.
 *
 * One that waits has only to be made to go on at home instead of on a carrier. One that is running on a carrier, in a
 * system call perhaps that never returns, is sent a signal of ours there, whose handler takes whoever it finds and is
 * summoned home; the call is made again there, or is interrupted, as the handler that is about to run there wants it.
 * The summoner looks again until the context is no longer running on a carrier: what it saw may have moved meanwhile.
 *
 * Who has been summoned waits at home from then on: it is the kind of thread to which such things happen.
 */
#include <errno.h>
#include <signal.h>

#include "core/real.h"
#include "switch/inner.h"

#define LOOKS 200
#define LOOK_GAP_NS 100000

extern int __libc_allocate_rtsig(int high);

static int reserved[2];
static int kicks[2]; /* by whether an interrupted system call is to fail; 0: there is none */

uint64_t sbt_kick_bits;

static void kicked(int signal) {
    struct sbt_context *c = sbt_self.context;
    (void)signal;
    if (c == NULL || c->carrier == NULL || sbt_self.in_switch != 0 ||
        __atomic_load_n(&c->bidden, __ATOMIC_RELAXED) == SBT_STAYS_NOT)
        return;
    c->mask_unsure = 1; /* it is this handler's */
    sbt_context_leave(c, SBT_LEAVES_FOR_HOME);
}

/* The C library gives the highest that are left, and SIGRTMAX is lower from then on: before the program asks for it. */
void sbt_summon_reserve(void) {
    uint64_t bits = 0;
    for (int i = 0; i < 2; i++) {
        reserved[i] = __libc_allocate_rtsig(0);
        bits |= reserved[i] > 0 ? (uint64_t)1 << (reserved[i] - 1) : 0;
    }
    sbt_handlers_spared = bits;
    uint64_t mask = sbt_mask_set(NULL) & ~bits; /* as it was given by who started the program */
    sbt_mask_set(&mask);
}

static bool install(int interrupts) {
    struct sigaction action = {.sa_handler = kicked, .sa_flags = interrupts ? 0 : SA_RESTART}, old;
    int signal = reserved[interrupts];
    if (signal <= 0 || sbt_real.sigaction(signal, NULL, &old) != 0 ||
        (old.sa_handler != SIG_DFL && old.sa_handler != kicked) || sbt_real.sigaction(signal, &action, NULL) != 0)
        return false;
    kicks[interrupts] = signal;
    sbt_kick_bits |= (uint64_t)1 << (signal - 1);
    return true;
}

bool sbt_summon_start(void) {
    return kicks[1] != 0 || (install(0) && install(1));
}

/* Is the program's handler there instead of ours? Then it must not run. */
static bool still_ours(int signal) {
    struct sigaction action;
    return signal != 0 && sbt_real.sigaction(signal, NULL, &action) == 0 && action.sa_handler == kicked;
}

void sbt_summon(struct sbt_context *c, enum sbt_summons how, int looks) {
    struct sbt_switch_state *s = SBT_SWITCH;
    int error = errno, signal = kicks[how != SBT_SUMMONS_TO_GO_ON];
    __atomic_fetch_or(&c->bidden, SBT_STAYS_ITSELF, __ATOMIC_SEQ_CST);
    sbt_handlers_hold(); /* once it has been taken it is run by nobody */
    uint32_t old = __atomic_exchange_n(&c->token, SBT_TOKEN_TOKEN, __ATOMIC_ACQ_REL);
    if (old == SBT_TOKEN_BLOCKED)
        sbt_futex_wake(&c->token, 1);
    if (old == SBT_TOKEN_PARKED) {
        c->interrupted = how == SBT_SUMMONS_INTERRUPT;
        sbt_runnable_add(1);
        sbt_home_call(c);
    }
    sbt_handlers_release();
    if (old == SBT_TOKEN_BLOCKED || old == SBT_TOKEN_PARKED || !still_ours(signal))
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with the one of a context that is resumed (carrier.c) */
    for (int i = 0; i < looks; i++) {
        struct sbt_carrier *x = __atomic_load_n(&c->carrier, __ATOMIC_RELAXED);
        if (x == NULL)
            break;
        if (__atomic_load_n(&x->current, __ATOMIC_RELAXED) == c)
            sbt_syscall3(SYS_tgkill, sbt_syscall0(SYS_getpid), x->tid, signal);
        if (sbt_self.in_switch != 0 || s->quit != 0)
            break; /* in a handler that interrupted this thread in here: once must do */
        if (i + 1 < looks)
            sbt_pause_ns(LOOK_GAP_NS);
    }
    errno = error;
}

bool sbt_switch_spare_kicks(sigset_t *set) {
    for (int i = 0; i < 2; i++)
        if (reserved[i] > 0)
            sigdelset(set, reserved[i]);
    return reserved[0] > 0;
}

static void find_and_summon(pthread_t thread, uint32_t tid, enum sbt_summons how) {
    struct sbt_context *c = sbt_switch_running_load() != 0 ? sbt_pool_find(thread, tid) : NULL;
    if (c == NULL || c == sbt_self.context)
        return;
    sbt_summon_start(); /* in programs of which it was not known that they would */
    sbt_summon(c, how, LOOKS);
}

void sbt_switch_summon(pthread_t thread, enum sbt_summons how) {
    find_and_summon(thread, 0, how);
}

void sbt_switch_summon_tid(uint32_t tid, enum sbt_summons how) {
    find_and_summon(0, tid, how);
}

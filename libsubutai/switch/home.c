/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Leaving home and coming back. A kernel thread whose context is away sleeps as a husk, on a small stack at the root of
 * the thread's own, with every signal blocked: its TLS is the context's, which runs elsewhere, so nothing but this file
 * may run here meanwhile. The husk touches no thread-local variable.
 */
#include "switch/inner.h"

#include "core/thread.h"
#include "switch/sanitizer.h"

#define ALL_SIGNALS (~(uint64_t)0)

static void set_signal_mask(const uint64_t *mask, uint64_t *old) {
    sbt_syscall6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK, the same everywhere */, (long)mask, (long)old, sizeof *mask, 0,
                 0);
}

/* As settle (carrier.c). False: it has been woken already and has not left after all. */
static bool let_go(struct sbt_context *c) {
    uint32_t none = SBT_TOKEN_NONE;
    if (c->why == SBT_LEAVES_TO_YIELD) {
        sbt_ready_push(NULL, c, c, 1);
        return true;
    }
    sbt_runnable_add(-1);
    if (__atomic_compare_exchange_n(&c->token, &none, SBT_TOKEN_PARKED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return true;
    sbt_runnable_add(1);
    return false;
}

static void husk_main(void *argument) {
    struct sbt_context *c = argument;
    if (let_go(c)) {
        while (__atomic_load_n(&c->home_call, __ATOMIC_ACQUIRE) == 0)
            sbt_futex_wait(&c->home_call, 0, NULL);
        __atomic_store_n(&c->home_call, 0, __ATOMIC_RELAXED); /* its own: the next call is after the next leaving */
    }
    sbt_regs_switch(&c->scratch, &c->regs, NULL);
}

struct sbt_carrier *sbt_home_leave(struct sbt_context *c, enum sbt_leaving why) {
    uint64_t all = ALL_SIGNALS;
    set_signal_mask(&all, &c->home_mask);
    c->why = why;
    sbt_regs_make(&c->husk, c->husk_stack->stack, sizeof c->husk_stack->stack, husk_main, c->regs.tls);
    return sbt_regs_switch(&c->regs, &c->husk, c);
}

void sbt_home_arrived(struct sbt_context *c) {
    set_signal_mask(&c->home_mask, NULL);
}

void sbt_home_call(struct sbt_context *c) {
    SBT_TSAN_RELEASE(&c->home_call);
    __atomic_store_n(&c->home_call, 1, __ATOMIC_RELEASE);
    sbt_futex_wake(&c->home_call, 1); /* contexts are never freed: a late wake-up finds one */
}

static void go_home(struct sbt_context *c) {
    if (c->carrier != NULL)
        sbt_context_leave(c, SBT_LEAVES_FOR_HOME);
}

void sbt_switch_hold_home(void) {
    struct sbt_context *c = sbt_self.context;
    if (c == NULL)
        return;
    c->held++;
    go_home(c);
}

void sbt_switch_release(void) {
    if (sbt_self.context != NULL && sbt_self.context->held > 0)
        sbt_self.context->held--;
}

void sbt_switch_thread_begin(struct sbt_husk *husk) {
    if (sbt_switch_running_load() == 0)
        return;
    struct sbt_context *c = sbt_pool_get();
    if (c == NULL)
        return;
    c->token = SBT_TOKEN_NONE;
    c->home_call = 0;
    c->regs.tls = sbt_tls_base();
    c->carrier = NULL;
    c->held = c->homebody = c->homebody_next = 0;
    c->husk_stack = husk;
    sbt_self.context = c;
}

void sbt_switch_thread_end(void) {
    struct sbt_context *c = sbt_self.context;
    if (c == NULL)
        return;
    go_home(c);
    sbt_self.context = NULL;
    sbt_pool_put(c);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Signal handlers, which are put off where they would keep others out (core/handlers.h). Nothing else is different. */
#ifndef SBT_PREFIX

#include <signal.h>

#include "abi/abi.h"
#include "core/handlers.h"

typedef void handler_function(int signal);

SBT_EXPORT int sigaction(int signal, const struct sigaction *restrict action, struct sigaction *restrict old) {
    sbt_init();
    return sbt_handlers_set(signal, action, old);
}
SBT_ALIAS(__sigaction, sigaction);

/*
 * The C library knows which signals are to interrupt system calls (siginterrupt), so it installs the handler first; it
 * does not know what its own functions return.
 */
static handler_function *install(handler_function *(*how)(int, handler_function *), int number,
                                 handler_function *handler) {
    struct sigaction old, now;
    bool known = sbt_handlers_set(number, NULL, &old) == 0;
    if (how(number, handler) == SIG_ERR || !known)
        return SIG_ERR;
    if (sbt_real.sigaction(number, NULL, &now) == 0 && now.sa_handler == handler && sbt_handlers_can(number, &now))
        sbt_handlers_set(number, &now, NULL);
    return old.sa_handler;
}

SBT_EXPORT handler_function *(signal)(int number, handler_function *handler) {
    sbt_init();
    return install(sbt_real.signal, number, handler);
}
SBT_ALIAS(bsd_signal, signal);
SBT_ALIAS(ssignal, signal);

SBT_EXPORT handler_function *__sysv_signal(int number, handler_function *handler) {
    sbt_init();
    return install(sbt_real.__sysv_signal, number, handler);
}
SBT_ALIAS(sysv_signal, __sysv_signal);

/* SIG_HOLD: that it was, or is from now on, blocked. */
SBT_EXPORT handler_function *sigset(int number, handler_function *handler) {
    struct sigaction action = {.sa_handler = handler}, old;
    sigset_t one, before;
    int how = handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK;
    sbt_init();
    sigemptyset(&one);
    if (sigaddset(&one, number) != 0 || sbt_handlers_set(number, handler == SIG_HOLD ? NULL : &action, &old) != 0 ||
        sigprocmask(how, &one, &before) != 0)
        return SIG_ERR;
    return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

#endif

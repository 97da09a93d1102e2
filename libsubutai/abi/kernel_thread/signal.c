/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that install signal handlers. The handlers are deferred where they would keep other threads out
 * (core/handlers.h). The rest is glibc's.
 */

#include <errno.h>
#include <signal.h>

#include "abi/abi.h"
#include "core/handlers.h"
#include "switch/switch.h"

typedef void handler_function(int signal);

/* From now on it matters which thread takes the signal. */
static void before_handler(handler_function *handler) {
    if (handler != SIG_DFL && handler != SIG_IGN)
        sbt_switch_handles_signals();
}

SBT_EXPORT int sigaction(int signal, const struct sigaction *restrict action, struct sigaction *restrict old) {
    sbt_init();
    if (action != NULL)
        before_handler(action->sa_handler);
    return sbt_handlers_set(signal, action, old);
}
SBT_ALIAS_AS("", __sigaction, sigaction);

/*
 * The C library installs the handler first, because it knows which signals are to interrupt system calls
 * (siginterrupt). It does not know the program's handler before this one, so that result is ours.
 */
static handler_function *install(int number, handler_function *handler) {
    struct sigaction old, now;
    bool known = sbt_handlers_set(number, NULL, &old) == 0;
    before_handler(handler);
    if (sbt_real.signal(number, handler) == SIG_ERR || !known)
        return SIG_ERR;
    if (sbt_real.sigaction(number, NULL, &now) == 0 && now.sa_handler == handler && sbt_handlers_can(number, &now))
        sbt_handlers_set(number, &now, NULL);
    return old.sa_handler;
}

SBT_EXPORT handler_function *(signal)(int number, handler_function *handler) {
    sbt_init();
    return install(number, handler);
}
SBT_ALIAS_AS("", bsd_signal, signal);
SBT_ALIAS_AS("", ssignal, signal);

/*
 * As the C library's, which knows nothing more. That one would install the program's handler first: a signal that comes
 * before ours is installed would run it once, and the next one once more.
 */
SBT_EXPORT handler_function *__sysv_signal(int number, handler_function *handler) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = (int)(SA_RESETHAND | SA_NODEFER | SA_INTERRUPT)}, old;
    sbt_init();
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    before_handler(handler);
    return sbt_handlers_set(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
SBT_ALIAS_AS("", sysv_signal, __sysv_signal);

/* SIG_HOLD as a result: the signal was blocked; as an argument: it is blocked from now on. */
SBT_EXPORT handler_function *sigset(int number, handler_function *handler) {
    struct sigaction action = {.sa_handler = handler}, old;
    sigset_t one, before;
    int how = handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK;
    sbt_init();
    if (handler != SIG_HOLD)
        before_handler(handler);
    sigemptyset(&one);
    if (sigaddset(&one, number) != 0 || sbt_handlers_set(number, handler == SIG_HOLD ? NULL : &action, &old) != 0 ||
        sigprocmask(how, &one, &before) != 0)
        return SIG_ERR;
    return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

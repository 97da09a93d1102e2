/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What compiled clean-ups call, in a library that is not linked to libgcc_s (os/unwinder.h): the linker's --wrap sends
 * their calls here. An exception, pthread_exit or a cancellation is passing one of this library's frames.
 */
#include <stdbool.h>
#include <stddef.h>

#include "core/log.h"
#include "os/arch.h"
#include "os/unwinder.h"

extern void __wrap__Unwind_Resume(struct _Unwind_Exception *exception) __attribute__((noreturn));
extern _Unwind_Reason_Code __wrap___gcc_personality_v0(int version, _Unwind_Action actions,
                                                       _Unwind_Exception_Class class,
                                                       struct _Unwind_Exception *exception,
                                                       struct _Unwind_Context *context);

/* A cancellation has loaded it before its signal was sent: an asynchronous one may have come in the midst of malloc. */
static void need(bool is_there) {
    if (SBT_LIKELY(is_there) || sbt_unwinder_load())
        return;
    sbt_log(0, "libgcc_s.so.1 must be there for exceptions, pthread_exit and cancellation", NULL);
    __builtin_trap(); /* the C library ends such a process, too */
}

void __wrap__Unwind_Resume(struct _Unwind_Exception *exception) {
    need(__atomic_load_n(&sbt_unwinder.resume, __ATOMIC_ACQUIRE) != NULL); /* pairs with sbt_unwinder_load */
    sbt_unwinder.resume(exception);
    __builtin_unreachable();
}

_Unwind_Reason_Code __wrap___gcc_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                                struct _Unwind_Exception *exception, struct _Unwind_Context *context) {
    need(__atomic_load_n(&sbt_unwinder.personality, __ATOMIC_ACQUIRE) != NULL); /* the same */
    return sbt_unwinder.personality(version, actions, class, exception, context);
}

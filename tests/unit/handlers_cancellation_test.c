/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The C library's handler of cancellations (core/handlers.c): from when on it is deferred as the program's are. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "core/handlers.h"
#include "core/thread.h"
#include "lib/suite.h"
#include "os/arch.h"
#include "os/real.h"

struct sbt_real sbt_real;
uint32_t sbt_all_theirs;
_Thread_local struct sbt_thread sbt_self __attribute__((tls_model("initial-exec")));

enum { CANCELLATION = 32 };

static uintptr_t handler_of_cancellation(void) {
    struct {
        uintptr_t function;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } action = {0, 0, NULL, 0};
    CHECK_INT(sbt_syscall6(SYS_rt_sigaction, CANCELLATION, 0, (long)&action, sizeof action.mask, 0, 0), 0);
    return action.function;
}

static int create_none(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *), void *argument) {
    (void)thread, (void)attributes, (void)routine, (void)argument;
    return EAGAIN;
}

static void defer_cancellation(void) {
    sbt_handlers_find_cancellation();
    sbt_handlers_defer_cancellation();
}

TEST(cancellation__when_no_thread_can_be_created, "it is deferred from the first one on for which one can") {
    sbt_real.pthread_create = create_none;
    defer_cancellation();
    sbt_real.pthread_create = pthread_create;
    sbt_real.pthread_join = pthread_join;
    sbt_real.pthread_cancel = pthread_cancel;
    sbt_handlers_find_cancellation();
    const uintptr_t theirs = handler_of_cancellation();
    CHECK(theirs != (uintptr_t)SIG_DFL && theirs != (uintptr_t)SIG_IGN);
    defer_cancellation();
    CHECK(handler_of_cancellation() != theirs);
}

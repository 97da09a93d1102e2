/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A frame of ours below the program's main function, like the frame at the root of each thread. Its clean-up learns
 * that the main thread ends by pthread_exit or by a cancellation. So the library needs no key of thread-specific data:
 * all keys are the program's. A return from main ends the process, and the clean-up does not run.
 */
/* The clean-up is registered, not unwound: as in abi/thread.c. */
#undef __EXCEPTIONS

#include <pthread.h>

#include "abi/abi.h"

static sbt_main_function *theirs;

static int run_main(int argc, char **argv, char **environment) {
    int status;
    pthread_cleanup_push(sbt_thread_ended, NULL);
    status = theirs(argc, argv, environment);
    pthread_cleanup_pop(0);
    return status;
}

SBT_EXPORT int __libc_start_main(sbt_main_function *program, int argc, char **argv, void (*init)(void),
                                 void (*fini)(void), void (*linker_fini)(void), void *stack_end) {
    theirs = program;
    sbt_init();
    return sbt_real.__libc_start_main(sbt_all_theirs != 0 ? program : run_main, argc, argv, init, fini, linker_fini,
                                      stack_end);
}

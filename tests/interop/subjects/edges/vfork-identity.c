/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks taken and given back in a vfork child, which runs in the parent's memory and on its thread's identity. If the
 * child's thread id is remembered there, the parent is a stranger afterwards. If the child made the first calls of all,
 * a debugger, or the kernel for a robust mutex, reads a wrong owner in it. If the parent had locked before, its own
 * mutexes do not know it: the error-checking one refuses it, the recursive one blocks it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/processes.h"
#include "lib/threads.h"

static pthread_mutex_t child_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void lock_in_vfork_child(void) {
    pid_t pid = vfork();
    if (pid == 0) {
        pthread_mutex_lock(&child_lock);
        pthread_mutex_unlock(&child_lock);
        _exit(0);
    }
    child_join(pid);
}

static void *stranger(void *arg) {
    CHECK_RC(pthread_mutex_unlock(&checking), EPERM);
    CHECK_RC(pthread_mutex_trylock(&recursive), EBUSY);
    return arg;
}

int main(void) {
    lock_in_vfork_child();
    OK(pthread_mutex_lock(&recursive));
    OK(pthread_mutex_lock(&checking));
    CHECK(recursive.__data.__owner == gettid());
    lock_in_vfork_child();
    CHECK_RC(pthread_mutex_lock(&checking), EDEADLK);
    OK(pthread_mutex_trylock(&recursive));
    thread_join(thread_start(stranger, NULL));
    OK(pthread_mutex_unlock(&checking));
    OK(pthread_mutex_unlock(&recursive));
    OK(pthread_mutex_unlock(&recursive));
    CHECK_RC(pthread_mutex_unlock(&recursive), EPERM);
    puts("the thread is still itself");
    return 0;
}

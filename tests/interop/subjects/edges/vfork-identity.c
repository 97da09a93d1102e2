/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Locks taken and given back in a vfork child, which runs in the parent's memory and on its thread's identity. If the
 * child's thread id is remembered there, the parent is a stranger afterwards: to whoever reads the owner in a mutex (a
 * debugger; the kernel, in a robust one) when the child's were the first calls of all, to what it holds itself when it
 * had locked before: its error-checking mutex would not know it, its recursive one would block it.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "edges.h"

static pthread_mutex_t child_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void lock_in_vfork_child(void) {
    int status;
    pid_t pid = vfork();
    if (pid == 0) {
        pthread_mutex_lock(&child_lock);
        pthread_mutex_unlock(&child_lock);
        _exit(0);
    }
    EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
}

static void *stranger(void *arg) {
    EXPECT(pthread_mutex_unlock(&checking) == EPERM);
    EXPECT(pthread_mutex_trylock(&recursive) == EBUSY);
    return arg;
}

int main(void) {
    pthread_t thread;
    lock_in_vfork_child();
    EXPECT(pthread_mutex_lock(&recursive) == 0 && pthread_mutex_lock(&checking) == 0);
    EXPECT(recursive.__data.__owner == gettid());
    lock_in_vfork_child();
    EXPECT(pthread_mutex_lock(&checking) == EDEADLK);
    EXPECT(pthread_mutex_trylock(&recursive) == 0);
    pthread_create(&thread, NULL, stranger, NULL);
    pthread_join(thread, NULL);
    EXPECT(pthread_mutex_unlock(&checking) == 0);
    EXPECT(pthread_mutex_unlock(&recursive) == 0 && pthread_mutex_unlock(&recursive) == 0);
    EXPECT(pthread_mutex_unlock(&recursive) == EPERM);
    puts("the thread is still itself");
    return 0;
}

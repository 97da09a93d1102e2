/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Imports one function, CALL, and creates a thread: a program that the library must or must not step aside for. */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *nothing(void *argument) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return argument;
}

int main(int argc, char **argv) {
    pthread_t thread;
    (void)argv;
    if (argc > 5) /* never: to import it is enough */
        return (int)(long)(CALL);
    return pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0;
}

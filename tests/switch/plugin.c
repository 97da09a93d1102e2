/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loaded by eligibility_dynamic.c and main_thread.c. Built seven times: harmless; with REFUSED, importing what
 * switching does not bear; with INNER as a library that only the run path of the first one leads to; with HANDLES,
 * installing a signal handler; with MASKS, changing the mask of the thread that loads it; and with MAY_MASK, under the
 * name of Intel's OpenMP library and under another, as that library: it imports what changes a mask, never calls it,
 * and reads its environment by number.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef REFUSED
int plugin_answer(int never);

int plugin_answer(int never) {
    return never ? sigset(SIGUSR1, SIG_IGN) == SIG_ERR : 41;
}
#elif defined HANDLES
int plugin_handle(void (*handler)(int));

int plugin_handle(void (*handler)(int)) {
    return sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handler}, NULL);
}
#elif defined MASKS
__attribute__((constructor)) static void mask(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}
#elif defined MAY_MASK
void plugin_mask(const sigset_t *set);

void plugin_mask(const sigset_t *set) {
    sigprocmask(SIG_SETMASK, set, NULL);
}

__attribute__((constructor)) static void read_environment(void) {
    char byte;
    long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY);
    syscall(SYS_read, file, &byte, sizeof byte);
    syscall(SYS_close, file);
}
#elif defined INNER
int plugin_inner(void);
int plugin_next(void);

int plugin_inner(void) {
    return 43;
}

int plugin_next(void) { /* behind the plug-in's own */
    return 44;
}
#else
int plugin_answer(int never);
int plugin_next(void);
int plugin_of_caller(void);

int plugin_answer(int never) {
    (void)never;
    return 42;
}

int plugin_next(void) {
    return 0;
}

/* Found by the run path of this library, and "next" after it: the C library must see the caller. */
int plugin_of_caller(void) {
    int (*function)(void);
    void *inner = dlopen("libswitch-inner.so", RTLD_NOW | RTLD_GLOBAL);
    if (inner == NULL)
        return -1;
    *(void **)(void *)&function = dlsym(inner, "plugin_inner");
    if (function == NULL || function() != 43)
        return -2;
    *(void **)(void *)&function = dlsym(RTLD_NEXT, "pthread_mutex_lock");
    return function != NULL ? 0 : -3;
}
#endif

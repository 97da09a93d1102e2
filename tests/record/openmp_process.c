/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Regions of openmp-subject beside signals, threads, forks, the dynamic linker's errors and the end of the process. */
#include "openmp_subject.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static omp_lock_t in_handlers;

static void handle(int signal) {
    (void)signal;
    omp_set_lock(&in_handlers);
    omp_unset_lock(&in_handlers);
}

/* A handler's calls come in the midst of the thread's own. */
bool handlers(void) {
    enum { N_LOCKS = 100000 };
    struct sigaction action = {.sa_handler = handle};
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    sigset_t alarms;
    omp_lock_t lock;
    long n = 0;
    omp_init_lock(&lock);
    omp_init_lock(&in_handlers);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    if (sigaction(SIGALRM, &action, NULL) != 0)
        return false;
#pragma omp parallel num_threads(3)
    {
        if (omp_get_thread_num() == 0) {
            pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
            setitimer(ITIMER_REAL, &often, NULL);
        }
        for (int i = 0; i < N_LOCKS; i++) {
            omp_set_lock(&lock);
            n++;
            omp_unset_lock(&lock);
        }
        if (omp_get_thread_num() == 0)
            pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    return n == 3 * N_LOCKS;
}

static void *team(void *n) {
    for (int round = 0; round < N_ROUNDS; round++)
#pragma omp parallel num_threads(2)
    {
#pragma omp barrier
#pragma omp atomic
        ++*(int *)n;
    }
    return NULL;
}

/* Several threads have teams in the same region at the same time. */
bool threads(void) {
    pthread_t all[3];
    int n[3] = {0};
    for (int i = 0; i < 3; i++)
        if (pthread_create(&all[i], NULL, team, &n[i]) != 0)
            return false;
    for (int i = 0; i < 3; i++)
        pthread_join(all[i], NULL);
    return n[0] == 2 * N_ROUNDS && n[1] == n[0] && n[2] == n[0];
}

/* A child that a region has forked, which ends, and one that goes on with regions of its own. */
bool forks(void) {
    int n_right = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    {
        int status = 1;
        pid_t child = fork();
        if (child == 0)
            _exit(3);
        if (waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3)
            n_right++;
    }
    return n_right == 1 && once();
}

/* What dlerror says, before the first region of the process and behind it. */
bool errors(void) {
    static char name[3000] = "./no-such-library", before[4000];
    memset(name + strlen(name), 'x', sizeof name - strlen(name) - 1);
    bool right = dlerror() == NULL && dlopen(name, RTLD_NOW) == NULL;
    const char *said = dlerror();
    right = right && said != NULL && strlen(said) >= sizeof name && strlen(said) < sizeof before;
    strcpy(before, right ? said : "");
    right = right && dlopen(name, RTLD_NOW) == NULL;
    once();
    said = dlerror();
    right = right && said != NULL && strcmp(said, before) == 0 && dlerror() == NULL;
    regions(); /* other functions of the run-time library, and no error of the program's */
    return right && dlerror() == NULL;
}

/* A call that succeeds ends the error, also if the first region of the process comes before it. */
bool errors_end(void) {
    bool right = dlopen("no-such-library", RTLD_NOW) == NULL;
    once();
    return right && dlopen(NULL, RTLD_NOW) != NULL && dlerror() == NULL;
}

/* A worker ends the process in a region. */
bool ends(void) {
    once();
#pragma omp parallel num_threads(N_THREADS)
    if (omp_get_thread_num() == 1) {
        puts("OK");
        fflush(stdout);
        _exit(0);
    }
    return false;
}

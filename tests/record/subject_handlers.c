/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Of record-subject: the process ends while a thread is in a handler. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"
#include "subject.h"

enum { N_THREADS = 4 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;

static void *post_for_ever(void *unused) {
    (void)unused;
    for (;;)
        sem_post(&sem);
    return NULL;
}

static void hold(int signal) {
    (void)signal;
    for (;;)
        pause();
}

/* The process ends while one of its threads stands in a handler, often in the middle of the recorder. */
void subject_held(void) {
    pthread_t threads[N_THREADS];
    OK_ERRNO(sem_init(&sem, 0, 2));
    signal(SIGUSR1, hold);
    for (int i = 0; i < N_THREADS; i++)
        threads[i] = thread_start(post_for_ever, NULL);
    sleep_ms(20);
    pthread_kill(threads[0], SIGUSR1);
    sleep_ms(5);
    exit(7);
}

static void leave_at_once(int signal) {
    (void)signal;
    _exit(7);
}

/* A handler ends the process, wherever it has interrupted it. Locks are numbered, so one that is missing shows. */
void subject_cut(void) {
    struct itimerval soon = {.it_value.tv_usec = 2000 + getpid() % 97 * 10};
    signal(SIGALRM, leave_at_once);
    setitimer(ITIMER_REAL, &soon, NULL);
    for (;;) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads of the C library's own, which a timer or asynchronous I/O makes; signals of a timer. */
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>

#include "ordered.h"

enum { PERIOD_NS = 20000, POSTS = 10 };

static sem_t notified;

static void notify(union sigval unused) {
    (void)unused;
    locked_add(1);
    sem_post(&notified);
}

int notified_often(void) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify};
    pthread_t thread;
    timer_t timer;
    sem_init(&notified, 0, 0);
    pthread_create(&thread, NULL, counter, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
        return 1;
    timer_settime(timer, 0, &(struct itimerspec){{0, PERIOD_NS}, {0, PERIOD_NS}}, NULL);
    for (int i = 0; i < POSTS; i++)
        while (sem_wait(&notified) != 0 && errno == EINTR)
            ;
    timer_delete(timer);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

/* Threads of asynchronous I/O make the first operations of the process, and end. */
int begun_from_nowhere(void) {
    enum { REQUESTS = 4 };
    static struct aiocb requests[REQUESTS];
    static char bytes[REQUESTS];
    pthread_t thread;
    int file = open("/proc/self/exe", O_RDONLY);
    sem_init(&notified, 0, 0);
    for (int i = 0; i < REQUESTS; i++) {
        requests[i] = (struct aiocb){.aio_fildes = file, .aio_buf = &bytes[i], .aio_nbytes = 1, .aio_offset = i};
        requests[i].aio_sigevent.sigev_notify = SIGEV_THREAD;
        requests[i].aio_sigevent.sigev_notify_function = notify;
        if (aio_read(&requests[i]) != 0)
            return 1;
    }
    for (int i = 0; i < REQUESTS; i++)
        for (const struct aiocb *const one = &requests[i]; aio_error(one) == EINPROGRESS;)
            aio_suspend(&one, 1, NULL);
    pthread_create(&thread, NULL, counter, NULL);
    for (int i = 0; i < REQUESTS; i++)
        sem_wait(&notified);
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

static void post_again(int number) {
    (void)number;
    sem_post(&notified);
}

static void *adds_for_long(void *number) {
    for (int i = 0; i < 300 * ROUNDS; i++)
        locked_add((uintptr_t)number);
    return NULL;
}

/* Signals of a timer come at any place of threads that lock, and their handlers make operations. */
int profiled(void) {
    const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = post_again, .sa_flags = SA_RESTART};
    pthread_t threads[THREADS];
    sem_init(&notified, 0, 0);
    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, adds_for_long, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    puts("done");
    return 0;
}

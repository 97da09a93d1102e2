/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * lives N AT_ONCE: N threads over the process's life, AT_ONCE of them at a time, each of which locks when it begins,
 * when it ends, and in two rounds of destructors of thread-specific data. Where the thread ids that a packet can carry
 * (16 bits) run out, those of ended threads must be used again.
 *
 * lives exit: main ends by pthread_exit while others go on, which start more threads; the last to end prints a line.
 */
#include "subject.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct inside inside;
static pthread_key_t key;
static unsigned n_at_once;
static pthread_barrier_t barrier;

static void once(void) {
    OK(pthread_mutex_lock(&mutex));
    go_in(&inside);
    go_out(&inside);
    OK(pthread_mutex_unlock(&mutex));
}

static void destructor(void *value) {
    once();
    if ((uintptr_t)value > 1)
        OK(pthread_setspecific(key, (void *)((uintptr_t)value - 1)));
}

static void *live(void *unused) {
    (void)unused;
    OK(pthread_setspecific(key, (void *)2));
    once();
    pthread_barrier_wait(&barrier); /* all of them are alive at once */
    once();
    return NULL;
}

static void *go_on(void *depth) {
    for (int i = 0; i < 50; i++) {
        once();
        sleep_us(200);
    }
    if ((uintptr_t)depth > 0) {
        pthread_t next = start(go_on, (void *)((uintptr_t)depth - 1));
        OK(pthread_detach(next));
    } else {
        puts("the last one");
        fflush(stdout);
    }
    OK(pthread_setspecific(key, (void *)2));
    return NULL;
}

int main(int argc, char **argv) {
    OK(pthread_key_create(&key, destructor));
    if (argc > 1 && strcmp(argv[1], "exit") == 0) {
        OK(pthread_setspecific(key, (void *)3));
        OK(pthread_detach(start(go_on, (void *)3)));
        once();
        pthread_exit(NULL);
    }
    unsigned n = argument(argc, argv, 1, 2000);
    n_at_once = argument(argc, argv, 2, 100);
    OK(pthread_barrier_init(&barrier, NULL, n_at_once));
    unsigned n_rounds = (n + n_at_once - 1) / n_at_once;
    for (unsigned i = 0; i < n_rounds; i++)
        run_threads(n_at_once, live);
    CHECK(inside.entered == (uint64_t)n_rounds * n_at_once * 4);
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A plugin with threads of its own: locks in its constructor, starts workers when asked, stops and joins them in its
 * destructor at dlclose. Static objects live in its data segment, which is unmapped then and mapped again, perhaps at
 * the same address, by the next dlopen.
 */
#include <pthread.h>

enum { N_WORKERS = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_t worker[N_WORKERS];
static int n_pending, n_done, n_started, stopping;

long plugin_work(int n_items);

static void *serve(void *arg) {
    (void)arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (n_pending == 0 && !stopping)
            pthread_cond_wait(&work, &lock);
        if (n_pending == 0)
            break;
        n_pending--;
        n_done++;
        pthread_cond_signal(&done);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void start(void) {
    for (int i = 0; i < N_WORKERS; i++)
        n_started += pthread_create(&worker[i], NULL, serve, NULL) == 0;
}

__attribute__((constructor)) static void load(void) {
    pthread_mutex_lock(&lock);
    n_done = 1000;
    pthread_mutex_unlock(&lock);
}

long plugin_work(int n_items) {
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    int until = n_done + n_items;
    n_pending += n_items;
    pthread_cond_broadcast(&work);
    while (n_done < until)
        pthread_cond_wait(&done, &lock);
    long result = n_done * 10L + n_started;
    pthread_mutex_unlock(&lock);
    return result;
}

__attribute__((destructor)) static void unload(void) {
    pthread_mutex_lock(&lock);
    stopping = 1;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n_started; i++)
        pthread_join(worker[i], NULL);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The only waiter destroys the condition, overwrites it and unmaps it as soon as its wait has returned, which POSIX
 * allows: the signaller, which holds no mutex, may still be inside pthread_cond_signal and must not touch the object
 * any more (or destroy must wait for it). A touch is seen as a byte changed behind the destruction or as a fault.
 * Both threads share a processor in half of the rounds, so that the waiter that is woken runs before the signaller
 * goes on; in the other half they may really overlap.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/checks.h"
#include "lib/threads.h"

enum { N_ROUNDS = 1500, PAGE = 4096, PATTERN = 0xA5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t *cond;
static sem_t waiting;
static int go;

static void *signaller(void *arg) {
    for (int i = 0; i < N_ROUNDS; i++) {
        sem_wait(&waiting);
        pthread_mutex_lock(&lock);
        pthread_cond_t *mine = cond;
        go = 1;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(mine);
    }
    return arg;
}

static int is_changed(const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (__atomic_load_n(&bytes[i], __ATOMIC_RELAXED) != PATTERN)
            return 1;
    return 0;
}

static void share_a_processor(pthread_t other, int share) {
    static cpu_set_t all, one;
    if (CPU_COUNT(&all) == 0) {
        sched_getaffinity(0, sizeof all, &all);
        for (int i = 0; CPU_COUNT(&one) == 0; i++)
            if (CPU_ISSET(i, &all))
                CPU_SET(i, &one);
    }
    pthread_setaffinity_np(pthread_self(), sizeof all, share ? &one : &all);
    pthread_setaffinity_np(other, sizeof all, share ? &one : &all);
}

int main(void) {
    int n_changed = 0;
    sem_init(&waiting, 0, 0);
    pthread_t thread = thread_start(signaller, NULL);
    for (int i = 0; i < N_ROUNDS; i++) {
        if (i == 0 || i == N_ROUNDS / 2)
            share_a_processor(thread, i == 0);
        pthread_cond_t *mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(mine != MAP_FAILED);
        pthread_cond_init(mine, NULL);
        pthread_mutex_lock(&lock);
        cond = mine;
        go = 0;
        sem_post(&waiting);
        while (!go)
            pthread_cond_wait(mine, &lock);
        pthread_mutex_unlock(&lock);
        pthread_cond_destroy(mine);
        memset(mine, PATTERN, sizeof *mine);
        if (i % 2)
            sched_yield();
        n_changed += is_changed((unsigned char *)mine, sizeof *mine);
        munmap(mine, PAGE);
    }
    thread_join(thread);
    printf("condition written after its destruction: %d times\n", n_changed);
    return n_changed != 0;
}

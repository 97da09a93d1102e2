/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Cancellation in C++ is an exception that catch (...) must pass on: handlers and destructors run on the way out of
 * every wait, those inside a condition's wait with the mutex held. The library's own frames lie in between and must be
 * such that the unwinder gets through; once through, the objects serve others.
 */
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/threads.h"

constexpr int n_rounds = 10;

static std::atomic<int> n_destroyed, n_caught, n_held;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static pthread_t sleeper;
static pid_t tid;

struct counted {
    ~counted() {
        n_destroyed++;
    }
};

template <class F> static void in_condition(F wait) {
    pthread_mutex_lock(&lock);
    try {
        asleep_from_here(&tid);
        for (;;)
            wait();
    } catch (...) {
        n_held += pthread_mutex_trylock(&lock) == EBUSY;
        pthread_mutex_unlock(&lock);
        throw;
    }
}

enum kind { CONDITION, CONDITION_TIMED, SEMAPHORE, SEMAPHORE_ASYNCHRONOUS, JOIN, EXIT, N_KINDS };

static void block(int kind) {
    counted inner;
    struct timespec at = time_in_ms(CLOCK_REALTIME, 100000);
    switch (kind) {
    case CONDITION:
        in_condition([] { pthread_cond_wait(&cond, &lock); });
        break;
    case CONDITION_TIMED:
        in_condition([&] { pthread_cond_timedwait(&cond, &lock, &at); });
        break;
    case SEMAPHORE_ASYNCHRONOUS:
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
        [[fallthrough]];
    case SEMAPHORE:
        asleep_from_here(&tid);
        for (;;)
            sem_wait(&sem);
    case JOIN:
        asleep_from_here(&tid);
        pthread_join(sleeper, nullptr);
        break;
    case EXIT:
        pthread_exit(nullptr);
    }
}

static void *thread_main(void *arg) {
    counted outer;
    try {
        block(static_cast<int>(reinterpret_cast<long>(arg)));
    } catch (...) {
        n_caught++;
        throw;
    }
    return nullptr;
}

static void *sleep_for_ever(void *) {
    for (;;)
        pause();
}

int main() {
    int n_threads = 0, n_tries = 0;
    sem_init(&sem, 0, 0);
    sleeper = thread_start(sleep_for_ever, nullptr);
    for (long kind = 0; kind < N_KINDS; kind++) {
        for (int i = 0; i < n_rounds; i++, n_threads++) {
            tid = 0;
            pthread_t thread = thread_start(thread_main, reinterpret_cast<void *>(kind));
            if (kind != EXIT) {
                await_asleep(&tid);
                pthread_cancel(thread);
            }
            thread_join(thread);
        }
    }
    std::once_flag once;
    for (int i = 0; i < 4; i++) {
        try {
            std::call_once(once, [&] {
                if (++n_tries < 3)
                    throw 1;
            });
        } catch (int) {
        }
    }
    OK(pthread_mutex_trylock(&lock));
    sem_post(&sem);
    OK_ERRNO(sem_trywait(&sem));
    std::printf("of %d: destroyed %d, caught %d; mutex held %d of %d; once tried %d\n", n_threads, +n_destroyed,
                +n_caught, +n_held, 2 * n_rounds, n_tries);
    return n_destroyed != 2 * n_threads || n_caught != n_threads || n_held != 2 * n_rounds || n_tries != 3;
}

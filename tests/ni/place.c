/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * place: objects that are initialised or first used in a known order; the statistics say at which NI each one is.
 *
 * place race THREADS: the threads lock each of three static mutexes, all threads at once.
 * place order: a mutex, a barrier, a mutex and a C11 mutex are initialised, then a static mutex is used for the first
 *     time; the last of the initialised ones is locked four times, the static one five times.
 * place early: the same in a constructor, before there are threads.
 * place turnover N: a mutex and a barrier are initialised and destroyed N times over.
 * place unused N: N mutexes are initialised, each by an attribute or without; 9 of them and a static one are used.
 * place child, handler, exit: for a time scale. While a thread waits for the primitive of a static mutex, the process
 *     forks; a handler of the thread locks the same mutex; a handler ends the thread.
 */
#include "subject.h"

#include <signal.h>
#include <sys/time.h>
#include <threads.h>

enum { N_STATIC = 3, HEAD_START_MS = 30, HANG_S = 600 };

static pthread_mutex_t shared[N_STATIC] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
                                           PTHREAD_MUTEX_INITIALIZER};
static pthread_mutex_t initialised[2];
static pthread_barrier_t barrier;
static mtx_t c11;
static atomic_int absent, begun;
static atomic_bool handled;

static void use(pthread_mutex_t *m, int times) {
    for (int i = 0; i < times; i++) {
        OK(pthread_mutex_lock(m));
        OK(pthread_mutex_unlock(m));
    }
}

static void *racer(void *which) {
    begin_together(&absent);
    for (unsigned i = 0; i < N_STATIC; i++)
        use(&shared[((uintptr_t)which + i) % N_STATIC], 1);
    return NULL;
}

static void initialise(void) {
    OK(pthread_mutex_init(&initialised[0], NULL));
    OK(pthread_barrier_init(&barrier, NULL, 2));
    OK(pthread_mutex_init(&initialised[1], NULL));
    CHECK(mtx_init(&c11, mtx_plain) == thrd_success);
}

__attribute__((constructor)) static void early(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "early") == 0)
        initialise();
}

static void use_in_order(void) {
    use(&shared[0], 5);
    for (int i = 0; i < 4; i++) {
        CHECK(mtx_lock(&c11) == thrd_success);
        CHECK(mtx_unlock(&c11) == thrd_success);
    }
}

static void turn_over(unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        OK(pthread_mutex_init(&initialised[0], NULL));
        OK(pthread_barrier_init(&barrier, NULL, 2));
        OK(pthread_mutex_destroy(&initialised[0]));
        OK(pthread_barrier_destroy(&barrier));
    }
}

static void leave_unused(unsigned n) {
    pthread_mutexattr_t recursive;
    pthread_mutex_t *all = calloc(n, sizeof *all);
    CHECK(all != NULL && n >= 9);
    OK(pthread_mutexattr_init(&recursive));
    OK(pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE));
    for (unsigned i = 0; i < n; i++)
        OK(pthread_mutex_init(&all[i], i % 2 == 0 ? NULL : &recursive));
    for (unsigned i = n - 9; i < n; i++)
        use(&all[i], 1);
    use(&shared[0], 1);
    for (unsigned i = 0; i < n; i++)
        OK(pthread_mutex_destroy(&all[i]));
    free(all);
}

/* ---- in the middle of a first use ---- */

static void *first_user(void *unused) {
    (void)unused;
    atomic_fetch_add(&begun, 1);
    use(&shared[0], 1);
    return NULL;
}

static pthread_t start_first_user(void) {
    pthread_t thread = start(first_user, NULL);
    await(&begun, 1);
    sleep_ms(HEAD_START_MS);
    return thread;
}

/* The mutex may be held by a thread that the child does not have: it only tries. */
static void try_in_child(void *unused) {
    (void)unused;
    alarm(HANG_S);
    int r = pthread_mutex_trylock(&shared[0]);
    CHECK(r == 0 || r == EBUSY);
}

static void fork_meanwhile(void) {
    pthread_t thread = start_first_user();
    run_in_child(try_in_child, NULL);
    thread_join(thread);
}

static void lock_in_handler(int signal) {
    (void)signal;
    if (pthread_mutex_trylock(&shared[0]) == 0)
        OK(pthread_mutex_unlock(&shared[0]));
    atomic_store(&handled, true);
}

static void exit_in_handler(int signal) {
    (void)signal;
    pthread_exit(NULL);
}

static void interrupt_meanwhile(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    alarm(HANG_S);
    pthread_t thread = start_first_user();
    OK(pthread_kill(thread, SIGUSR1));
    thread_join(thread);
    CHECK(handler == exit_in_handler || atomic_load(&handled));
    use(&shared[0], 1);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    unsigned n = argument(argc, argv, 2, 32);
    if (strcmp(what, "race") == 0) {
        absent = (int)n;
        run_threads(n, racer);
    } else if (strcmp(what, "order") == 0) {
        initialise();
        use_in_order();
    } else if (strcmp(what, "early") == 0) {
        use_in_order();
    } else if (strcmp(what, "turnover") == 0) {
        turn_over(n);
    } else if (strcmp(what, "unused") == 0) {
        leave_unused(n);
    } else if (strcmp(what, "child") == 0) {
        fork_meanwhile();
    } else {
        interrupt_meanwhile(strcmp(what, "exit") == 0 ? exit_in_handler : lock_in_handler);
    }
    return 0;
}

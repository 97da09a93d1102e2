/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs with one disease each, for the report to find: disease NAME. The objects that are ill are variables, so that
 * the report names them.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "disease.h"
#include "killed.h"
#include "pool.h"

/* ---- locks ---- */

static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER, cold = PTHREAD_MUTEX_INITIALIZER;

static void *hot_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&hot);
        compute(200);
        pthread_mutex_unlock(&hot);
        pthread_mutex_lock(&cold);
        pthread_mutex_unlock(&cold);
        compute(20);
    }
    return NULL;
}

static void hot_lock(void) {
    run(4, hot_thread);
}

/* The same of one on the heap, which an init makes; and of one that is never initialised, as C++ has them. */
static pthread_mutex_t *on_heap;
static void *heap_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(on_heap);
        compute(200);
        pthread_mutex_unlock(on_heap);
        compute(20);
    }
    return NULL;
}
static void hot_made(void) {
    on_heap = malloc(sizeof *on_heap);
    pthread_mutex_init(on_heap, NULL);
    run(4, heap_thread);
}
static void hot_found(void) {
    on_heap = calloc(1, sizeof *on_heap);
    pthread_mutex_lock(on_heap);
    pthread_mutex_unlock(on_heap);
    run(4, heap_thread);
}

/* The same, and one hold in fifty loses its processor, as on a machine where others compute. */
static void *stalled_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&hot);
        compute(200);
        if (i % 50 == 25)
            pause_us(30000);
        pthread_mutex_unlock(&hot);
        compute(20);
    }
    return NULL;
}

static void hot_stalled(void) {
    run(4, stalled_thread);
}

static sem_t gate;

/* As threading.Lock of Python: the thread that waits gives back. */
static void *hot_semaphore_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 100; i++) {
        sem_wait(&gate);
        compute(200);
        sem_post(&gate);
        compute(20);
    }
    return NULL;
}

static void hot_semaphore(void) {
    sem_init(&gate, 0, 1);
    run(4, hot_semaphore_thread);
}

static pthread_mutex_t convoyed = PTHREAD_MUTEX_INITIALIZER;

/* With locks that are handed over in the order of coming the queue does not end while all come back at once. */
static void *convoy_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&convoyed);
        pthread_mutex_unlock(&convoyed);
    }
    return NULL;
}

static void convoy(void) {
    pthread_t threads[8];
    pthread_mutex_lock(&convoyed);
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, convoy_thread, NULL);
    pause_us(20000); /* all have come */
    pthread_mutex_unlock(&convoyed);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

static pthread_mutex_t journal = PTHREAD_MUTEX_INITIALIZER;

static void *journal_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 40; i++) {
        compute(100);
        pthread_mutex_lock(&journal);
        pause_us(1000); /* a disk */
        pthread_mutex_unlock(&journal);
    }
    return NULL;
}

static void lock_over_io(void) {
    run(4, journal_thread);
}

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

/* One after the other, so that this run does not hang. */
static void *left_thread(void *argument) {
    (void)argument;
    pthread_mutex_lock(&left);
    pthread_mutex_lock(&right);
    compute(1000);
    pthread_mutex_unlock(&right);
    pthread_mutex_unlock(&left);
    return NULL;
}

static void *right_thread(void *argument) {
    (void)argument;
    pthread_mutex_lock(&right);
    pthread_mutex_lock(&left);
    compute(1000);
    pthread_mutex_unlock(&left);
    pthread_mutex_unlock(&right);
    return NULL;
}

static void inverted_order(void) {
    run(1, left_thread);
    run(1, right_thread);
}

static pthread_mutex_t polled = PTHREAD_MUTEX_INITIALIZER;

static void *polling_thread(void *argument) {
    for (int i = 0; i < 10; i++) {
        while (pthread_mutex_trylock(&polled) != 0)
            for (volatile int k = 0; k < 200; k++)
                ;
        compute(argument == NULL ? 3000 : 1000);
        pthread_mutex_unlock(&polled);
        compute(10);
    }
    return NULL;
}

static void false_spin(void) {
    run(3, polling_thread);
}

enum { CELLS = 4000 };
static pthread_mutex_t *cells;

static void *grid_thread(void *argument) {
    unsigned state = (unsigned)(long)argument + 1;
    for (int i = 0; i < 100000; i++) {
        state = state * 1103515245u + 12345u;
        pthread_mutex_t *cell = &cells[state / 65536 % CELLS];
        pthread_mutex_lock(cell);
        pthread_mutex_unlock(cell);
    }
    return NULL;
}

static void many_locks(void) {
    cells = malloc(CELLS * sizeof *cells);
    for (int i = 0; cells != NULL && i < CELLS; i++)
        pthread_mutex_init(&cells[i], NULL);
    run(2, grid_thread);
}

/* One of many locks that were made in one place is hot; and each round makes a lock of its own and destroys it. */
enum { CROWD = 100, HOT_ONE = 7, ROUNDS = 300 };
static pthread_mutex_t crowd[CROWD];

static void *crowd_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&crowd[i % CROWD]);
        pthread_mutex_unlock(&crowd[i % CROWD]);
        pthread_mutex_lock(&crowd[HOT_ONE]);
        compute(100);
        pthread_mutex_unlock(&crowd[HOT_ONE]);
    }
    return NULL;
}

static void hot_one(void) {
    for (int i = 0; i < CROWD; i++)
        pthread_mutex_init(&crowd[i], NULL);
    run(2, crowd_thread);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_t *one = malloc(sizeof *one);
        if (one == NULL || pthread_mutex_init(one, NULL) != 0)
            abort();
        pthread_mutex_lock(one);
        pthread_mutex_unlock(one);
        pthread_mutex_destroy(one);
        free(one);
    }
}

/* ---- barriers ---- */

static pthread_barrier_t meeting;

static long uneven_us = 5000;

static void *uneven_thread(void *argument) {
    for (int i = 0; i < 30; i++) {
        pause_us((long)argument == 2 ? uneven_us : 1000);
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void barrier_imbalance(void) {
    pthread_barrier_init(&meeting, NULL, 4);
    run(4, uneven_thread);
}

/* By more than a busy machine makes the others late. */
static void barrier_far_imbalance(void) {
    uneven_us = 30000;
    barrier_imbalance();
}

/* Two threads that share the work evenly; once one of them stops for a while. */
static void *stalling_thread(void *argument) {
    for (int i = 0; i < 40; i++) {
        compute(1000);
        if (i == 20 && argument != NULL)
            pause_us(60000);
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void barrier_stall(void) {
    pthread_barrier_init(&meeting, NULL, 2);
    run(2, stalling_thread);
}

static void *even_thread(void *argument) {
    (void)argument;
    for (int i = 0; i < 100; i++)
        pthread_barrier_wait(&meeting);
    return NULL;
}

static void slow_release(void) {
    pthread_barrier_init(&meeting, NULL, 48);
    run(48, even_thread);
}

/* ---- conditions ---- */

static void *pool_thread(void *argument) {
    (void)argument;
    take_tasks(200);
    return NULL;
}

static void idle_pool(void) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, pool_thread, NULL);
    for (int i = 0; i < 40; i++) {
        compute(3000);
        pthread_mutex_lock(&pool_lock);
        n_tasks++;
        pthread_mutex_unlock(&pool_lock);
        pthread_cond_signal(&work_there); /* the woken thread may get the core: not while the lock is held */
    }
    finish(threads, 6);
}

static void *storm_thread(void *argument) {
    (void)argument;
    take_tasks(10);
    return NULL;
}

static void broadcast_storm(void) {
    pthread_t threads[16];
    for (int i = 0; i < 16; i++)
        pthread_create(&threads[i], NULL, storm_thread, NULL);
    for (int i = 0; i < 400;) {
        pthread_mutex_lock(&pool_lock);
        if (n_got == i) {
            n_tasks++;
            i++;
            pthread_cond_broadcast(&work_there);
        }
        pthread_mutex_unlock(&pool_lock);
        pause_us(20);
    }
    finish(threads, 16);
}

static void futile_wakeups(void) {
    gather(1);
}

static void too_many_threads(void) {
    share_ledger(16);
}

/* ---- off the processor ---- */

static pthread_mutex_t aside = PTHREAD_MUTEX_INITIALIZER;

static void *napping_thread(void *argument) {
    struct timespec time = {.tv_nsec = 200000000};
    pthread_mutex_lock(&aside);
    pthread_mutex_unlock(&aside);
    nanosleep(&time, NULL);
    pthread_mutex_lock(&aside);
    pthread_mutex_unlock(&aside);
    return argument;
}

/* futex(2) by an instruction of the program's own: no library sees it. */
static void own_futex_wait(int *word, const struct timespec *time) {
#if defined(__x86_64__)
    long r = SYS_futex;
    register const struct timespec *timeout __asm__("r10") = time;
    __asm__ volatile("syscall"
                     : "+a"(r)
                     : "D"(word), "S"(FUTEX_WAIT_PRIVATE), "d"(0), "r"(timeout)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_futex, r __asm__("x0") = (long)word;
    register long op __asm__("x1") = FUTEX_WAIT_PRIVATE, value __asm__("x2") = 0, timeout __asm__("x3") = (long)time;
    __asm__ volatile("svc 0" : "+r"(r) : "r"(number), "r"(op), "r"(value), "r"(timeout) : "memory");
#endif
}

static void *own_waiting_thread(void *argument) {
    struct timespec time = {.tv_nsec = 200000000};
    int word = 0;
    pthread_mutex_lock(&aside);
    pthread_mutex_unlock(&aside);
    own_futex_wait(&word, &time);
    pthread_mutex_lock(&aside);
    pthread_mutex_unlock(&aside);
    return argument;
}

static void beside(void *(*routine)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, NULL) != 0)
        abort();
    pthread_join(thread, NULL);
}

static void sleeps(void) {
    beside(napping_thread);
}

static void own_wait(void) {
    beside(own_waiting_thread);
}

/* ---- known times ---- */

static pthread_mutex_t known = PTHREAD_MUTEX_INITIALIZER;
static sem_t known_sem;
static uint64_t held_ns, waited_ns, sem_waited_ns;

static void *known_waiter(void *argument) {
    (void)argument;
    for (int i = 0; i < 5; i++) {
        sem_wait(&known_sem); /* the lock is held now */
        uint64_t from = now_ns();
        pthread_mutex_lock(&known);
        waited_ns += now_ns() - from;
        pthread_mutex_unlock(&known);
        sem_post((sem_t *)argument);
    }
    return NULL;
}

/* Prints what the program measured itself. */
static void known_times(void) {
    pthread_t thread;
    sem_t back;
    sem_init(&known_sem, 0, 0);
    sem_init(&back, 0, 0);
    pthread_create(&thread, NULL, known_waiter, &back);
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&known);
        uint64_t from = now_ns();
        sem_post(&known_sem);
        pause_us(20000);
        held_ns += now_ns() - from;
        pthread_mutex_unlock(&known);
        from = now_ns();
        sem_wait(&back);
        sem_waited_ns += now_ns() - from;
    }
    pthread_join(thread, NULL);
    printf("{\"held_ns\":%llu,\"waited_ns\":%llu,\"sem_waited_ns\":%llu}\n", (unsigned long long)held_ns,
           (unsigned long long)waited_ns, (unsigned long long)sem_waited_ns);
}

/* An interpreter's lock as CPython has it: a flag under a mutex, and a condition where threads wait for it. */
static struct {
    long before;
    pthread_cond_t free;
    pthread_mutex_t mutex;
    bool is_taken;
} interpreter_state __asm__("_PyRuntime") = {
    .free = PTHREAD_COND_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER, .before = 1};

static void *interpreting_thread(void *argument) {
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&interpreter_state.mutex);
        while (interpreter_state.is_taken)
            pthread_cond_wait(&interpreter_state.free, &interpreter_state.mutex);
        interpreter_state.is_taken = true;
        pthread_mutex_unlock(&interpreter_state.mutex);
        compute(1000);
        pthread_mutex_lock(&interpreter_state.mutex);
        interpreter_state.is_taken = false;
        pthread_cond_signal(&interpreter_state.free);
        pthread_mutex_unlock(&interpreter_state.mutex);
    }
    return argument;
}

static void interpreter(void) {
    run(4, interpreting_thread);
}

static void alone(void) {
    compute(1000);
}

/* A thread that is joined, and nothing else. */
static void alone_joined(void) {
    run(1, computing_thread);
}

/*
 * The first thread waits for the others by a signal, which no trace has. They are so many that they have processors
 * also where other programs have use for them.
 */
enum { SIGNALLING = 16 };

static void *signalling_thread(void *argument) {
    static atomic_int n_done;
    pthread_mutex_lock(&cold);
    pthread_mutex_unlock(&cold);
    compute(12500);
    if (atomic_fetch_add(&n_done, 1) == SIGNALLING - 1)
        kill(getpid(), SIGUSR1);
    return argument;
}

static void by_signal(void) {
    pthread_t threads[SIGNALLING];
    sigset_t one;
    int signo;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    for (int i = 0; i < SIGNALLING; i++)
        pthread_create(&threads[i], NULL, signalling_thread, NULL);
    sigwait(&one, &signo);
}

static void alone_together(void) {
    run(3, computing_thread);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } diseases[] = {{"hot-lock", hot_lock},
                    {"hot-made", hot_made},
                    {"hot-found", hot_found},
                    {"hot-stalled", hot_stalled},
                    {"hot-semaphore", hot_semaphore},
                    {"convoy", convoy},
                    {"lock-over-io", lock_over_io},
                    {"inverted-order", inverted_order},
                    {"false-spin", false_spin},
                    {"many-locks", many_locks},
                    {"hot-one", hot_one},
                    {"barrier-imbalance", barrier_imbalance},
                    {"barrier-far-imbalance", barrier_far_imbalance},
                    {"barrier-stall", barrier_stall},
                    {"slow-release", slow_release},
                    {"idle-pool", idle_pool},
                    {"broadcast-storm", broadcast_storm},
                    {"futile-wakeups", futile_wakeups},
                    {"interpreter", interpreter},
                    {"too-many-threads", too_many_threads},
                    {"sleeps", sleeps},
                    {"own-wait", own_wait},
                    {"known-times", known_times},
                    {"alone", alone},
                    {"alone-joined", alone_joined},
                    {"alone-together", alone_together},
                    {"by-signal", by_signal},
                    {"killed-asleep", killed_asleep},
                    {"killed-dozing", killed_dozing},
                    {"killed-after-exec", killed_after_exec},
                    {"killed-computing", killed_computing}};
    for (size_t i = 0; argc == 2 && i < sizeof diseases / sizeof *diseases; i++)
        if (strcmp(argv[1], diseases[i].name) == 0) {
            diseases[i].run();
            return 0;
        }
    return 2;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that nests locks. usage: order-subject WHAT
 * It prints which orders its profile must have, for order-check: a line HELD TAKEN TIMES GATES READING with addresses.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"

enum { N_ROUNDS = 1000, N_MANY = 400, N_DEEP = 40, N_LIVES = 300 };

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER, c = PTHREAD_MUTEX_INITIALIZER,
                       gate = PTHREAD_MUTEX_INITIALIZER, many[N_MANY];
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;

static void expect_reading(const void *held, const volatile void *taken, int n, int n_gates, int reading) {
    printf("%p %p %d %d %d\n", held, (const void *)taken, n, n_gates, reading);
}

static void expect(const void *held, const volatile void *taken, int n, int n_gates) {
    expect_reading(held, taken, n, n_gates, 0);
}

static void lock(pthread_mutex_t *m) {
    OK(pthread_mutex_lock(m));
}

static void unlock(pthread_mutex_t *m) {
    OK(pthread_mutex_unlock(m));
}

static void pair(void) {
    for (int i = 0; i < N_ROUNDS; i++) {
        lock(&a), lock(&b);
        unlock(&b), unlock(&a);
    }
    expect(&a, &b, N_ROUNDS, 0);
}

/* Given back in another order than the reverse one. */
static void crosswise(void) {
    for (int i = 0; i < N_ROUNDS; i++) {
        lock(&a), lock(&b), unlock(&a);
        lock(&c), unlock(&b), unlock(&c);
    }
    expect(&a, &b, N_ROUNDS, 0);
    expect(&b, &c, N_ROUNDS, 0);
}

static void kinds(void) {
    mtx_t c11;
    OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
    CHECK_INT(mtx_init(&c11, mtx_plain), thrd_success);
    OK(pthread_rwlock_rdlock(&rwlock));
    CHECK_INT(mtx_lock(&c11), thrd_success);
    OK(pthread_spin_lock(&spin));
    OK(pthread_spin_unlock(&spin));
    CHECK_INT(mtx_unlock(&c11), thrd_success);
    OK(pthread_rwlock_unlock(&rwlock));
    expect_reading(&rwlock, &c11, 1, 0, 1);
    expect_reading(&rwlock, &spin, 1, 1, 1);
    expect_reading(&c11, &spin, 1, 1, 4);
}

static void read_under(pthread_mutex_t *m) {
    lock(m);
    OK(pthread_rwlock_rdlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    unlock(m);
}

/* For reading each time, or not the second time. The gate of the last pair is for reading at first, too. */
static void readers(void) {
    for (int i = 0; i < 2; i++) {
        read_under(&c);
        OK(i == 0 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        lock(&a), lock(&b);
        unlock(&b), unlock(&a);
        OK(pthread_rwlock_unlock(&rwlock));
        lock(&gate);
        OK(i == 0 ? pthread_rwlock_rdlock(&rwlock) : pthread_rwlock_wrlock(&rwlock));
        OK(pthread_rwlock_unlock(&rwlock));
        unlock(&gate);
    }
    expect_reading(&c, &rwlock, 2, 0, 2);
    expect(&rwlock, &a, 2, 0);
    expect_reading(&rwlock, &b, 2, 1, 0);
    expect_reading(&a, &b, 2, 1, 4);
    expect(&gate, &rwlock, 2, 0);
}

/* A try-lock does not wait; but under it others may. */
static void trylock(void) {
    lock(&a);
    OK(pthread_mutex_trylock(&b));
    lock(&c);
    unlock(&c), unlock(&b), unlock(&a);
    expect(&a, &c, 1, 1);
    expect(&b, &c, 1, 1);
}

/* The gate is not held the last time, in which the entry of the first times is used. */
static void gates(void) {
    lock(&gate), lock(&a), lock(&b);
    unlock(&b), unlock(&a), unlock(&gate);
    lock(&gate), lock(&b), lock(&c);
    unlock(&c), unlock(&b);
    unlock(&gate);
    lock(&b), lock(&c);
    unlock(&c), unlock(&b);
    expect(&gate, &a, 1, 0);
    expect(&gate, &b, 2, 0);
    expect(&a, &b, 1, 1);
    expect(&gate, &c, 1, 1);
    expect(&b, &c, 2, 0);
}

static pid_t sleeper;

static void *take_both(void *unused) {
    lock(&a);
    asleep_from_here(&sleeper);
    lock(&b);
    unlock(&b), unlock(&a);
    return unused;
}

/* The inner lock is waited for. */
static void waits(void) {
    pthread_t thread;
    lock(&b);
    OK(pthread_create(&thread, NULL, take_both, NULL));
    await_asleep(&sleeper);
    unlock(&b);
    OK(pthread_join(thread, NULL));
    expect(&a, &b, 1, 0);
}

/* A condition wait gives its mutex up, and takes it again. */
static void cond(void) {
    static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec at;
    OK_ERRNO(clock_gettime(CLOCK_REALTIME, &at));
    lock(&a), lock(&b);
    CHECK_RC(pthread_cond_timedwait(&never, &b, &at), ETIMEDOUT);
    lock(&c);
    unlock(&c), unlock(&b), unlock(&a);
    expect(&a, &b, 2, 0);
    expect(&a, &c, 1, 1);
    expect(&b, &c, 1, 1);
}

/* More pairs than there are places: each is there, but not each time that it was made. */
static void pairs(void) {
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < N_MANY; i++) {
            if (round == 0)
                OK(pthread_mutex_init(&many[i], NULL));
            lock(&a), lock(&many[i]);
            unlock(&many[i]), unlock(&a);
            lock(&b), lock(&many[i]);
            unlock(&many[i]), unlock(&b);
        }
    for (int i = 0; i < N_MANY; i++)
        expect(&a, &many[i], 0, 0), expect(&b, &many[i], 0, 0);
}

/*
 * New pairs all the time, beside a lock that is taken again and again: those of a quarter of a second have room, and
 * those of a second have not.
 */
static void always(void) {
    enum { WINDOWS = 6, EACH = 300, WINDOW_NS = 400000000, N_AGAIN = 100000 };
    for (int i = 0; i < N_MANY; i++)
        OK(pthread_mutex_init(&many[i], NULL));
    for (int w = 0; w < WINDOWS; w++) {
        int64_t end_ns = now_ns(CLOCK_MONOTONIC) + WINDOW_NS;
        for (int i = 0; i < 2 * EACH; i++) {
            pthread_mutex_t *outer = &many[i / 2], *inner = &many[(i / 2 + 1 + 2 * w + i % 2) % N_MANY];
            lock(outer), lock(inner);
            unlock(inner), unlock(outer);
            expect(outer, inner, 1, 0);
        }
        /* Some in any case: a thread that had no core for the window has written nothing in it. */
        for (int i = 0; i < N_AGAIN || now_ns(CLOCK_MONOTONIC) < end_ns; i++)
            lock(&a), unlock(&a);
    }
}

/* More locks at a time than the recorder remembers: it knows the last ones, and the gates that it has room for. */
static void deep(void) {
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N_DEEP; i++) {
            if (round == 0)
                OK(pthread_mutex_init(&many[i], NULL));
            lock(&many[i]);
        }
        for (int i = N_DEEP; i-- > 0;)
            unlock(&many[i]);
    }
    for (int i = 1; i < 16; i++)
        expect(&many[0], &many[i], 0, i - 1 < 4 ? i - 1 : 4);
    expect(&many[N_DEEP - 2], &many[N_DEEP - 1], 0, 4);
    expect(&many[N_DEEP - 15], &many[N_DEEP - 1], 0, 4); /* the oldest of those that it knows */
}

/* Each life of an object is an object. The gate of all of them lives on. */
static void lives(void) {
    pthread_mutex_t short_lived;
    for (int i = 0; i < N_LIVES; i++) {
        OK(pthread_mutex_init(&short_lived, NULL));
        lock(&a), lock(&short_lived);
        unlock(&short_lived), unlock(&a);
        OK(pthread_mutex_destroy(&short_lived));
    }
    for (int i = 0; i < N_LIVES; i++)
        expect(&a, &short_lived, 1, 0);
}

static void handle(int signal) {
    (void)signal;
    lock(&c), unlock(&c);
}

/* Handlers take a lock of their own anywhere in the recorder. What they nest is not counted each time. */
static void handlers(void) {
    struct sigaction action = {.sa_handler = handle};
    OK_ERRNO(sigaction(SIGALRM, &action, NULL));
    for (int i = 0; i < N_ROUNDS; i++) {
        if (i % 100 == 0)
            ualarm(50, 0);
        for (int k = 0; k < 100; k++) {
            lock(&a), lock(&b);
            unlock(&b), unlock(&a);
        }
    }
    expect(&a, &b, 0, 0);
}

static void *stay(void *unused) {
    lock(&a), lock(&b);
    return unused;
}

/* A thread that ends with locks held. */
static void ends(void) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, stay, NULL));
    OK(pthread_join(thread, NULL));
    expect(&a, &b, 1, 0);
}

/* ---- orders that are inverted: what a report makes of them ---- */

static void nest(pthread_mutex_t *outer, pthread_mutex_t *inner) {
    lock(outer), lock(inner);
    unlock(inner), unlock(outer);
}

static void *forward(void *unused) {
    nest(&a, &b);
    return unused;
}

static void *backward(void *unused) {
    nest(&b, &a);
    return unused;
}

static void *forward_in_gate(void *unused) {
    lock(&gate), nest(&a, &b), unlock(&gate);
    return unused;
}

static void *backward_in_gate(void *unused) {
    lock(&gate), nest(&b, &a), unlock(&gate);
    return unused;
}

/* Each in a thread of its own, one after the other. */
static void in_threads(void *(*first)(void *), void *(*second)(void *), void *(*third)(void *)) {
    void *(*all[])(void *) = {first, second, third};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        OK(pthread_create(&thread, NULL, all[i], NULL));
        OK(pthread_join(thread, NULL));
    }
}

static void by_one_thread(void) {
    nest(&a, &b), nest(&b, &a);
}

static void by_two_threads(void) {
    in_threads(forward, backward, backward);
}

/* Both by the first thread first, and one by another. */
static void *both_ways(void *unused) {
    return backward(forward(unused));
}

static void also_by_another(void) {
    in_threads(both_ways, forward, forward);
}

static void in_gate(void) {
    in_threads(forward_in_gate, backward_in_gate, backward_in_gate);
}

static void *backward_in_another_gate(void *unused) {
    lock(&c), nest(&b, &a), unlock(&c);
    return unused;
}

static void in_two_gates(void) {
    in_threads(forward_in_gate, backward_in_gate, backward_in_another_gate);
}

/* The gate is not held by the last thread: it keeps nothing apart. */
static void once_without_gate(void) {
    in_threads(forward_in_gate, backward_in_gate, backward);
}

/* Readers of one lock do not wait for each other, be it in the circle or a gate. */
static void *lock_under_read(void *unused) {
    OK(pthread_rwlock_rdlock(&rwlock));
    lock(&a), unlock(&a);
    OK(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *read_under_lock(void *unused) {
    read_under(&a);
    return unused;
}

static void *write_under_lock(void *unused) {
    lock(&a);
    OK(pthread_rwlock_wrlock(&rwlock));
    OK(pthread_rwlock_unlock(&rwlock));
    unlock(&a);
    return unused;
}

static void by_readers(void) {
    in_threads(lock_under_read, read_under_lock, read_under_lock);
}

static void by_reader_and_writer(void) {
    in_threads(lock_under_read, read_under_lock, write_under_lock);
}

static void *lock_under_write(void *unused) {
    OK(pthread_rwlock_wrlock(&rwlock));
    lock(&a), unlock(&a);
    OK(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void also_by_writer(void) {
    in_threads(lock_under_read, lock_under_write, read_under_lock);
}

static void *forward_while_reading(void *unused) {
    OK(pthread_rwlock_rdlock(&rwlock));
    nest(&a, &b);
    OK(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *backward_while_reading(void *unused) {
    OK(pthread_rwlock_rdlock(&rwlock));
    nest(&b, &a);
    OK(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *backward_while_writing(void *unused) {
    OK(pthread_rwlock_wrlock(&rwlock));
    nest(&b, &a);
    OK(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void *forward_while_writing(void *unused) {
    OK(pthread_rwlock_wrlock(&rwlock));
    nest(&a, &b);
    OK(pthread_rwlock_unlock(&rwlock));
    return unused;
}

static void also_in_read_gate(void) {
    in_threads(forward_while_writing, forward_while_reading, backward_while_reading);
}

static void in_read_gate(void) {
    in_threads(forward_while_reading, backward_while_reading, backward_while_writing);
}

static void in_write_gate(void) {
    in_threads(forward_while_reading, backward_while_writing, backward_while_writing);
}

/* A circle of three locks, of which one thread makes two orders: it cannot wait in both. */
static void *two_orders(void *unused) {
    nest(&a, &b), nest(&b, &c);
    return unused;
}

static void *third_order(void *unused) {
    nest(&c, &a);
    return unused;
}

static void *second_order(void *unused) {
    nest(&b, &c);
    return unused;
}

static void three_by_two(void) {
    in_threads(two_orders, third_order, third_order);
}

static void three_by_three(void) {
    in_threads(forward, second_order, third_order);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"pair", pair},
               {"crosswise", crosswise},
               {"kinds", kinds},
               {"readers", readers},
               {"trylock", trylock},
               {"gates", gates},
               {"waits", waits},
               {"cond", cond},
               {"pairs", pairs},
               {"always", always},
               {"deep", deep},
               {"lives", lives},
               {"handlers", handlers},
               {"ends", ends},
               {"by_one_thread", by_one_thread},
               {"by_two_threads", by_two_threads},
               {"in_gate", in_gate},
               {"also_by_another", also_by_another},
               {"once_without_gate", once_without_gate},
               {"in_two_gates", in_two_gates},
               {"by_readers", by_readers},
               {"by_reader_and_writer", by_reader_and_writer},
               {"also_by_writer", also_by_writer},
               {"also_in_read_gate", also_in_read_gate},
               {"in_read_gate", in_read_gate},
               {"in_write_gate", in_write_gate},
               {"three_by_two", three_by_two},
               {"three_by_three", three_by_three}};
    for (size_t i = 0; argc == 2 && i < sizeof all / sizeof *all; i++)
        if (strcmp(argv[1], all[i].name) == 0) {
            all[i].run();
            return 0;
        }
    return 2;
}

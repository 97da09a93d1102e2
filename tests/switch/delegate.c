/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes (libsubutai/engine/direct/delegate.h), in scenes of what could go wrong with sections that travel.
 * A program that the library does not step aside for, as subject.c: one scene per run, exit status 0, a hang is ended
 * by the test's time limit. `hot`, `second` and the mutexes that new_mutex makes are delegated by name or all together.
 */
#include "delegate.h"

#include <setjmp.h>

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t *made;
static int turn, n_done, ends[2];

/* ---- sections exclude each other, and each thread comes back on its own stack, errno and thread ---- */
static _Thread_local long mine;

static void *count_up(void *number) {
    leave_home();
    mine = (long)number;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t self = pthread_self();
        errno = (int)mine + 1;
        enter(&hot);
        count++;
        if (i % 64 == 0)
            sched_yield(); /* others come, and queue */
        leave(&hot);
        CHECK(errno == (int)mine + 1 && pthread_equal(self, pthread_self()) && mine == (long)number);
        think();
    }
    return number;
}

static void counts(void) {
    run(N, count_up);
    CHECK(count == N * ROUNDS);
}

/* ---- made at run time: known by where it was made ---- */
static __attribute__((noinline)) void new_mutex(void) {
    made = malloc(sizeof *made);
    CHECK(made != NULL);
    OK(pthread_mutex_init(made, NULL));
    atomic_signal_fence(memory_order_seq_cst); /* no tail call: the call's place is in this function */
}

static void *count_up_made(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS; i++) {
        enter(made);
        count++;
        if (i % 64 == 0)
            sched_yield();
        leave(made);
        think();
    }
    return number;
}

static void made_counts(void) {
    new_mutex();
    run(N, count_up_made);
    CHECK(count == N * ROUNDS);
    OK(pthread_mutex_destroy(made));
    free(made);
}

/* ---- one inside the other; and by trylock the other way round ---- */
static void *nest(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS; i++) {
        if (((long)number + i) % 4 != 0) {
            enter(&hot);
            OK(pthread_mutex_lock(&second));
            other_count++;
            if (i % 64 == 0)
                sched_yield();
            OK(pthread_mutex_unlock(&second)); /* its waiters run now, and wait for the outer one */
            leave(&hot);
        } else {
            OK(pthread_mutex_lock(&second));
            other_count++;
            if (pthread_mutex_trylock(&hot) == 0) {
                CHECK(inside++ == 0);
                leave(&hot);
            }
            OK(pthread_mutex_unlock(&second));
        }
        think();
    }
    return number;
}

static void nested(void) {
    run(N, nest);
    CHECK(other_count == N * ROUNDS);
}

/* ---- a section that sleeps in the kernel keeps no section of another mutex waiting ---- */
static atomic_int n_queued;

/* Keep the mutex, which the thread holds, until so many others are about to queue for it, or have. */
static void keep_until_queued(int n) {
    while (atomic_load(&n_queued) < n)
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
}

static void block_until_told(void) {
    char byte;
    enter(&hot);
    OK_ERRNO(read(ends[0], &byte, 1) == 1 ? 0 : -1);
    keep_until_queued(N - 1);
    leave(&hot);
}

/* Each time all others queue behind one of them. After the barrier they are fibers, wherever they were before. */
static void queue_by_turns(long number) {
    for (int i = 0; i < N; i++) {
        meet(); /* the mutex is free */
        if (number == i)
            enter(&hot);
        meet();
        if (number != i) {
            atomic_fetch_add(&n_queued, 1);
            enter(&hot);
            count++;
        } else {
            keep_until_queued((N - 1) * (i + 2));
        }
        leave(&hot);
    }
}

static void *block_or_count(void *number) {
    char byte = 0;
    leave_home();
    if ((long)number == 0) {
        block_until_told();
        queue_by_turns(0);
        return number;
    }
    for (int i = 0; i < ROUNDS; i++) {
        OK(pthread_mutex_lock(&second));
        other_count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&second));
        think();
    }
    OK(pthread_mutex_lock(&second));
    bool last = ++n_done == N - 1;
    OK(pthread_mutex_unlock(&second));
    if (last)
        OK_ERRNO(write(ends[1], &byte, 1) == 1 ? 0 : -1);
    atomic_fetch_add(&n_queued, 1);
    enter(&hot);
    count++;
    leave(&hot);
    queue_by_turns((long)number);
    return number;
}

static void blocked(void) {
    OK_ERRNO(pipe(ends));
    run(N, block_or_count);
    CHECK(count == (N - 1) * (N + 1) && other_count == (N - 1) * ROUNDS);
}

/* ---- a section waits for a thread that is queued behind the sections of a batch, and for one outside ---- */
static atomic_int come;

static void *await_in_section(void *number) {
    leave_home();
    for (int i = 0; i < 200; i++) {
        if ((long)number == i % N) {
            enter(&hot);
            atomic_store(&come, 1);
            while (atomic_load(&come) != 2)
                sched_yield();
            leave(&hot);
        } else if ((long)number == (i + 1) % N) {
            while (atomic_load(&come) != 1)
                sched_yield();
            atomic_store(&come, 2);
            enter(&hot);
            count++;
            leave(&hot);
        } else {
            enter(&hot);
            count++;
            leave(&hot);
        }
        meet();
    }
    return number;
}

static void awaits(void) {
    run(N, await_in_section);
    CHECK(count == 200 * (N - 1));
}

/* ---- deadlines in the queue; and the mutex is whole afterwards ---- */
static void *give_up(void *number) {
    leave_home();
    for (int i = 0; i < 20; i++) {
        if ((long)number == 0) {
            enter(&hot);
            meet();
            meet(); /* all others have given up */
            leave(&hot);
        } else {
            struct timespec at = time_in_us(CLOCK_MONOTONIC, 100 * (long)number);
            meet();
            CHECK(pthread_mutex_clocklock(&hot, CLOCK_MONOTONIC, &at) == ETIMEDOUT);
            CHECK(time_is_past(CLOCK_MONOTONIC, &at));
            meet();
        }
        meet();
        struct timespec soon = time_in_us(CLOCK_REALTIME, 50);
        int r = pthread_mutex_timedlock(&hot, &soon); /* as its deadline strikes */
        CHECK(r == 0 || r == ETIMEDOUT);
        if (r == 0) {
            CHECK(inside++ == 0);
            think();
            leave(&hot);
        }
        meet();
    }
    return number;
}

static void timed(void) {
    run(N, give_up);
}

/* ---- conditions: a turn goes round, by signals and by broadcasts, with and without the mutex ---- */
static void *take_turns(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 4; i++) {
        enter(&hot);
        while (turn != (int)(long)number) {
            inside--;
            OK(pthread_cond_wait(&cond, &hot));
            CHECK(inside++ == 0);
        }
        turn = (turn + 1) % N;
        if (i % 2 == 0)
            OK(pthread_cond_broadcast(&cond));
        leave(&hot);
        if (i % 2 != 0)
            OK(pthread_cond_broadcast(&cond));
    }
    return number;
}

static void turns(void) {
    run(N, take_turns);
}

/* ---- longjmp out of a section, to where it is left ---- */
static void *jump(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS; i++) {
        jmp_buf out;
        if (setjmp(out) == 0) {
            enter(&hot);
            count++;
            if (i % 64 == 0)
                sched_yield();
            longjmp(out, 1);
        }
        leave(&hot);
        think();
    }
    return number;
}

static void jumps(void) {
    run(N, jump);
    CHECK(count == N * ROUNDS);
}

/* ---- recursive and error-checking mutexes ---- */
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                       checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;

static void *own(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS; i++) {
        enter(&recursive);
        OK(pthread_mutex_lock(&recursive));
        count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&recursive));
        leave(&recursive);
        CHECK(pthread_mutex_unlock(&recursive) == EPERM);
        OK(pthread_mutex_lock(&checking));
        other_count++;
        if (i % 64 == 0)
            sched_yield();
        CHECK(pthread_mutex_lock(&checking) == EDEADLK);
        OK(pthread_mutex_unlock(&checking));
        CHECK(pthread_mutex_unlock(&checking) == EPERM);
        think();
    }
    return number;
}

static void types(void) {
    run(N, own);
    CHECK(count == N * ROUNDS && other_count == N * ROUNDS);
}

/* ---- threads end right after a section, and others use their fibers ---- */
static void *one_section(void *number) {
    meet();
    enter(&hot);
    count++;
    sched_yield();
    leave(&hot);
    return number;
}

static void end(void) {
    for (int i = 0; i < 100; i++)
        run(N, one_section);
    CHECK(count == 100 * N);
}

/* ---- a thread forks while sections are queued; in the child the mutex that it holds is its own ---- */
static void *fork_or_count(void *number) {
    leave_home();
    if ((long)number != 0)
        return count_up_made(number);
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(made));
        pid_t child = fork();
        if (child == 0) {
            OK(pthread_mutex_unlock(made));
            for (int k = 0; k < 10; k++) {
                OK(pthread_mutex_lock(made));
                OK(pthread_mutex_unlock(made));
            }
            _exit(0);
        }
        OK(pthread_mutex_unlock(made));
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 20; i++)
        meet(); /* the others leave home twice */
    return number;
}

static void forks(void) {
    new_mutex();
    run(N, fork_or_count);
    CHECK(count == (N - 1) * ROUNDS);
}

/* ---- a section that goes home: to create a thread, and to wait for its end ---- */
static void *nothing(void *unused) {
    return unused;
}

static void *count_at_home(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 4; i++) {
        if ((long)number % 3 == 0 && i % 16 == 0) { /* to create a thread the caller goes home */
            OK(pthread_mutex_lock(&hot));
            thread_join(thread_start(nothing, NULL));
            OK(pthread_mutex_unlock(&hot));
        }
        enter(&hot);
        count++;
        leave(&hot);
        think();
    }
    return number;
}

static void at_home(void) {
    run(N, count_at_home);
    CHECK(count == N * (ROUNDS / 4));
}

/* ---- a section blocks where it has travelled to, and sections of other mutexes that travel go on ---- */
static void hold_until_queued(pthread_mutex_t *m, int n) {
    OK(pthread_mutex_lock(m));
    meet();
    keep_until_queued(n);
    OK(pthread_mutex_unlock(m));
}

static void queue_for(pthread_mutex_t *m) {
    meet();
    atomic_fetch_add(&n_queued, 1);
    OK(pthread_mutex_lock(m));
}

static void count_up_second(void) {
    for (int i = 0; i < 100; i++) {
        OK(pthread_mutex_lock(&second));
        other_count++;
        sched_yield(); /* others queue */
        OK(pthread_mutex_unlock(&second));
    }
}

static void count_second(void) {
    count_up_second();
    OK(pthread_mutex_lock(&second));
    bool last = ++n_done == N - 2;
    OK(pthread_mutex_unlock(&second));
    char byte = 0;
    if (last)
        OK_ERRNO(write(ends[1], &byte, 1) == 1 ? 0 : -1);
}

static void *block_on_server(void *number) {
    char byte = 0;
    leave_home();
    if ((long)number == 0) {
        hold_until_queued(&hot, 1);
    } else if ((long)number == 1) {
        queue_for(&hot);
        OK_ERRNO(read(ends[0], &byte, 1) == 1 ? 0 : -1);
        OK(pthread_mutex_unlock(&hot));
    } else {
        meet();
        count_second();
    }
    return number;
}

static void blocked_there(void) {
    OK_ERRNO(pipe(ends));
    run(N, block_on_server);
    CHECK(other_count == (N - 2) * 100);
}

/* ---- a section spins, without a yield, until a section of another mutex has run that travels too ---- */
static void *spin_on_server(void *number) {
    leave_home();
    if ((long)number == 0) {
        hold_until_queued(&hot, 1);
    } else if ((long)number == 1) {
        queue_for(&hot);
        while (atomic_load(&come) != 1)
            ;
        OK(pthread_mutex_unlock(&hot));
    } else {
        meet();
        count_up_second();
        OK(pthread_mutex_lock(&second));
        if (++n_done == N - 2)
            atomic_store(&come, 1);
        OK(pthread_mutex_unlock(&second));
    }
    return number;
}

static void spins_there(void) {
    run(N, spin_on_server);
    CHECK(other_count == (N - 2) * 100);
}

/* ---- each section wakes the next one of the same mutex, and ends with a wait, until others' have run ---- */
enum { CHAIN = 4, CHAINED = 5000 };

static void stay(int n) {
    for (volatile int i = 0; i < n; i++)
        ;
}

static void *wake_the_next(void *number) {
    int self = (int)(long)number;
    OK(pthread_mutex_lock(&hot));
    while (atomic_load(&come) == 0) {
        while (turn != self && atomic_load(&come) == 0)
            OK(pthread_cond_wait(&cond, &hot));
        stay(200);
        turn = (self + 1) % CHAIN;
        OK(pthread_cond_broadcast(&cond));
    }
    OK(pthread_mutex_unlock(&hot));
    return number;
}

static void *chain_or_count(void *number) {
    if ((long)number < CHAIN)
        return wake_the_next(number);
    while (atomic_load(&come) == 0) {
        OK(pthread_mutex_lock(&second));
        if (++other_count == CHAINED)
            atomic_store(&come, 1);
        stay(2000);
        if (other_count % 16 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&second));
    }
    OK(pthread_mutex_lock(&hot));
    OK(pthread_cond_broadcast(&cond));
    OK(pthread_mutex_unlock(&hot));
    return number;
}

static void chains(void) {
    run(N, chain_or_count);
    CHECK(other_count >= CHAINED);
}

/* ---- switching ends amid sections: by a thread that is in one, for good ---- */
static void *end_switching(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS; i++) {
        enter(&hot);
        count++;
        if (i % 64 == 0)
            sched_yield();
        if ((long)number == 3 && i == ROUNDS / 2)
            OK_ERRNO(setuid(getuid()));
        leave(&hot);
        think();
    }
    return number;
}

static void switching_ends(void) {
    run(N, end_switching);
    CHECK(count == N * ROUNDS);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"counts", counts},
        {"made-counts", made_counts},
        {"nested", nested},
        {"blocked", blocked},
        {"awaits", awaits},
        {"timed", timed},
        {"turns", turns},
        {"jumps", jumps},
        {"types", types},
        {"end", end},
        {"forks", forks},
        {"at-home", at_home},
        {"blocked-there", blocked_there},
        {"spins-there", spins_there},
        {"chains", chains},
        {"switching-ends", switching_ends},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

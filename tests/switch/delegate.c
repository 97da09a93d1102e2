/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes (libsubutai/engine/direct/delegate.h), in scenes of what could go wrong with sections that travel.
 * A program that the library does not step aside for, as subject.c: one scene per run, exit status 0, a hang is ended
 * by the test's time limit. `hot`, `second` and the mutexes that new_mutex makes are delegated by name or all together.
 */
#include "delegate.h"

#include <setjmp.h>
#include <string.h>

static pthread_mutex_t *made;

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

/* ---- as programs do that set their title: the environment is overwritten ---- */
extern char **environ;

static void overwritten(void) {
    for (char **at = environ; *at != NULL; at++)
        memset(*at, 'x', strlen(*at));
    counts();
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
        {"overwritten", overwritten},
        {"made-counts", made_counts},
        {"nested", nested},
        {"jumps", jumps},
        {"types", types},
        {"end", end},
        {"forks", forks},
        {"at-home", at_home},
        {"switching-ends", switching_ends},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

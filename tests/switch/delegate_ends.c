/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes, as delegate.c: what ends in a section, or while sections are queued. The mutex itself, threads, by
 * themselves and cancelled, and processes, by fork, exec and exit.
 */
#include "delegate.h"

#include <errno.h>
#include <sys/mman.h>

#include "lib/clock.h"

/* ---- the last owner destroys the mutex and unmaps it: no thread of the library touches it afterwards ---- */
struct object {
    pthread_mutex_t mutex;
    int n_users;
};
static struct object *object;

static void make_object(void) {
    object = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(object != MAP_FAILED);
    OK(pthread_mutex_init(&object->mutex, NULL));
    object->n_users = N;
}

static void *use_once(void *number) {
    leave_home();
    for (int i = 0; i < 200; i++) {
        if ((long)number == i % N)
            make_object();
        meet();
        struct object *o = object;
        enter(&o->mutex);
        if (o->n_users % 4 == 0)
            sched_yield();
        bool last = --o->n_users == 0;
        leave(&o->mutex);
        if (last) {
            OK(pthread_mutex_destroy(&o->mutex));
            SYS(munmap(o, 4096));
            count++;
        }
        meet();
    }
    return number;
}

static void destroyed(void) {
    run(N, use_once);
    CHECK(count == 200);
}

/* ---- threads end in a section: a destructor of theirs ends it; or the mutex is robust ---- */
static pthread_key_t key;

static void leave_at_end(void *mutex) {
    leave(mutex);
}

static void *end_within(void *number) {
    meet();
    if ((long)number % 2 == 0)
        OK(pthread_setspecific(key, &hot));
    enter(&hot);
    count++;
    sched_yield();
    if ((long)number % 2 != 0)
        leave(&hot);
    return number;
}

static void ends_within(void) {
    OK(pthread_key_create(&key, leave_at_end));
    for (int i = 0; i < 30; i++)
        run(N, end_within);
    CHECK(count == 30 * N);
}

static pthread_mutex_t robust;

static void *die_within(void *number) {
    meet();
    int r = pthread_mutex_lock(&robust);
    CHECK(r == 0 || r == EOWNERDEAD);
    if (r == EOWNERDEAD) {
        other_count++;
        OK(pthread_mutex_consistent(&robust));
    }
    CHECK(inside++ == 0);
    count++;
    sched_yield();
    inside--;
    if ((long)number % 3 != 0)
        OK(pthread_mutex_unlock(&robust));
    return number;
}

static void dies_within(void) {
    pthread_mutexattr_t attr;
    OK(pthread_mutexattr_init(&attr));
    OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
    OK(pthread_mutex_init(&robust, &attr));
    for (int i = 0; i < 30; i++)
        run(N, die_within);
    CHECK(count == 30 * N && other_count >= 30 * (N / 3) - 1);
}

/* ---- another thread forks while a section is under way; handlers of the fork take the mutex, as an allocator's do
 * ---- */
static void lock_hot(void) {
    OK(pthread_mutex_lock(&hot));
}

static void unlock_hot(void) {
    OK(pthread_mutex_unlock(&hot));
}

static void *count_in_child(void *number) {
    count_sections(100);
    return number;
}

static void *fork_between(void *number) {
    leave_home();
    if ((long)number != 0) {
        count_sections(ROUNDS / 4);
        return number;
    }
    for (int i = 0; i < 10; i++) {
        pid_t child = fork();
        if (child == 0) {
            count = 0;
            pthread_t of_child[4];
            for (int k = 0; k < 4; k++)
                of_child[k] = thread_start(count_in_child, NULL);
            for (int k = 0; k < 4; k++)
                thread_join(of_child[k]);
            _exit(count == 400 ? 0 : 1);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
    return number;
}

static void forks_between(void) {
    OK(pthread_atfork(lock_hot, unlock_hot, unlock_hot));
    run(N, fork_between);
    CHECK(count == (N - 1) * (ROUNDS / 4));
}

/* ---- the process ends in a section, and its handlers at exit take other mutexes, for which threads queue ---- */
static void lock_at_exit(void) {
    OK(pthread_mutex_lock(&second));
    OK(pthread_mutex_unlock(&second));
}

static void *exit_within(void *number) {
    leave_home();
    for (int i = 0; i < 50; i++) {
        OK(pthread_mutex_lock(&second));
        sched_yield();
        OK(pthread_mutex_unlock(&second));
        OK(pthread_mutex_lock(&hot));
        sched_yield();
        if ((long)number == 3 && i == 25)
            exit(0);
        OK(pthread_mutex_unlock(&hot));
    }
    return number;
}

static void exits_within(void) {
    atexit(lock_at_exit);
    run(N, exit_within);
    FAIL("the process has not ended");
}

/* ---- a program is started in a section ---- */
static void *start_program(void *number) {
    leave_home();
    for (int i = 0; i < 100; i++) {
        enter(&hot);
        count++;
        if (i % 20 == (int)(long)number)
            CHECK(system("exit 3") == 3 << 8);
        leave(&hot);
        think();
    }
    return number;
}

static void starts_programs(void) {
    run(N, start_program);
    CHECK(count == 100 * N);
}

/* ---- cancelled in the queue, at a condition, and in a section's own wait ---- */
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void unlock(void *mutex) {
    OK(pthread_mutex_unlock(mutex));
}

static void *wait_for_cancel(void *number) {
    OK(pthread_mutex_lock(&hot));
    pthread_cleanup_push(unlock, &hot);
    for (;;) {
        if ((long)number % 2 == 0)
            OK(pthread_cond_wait(&cond, &hot));
        else
            sleep_us(50);
        pthread_testcancel();
        OK(pthread_mutex_unlock(&hot));
        OK(pthread_mutex_lock(&hot));
    }
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancelled(void) {
    for (int i = 0; i < 20; i++) {
        pthread_t waiting[N];
        for (long k = 0; k < N; k++)
            waiting[k] = thread_start(wait_for_cancel, (void *)k);
        sleep_ms(1);
        for (int k = 0; k < N; k++)
            OK(pthread_cancel(waiting[k]));
        for (int k = 0; k < N; k++)
            thread_join_cancelled(waiting[k]);
    }
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"destroyed", destroyed},       {"ends-within", ends_within},
        {"dies-within", dies_within},   {"forks-between", forks_between},
        {"exits-within", exits_within}, {"starts-programs", starts_programs},
        {"cancelled", cancelled},       {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Delegated mutexes, as delegate.c, where something else than the section ends, moves or interrupts it: threads and
 * processes that end within, forks by others, signal handlers, user contexts, affinity, memory that is gone.
 */
#include "delegate.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

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

/* ---- a signal handler locks the mutex, wherever its thread waits ---- */
static _Thread_local volatile sig_atomic_t may_lock;
static atomic_int n_handled;

static void lock_in_handler(int signal) {
    int error = errno;
    (void)signal;
    if (may_lock) {
        enter(&hot);
        count++;
        leave(&hot);
        atomic_fetch_add(&n_handled, 1);
    }
    errno = error;
}

/* Its own sections of `hot` are not to be interrupted by another one. */
static void *be_interrupted(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 4; i++) {
        may_lock = 1;
        OK(pthread_mutex_lock(&second));
        other_count++;
        if (i % 16 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&second));
        may_lock = 0;
        enter(&hot);
        leave(&hot);
        if (i % 8 == 0)
            OK(pthread_kill(threads[((long)number + i / 8) % N], SIGUSR1));
    }
    meet(); /* no thread is signalled that has ended */
    return number;
}

static void handlers(void) {
    struct sigaction action = {.sa_handler = lock_in_handler, .sa_flags = SA_RESTART};
    SYS(sigaction(SIGUSR1, &action, NULL));
    run(N, be_interrupted);
    CHECK(other_count == N * (ROUNDS / 4) && count == n_handled);
}

/* ---- user contexts: a section begins on one stack and ends on another ---- */
struct contexts {
    ucontext_t outer, inner;
    bool over;
};
static _Thread_local struct contexts *contexts;

static void begin_sections(void) {
    struct contexts *c = contexts;
    while (!c->over) {
        enter(&hot);
        count++;
        if (count % 64 == 0)
            sched_yield();
        SYS(swapcontext(&c->inner, &c->outer));
    }
}

static void *go_between(void *number) {
    struct contexts c = {.over = false};
    size_t size = 256 * 1024;
    char *stack = malloc(size);
    leave_home();
    CHECK(stack != NULL);
    contexts = &c;
    SYS(getcontext(&c.inner));
    c.inner.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
    c.inner.uc_link = &c.outer;
    makecontext(&c.inner, begin_sections, 0);
    for (int i = 0; i < ROUNDS / 2; i++) {
        SYS(swapcontext(&c.outer, &c.inner));
        leave(&hot);
        think();
    }
    c.over = true;
    SYS(swapcontext(&c.outer, &c.inner));
    free(stack);
    return number;
}

static void user_contexts(void) {
    run(N, go_between);
    CHECK(count == N * (ROUNDS / 2));
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

/* ---- one thread locks, another one unlocks: glibc lets normal mutexes be used so ---- */
static pthread_mutex_t pass[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

static void *pass_on(void *number) {
    leave_home();
    if ((long)number < 2)
        for (int i = 0; i < ROUNDS; i++) {
            OK(pthread_mutex_lock(&pass[(long)number]));
            other_count++;
            OK(pthread_mutex_unlock(&pass[1 - (long)number]));
        }
    count_sections(ROUNDS / 4);
    return number;
}

static void unlocked_by_others(void) {
    OK(pthread_mutex_lock(&pass[1]));
    run(N, pass_on);
    CHECK(other_count == 2 * ROUNDS && count == N * (ROUNDS / 4));
}

/* ---- far more threads than carriers have room for in a batch ---- */
enum { MANY = 2000 };

static void *be_one_of_many(void *number) {
    for (int i = 0; i < 10; i++) {
        OK(pthread_mutex_lock(&hot));
        count++;
        if (count % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&hot));
        struct timespec at = time_in_us(CLOCK_MONOTONIC, 10);
        if (pthread_mutex_clocklock(&hot, CLOCK_MONOTONIC, &at) == 0) {
            other_count++;
            OK(pthread_mutex_unlock(&hot));
        }
    }
    return number;
}

static void many(void) {
    static pthread_t of_many[MANY];
    OK(pthread_mutex_lock(&hot)); /* they queue */
    for (int i = 0; i < MANY; i++)
        of_many[i] = thread_start_small(64 * 1024, be_one_of_many, NULL);
    OK(pthread_mutex_unlock(&hot));
    for (int i = 0; i < MANY; i++)
        thread_join(of_many[i]);
    CHECK(count == 10 * MANY);
}

/* ---- the CPUs become fewer, and more, while sections are handed over ---- */
static void *count_or_move(void *number) {
    leave_home();
    if ((long)number != 0) {
        count_sections(ROUNDS);
        return number;
    }
    cpu_set_t all, one;
    SYS(sched_getaffinity(getpid(), sizeof all, &all));
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET((size_t)cpu, &all))
            CPU_SET((size_t)cpu, &one);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < N; k++)
            OK(pthread_setaffinity_np(threads[k], sizeof one, i % 2 == 0 ? &one : &all));
        SYS(sched_setaffinity(getpid(), sizeof one, i % 2 == 0 ? &one : &all));
        sleep_ms(3);
    }
    return number;
}

static void *count_and_stay(void *number) {
    count_or_move(number);
    meet(); /* threads that are moved are there */
    return number;
}

static void moved(void) {
    run(N, count_and_stay);
    CHECK(count == (N - 1) * ROUNDS);
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

/* ---- a name that two variables have means both ---- */
pthread_mutex_t *delegate_same(void);

static pthread_mutex_t same = PTHREAD_MUTEX_INITIALIZER;

static void *count_same(void *number) {
    leave_home();
    for (int i = 0; i < ROUNDS / 2; i++) {
        OK(pthread_mutex_lock(&same));
        count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(&same));
        OK(pthread_mutex_lock(delegate_same()));
        other_count++;
        if (i % 64 == 0)
            sched_yield();
        OK(pthread_mutex_unlock(delegate_same()));
        think();
    }
    return number;
}

static void same_name(void) {
    run(N, count_same);
    CHECK(count == N * (ROUNDS / 2) && other_count == count);
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"destroyed", destroyed},
        {"handlers", handlers},
        {"user-contexts", user_contexts},
        {"ends-within", ends_within},
        {"dies-within", dies_within},
        {"forks-between", forks_between},
        {"exits-within", exits_within},
        {"starts-programs", starts_programs},
        {"unlocked-by-others", unlocked_by_others},
        {"many", many},
        {"moved", moved},
        {"cancelled", cancelled},
        {"same-name", same_name},
        {NULL, NULL},
    };
    return play(argc, argv, scenes);
}

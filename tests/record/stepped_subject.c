/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A process ends while one of its threads is at any instruction of what a profile counts: by single steps (x86-64). For
 * each point there is a process of its own, with a trace of its own.
 * usage: stepped-subject HOW STRIDE
 *   beside   the thread lingers at the point, while another thread ends the process
 *   handler  the thread ends the process there, in a handler
 *   drop     as beside, of a record: the thread works for WORK_NS, and then locks a recursive mutex once more, which is
 *            no event. The points are those after the lock itself
 *   grows    a handler comes at the point, and takes so many new locks that the table of counts is given back for a
 *            larger one; the thread goes on
 * STRIDE: instructions from one point to the next.
 * It prints for each process its id, how many locks had been taken before the point, and the thread's processor time.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/clock.h"

#define TRAP_FLAG 0x100L

enum { WARM_ROUNDS = 3, PAUSE_US = 50, LINGER_US = 2000, STEPS_MOST = 100000, TRIES = 20 };
enum { WORK_NS = 10000000, HELD = 3 /* times, when the lock that is stepped through is over */ };
enum { FEW_LOCKS = 40, MANY_LOCKS = 600 }; /* more than in the first table, and than in the second one */
enum { OVER = 10 };                        /* exit status: all was done before the point */

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t fresh[MANY_LOCKS]; /* zeroed is initialized */
static bool beside, drop, grows;
static long steps_left;
static atomic_int turn, n_taken, reached; /* n_taken: locks */
static volatile bool stepping;

static void take(pthread_mutex_t *m) {
    OK(pthread_mutex_lock(m));
    atomic_fetch_add(&n_taken, 1);
}

/* The thread has come back from the call in which it was when another thread began to end the process. */
static void end_here(void) {
    while (atomic_load(&reached) != 0)
        pause();
}

/* Holds that are timed, because their thread does something else for long enough before it takes a lock. */
static void scene(void) {
    SYS(usleep(PAUSE_US));
    take(&outer);
    end_here();
    SYS(usleep(PAUSE_US));
    take(&inner);
    end_here();
    OK(pthread_mutex_unlock(&inner));
    end_here();
    OK(pthread_mutex_unlock(&outer));
    end_here();
}

static void work(void) {
    int64_t begin_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    while (now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < WORK_NS) {
    }
}

static void say(void) {
    char text[96];
    int n = snprintf(text, sizeof text, "%d %d %lld\n", (int)getpid(), atomic_load(&n_taken),
                     (long long)now_ns(CLOCK_THREAD_CPUTIME_ID));
    CHECK(write(STDOUT_FILENO, text, (size_t)n) == n);
}

static void take_fresh(int from, int to) {
    for (int i = from; i < to; i++) {
        take(&fresh[i]);
        OK(pthread_mutex_unlock(&fresh[i]));
    }
}

/* After each instruction. With another thread beside it the handler counts, too: that is done by the end. */
static void step(int signo, siginfo_t *info, void *context) {
    (void)signo, (void)info;
    if (stepping && ((drop && recursive.__data.__count < HELD) || steps_left-- > 0))
        return;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
    if (!stepping)
        return;
    stepping = false;
    if (grows) {
        take_fresh(FEW_LOCKS, MANY_LOCKS);
        atomic_store(&reached, 1);
        return;
    }
    if (!beside) {
        say();
        _exit(0);
    }
    if (!drop) {
        take(&of_handler);
        OK(pthread_mutex_unlock(&of_handler));
    }
    say();
    atomic_store(&reached, 1);
    usleep(LINGER_US);
}

static void begin_steps(void) {
    stepping = true;
    __asm__ volatile("sub $128, %%rsp; pushfq; orq %0, (%%rsp); popfq; add $128, %%rsp" ::"i"(TRAP_FLAG)
                     : "memory", "cc");
}

static __attribute__((noinline)) void once_more(void) {
    OK(pthread_mutex_lock(&recursive));
    end_here();
}

static void *stepped_drop(void *unused) {
    once_more(); /* the call site is known from here on */
    once_more();
    atomic_store(&turn, 1);
    while (atomic_load(&turn) == 1) /* not at work: the other thread may be without a processor for long */
        SYS(usleep(PAUSE_US));
    work();
    begin_steps();
    once_more();
    stepping = false;
    _exit(OVER);
    return unused;
}

/* A lock of which each hold is timed. */
static __attribute__((noinline)) void lock_and_unlock(void) {
    OK(pthread_mutex_lock(&inner));
    OK(pthread_mutex_unlock(&inner));
}

static void *stepped_grows(void *unused) {
    lock_and_unlock();
    take_fresh(0, FEW_LOCKS);
    atomic_store(&turn, 1);
    begin_steps();
    lock_and_unlock();
    stepping = false;
    if (atomic_load(&reached) == 0)
        _exit(OVER);
    say();
    _exit(0);
    return unused;
}

static void *stepped(void *unused) {
    for (int i = 0; i < WARM_ROUNDS; i++)
        scene();
    atomic_store(&turn, 1);
    while (atomic_load(&turn) == 1)
        sched_yield();
    begin_steps();
    scene();
    stepping = false;
    _exit(OVER);
    return unused;
}

/* Another life of the mutex: what the thread has counted of the one before is written when it takes it again. */
static void renew(void) {
    OK(pthread_mutex_destroy(&outer));
    OK(pthread_mutex_init(&outer, NULL));
    take(&outer);
    OK(pthread_mutex_unlock(&outer));
}

static void end_at(long n) {
    struct sigaction action = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    steps_left = n;
    sched_setscheduler(0, SCHED_FIFO,
                       &(struct sched_param){.sched_priority = 1}); /* where that is allowed: see try_at */
    sigfillset(&action.sa_mask);
    SYS(sigaction(SIGTRAP, &action, NULL));
    OK(pthread_create(&thread, NULL, grows ? stepped_grows : drop ? stepped_drop : stepped, NULL));
    if (grows)
        OK(pthread_join(thread, NULL));
    while (atomic_load(&turn) == 0)
        sched_yield();
    if (!drop)
        renew();
    atomic_store(&turn, 2);
    while (atomic_load(&reached) == 0)
        usleep(PAUSE_US);
    _exit(0);
}

/*
 * A process of its own. Where signals are blocked a step kills it. That is so only if the thread's tallies became due,
 * since it was without a processor for long: it goes before others if it may, and is tried again if it may not.
 */
static int try_at(long n) {
    int status = SIGTRAP;
    for (int i = 0; i < TRIES && WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP; i++) {
        pid_t child = fork();
        SYS(child);
        if (child == 0)
            end_at(n);
        SYS(waitpid(child, &status, 0));
    }
    return status;
}

int main(int argc, char **argv) {
    long stride = argc == 3 ? atol(argv[2]) : 0;
    int status = 0;
    if (stride < 1)
        return 2;
    drop = strcmp(argv[1], "drop") == 0;
    grows = strcmp(argv[1], "grows") == 0;
    beside = drop || strcmp(argv[1], "beside") == 0;
    for (long n = 0; status == 0 && n < STEPS_MOST; n += stride)
        status = try_at(n);
    return WIFEXITED(status) && WEXITSTATUS(status) == OVER ? 0 : 1;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads that wait for each other, and threads that only seem to: `deadlocks NAME`. The first ones never end. The
 * others print "done", although no thread has synchronized for a while.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHILE_US 700000 /* longer than a deadlock takes until it is told */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t sem, *shared;
static uint32_t word;

static pthread_t start(void *(*routine)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, routine, NULL);
    return thread;
}

static void wait_for_sem(void) {
    while (sem_wait(&sem) != 0)
        ;
}

static void sleep_awhile(void) {
    usleep(WHILE_US);
}

/* ---- deadlocks ---- */

static void *takes_twice(void *unused) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&mutex);
    return unused;
}

static void twice(void) {
    pthread_join(start(takes_twice), NULL);
}

static void *ends_with_it(void *unused) {
    pthread_mutex_lock(&mutex);
    return unused;
}

static void left(void) {
    pthread_join(start(ends_with_it), NULL);
    pthread_mutex_lock(&mutex);
}

static void *waits_for_cond(void *unused) {
    pthread_mutex_lock(&mutex);
    pthread_cond_wait(&cond, &mutex);
    return unused;
}

/* The last thread that could go on ends. */
static void *sleeps(void *unused) {
    usleep(50000);
    return unused;
}

static void ends(void) {
    start(sleeps);
    waits_for_cond(NULL);
}

static void gone(void) {
    start(takes_twice);
    start(waits_for_cond);
    pthread_exit(NULL);
}

static void *reads(void *unused) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_barrier_wait(&barrier);
    return unused;
}

static void locks(void) {
    start(reads);
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
}

static void *waits_on_word(void *unused) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return unused;
}

static void never(void) {
    start(waits_on_word);
    wait_for_sem();
}

static void onces(void) {
    pthread_once(&once, never);
}

/* A child is deadlocked until its parent ends it. */
static void child(void) {
    pid_t pid = fork();
    if (pid == 0)
        twice();
    sleep_awhile();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    puts("done");
}

/* ---- a signal comes ---- */

static void posts(int signal) {
    (void)signal;
    sem_post(&sem);
}

/* It has made an operation, and sleeps without one. */
static void posts_late(int signal) {
    (void)signal;
    sem_trywait(&sem);
    syscall(SYS_nanosleep, &(struct timespec){0, WHILE_US * 1000L}, NULL);
    sem_post(&sem);
}

/* It has made no operation. */
static void sleeps_then_posts(int signal) {
    (void)signal;
    syscall(SYS_nanosleep, &(struct timespec){0, WHILE_US * 1000L}, NULL);
    sem_post(&sem);
}

static void computes(void) {
    const clock_t end = clock() + WHILE_US;
    while (clock() < end)
        ;
}

static void computes_then_posts(int signal) {
    (void)signal;
    computes();
    sem_post(&sem);
}

static void handle(int signal, void (*handler)(int)) {
    sigaction(signal, &(struct sigaction){.sa_handler = handler}, NULL);
}

static void set_alarm(long us) {
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, us}}, NULL);
}

static void signalled(void) {
    handle(SIGUSR1, posts);
    wait_for_sem();
    puts("done");
}

/* ---- none ---- */

static void alarmed(void) {
    handle(SIGALRM, posts);
    set_alarm(WHILE_US);
    wait_for_sem();
}

static void *waits_later(void *unused) {
    sem_t never_posted;
    sem_init(&never_posted, 0, 0);
    usleep(100000);
    sem_wait(&never_posted);
    return unused;
}

/* The handler runs in the place of a blocked thread, and another thread blocks meanwhile. */
static void handle_alarm(void (*handler)(int)) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    handle(SIGALRM, handler);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    start(waits_later);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    set_alarm(20000);
    wait_for_sem();
}

static void handled(void) {
    handle_alarm(posts_late);
}

static void handled_long(void) {
    handle_alarm(computes_then_posts);
}

static void handled_asleep(void) {
    handle_alarm(sleeps_then_posts);
}

static void make_timer(struct sigevent *event) {
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, event, &timer);
    timer_settime(timer, 0, &(struct itimerspec){.it_value = {0, WHILE_US * 1000L}}, NULL);
    wait_for_sem();
}

static void timed(void) {
    handle(SIGUSR1, posts);
    make_timer(&(struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1});
}

static void notify(union sigval unused) {
    (void)unused;
    sem_post(&sem);
}

/* By a thread of the C library's own. */
static void notified(void) {
    make_timer(&(struct sigevent){.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify});
}

static void *waits(void *unused) {
    wait_for_sem();
    return unused;
}

/* Main is outside, and then lets the other one go. */
static void outside(void (*wait)(void)) {
    pthread_t thread = start(waits);
    wait();
    sem_post(&sem);
    pthread_join(thread, NULL);
}

static void ignore(int signal) {
    (void)signal;
}

static void pauses(void) {
    handle(SIGALRM, ignore);
    set_alarm(WHILE_US);
    pause();
}

static void waits_for_signal(void) {
    sigset_t set;
    int signal;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    set_alarm(WHILE_US);
    sigwait(&set, &signal);
}

static int child_writes(void) {
    int fds[2];
    if (pipe(fds) != 0)
        exit(1);
    if (fork() == 0) {
        sleep_awhile();
        _exit(write(fds[1], "x", 1) != 1);
    }
    return fds[0];
}

static void reads_pipe(void) {
    char byte;
    if (read(child_writes(), &byte, 1) != 1)
        exit(1);
}

/* Another process posts. */
static void waits_shared(void) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sem_init(shared, 1, 0);
    if (fork() == 0) {
        sleep_awhile();
        sem_post(shared);
        _exit(0);
    }
    sem_wait(shared);
}

static void waits_in_time(void) {
    struct timespec at;
    sem_t never_posted;
    sem_init(&never_posted, 0, 0);
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec++;
    sem_timedwait(&never_posted, &at);
}

static const struct {
    const char *name;
    void (*deadlock)(void), (*alone)(void), (*outside)(void);
} scenes[] = {
    {"twice", twice, NULL, NULL},
    {"left", left, NULL, NULL},
    {"ends", ends, NULL, NULL},
    {"gone", gone, NULL, NULL},
    {"locks", locks, NULL, NULL},
    {"onces", onces, NULL, NULL},
    {"child", child, NULL, NULL},
    {"signalled", signalled, NULL, NULL},
    {"alarmed", NULL, alarmed, NULL},
    {"handled", NULL, handled, NULL},
    {"timed", NULL, timed, NULL},
    {"notified", NULL, notified, NULL},
    {"pause", NULL, NULL, pauses},
    {"sigwait", NULL, NULL, waits_for_signal},
    {"read", NULL, NULL, reads_pipe},
    {"shared", NULL, NULL, waits_shared},
    {"timedwait", NULL, NULL, waits_in_time},
    {"sleep", NULL, NULL, sleep_awhile},
    {"computes", NULL, NULL, computes},
    {"handled_long", NULL, handled_long, NULL},
    {"handled_asleep", NULL, handled_asleep, NULL},
};

int main(int argc, char **argv) {
    pthread_barrier_init(&barrier, NULL, 3);
    sem_init(&sem, 0, 0);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (argc < 2 || strcmp(argv[1], scenes[i].name) != 0)
            continue;
        if (scenes[i].deadlock != NULL) {
            scenes[i].deadlock();
            return 0;
        }
        if (scenes[i].alone != NULL)
            scenes[i].alone();
        else
            outside(scenes[i].outside);
        puts("done");
        return 0;
    }
    return 2;
}

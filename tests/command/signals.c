/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `signals NAME`: no thread can go on, until a signal comes. The handlers make no operation before the last signal. The
 * exit status is 0 if the wait has ended as it does in the kernel.
 */
#include <errno.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVERY_US 50000 /* several within the time that a deadlock takes until it is told */
#define WHILE_US 700000

static sem_t sem;
static uint32_t word;
static volatile sig_atomic_t n_signals;

static void posts_at_last(int signal) {
    (void)signal;
    if (++n_signals < 3)
        return;
    word = 1;
    sem_post(&sem);
}

static void handle_three(int flags) {
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = posts_at_last, .sa_flags = flags}, NULL);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, EVERY_US}, .it_interval = {0, EVERY_US}}, NULL);
}

static bool restarted(void) {
    handle_three(SA_RESTART);
    return sem_wait(&sem) == 0 && n_signals >= 3;
}

static bool restarted_on_word(void) {
    handle_three(SA_RESTART);
    return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) != 0 && errno == EAGAIN && n_signals >= 3;
}

static bool interrupted(void) {
    handle_three(0);
    return sem_wait(&sem) != 0 && errno == EINTR && n_signals == 1;
}

/* ---- the process ends in the handler, when its child has ended ---- */

static pid_t child;

static void end(int signal) {
    (void)signal;
    kill(child, SIGKILL);
    syscall(SYS_wait4, child, NULL, 0, NULL);
    _exit(0);
}

static bool end_by_child(bool is_apart) {
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = end}, NULL);
    child = fork();
    if (child != 0)
        return sem_wait(&sem) == 0;
    if (is_apart)
        setsid();
    usleep(WHILE_US);
    kill(getppid(), SIGTERM);
    pause();
    return false;
}

static bool ended(void) {
    return end_by_child(false);
}

/* The child is in another process group. */
static bool ended_apart(void) {
    return end_by_child(true);
}

static const struct {
    const char *name;
    bool (*is_right)(void);
} scenes[] = {
    {"restarted", restarted},     {"restarted_on_word", restarted_on_word},
    {"interrupted", interrupted}, {"ended", ended},
    {"ended_apart", ended_apart},
};

int main(int argc, char **argv) {
    sem_init(&sem, 0, 0);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (argc < 2 || strcmp(argv[1], scenes[i].name) != 0)
            continue;
        if (!scenes[i].is_right())
            return 1;
        puts("done");
        return 0;
    }
    return 2;
}

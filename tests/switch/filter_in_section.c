/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For fork_in_switch.sh: threads that yield, and a handler that cannot be deferred, which filters its thread's system
 * calls. gdb sends SIGUSR1 where a carrier is in a section of its own run queue. Exits with 0 if the threads go on.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define THREADS 4
#define YIELDS 200 /* where no other thread of the carrier is left each lasts for a time slice of a busy machine */
#define MOST_S 300

static atomic_bool is_filtered, has_failed;

static void filter(int signal) {
    struct sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof allow / sizeof *allow, allow};
    (void)signal;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        atomic_store(&has_failed, true);
    atomic_store(&is_filtered, true);
}

static void *yield(void *unused) {
    while (!atomic_load(&is_filtered))
        sched_yield();
    for (int i = 0; i < YIELDS; i++)
        sched_yield();
    return unused;
}

int main(void) {
    pthread_t thread[THREADS];
    struct sigaction action = {.sa_handler = filter, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    alarm(MOST_S);
    sigaction(SIGUSR1, &action, NULL);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, yield, NULL) != 0)
            return EXIT_FAILURE;
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return atomic_load(&has_failed) ? EXIT_FAILURE : EXIT_SUCCESS;
}

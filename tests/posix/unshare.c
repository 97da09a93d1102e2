/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that the kernel refuses to a process with several threads, when all but one have ended. Source: unshare(2). */
#include "topic.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *waits_for_a_moment(void *unused) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}
static int refused(void) {
    return unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
}
/* The kernel refuses a new user namespace to a process with several threads (unshare(2): EINVAL). */
static void unshare_after(int rounds) {
    pthread_t t[4];
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        for (int k = 0; k < 4; k++)
            OK(pthread_create(&t[k], NULL, waits_for_a_moment, NULL));
        pthread_mutex_unlock(&mutex);
        for (int k = 0; k < 4; k++)
            OK(pthread_join(t[k], NULL));
    }
    /* pthread_join() returns before the kernel has let go of the thread: the kernel refuses for a moment more. */
    int error = refused();
    for (int waits = 0; error == EINVAL && waits < 2000; waits++) {
        usleep(1000);
        error = refused();
    }
    _exit(error);
}
static int unshared(int rounds) {
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        unshare_after(rounds);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}
TEST(unshare__after_threads_have_ended, "the same as in a process that never had threads, and threads work after it") {
    ck_assert_int_eq(unshared(20), unshared(0));
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        OK(pthread_create(&t, NULL, waits_for_a_moment, NULL));
        OK(pthread_join(t, NULL));
        OK(unshare(0));
    }
}

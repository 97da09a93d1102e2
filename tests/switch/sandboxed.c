/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sandboxed: forks children that can make no file, filter their system calls, and then have a second thread. */
#include "scene.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void *nothing(void *argument) {
    return argument;
}

static void be_sandboxed(void) {
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    struct rlimit none = {0, 0};
    pthread_t thread;
    OK_ERRNO(setrlimit(RLIMIT_NOFILE, &none));
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    OK(pthread_create(&thread, NULL, nothing, NULL));
    OK(pthread_join(thread, NULL));
}

int main(void) {
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            be_sandboxed();
            _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "processes.h"

#include "checks.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *shared_memory(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

pid_t child_start(void (*routine)(void *), void *argument) {
    pid_t child = fork();
    SYS(child);
    if (child == 0) {
        routine(argument);
        _exit(0);
    }
    return child;
}

void child_join_with(pid_t child, int status) {
    int got = 0;
    pid_t pid;
    CHECK(child > 0);
    do
        pid = waitpid(child, &got, 0);
    while (pid == -1 && errno == EINTR);
    CHECK_INT(pid, child);
    if (WIFSIGNALED(got))
        FAIL("the child process died of signal %d", WTERMSIG(got));
    if (WEXITSTATUS(got) != status)
        FAIL("the child process exited with %d, not %d", WEXITSTATUS(got), status);
}

void child_join(pid_t child) {
    child_join_with(child, 0);
}

void run_in_child(void (*routine)(void *), void *argument) {
    child_join(child_start(routine, argument));
}

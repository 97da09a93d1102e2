/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a child and measures it; see trial.h.
 *
 * SIGCHLD and the signals that end the command are blocked for good from the first run on, and taken by sigtimedwait.
 * So there is a single place to wait, no handler, and no race between a signal and the wait. The child gets the
 * original mask.
 */
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "folder.h"
#include "output.h"

#define GRACE_NS INT64_C(2000000000)

int64_t trial_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int memory_file(const char *name) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        cmd_refuse("cannot create an in-memory file: %s", strerror(errno));
    return fd;
}

static sigset_t original_mask, waited_for;

void trial_take_signals(void) {
    static bool blocked;
    if (blocked)
        return;
    blocked = true;
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGCHLD);
    sigaddset(&waited_for, SIGINT);
    sigaddset(&waited_for, SIGTERM);
    sigaddset(&waited_for, SIGHUP);
    sigprocmask(SIG_BLOCK, &waited_for, &original_mask);
    signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would reap the child unseen */
}

/* In the child. If this process had threads, only async-signal-safe calls would be allowed; it has none. */
_Noreturn static void become(const struct trial_program *program, char *const *envp, const struct trial *trial,
                             int input, int report) {
    setpgid(0, 0);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(trial->out, STDOUT_FILENO) >= 0 &&
        dup2(trial->err, STDERR_FILENO) >= 0) {
        sigprocmask(SIG_SETMASK, &original_mask, NULL);
        execvpe(program->path, program->argv, envp); /* path has a slash: no search, only the fall-back to sh */
    }
    int error = errno;
    while (write(report, &error, sizeof error) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/*
 * The stdin of a run: a regular file, at the position where it stood; or nothing. Opened anew, because runs may be
 * under way at the same time.
 */
static int input_fd(void) {
    off_t start = isatty(STDIN_FILENO) ? -1 : lseek(STDIN_FILENO, 0, SEEK_CUR);
    int fd = start >= 0 ? open("/proc/self/fd/0", O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0 && lseek(fd, start, SEEK_SET) == start)
        return fd;
    if (fd >= 0)
        close(fd);
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        cmd_refuse("/dev/null: %s", strerror(errno));
    return fd;
}

/* Die by the signal as if the command had not waited for it, so that the parent process sees the reason. */
_Noreturn void trial_end_by(int signal_number) {
    output_abandon();
    folder_remove();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    _exit(128 + signal_number); /* the signal was ignored when the command started */
}

static void await(const struct trial_program *program, pid_t pid, int64_t start_ns, struct trial *trial,
                  struct rusage *usage) {
    int64_t deadline = program->timeout_ns > 0 ? start_ns + program->timeout_ns : INT64_MAX;
    int ended_by = 0;
    for (;;) {
        pid_t reaped = wait4(pid, &trial->status, WNOHANG, usage);
        if (reaped == pid)
            break;
        if (reaped < 0)
            cmd_refuse("%s: lost the child process: %s", program->subcommand, strerror(errno));
        int64_t left = deadline - trial_now_ns();
        if (left <= 0) {
            kill(-pid, trial->timed_out || ended_by != 0 ? SIGKILL : SIGTERM);
            trial->timed_out = trial->timed_out || ended_by == 0;
            deadline = trial_now_ns() + GRACE_NS;
            continue;
        }
        struct timespec timeout = {left / 1000000000, left % 1000000000};
        int got = sigtimedwait(&waited_for, NULL, deadline == INT64_MAX ? NULL : &timeout);
        if (got > 0 && got != SIGCHLD) {
            kill(-pid, got);
            ended_by = got;
            deadline = trial_now_ns() + GRACE_NS;
        }
    }
    trial->wall_ns = trial_now_ns() - start_ns;
    if (trial->timed_out)
        kill(-pid, SIGKILL); /* descendants that have outlived the child */
    if (ended_by != 0)
        trial_end_by(ended_by);
}

static int64_t timeval_ns(struct timeval t) {
    return (int64_t)t.tv_sec * 1000000000 + (int64_t)t.tv_usec * 1000;
}

pid_t trial_begin(const struct trial_program *program, char *const *envp, struct trial *trial) {
    int report[2], error;
    *trial = (struct trial){.out = memory_file("stdout"), .err = memory_file("stderr")};
    trial_take_signals();
    int input = input_fd();
    if (pipe2(report, O_CLOEXEC) != 0)
        cmd_refuse("%s: pipe: %s", program->subcommand, strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        cmd_refuse("%s: fork: %s", program->subcommand, strerror(errno));
    if (pid == 0)
        become(program, envp, trial, input, report[1]);
    close(input);
    setpgid(pid, pid); /* in both processes: neither may depend on the other being first */
    close(report[1]);
    if (read(report[0], &error, sizeof error) == sizeof error)
        cmd_refuse("%s: '%s' cannot be executed: %s", program->subcommand, program->path, strerror(error));
    close(report[0]);
    return pid;
}

int trial_wait_signal(int64_t ns) {
    struct timespec timeout = {ns / 1000000000, ns % 1000000000};
    return sigtimedwait(&waited_for, NULL, &timeout);
}

struct trial trial_run(const struct trial_program *program, char *const *envp) {
    struct trial trial;
    struct rusage usage = {0};
    int64_t start = trial_now_ns();
    pid_t pid = trial_begin(program, envp, &trial);
    await(program, pid, start, &trial, &usage);
    trial.cpu_ns = timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime);
    trial.peak_kib = usage.ru_maxrss;
    return trial;
}

void trial_release(struct trial *trial) {
    if (trial->out >= 0)
        close(trial->out);
    if (trial->err >= 0)
        close(trial->err);
    trial->out = trial->err = -1;
}

const char *trial_outcome(const struct trial *trial, char buffer[static 32]) {
    if (trial->timed_out)
        return "timeout";
    if (WIFEXITED(trial->status)) {
        snprintf(buffer, 32, "exit %d", WEXITSTATUS(trial->status));
    } else {
        const char *name = sigabbrev_np(WTERMSIG(trial->status));
        if (name != NULL)
            snprintf(buffer, 32, "SIG%s", name);
        else
            snprintf(buffer, 32, "signal %d", WTERMSIG(trial->status));
    }
    return buffer;
}

char *trial_text(int fd) {
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = cmd_allocate((size_t)(size > 0 ? size : 0) + 1, 1);
    for (off_t at = 0; at < size;) {
        ssize_t n = pread(fd, text + at, (size_t)(size - at), at);
        if (n <= 0)
            break;
        at += n;
    }
    return text;
}

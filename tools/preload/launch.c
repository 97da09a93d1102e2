/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launch.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

enum { N_PASSED = 8 };
static const int passed[N_PASSED] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH};
static volatile sig_atomic_t child;

/* A terminal sends to the program, too; that has a code above 0. What the program itself has sent is for itself. */
static void pass_on(int signo, siginfo_t *info, void *unused) {
    int before = errno;
    (void)unused;
    if (child > 0 && info->si_code <= 0 && info->si_pid != child)
        kill(child, signo);
    errno = before;
}

static void take_signals(struct sigaction before[N_PASSED]) {
    struct sigaction passes = {.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
    for (size_t i = 0; i < N_PASSED; i++)
        sigaction(passed[i], &passes, &before[i]);
}

/* In the child: what a signal does is as it was before take_signals. */
_Noreturn static void become(const char *subcommand, const char *path, char **command_line, char **env,
                             const struct sigaction before[N_PASSED], const sigset_t *mask) {
    for (size_t i = 0; i < N_PASSED; i++)
        sigaction(passed[i], &before[i], NULL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvpe(path, command_line, env);
    cmd_refuse("%s: program '%s' cannot be executed: %s", subcommand, command_line[0], strerror(errno));
}

int launch_and_wait(const char *subcommand, const char *path, char **command_line, char **env, bool lasts, pid_t *pid) {
    struct sigaction before[N_PASSED];
    sigset_t all, mask;
    pid_t self = getpid();
    int status;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask); /* until the child is known, which gets them */
    take_signals(before);
    *pid = fork();
    if (*pid < 0)
        cmd_refuse("%s: fork: %s", subcommand, strerror(errno));
    if (*pid == 0) {
        if (!lasts && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != self))
            _exit(CMD_REFUSED);
        become(subcommand, path, command_line, env, before, &mask);
    }
    child = *pid;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    while (waitpid(*pid, &status, 0) < 0)
        if (errno != EINTR)
            cmd_refuse("%s: lost the child process: %s", subcommand, strerror(errno));
    child = 0;
    return status;
}

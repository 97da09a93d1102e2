/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command.h"

static volatile sig_atomic_t child;
static struct sigaction before[NSIG]; /* what signals did before take_signals */

static bool is_fault(int signo) {
    return signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE || signo == SIGILL || signo == SIGTRAP ||
           signo == SIGSYS;
}

/*
 * A terminal sends to the program, too, as long as that is in this process's group. An alarm that was set before this
 * process began is this process's alone, and so is the end of the terminal if this process leads its session.
 */
static bool program_lacks(int signo) {
    return signo == SIGALRM || (signo == SIGHUP && getsid(0) == getpid()) || getpgid(child) != getpgrp();
}

/* A code above 0 is the kernel's. What the program itself has sent is for itself. */
static void pass_on(int signo, siginfo_t *info, void *unused) {
    int error = errno;
    (void)unused;
    if (info->si_code > 0 && is_fault(signo)) {
        signal(signo, SIG_DFL); /* the instruction is run again, and ends this process */
    } else if (child > 0 &&
               (info->si_code > 0 ? program_lacks(signo) : info->si_pid != child && info->si_pid != getpid())) {
        if (info->si_code == SI_QUEUE)
            sigqueue(child, signo, info->si_value);
        else
            kill(child, signo);
    }
    errno = error;
}

/* Of a stop this process learns by the program's. */
static void take_signals(void) {
    struct sigaction passes = {.sa_sigaction = pass_on, .sa_flags = SA_RESTART | SA_SIGINFO};
    for (int signo = 1; signo < NSIG; signo++) {
        sigaction(signo, NULL, &before[signo]); /* fails for the C library's own */
        if (signo == SIGCHLD)
            signal(signo, SIG_DFL); /* where it is ignored children leave no status */
        else if (signo == SIGTTIN || signo == SIGTTOU)
            signal(signo, SIG_IGN);
        else
            sigaction(signo, &passes, NULL);
    }
}

static void give_back(int signo) {
    sigaction(signo, &before[signo], NULL);
}

_Noreturn static void become(const char *subcommand, const char *path, char **command_line, char **env,
                             const sigset_t *mask) {
    for (int signo = 1; signo < NSIG; signo++)
        give_back(signo);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvpe(path, command_line, env);
    cmd_refuse("%s: program '%s' cannot be executed: %s", subcommand, command_line[0], strerror(errno));
}

/* A pipe that the program closes has its end then: this process does not keep it open. */
static void let_go_of_files(void) {
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    close_range(STDERR_FILENO + 1, ~0u, 0);
}

/*
 * The program has stopped. A shell that controls jobs sees this process, which stops, too; SIGCONT is passed on. A stop
 * that no terminal has made is another process's matter, but where the shell waits for it.
 */
static void stop_with(int signo) {
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return;
    bool in_front = tcgetpgrp(terminal) == getpgrp();
    close(terminal);
    if (signo != SIGSTOP || in_front)
        raise(SIGSTOP);
}

/* Of a process that has ended, and that the kernel still knows; 0: not known. */
static uint64_t cpu_of(pid_t pid) {
    struct timespec t;
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* As waitpid, also for a stop. */
static pid_t await(struct launched *program, int *status) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)program->pid, &info, WEXITED | WSTOPPED | WNOWAIT) != 0)
        return -1;
    if (info.si_code != CLD_STOPPED && info.si_code != CLD_TRAPPED)
        program->cpu_ns = cpu_of(program->pid);
    return waitpid(program->pid, status, WUNTRACED);
}

int launch_and_wait(const char *subcommand, const char *path, char **command_line, char **env, bool lasts,
                    struct launched *program) {
    sigset_t all, mask;
    pid_t self = getpid(), ended;
    int status;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask); /* until the child is known, which gets them */
    take_signals();
    *program = (struct launched){.pid = fork()};
    if (program->pid < 0)
        cmd_refuse("%s: fork: %s", subcommand, strerror(errno));
    if (program->pid == 0) {
        if (!lasts && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != self))
            _exit(CMD_REFUSED);
        become(subcommand, path, command_line, env, &mask);
    }
    child = program->pid;
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (!lasts)
        let_go_of_files();
    while ((ended = await(program, &status)) < 0 || WIFSTOPPED(status)) {
        if (ended >= 0)
            stop_with(WSTOPSIG(status));
        else if (errno != EINTR)
            cmd_refuse("%s: lost the child process: %s", subcommand, strerror(errno));
    }
    child = 0;
    for (int signo = 1; signo < NSIG;
         signo++) /* the others were for the program, and must not end what is to be done */
        if (signo != SIGINT && signo != SIGQUIT && signo != SIGTERM && signo != SIGHUP && signo != SIGCHLD)
            give_back(signo);
    return status;
}

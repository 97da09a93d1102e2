/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What may call `subutai record` and `profile`, and a program for them.
 *
 *   ignores SIGNO CMD...  CMD, which ignores that signal from the beginning
 *   alarm CMD...          CMD, which gets SIGALRM after a second
 *   shell KEYS CMD...     CMD, as a shell that controls jobs runs it in front on a terminal. When CMD has said "ready"
 *                         there, KEYS are typed, if there are any. If CMD stops, that is said, and CMD is continued.
 *                         The status is CMD's
 *   hangs-up CMD...       CMD, as the leader of a session, the terminal of which ends when CMD has said "ready"
 *   stops FILE            the program: says "ready", and stops itself as editors do; then FILE has "continued"
 *   leads FILE            the program: leads a session of its own, says "ready", and FILE has "interrupted" after
 * SIGINT hears FILE            the program: says "ready", and FILE has "hung up" after SIGHUP
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A new terminal; its other end is *program. */
static int terminal(int *program) {
    int own = posix_openpt(O_RDWR | O_NOCTTY);
    if (own < 0 || grantpt(own) != 0 || unlockpt(own) != 0 || (*program = open(ptsname(own), O_RDWR | O_NOCTTY)) < 0)
        exit(99);
    return own;
}

static void await_ready(int own) {
    char said[4096] = "";
    size_t n = 0;
    while (strstr(said, "ready") == NULL) {
        ssize_t more = read(own, said + n, sizeof said - 1 - n);
        if (more <= 0)
            exit(99);
        n += (size_t)more;
        said[n] = '\0';
    }
}

static void on_terminal(int program) {
    for (int fd = 0; fd < 3; fd++)
        dup2(program, fd);
}

_Noreturn static void run(char **command) {
    execvp(command[0], command);
    exit(98);
}

/* In a session of its own, the leader of which is this process. */
_Noreturn static void control(int program, char **command, int ready) {
    int status = 0, err = fcntl(2, F_DUPFD_CLOEXEC, 3);
    char go;
    if (setsid() < 0 || ioctl(program, TIOCSCTTY, 0) != 0)
        exit(97);
    signal(SIGTTOU, SIG_IGN);
    on_terminal(program);
    pid_t job = fork();
    if (job == 0) {
        if (setpgid(0, 0) != 0 || tcsetpgrp(0, getpid()) != 0)
            exit(97);
        signal(SIGTTOU, SIG_DFL);
        run(command);
    }
    (void)!read(ready, &go, 1);
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        dprintf(err, "stopped\n");
        kill(-job, SIGCONT);
    }
    exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int shell(const char *keys, char **command) {
    int program, own = terminal(&program), ready[2], status = 0;
    if (pipe(ready) != 0)
        return 99;
    pid_t session = fork();
    if (session == 0) {
        close(own);
        close(ready[1]);
        control(program, command, ready[0]);
    }
    close(program);
    await_ready(own);
    (void)!write(own, keys, strlen(keys));
    close(ready[1]);
    while (read(own, (char[256]){0}, 256) > 0)
        ;
    waitpid(session, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int hangs_up(char **command) {
    int program, own = terminal(&program), status = 0;
    pid_t session = fork();
    if (session == 0) {
        close(own);
        if (setsid() < 0 || ioctl(program, TIOCSCTTY, 0) != 0)
            exit(97);
        on_terminal(program);
        close(program);
        run(command);
    }
    close(program);
    await_ready(own);
    close(own);
    waitpid(session, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void write_file(const char *file, const char *text) {
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        exit(99);
    close(fd);
}

static int awaits(const char *file, int signo, const char *text) {
    sigset_t one;
    int got;
    sigemptyset(&one);
    sigaddset(&one, signo);
    sigprocmask(SIG_BLOCK, &one, NULL);
    puts("ready");
    fflush(stdout);
    sigwait(&one, &got);
    write_file(file, text);
    return 5;
}

static int stops(const char *file) {
    puts("ready");
    fflush(stdout);
    raise(SIGTSTP);
    write_file(file, "continued\n");
    return 7;
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "";
    if (strcmp(what, "ignores") == 0 && argc > 3) {
        signal(atoi(argv[2]), SIG_IGN);
        run(argv + 3);
    }
    if (strcmp(what, "alarm") == 0) {
        alarm(1);
        run(argv + 2);
    }
    if (strcmp(what, "shell") == 0 && argc > 3)
        return shell(argv[2], argv + 3);
    if (strcmp(what, "hangs-up") == 0)
        return hangs_up(argv + 2);
    if (strcmp(what, "stops") == 0)
        return stops(argv[2]);
    if (strcmp(what, "leads") == 0)
        return setsid() < 0 ? 99 : awaits(argv[2], SIGINT, "interrupted\n");
    if (strcmp(what, "hears") == 0)
        return awaits(argv[2], SIGHUP, "hung up\n");
    return 2;
}

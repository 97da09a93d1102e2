/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Starts programs in every way there is while other threads of the process hold and pass locks: vfork and exec,
 * posix_spawn, popen, system, fork and exec. A child of vfork shares the parent's memory until it execs: whatever the
 * library did to its own state there the parent would see, so the locks are used again right after.
 */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 4, N_EACH = 15 };

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, ping_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ping = PTHREAD_COND_INITIALIZER;
static long n_turns, n_pings;
static int stop, ping_stop;

static void *busy(void *arg) {
    long me = (long)arg;
    for (int done = 0; !done;) {
        pthread_mutex_lock(&lock);
        n_turns++;
        done = stop;
        pthread_mutex_unlock(&lock);
        pthread_mutex_lock(&ping_lock);
        while (!ping_stop && n_pings % N_THREADS != me)
            pthread_cond_wait(&ping, &ping_lock);
        n_pings++;
        pthread_cond_broadcast(&ping);
        pthread_mutex_unlock(&ping_lock);
    }
    return NULL;
}

static int reap(pid_t pid) {
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static char *exit_with(int code, char *text, size_t size) {
    snprintf(text, size, "exit %d", code);
    return text;
}

static int by_vfork(int code) {
    char text[20];
    char *argv[] = {"sh", "-c", exit_with(code, text, sizeof text), NULL};
    pid_t pid = vfork();
    if (pid == 0) {
        execv("/bin/sh", argv);
        _exit(127);
    }
    return reap(pid);
}

static int by_fork(int code) {
    char text[20];
    char *argv[] = {"sh", "-c", exit_with(code, text, sizeof text), NULL};
    pid_t pid = fork();
    if (pid == 0) {
        execv("/bin/sh", argv);
        _exit(127);
    }
    return reap(pid);
}

static int by_posix_spawn(int code) {
    char text[20];
    char *argv[] = {"sh", "-c", exit_with(code, text, sizeof text), NULL};
    pid_t pid;
    return posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0 ? -1 : reap(pid);
}

static int by_system(int code) {
    char text[20];
    int status = system(exit_with(code, text, sizeof text));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int by_popen(int code) {
    char text[40];
    snprintf(text, sizeof text, "echo %d; exit %d", code, code);
    FILE *pipe = popen(text, "r");
    int read = -1;
    if (pipe == NULL || fscanf(pipe, "%d", &read) != 1)
        return -1;
    int status = pclose(pipe);
    return WIFEXITED(status) && WEXITSTATUS(status) == read ? read : 128;
}

int main(void) {
    static const struct {
        const char *name;
        int (*start)(int code);
    } way[] = {{"vfork", by_vfork},
               {"fork", by_fork},
               {"posix_spawn", by_posix_spawn},
               {"system", by_system},
               {"popen", by_popen}};
    pthread_t thread[N_THREADS];
    for (long i = 0; i < N_THREADS; i++)
        if (pthread_create(&thread[i], NULL, busy, (void *)i) != 0)
            return 2;
    int n_wrong = 0;
    for (size_t w = 0; w < sizeof way / sizeof *way; w++) {
        int n_right = 0;
        for (int code = 0; code < N_EACH; code++) {
            n_right += way[w].start(code) == code;
            pthread_mutex_lock(&lock);
            n_turns++;
            pthread_mutex_unlock(&lock);
        }
        printf("%s: %d of %d programs ended as told\n", way[w].name, n_right, N_EACH);
        n_wrong += N_EACH - n_right;
    }
    pthread_mutex_lock(&lock);
    stop = 1;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&ping_lock);
    ping_stop = 1;
    pthread_cond_broadcast(&ping);
    pthread_mutex_unlock(&ping_lock);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("threads turned: %s\n", n_turns > N_EACH * 5 && n_pings > 0 ? "yes" : "no");
    return n_wrong != 0;
}

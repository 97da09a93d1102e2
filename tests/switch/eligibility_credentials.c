/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A change of credentials: all kernel threads have them, carriers and the monitor too. */
#include "eligibility_dynamic.h"

#include <dirent.h>
#include <signal.h>

static atomic_bool ended;
static int channel[2];

static void *read_only(void *argument) {
    char byte;
    CHECK(read(channel[0], &byte, 1) == 1);
    return argument;
}

/* ---- credentials: all kernel threads have them, carriers and the monitor too; some compute or sleep meanwhile ----
 */
static long group_of(const char *task) {
    char path[300], ids[64];
    long effective = -1;
    snprintf(path, sizeof path, "self/task/%s", task);
    if (proc_status(path, "Gid:", ids, sizeof ids))
        CHECK_INT(sscanf(ids, "%*d %ld", &effective), 1);
    return effective;
}

static void change_group(void) {
    gid_t other = geteuid() == 0 ? 65534 : getegid();
    int n = 0;
    OK_ERRNO(setegid(other));
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        long group = task->d_name[0] != '.' ? group_of(task->d_name) : -1;
        CHECK(group < 0 || group == (long)other);
        n += group >= 0;
    }
    closedir(tasks);
    CHECK(n > N);
    printf("%d kernel threads\n", n);
    ended = true;
    CHECK(write(channel[1], "", 1) == 1);
}

static bool in_a_handler;

static void read_one(int unused) {
    char byte;
    (void)unused;
    CHECK(read(channel[0], &byte, 1) == 1);
}

static void *compute_or_read(void *number) {
    long first = proc_kernel_thread();
    for (int i = 0; i < ROUNDS; i++)
        meet();
    if ((long)number == 0)
        deed();
    else if ((long)number == 1 && in_a_handler)
        OK_ERRNO(raise(SIGUSR1));
    else if ((long)number == 1)
        read_one(0);
    else if ((long)number < 4)
        while (!ended)
            ;
    for (int i = 0; i < ROUNDS; i++) {
        meet();
        CHECK(proc_kernel_thread() == first);
    }
    return number;
}

void ends_for_credentials(void) {
    deed = change_group;
    OK_ERRNO(pipe(channel));
    run(N, getenv("SWITCHED") != NULL ? compute_or_read : meet_and_watch);
}

/* The reader is in a handler that blocks every signal, the recall of a fiber to its home thread included. */
void ends_for_credentials_in_a_handler(void) {
    struct sigaction action = {.sa_handler = read_one}, set;
    sigfillset(&action.sa_mask);
    OK_ERRNO(sigaction(SIGUSR1, &action, NULL));
    OK_ERRNO(sigaction(SIGUSR1, NULL, &set));
    for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
        CHECK(sigismember(&set.sa_mask, i) == 1);
    in_a_handler = true;
    ends_for_credentials();
}

/* In a child, where the fibers that were away in the parent are no thread's. */
static void fork_and_change(void) {
    pid_t child = fork();
    if (child == 0) {
        OK_ERRNO(pipe(channel));
        for (int i = 0; i < N; i++)
            OK(pthread_create(&threads[i], NULL, read_only, NULL));
        OK_ERRNO(setegid(getegid()));
        _exit(0);
    }
    child_join(child);
}

void credentials_in_a_child(void) {
    all_meet(fork_and_change, false);
}

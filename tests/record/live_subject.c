/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What becomes of FILE.live, which has what a process has not written yet.
 *
 *   closes LIVE    the process closes all descriptors from 3 on, begins a thread that waits for ever, says on stdout
 *                  whether LIVE is locked, and is killed
 *   outlives LIVE SAID  a forked child that makes no event outlives its parent, which is killed, and writes to SAID
 *                  whether LIVE is locked. It ends when SAID is removed
 *   forks N        a process with threads that wait forks N times, and each child locks in a handler as soon as it
 * lives reads LIVE MS  says on stdout that it has LIVE as a reader has it, and has it for so long floods LIVE    record
 * 0 has 1024 events in its batch, of the longest there are
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "encode.h"
#include "live_format.h"

enum { N_WAIT = 400, N_FLOOD = 1024 };

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER, come = PTHREAD_COND_INITIALIZER;
static int n_come;

static void lock(int times) {
    for (int i = 0; i < times; i++) {
        pthread_mutex_lock(&other);
        pthread_mutex_unlock(&other);
    }
}

static void *waits(void *unused) {
    pthread_mutex_lock(&guard);
    n_come++;
    pthread_cond_signal(&come);
    for (;;)
        pthread_cond_wait(&never, &guard);
    return unused;
}

/* They have given the mutex back in their last call. */
static void begin_waiting(int n) {
    pthread_t thread;
    for (int i = 0; i < n; i++)
        if (pthread_create(&thread, NULL, waits, NULL) != 0)
            exit(2);
    pthread_mutex_lock(&guard);
    while (n_come < n)
        pthread_cond_wait(&come, &guard);
    pthread_mutex_unlock(&guard);
}

static const char *state_of(const char *live) {
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LIVE_LOCK_PROCESS, .l_len = 1};
    int fd = open(live, O_RDWR);
    if (fd < 0 || fcntl(fd, F_OFD_GETLK, &byte) != 0)
        return "missing\n";
    close(fd);
    return byte.l_type == F_UNLCK ? "free\n" : "locked\n";
}

static void say(int fd, const char *text) {
    if (write(fd, text, strlen(text)) < 0)
        exit(2);
}

static int closes(const char *live) {
    lock(10);
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    begin_waiting(1);
    say(1, state_of(live));
    return kill(getpid(), SIGKILL);
}

static int outlives(const char *live, const char *said) {
    lock(20000);
    begin_waiting(3);
    pid_t parent = getpid();
    if (fork() != 0)
        return kill(parent, SIGKILL);
    while (getppid() == parent)
        usleep(1000);
    int fd = open(said, O_WRONLY | O_CREAT, 0666);
    say(fd, state_of(live));
    while (access(said, F_OK) == 0)
        usleep(1000);
    _exit(0);
}

static void locks(int unused) {
    (void)unused;
    lock(1);
}

static int forks(int n) {
    signal(SIGUSR1, locks);
    begin_waiting(N_WAIT);
    for (int i = 0; i < n; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        kill(pid, SIGUSR1);
        if (waitpid(pid, &status, 0) != pid || status != 0) {
            printf("child %d: status %d\n", i, status);
            return 1;
        }
    }
    puts("done");
    fflush(stdout);
    _exit(0);
}

static int reads(const char *live, const char *ms) {
    struct flock byte = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LIVE_LOCK_READER, .l_len = 1};
    int fd = open(live, O_RDWR);
    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &byte) != 0)
        return 1;
    say(1, "reads\n");
    usleep((useconds_t)strtoul(ms, NULL, 10) * 1000);
    return 0;
}

/* The file has one record then. */
static int floods(const char *live) {
    int fd = open(live, O_RDWR);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return 2;
    uint32_t n = N_FLOOD, record_bytes = (uint32_t)st.st_size + N_FLOOD * sizeof(struct sbt_trace_event);
    if (ftruncate(fd, (off_t)st.st_size + record_bytes) != 0)
        return 2;
    uint8_t *map = mmap(NULL, (size_t)st.st_size + record_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return 2;
    struct trace_live_header *header = (struct trace_live_header *)(void *)map;
    struct sbt_trace_event longest = {.op = SBT_TRACE_MUTEX_LOCK,
                                      .type = SBT_TRACE_MUTEX,
                                      .result = UINT16_MAX,
                                      .size = UINT32_MAX,
                                      .stack = UINT32_MAX,
                                      .work_ns = UINT64_MAX / 3,
                                      .took_ns = UINT64_MAX / 3,
                                      .order = UINT64_MAX / 3};
    header->n_batch = n;
    header->offset[LIVE_BATCH] = header->offset[LIVE_ENCODER] + (uint16_t)sizeof(struct trace_encoder);
    header->record_bytes = record_bytes;
    uint8_t *record = map + header->first;
    memset(record + header->offset[LIVE_NEXT], 0, sizeof(uint64_t));
    memcpy(record + header->offset[LIVE_N_BATCH], &n, sizeof n);
    for (uint32_t i = 0; i < n; i++)
        memcpy(record + header->offset[LIVE_BATCH] + i * sizeof longest, &longest, sizeof longest);
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "closes") == 0)
        return closes(argv[2]);
    if (argc > 3 && strcmp(argv[1], "outlives") == 0)
        return outlives(argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], "forks") == 0)
        return forks(atoi(argv[2]));
    if (argc > 3 && strcmp(argv[1], "reads") == 0)
        return reads(argv[2], argv[3]);
    if (argc > 2 && strcmp(argv[1], "floods") == 0)
        return floods(argv[2]);
    return 2;
}

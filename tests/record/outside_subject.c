/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits for the outside, of known numbers and least times: what it does is the argument. Prints how long its waits took
 * by its own clock, in nanoseconds. Knows nothing of Subutai.
 */
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "lib/asleep.h"
#include "lib/checks.h"
#include "lib/clock.h"
#include "lib/cpus.h"
#include "lib/proc.h"
#include "lib/processes.h"
#include "lib/threads.h"

enum { LEAST_MS = 20, MOST_STEPS = 16 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t posts;
static sigjmp_buf back;
static pid_t asleep[MOST_STEPS]; /* the thread, from the step on */
static int64_t waited_ns;
static int ends[2], pair[2], event, listener;
static struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "outside.socket"};

static void touch(void) {
    OK(pthread_mutex_lock(&mutex));
    OK(pthread_mutex_unlock(&mutex));
}

/* The step's call; what it took is added. */
#define WAITS(step, call)                                                                                              \
    do {                                                                                                               \
        int64_t from_ns = now_ns(CLOCK_MONOTONIC);                                                                     \
        asleep_from_here(&asleep[step]);                                                                               \
        SYS(call);                                                                                                     \
        waited_ns += now_ns(CLOCK_MONOTONIC) - from_ns;                                                                \
    } while (0)

/* In the first thread: the other one sleeps in the step, and has slept for so long. */
static void await(int step) {
    await_asleep(&asleep[step]);
    sleep_ms(LEAST_MS);
}

static void await_and_write(int step, int fd) {
    await(step);
    CHECK_INT(write(fd, "12345678", 8), 8);
}

/* In a child of that thread, before anything that is recorded: the thread waits for the child's end. */
static void await_parent(pid_t parent) {
    char task[16], state[32];
    snprintf(task, sizeof task, "%d", (int)parent);
    do
        CHECK(proc_status(task, "State:", state, sizeof state));
    while (state[0] != 'S');
}

/* ---- what the thread does, and what the first thread does meanwhile ---- */

static void *sleeps(void *unused) {
    struct timespec t = time_of_ns(LEAST_MS * 1000000);
    struct timeval v = {0, LEAST_MS * 1000};
    struct epoll_event none;
    int epoll = epoll_create1(0);
    WAITS(0, nanosleep(&t, NULL));
    WAITS(0, clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL));
    WAITS(0, usleep(LEAST_MS * 1000));
    WAITS(0, thrd_sleep(&t, NULL));
    WAITS(0, poll(NULL, 0, LEAST_MS));
    WAITS(0, select(0, NULL, NULL, NULL, &v));
    WAITS(0, epoll_wait(epoll, &none, 1, LEAST_MS));
    WAITS(0, system("sleep 0.02"));
    touch();
    return unused;
}

static void nothing(void) {}

static void *calls(void *unused) {
    char buffer[8];
    uint64_t value;
    struct pollfd fd = {pair[0], POLLIN, 0};
    WAITS(0, read(ends[0], buffer, 8));
    WAITS(1, poll(&fd, 1, -1));
    WAITS(2, recv(pair[0], buffer, 9, MSG_WAITALL));
    WAITS(3, eventfd_read(event, &value));
    WAITS(4, accept(listener, NULL, NULL));
    pid_t self = gettid(), child = fork();
    if (child == 0) {
        await_parent(self);
        sleep_ms(LEAST_MS);
        _exit(0);
    }
    WAITS(5, waitpid(child, NULL, 0));
    return unused;
}

static void release_calls(void) {
    await_and_write(0, ends[1]);
    await_and_write(1, pair[1]);
    await_and_write(2, pair[1]);
    await_and_write(3, event);
    await(4);
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    OK_ERRNO(connect(client, (struct sockaddr *)&address, sizeof address));
}

/* ---- queues and semaphores that processes share ---- */
static int set, queue;
static mqd_t messages;

static void *queues(void *unused) {
    struct sembuf down = {.sem_op = -1};
    const struct timespec soon = {100, 0}, end = {time(NULL) + 100, 0};
    char text[8];
    long message[2];
    WAITS(0, semop(set, &down, 1));
    WAITS(1, semtimedop(set, &down, 1, &soon));
    WAITS(2, msgrcv(queue, message, 8, 0, 0));
    WAITS(3, mq_receive(messages, text, 8, NULL));
    WAITS(4, mq_timedreceive(messages, text, 8, NULL, &end));
    return unused;
}

static void release_queues(void) {
    struct sembuf up = {.sem_op = 1};
    const long message[2] = {1, 0};
    for (int step = 0; step < 5; step++) {
        await(step);
        SYS(step < 2    ? semop(set, &up, 1)
            : step == 2 ? msgsnd(queue, message, 8, 0)
                        : mq_send(messages, "1234567", 8, 0));
    }
    SYS(semctl(set, 0, IPC_RMID));
    SYS(msgctl(queue, IPC_RMID, NULL));
}

static void open_queues(void) {
    char name[32];
    snprintf(name, sizeof name, "/outside-%d", (int)getpid());
    SYS(set = semget(IPC_PRIVATE, 1, 0600));
    SYS(queue = msgget(IPC_PRIVATE, 0600));
    SYS(messages = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &(struct mq_attr){.mq_maxmsg = 2, .mq_msgsize = 8}));
    SYS(mq_unlink(name));
}

/* Calls that return at once, and long ones in which another thread has the core. */
static void *at_once(void *unused) {
    static char much[1 << 22];
    char byte;
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    for (int i = 0; i < 1000; i++)
        CHECK_ERRNO(read(ends[0], &byte, 1), EAGAIN);
    memset(much, 1, sizeof much);
    touch();
    struct iovec parts[64];
    for (int i = 0; i < 64; i++)
        parts[i] = (struct iovec){much, sizeof much};
    int64_t from_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 3; i++)
        CHECK_INT(readv(zero, parts, 64), 64 * sizeof much);
    waited_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - from_ns;
    touch();
    __atomic_store_n(&asleep[0], 1, __ATOMIC_RELEASE);
    return unused;
}

static void compute(void) {
    while (__atomic_load_n(&asleep[0], __ATOMIC_ACQUIRE) == 0)
        ;
}

static void ignored(int signal) {
    (void)signal;
}

static void posting(int signal) {
    (void)signal;
    OK_ERRNO(sem_post(&posts));
}

static atomic_bool has_slept;
static void sleeping(int signal) {
    (void)signal;
    usleep(LEAST_MS * 1000);
    atomic_store(&has_slept, true);
}

static void jumping(int signal) {
    (void)signal;
    siglongjmp(back, 1);
}

static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    OK_ERRNO(sigaction(signal, &action, NULL));
}

static pthread_t thread;

static void *interrupted(void *unused) {
    struct timespec t = time_of_ns(3600 * NS_PER_S), left;
    int64_t from_ns = now_ns(CLOCK_MONOTONIC);
    handle(SIGUSR1, ignored, 0);
    asleep_from_here(&asleep[0]);
    CHECK_ERRNO(nanosleep(&t, &left), EINTR);
    waited_ns = now_ns(CLOCK_MONOTONIC) - from_ns;
    touch();
    return unused;
}

static void interrupt(void) {
    await(0);
    OK(pthread_kill(thread, SIGUSR1));
}

/* The same call goes on behind each handler. */
static void *restarted(void *unused) {
    char buffer[8];
    OK_ERRNO(sem_init(&posts, 0, 0));
    handle(SIGUSR1, posting, SA_RESTART);
    WAITS(0, read(ends[0], buffer, 8));
    return unused;
}

static void interrupt_three_times(void) {
    for (int i = 1, got = 0; i <= 3; i++) {
        await(0);
        OK(pthread_kill(thread, SIGUSR1));
        while (sem_getvalue(&posts, &got) == 0 && got < i)
            ;
    }
    await_and_write(0, ends[1]);
}

static void *nested(void *unused) {
    char buffer[8];
    OK_ERRNO(sem_init(&posts, 0, 0));
    handle(SIGUSR1, sleeping, SA_RESTART);
    handle(SIGUSR2, posting, SA_RESTART);
    WAITS(0, read(ends[0], buffer, 8));
    return unused;
}

static void interrupt_twice_and_write(void) {
    int got = 0;
    interrupt();
    while (!atomic_load(&has_slept))
        sleep_ms(1);
    await(0);
    OK(pthread_kill(thread, SIGUSR2));
    while (sem_getvalue(&posts, &got) == 0 && got == 0)
        ;
    await_and_write(0, ends[1]);
}

static void interrupt_and_write(void) {
    interrupt();
    sleep_ms(LEAST_MS * 2);
    await_and_write(0, ends[1]);
}

static void cleaned(void *unused) {
    (void)unused;
    touch();
}

static void *cancelled(void *unused) {
    char buffer[8];
    pthread_cleanup_push(cleaned, NULL);
    asleep_from_here(&asleep[0]);
    SYS(read(ends[0], buffer, 8));
    pthread_cleanup_pop(0);
    return unused;
}

static void cancel(void) {
    await(0);
    OK(pthread_cancel(thread));
}

static void *jumped(void *unused) {
    char buffer[8];
    handle(SIGUSR1, jumping, 0);
    if (sigsetjmp(back, 1) == 0)
        WAITS(0, read(ends[0], buffer, 8));
    touch();
    return unused;
}

/* A child has a trace from its first event on, and the waits behind that. */
static void *forked(void *unused) {
    pid_t self = gettid(), child = fork();
    if (child == 0) {
        await_parent(self);
        usleep(LEAST_MS * 1000);
        touch();
        usleep(LEAST_MS * 1000);
        touch();
        exit(0);
    }
    WAITS(0, waitpid(child, NULL, 0));
    return unused;
}

/* A handler forks in the call, and the call goes on in both processes. */
static void forking(int signal) {
    (void)signal;
    pid_t child = fork();
    if (child == 0)
        touch();
}

static void *forked_within(void *unused) {
    char buffer[4];
    pid_t self = getpid();
    handle(SIGUSR1, forking, SA_RESTART);
    WAITS(0, read(ends[0], buffer, 4));
    touch();
    if (getpid() != self)
        exit(0);
    SYS(wait(NULL));
    return unused;
}

static void *for_ever(void *unused) {
    char byte;
    touch();
    asleep_from_here(&asleep[0]);
    SYS(read(ends[0], &byte, 1));
    return unused;
}

/* So many events fill a block. */
static void *for_ever_with_a_block(void *unused) {
    for (int i = 0; i < 10000; i++)
        touch();
    return for_ever(unused);
}

static void leave(void) {
    await(0);
    exit(7);
}

static void be_killed(void) {
    await(0);
    raise(SIGKILL);
}

static const struct {
    const char *name;
    void *(*thread)(void *);
    void (*first)(void);
} ways[] = {{"sleeps", sleeps, nothing},
            {"calls", calls, release_calls},
            {"queues", queues, release_queues},
            {"at-once", at_once, compute},
            {"interrupted", interrupted, interrupt},
            {"restarted", restarted, interrupt_three_times},
            {"nested", nested, interrupt_twice_and_write},
            {"cancelled", cancelled, cancel},
            {"jumped", jumped, interrupt},
            {"forked", forked, nothing},
            {"forked-within", forked_within, interrupt_and_write},
            {"exit", for_ever, leave},
            {"killed", for_ever_with_a_block, be_killed}};

int main(int argc, char **argv) {
    OK_ERRNO(pipe(ends));
    OK_ERRNO(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    SYS(event = eventfd(0, 0));
    SYS(listener = socket(AF_UNIX, SOCK_STREAM, 0));
    unlink(address.sun_path);
    OK_ERRNO(bind(listener, (struct sockaddr *)&address, sizeof address));
    OK_ERRNO(listen(listener, 1));
    for (size_t i = 0; argc == 2 && i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(argv[1], ways[i].name) != 0)
            continue;
        if (ways[i].thread == queues)
            open_queues();
        if (ways[i].first == compute)
            stay_on_one_cpu();
        thread = thread_start(ways[i].thread, NULL);
        ways[i].first();
        thread_join(thread);
        printf("%lld\n", (long long)waited_ns);
        return 0;
    }
    return 2;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that wait for the outside: the writer gets on while the reader waits. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "ordered.h"

static int fds[2];

static void *reader(void *argument) {
    char c = 0;
    (void)argument;
    if (read(fds[0], &c, 1) == 1)
        locked_add(c == 'x');
    return NULL;
}

static void *line_reader(void *argument) {
    char line[8];
    FILE *in = fdopen(fds[0], "r");
    (void)argument;
    if (in != NULL && fgets(line, sizeof line, in) != NULL)
        locked_add(line[0] == 'x');
    return NULL;
}

static int through(void *(*routine)(void *)) {
    pthread_t thread;
    if (pipe(fds) != 0)
        return 1;
    pthread_create(&thread, NULL, routine, NULL);
    for (int i = 0; i < ROUNDS; i++)
        locked_add(0);
    if (write(fds[1], "x\n", 2) != 2)
        return 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}

int through_pipe(void) {
    return through(reader);
}

int through_stdio(void) {
    return through(line_reader);
}

static void *adds_on(void *argument) {
    for (int i = 0; i != ROUNDS || write(fds[1], "x\n", 2) == 2; i++)
        locked_add(0);
    return argument;
}

/* The thread adds on when the process ends. */
int leaves_after_stdio(void) {
    char line[8];
    pthread_t thread;
    FILE *in = pipe(fds) == 0 ? fdopen(fds[0], "r") : NULL;
    pthread_create(&thread, NULL, adds_on, NULL);
    return in == NULL || fgets(line, sizeof line, in) == NULL;
}

/* The size of the array is the last argument, or comes after n. */
extern ssize_t __read_chk(int fd, void *buffer, size_t n, size_t size);
extern ssize_t __recv_chk(int fd, void *buffer, size_t n, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *buffer, size_t n, size_t size, int flags, struct sockaddr *from,
                              socklen_t *from_size);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);
extern int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size);

static const char *const calls[] = {"read_chk", "recv_chk", "recvfrom_chk", "poll_chk", "ppoll_chk",
                                    "recvmmsg", "system",   "eventfd_read", "flock"};
enum { N_CALLS = sizeof calls / sizeof *calls };

/* Waits until a byte comes, or for `flock` until the lock is free. */
static ssize_t call(size_t i) {
    char c[8];
    struct iovec part = {c, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    struct pollfd in = {fds[0], POLLIN, 0};
    eventfd_t value;
    return i == 0   ? __read_chk(fds[0], c, 1, sizeof c)
           : i == 1 ? __recv_chk(fds[0], c, 1, sizeof c, 0)
           : i == 2 ? __recvfrom_chk(fds[0], c, 1, sizeof c, 0, NULL, NULL)
           : i == 3 ? __poll_chk(&in, 1, -1, sizeof in)
           : i == 4 ? __ppoll_chk(&in, 1, NULL, NULL, sizeof in)
           : i == 5 ? recvmmsg(fds[0], &message, 1, 0, NULL)
           : i == 6 ? system("head -c 1 >/dev/null") == 0
           : i == 7 ? eventfd_read(fds[0], &value) == 0
                    : flock(fds[0], LOCK_EX) == 0;
}

static void *caller(void *i) {
    locked_add(call((uintptr_t)i) == 1);
    return NULL;
}

static int open_ends(size_t i) {
    char name[] = "/tmp/ordered-XXXXXX";
    if (i == 7)
        return (fds[0] = fds[1] = eventfd(0, 0)) < 0;
    if (i < 7)
        return socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0 || (i == 6 && dup2(fds[0], STDIN_FILENO) != STDIN_FILENO);
    fds[0] = mkstemp(name);
    fds[1] = open(name, O_RDWR);
    unlink(name);
    return fds[0] < 0 || fds[1] < 0 || flock(fds[1], LOCK_EX) != 0;
}

/* Each time the others get on while a thread waits. */
int through_calls(void) {
    const uint64_t one = 1;
    for (size_t i = 0; i < N_CALLS; i++) {
        pthread_t thread;
        if (open_ends(i) != 0)
            return 1;
        pthread_create(&thread, NULL, caller, (void *)(uintptr_t)i);
        for (int k = 0; k < ROUNDS; k++)
            locked_add(0);
        if (i == N_CALLS - 1 ? flock(fds[1], LOCK_UN) != 0 : write(fds[1], &one, sizeof one) != sizeof one)
            return 1;
        pthread_join(thread, NULL);
        puts(calls[i]);
    }
    return 0;
}

/* ---- rings of requests: the kernel waits for the pipe, and the thread for the kernel ---- */

static void *on_ring(int ring, size_t bytes, off_t offset) {
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring, offset);
}

/* How many requests are done; -1: there are no such rings here. */
static long wait_by_io_uring(void) {
    struct io_uring_params p = {0};
    int ring = (int)syscall(SYS_io_uring_setup, 1, &p);
    if (ring < 0)
        return -1;
    char *queue = on_ring(ring, p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    struct io_uring_sqe *entry = on_ring(ring, p.sq_entries * sizeof *entry, IORING_OFF_SQES);
    if (queue == MAP_FAILED || entry == MAP_FAILED)
        return -1;
    *entry = (struct io_uring_sqe){.opcode = IORING_OP_POLL_ADD, .fd = fds[0], .poll_events = POLLIN};
    memset(queue + p.sq_off.array, 0, sizeof(unsigned));
    __atomic_store_n((unsigned *)(void *)(queue + p.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAIT, NULL, 0) != 0) /* there is room: at once */
        return -1;
    return syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

static long wait_by_aio(void) {
    aio_context_t context = 0;
    struct iocb request = {.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (uint32_t)fds[0], .aio_buf = POLLIN},
                *first = &request;
    struct io_event event;
    if (syscall(SYS_io_setup, 1, &context) != 0 || syscall(SYS_io_submit, context, 1, &first) != 1)
        return -1;
    return syscall(SYS_io_getevents, context, 1, 1, &event, NULL);
}

static void *waits_by(void *wait) {
    long (*const *by)(void) = wait;
    locked_add(1);
    return (*by)() == 1 ? wait : NULL;
}

int through_rings(void) {
    static long (*const ways[])(void) = {wait_by_io_uring, wait_by_aio};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *waited;
        if (pipe(fds) != 0)
            return 1;
        pthread_create(&thread, NULL, waits_by, (void *)(uintptr_t)&ways[i]);
        for (int k = 0; k < ROUNDS; k++)
            locked_add(0);
        if (write(fds[1], "x", 1) != 1)
            return 1;
        pthread_join(thread, &waited);
        puts(waited != NULL ? "waited" : "no such ring here");
    }
    return 0;
}

/* ---- looks that do not wait ---- */

static const struct timespec no_time;
static const char *const looks[] = {"poll", "ppoll",   "select",   "pselect",      "epoll_wait", "epoll_pwait",
                                    "recv", "recvmsg", "recvmmsg", "sigtimedwait", "flock",      "waitpid"};
enum { N_LOOKS = sizeof looks / sizeof *looks, SIGNAL_LOOK = 9, LOCK_LOOK, CHILD_LOOK };
static int event_poll;
static pid_t child;

/* Has it found what it looks for? */
static bool look(size_t i) {
    char c;
    struct iovec part = {&c, 1};
    struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
    struct pollfd in = {fds[0], POLLIN, 0};
    struct epoll_event event;
    struct timeval no_time_at_all = {0, 0};
    sigset_t user;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fds[0], &set);
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    return (i == 0             ? poll(&in, 1, 0)
            : i == 1           ? ppoll(&in, 1, &no_time, NULL)
            : i == 2           ? select(fds[0] + 1, &set, NULL, NULL, &no_time_at_all)
            : i == 3           ? pselect(fds[0] + 1, &set, NULL, NULL, &no_time, NULL)
            : i == 4           ? epoll_wait(event_poll, &event, 1, 0)
            : i == 5           ? epoll_pwait(event_poll, &event, 1, 0, NULL)
            : i == 6           ? (int)recv(fds[0], &c, 1, MSG_DONTWAIT)
            : i == 7           ? (int)recvmsg(fds[0], &message.msg_hdr, MSG_DONTWAIT)
            : i == 8           ? recvmmsg(fds[0], &message, 1, MSG_DONTWAIT, NULL)
            : i == SIGNAL_LOOK ? sigtimedwait(&user, NULL, &no_time)
            : i == LOCK_LOOK   ? flock(fds[0], LOCK_EX | LOCK_NB) == 0
                               : waitpid(child, NULL, WNOHANG)) > 0;
}

static int open_for_look(size_t i) {
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t user;
    if (i == CHILD_LOOK && (child = fork()) == 0)
        for (alarm(60);;)
            pause();
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    if (pthread_sigmask(SIG_BLOCK, &user, NULL) != 0 || open_ends(i == LOCK_LOOK ? N_CALLS - 1 : 0) != 0)
        return 1;
    event_poll = epoll_create1(0);
    return event_poll < 0 || (i != LOCK_LOOK && epoll_ctl(event_poll, EPOLL_CTL_ADD, fds[0], &event) != 0);
}

/* It waits for the turn before it gives what the look finds. */
static void *giver(void *i) {
    size_t look_of = (uintptr_t)i;
    for (int k = 0; k < ROUNDS; k++)
        locked_add(0);
    if (look_of == SIGNAL_LOOK)
        kill(getpid(), SIGUSR1);
    else if (look_of == LOCK_LOOK)
        flock(fds[1], LOCK_UN);
    else if (look_of == CHILD_LOOK)
        kill(child, SIGKILL);
    else if (write(fds[1], "x", 1) != 1)
        return i;
    return NULL;
}

/* How many looks it takes until that one finds something; 0: it cannot be tried. */
static uint64_t look_until_found(size_t i) {
    uint64_t n = 1;
    pthread_t thread;
    if (open_for_look(i) != 0)
        return 0;
    pthread_create(&thread, NULL, giver, (void *)(uintptr_t)i);
    while (!look(i))
        n++;
    pthread_join(thread, NULL);
    return n;
}

/* A thread that loops until it finds something does not keep others from the turn. */
int loops_of_looks(void) {
    for (size_t i = 0; i < N_LOOKS; i++) {
        if (look_until_found(i) == 0)
            return 1;
        puts(looks[i]);
    }
    return 0;
}

/* Not at files, nor at a child: to lock and to wait is outside. */
int looks_within(void) {
    for (size_t i = 0; i < LOCK_LOOK; i++) {
        uint64_t n = look_until_found(i);
        if (n == 0)
            return 1;
        add_to(MUTEX, n);
    }
    printf("%016" PRIx64 "\n", sums[MUTEX]);
    return 0;
}

static void *dozer(void *number) {
    const struct timespec time = {0, (long)(uintptr_t)number * 700000};
    for (int i = 0; i < 5; i++) {
        if (ppoll(NULL, 0, &time, NULL) == 0 && pselect(0, NULL, NULL, NULL, &time, NULL) == 0)
            locked_add((uintptr_t)number);
        for (size_t k = 0; k < SIGNAL_LOOK; k++)
            if (look(k))
                locked_add(0);
        locked_add((uintptr_t)number + 10);
    }
    return NULL;
}

/* Sleeps without a file, and looks now and then, are not outside. */
int dozes(void) {
    pthread_t threads[4];
    if (open_for_look(0) != 0)
        return 1;
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, dozer, (void *)(i + 1));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%016" PRIx64 "\n", sums[MUTEX]);
    return 0;
}

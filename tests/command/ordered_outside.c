/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Calls that wait for the outside: the writer gets on while the reader waits. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

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

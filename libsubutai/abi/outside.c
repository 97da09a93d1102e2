/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that wait for other processes, for devices, or for time. They are glibc's. Under an engine that keeps an order
 * of all operations the caller leaves the order for the length of the call, and a sleep is an operation. For every
 * other engine there is only the call.
 *
 * Not outside are calls on regular files and on memory devices, calls that do not wait, and a write that there is room
 * for.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/abi.h"
#include "os/real_outside.h"

/* As THEIRS and THEIRS_WAITS of abi/abi.h. */
#define OUTSIDES(call) (sbt_init(), sbt_real_outside.call)
#define OUTSIDES_WAITS(call)                                                                                           \
    __extension__({                                                                                                    \
        sbt_init();                                                                                                    \
        ABI_OUTSIDE;                                                                                                   \
        sbt_real_outside.call;                                                                                         \
    })

#define NS_IN_SECOND 1000000000
#define MEMORY_DEVICES 1                /* the major number of /dev/null, /dev/urandom */
#define SECONDS_NEVER ((time_t)1 << 32) /* a longer sleep never ends, and the sum does not overflow */

static inline bool has_order(void) {
    sbt_init();
    return SBT_UNLIKELY(sbt_engine.order != NULL);
}

/* ---- threads ---- */

SBT_EXPORT int pthread_detach(pthread_t thread) {
    return has_order() ? sbt_engine.order->detach(thread) : sbt_real.pthread_detach(thread);
}

SBT_EXPORT int thrd_detach(thrd_t thread) {
    if (!has_order())
        return sbt_real.thrd_detach(thread);
    return sbt_engine.order->detach(thread) == 0 ? thrd_success : thrd_error;
}

/* ---- sleeping ---- */

static bool is_valid(const struct timespec *t) {
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < NS_IN_SECOND;
}

static uint64_t ns_of(const struct timespec *t) {
    time_t seconds = t->tv_sec < SECONDS_NEVER ? t->tv_sec : SECONDS_NEVER;
    return (uint64_t)seconds * NS_IN_SECOND + (uint64_t)t->tv_nsec;
}

/* 0, or EINTR and what was left. */
static int sleep_for(const struct timespec *time, struct timespec *left) {
    uint64_t ns = ns_of(time), since = sbt_now_ns();
    int r = sbt_engine.order->sleep(ns, NULL);
    uint64_t slept = sbt_now_ns() - since;
    if (r != 0 && left != NULL) {
        ns = slept < ns ? ns - slept : 0;
        *left = (struct timespec){(time_t)(ns / NS_IN_SECOND), (long)(ns % NS_IN_SECOND)};
    }
    return r;
}

static int result(int r) {
    if (r == 0)
        return 0;
    errno = r;
    return -1;
}

SBT_EXPORT int nanosleep(const struct timespec *time, struct timespec *left) {
    if (!has_order() || !is_valid(time))
        return OUTSIDES(nanosleep(time, left));
    return result(sleep_for(time, left));
}

SBT_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    bool is_known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    if (!has_order() || !is_known || !is_valid(time))
        return OUTSIDES_WAITS(clock_nanosleep(clock, flags, time, left));
    if ((flags & TIMER_ABSTIME) == 0)
        return sleep_for(time, left);
    return sbt_engine.order->sleep(0, &(struct sbt_deadline){clock, *time});
}

SBT_EXPORT int usleep(useconds_t us) {
    struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    return has_order() ? result(sleep_for(&time, NULL)) : sbt_real_outside.usleep(us);
}

SBT_EXPORT unsigned sleep(unsigned seconds) {
    struct timespec time = {(time_t)seconds, 0}, left;
    if (!has_order())
        return sbt_real_outside.sleep(seconds);
    return sleep_for(&time, &left) == 0 ? 0 : (unsigned)left.tv_sec + (left.tv_nsec >= NS_IN_SECOND / 2);
}

/* C11: 0, -1 if a handler has run, another negative value otherwise. */
SBT_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left) {
    if (!has_order() || !is_valid(time))
        return OUTSIDES(thrd_sleep(time, left));
    return sleep_for(time, left) == 0 ? 0 : -1;
}

SBT_EXPORT int pause(void) {
    return OUTSIDES_WAITS(pause());
}

/* ---- waiting for files ---- */

SBT_EXPORT int poll(struct pollfd *fds, nfds_t n, int ms) {
    if (!has_order() || ms == 0)
        return OUTSIDES(poll(fds, n, ms));
    if (n == 0 && ms > 0)
        return result(sleep_for(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL));
    return OUTSIDES_WAITS(poll(fds, n, ms));
}

SBT_EXPORT int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                      struct timeval *restrict timeout) {
    if (!has_order() || (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_usec == 0))
        return OUTSIDES(select(n, in, out, except, timeout));
    if (n == 0 && timeout != NULL && timeout->tv_sec >= 0 && timeout->tv_usec >= 0 && timeout->tv_usec < 1000000)
        return result(sleep_for(&(struct timespec){timeout->tv_sec, timeout->tv_usec * 1000}, NULL));
    return OUTSIDES_WAITS(select(n, in, out, except, timeout));
}

SBT_EXPORT int epoll_wait(int epoll, struct epoll_event *events, int n, int ms) {
    return ms == 0 ? OUTSIDES(epoll_wait(epoll, events, n, ms)) : OUTSIDES_WAITS(epoll_wait(epoll, events, n, ms));
}

/* ---- files ---- */

static bool may_wait(int fd) {
    struct stat status;
    if (!has_order())
        return false;
    int error = errno;
    bool waits = fstat(fd, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) &&
                 !S_ISBLK(status.st_mode) && !(S_ISCHR(status.st_mode) && major(status.st_rdev) == MEMORY_DEVICES);
    errno = error;
    return waits;
}

/* A write of so many bytes. */
static bool may_wait_to_write(int fd, size_t bytes) {
    struct pollfd room = {fd, POLLOUT, 0};
    if (!may_wait(fd))
        return false;
    int error = errno;
    bool waits = bytes > PIPE_BUF || sbt_real_outside.poll(&room, 1, 0) <= 0;
    errno = error;
    return waits;
}

#define FILE_CALL(waits, call)                                                                                         \
    if (!(waits))                                                                                                      \
        return OUTSIDES(call);                                                                                         \
    return OUTSIDES_WAITS(call)

SBT_EXPORT ssize_t read(int fd, void *buffer, size_t n) {
    FILE_CALL(may_wait(fd), read(fd, buffer, n));
}

SBT_EXPORT ssize_t readv(int fd, const struct iovec *parts, int n) {
    FILE_CALL(may_wait(fd), readv(fd, parts, n));
}

SBT_EXPORT ssize_t write(int fd, const void *buffer, size_t n) {
    FILE_CALL(may_wait_to_write(fd, n), write(fd, buffer, n));
}

SBT_EXPORT ssize_t writev(int fd, const struct iovec *parts, int n) {
    FILE_CALL(may_wait_to_write(fd, SIZE_MAX), writev(fd, parts, n));
}

/* ---- sockets ---- */

SBT_EXPORT ssize_t recv(int fd, void *buffer, size_t n, int flags) {
    return OUTSIDES_WAITS(recv(fd, buffer, n, flags));
}

SBT_EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t n, int flags, struct sockaddr *restrict from,
                            socklen_t *restrict size) {
    return OUTSIDES_WAITS(recvfrom(fd, buffer, n, flags, from, size));
}

SBT_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    return OUTSIDES_WAITS(recvmsg(fd, message, flags));
}

SBT_EXPORT ssize_t send(int fd, const void *buffer, size_t n, int flags) {
    FILE_CALL(may_wait_to_write(fd, n), send(fd, buffer, n, flags));
}

SBT_EXPORT ssize_t sendto(int fd, const void *buffer, size_t n, int flags, const struct sockaddr *to, socklen_t size) {
    FILE_CALL(may_wait_to_write(fd, n), sendto(fd, buffer, n, flags, to, size));
}

SBT_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    FILE_CALL(may_wait_to_write(fd, SIZE_MAX), sendmsg(fd, message, flags));
}

SBT_EXPORT int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict size) {
    return OUTSIDES_WAITS(accept(fd, from, size));
}

SBT_EXPORT int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags) {
    return OUTSIDES_WAITS(accept4(fd, from, size, flags));
}

SBT_EXPORT int connect(int fd, const struct sockaddr *to, socklen_t size) {
    return OUTSIDES_WAITS(connect(fd, to, size));
}

/* ---- children ---- */

SBT_EXPORT pid_t wait(int *status) {
    return OUTSIDES_WAITS(wait(status));
}

SBT_EXPORT pid_t waitpid(pid_t pid, int *status, int options) {
    return (options & WNOHANG) != 0 ? OUTSIDES(waitpid(pid, status, options))
                                    : OUTSIDES_WAITS(waitpid(pid, status, options));
}

SBT_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    return (options & WNOHANG) != 0 ? OUTSIDES(wait4(pid, status, options, usage))
                                    : OUTSIDES_WAITS(wait4(pid, status, options, usage));
}

SBT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    return (options & WNOHANG) != 0 ? OUTSIDES(waitid(type, id, info, options))
                                    : OUTSIDES_WAITS(waitid(type, id, info, options));
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that wait for other processes, for devices, or for time. They are glibc's. Under an engine that keeps an order
 * of all operations the caller leaves the order for the length of the call, and a sleep is an operation. For every
 * other engine there is only the call.
 *
 * Under an engine that keeps no order each call costs a load, a predicted branch and a jump; the slow forms are not
 * inlined, so that none needs a register.
 *
 * Not outside are calls on regular files and on memory devices, calls that do not wait, and a write that there is room
 * for.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/abi.h"
#include "core/log.h"
#include "os/real_outside.h"

static struct sbt_real_outside real;  /* NULL: not looked up yet */
static struct sbt_real_outside plain; /* the same, once it is known that the engine keeps no order; NULL: not known */

/* The first call of that function, or any under an engine that keeps an order. */
static bool is_plain(size_t at, const char *name) {
    void **found = (void **)(void *)((char *)&real + at); /* POSIX: a function's address fits */
    sbt_init();
    if (__atomic_load_n(found, __ATOMIC_RELAXED) == NULL) {
        void *function = sbt_real_lookup(name);
        if (function == NULL) {
            sbt_log(0, "this C library has no ", name, NULL);
            __builtin_trap();
        }
        __atomic_store_n(found, function, __ATOMIC_RELAXED); /* all threads find the same */
    }
    if (sbt_engine.order != NULL)
        return false;
    if (sbt_init_done()) /* before, the engine may not be the one that it will be */
        __atomic_store_n((void **)(void *)((char *)&plain + at), *found, __ATOMIC_RELAXED);
    return true;
}

#define AT(name) offsetof(struct sbt_real_outside, name), #name

/* The caller leaves the order for the length of the call. */
#define WAITS(call)                                                                                                    \
    __extension__({                                                                                                    \
        ABI_OUTSIDE;                                                                                                   \
        real.call;                                                                                                     \
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

static SBT_NOINLINE int slow_nanosleep(const struct timespec *time, struct timespec *left) {
    if (is_plain(AT(nanosleep)))
        return real.nanosleep(time, left);
    return is_valid(time) ? result(sleep_for(time, left)) : real.nanosleep(time, left);
}

SBT_EXPORT int nanosleep(const struct timespec *time, struct timespec *left) {
    return SBT_LIKELY(plain.nanosleep != NULL) ? plain.nanosleep(time, left) : slow_nanosleep(time, left);
}

static SBT_NOINLINE int slow_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                                             struct timespec *left) {
    if (is_plain(AT(clock_nanosleep)))
        return real.clock_nanosleep(clock, flags, time, left);
    bool is_known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
    if (!is_known || !is_valid(time))
        return WAITS(clock_nanosleep(clock, flags, time, left));
    if ((flags & TIMER_ABSTIME) == 0)
        return sleep_for(time, left);
    return sbt_engine.order->sleep(0, &(struct sbt_deadline){clock, *time});
}

SBT_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    return SBT_LIKELY(plain.clock_nanosleep != NULL) ? plain.clock_nanosleep(clock, flags, time, left)
                                                     : slow_clock_nanosleep(clock, flags, time, left);
}

static SBT_NOINLINE int slow_usleep(useconds_t us) {
    if (is_plain(AT(usleep)))
        return real.usleep(us);
    return result(sleep_for(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL));
}

SBT_EXPORT int usleep(useconds_t us) {
    return SBT_LIKELY(plain.usleep != NULL) ? plain.usleep(us) : slow_usleep(us);
}

static SBT_NOINLINE unsigned slow_sleep(unsigned seconds) {
    struct timespec left;
    if (is_plain(AT(sleep)))
        return real.sleep(seconds);
    if (sleep_for(&(struct timespec){(time_t)seconds, 0}, &left) == 0)
        return 0;
    return (unsigned)left.tv_sec + (left.tv_nsec >= NS_IN_SECOND / 2);
}

SBT_EXPORT unsigned sleep(unsigned seconds) {
    return SBT_LIKELY(plain.sleep != NULL) ? plain.sleep(seconds) : slow_sleep(seconds);
}

/* C11: 0, -1 if a handler has run, another negative value otherwise. */
static SBT_NOINLINE int slow_thrd_sleep(const struct timespec *time, struct timespec *left) {
    if (is_plain(AT(thrd_sleep)))
        return real.thrd_sleep(time, left);
    if (!is_valid(time))
        return real.thrd_sleep(time, left);
    return sleep_for(time, left) == 0 ? 0 : -1;
}

SBT_EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left) {
    return SBT_LIKELY(plain.thrd_sleep != NULL) ? plain.thrd_sleep(time, left) : slow_thrd_sleep(time, left);
}

static SBT_NOINLINE int slow_pause(void) {
    return is_plain(AT(pause)) ? real.pause() : WAITS(pause());
}

SBT_EXPORT int pause(void) {
    return SBT_LIKELY(plain.pause != NULL) ? plain.pause() : slow_pause();
}

/* ---- waiting for files ---- */

static SBT_NOINLINE int slow_poll(struct pollfd *fds, nfds_t n, int ms) {
    if (is_plain(AT(poll)))
        return real.poll(fds, n, ms);
    if (ms == 0)
        return real.poll(fds, n, ms);
    if (n == 0 && ms > 0)
        return result(sleep_for(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL));
    return WAITS(poll(fds, n, ms));
}

SBT_EXPORT int poll(struct pollfd *fds, nfds_t n, int ms) {
    return SBT_LIKELY(plain.poll != NULL) ? plain.poll(fds, n, ms) : slow_poll(fds, n, ms);
}

static SBT_NOINLINE int slow_select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                                    struct timeval *restrict timeout) {
    if (is_plain(AT(select)))
        return real.select(n, in, out, except, timeout);
    if (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_usec == 0)
        return real.select(n, in, out, except, timeout);
    if (n == 0 && timeout != NULL && timeout->tv_sec >= 0 && timeout->tv_usec >= 0 && timeout->tv_usec < 1000000)
        return result(sleep_for(&(struct timespec){timeout->tv_sec, timeout->tv_usec * 1000}, NULL));
    return WAITS(select(n, in, out, except, timeout));
}

SBT_EXPORT int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                      struct timeval *restrict timeout) {
    return SBT_LIKELY(plain.select != NULL) ? plain.select(n, in, out, except, timeout)
                                            : slow_select(n, in, out, except, timeout);
}

static SBT_NOINLINE int slow_epoll_wait(int epoll, struct epoll_event *events, int n, int ms) {
    if (is_plain(AT(epoll_wait)))
        return real.epoll_wait(epoll, events, n, ms);
    return ms == 0 ? real.epoll_wait(epoll, events, n, ms) : WAITS(epoll_wait(epoll, events, n, ms));
}

SBT_EXPORT int epoll_wait(int epoll, struct epoll_event *events, int n, int ms) {
    return SBT_LIKELY(plain.epoll_wait != NULL) ? plain.epoll_wait(epoll, events, n, ms)
                                                : slow_epoll_wait(epoll, events, n, ms);
}

/* ---- files ---- */

static bool may_wait(int fd) {
    struct stat status;
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
    bool waits = bytes > PIPE_BUF || is_plain(AT(poll)) || real.poll(&room, 1, 0) <= 0;
    errno = error;
    return waits;
}

static SBT_NOINLINE ssize_t slow_read(int fd, void *buffer, size_t n) {
    if (is_plain(AT(read)))
        return real.read(fd, buffer, n);
    return may_wait(fd) ? WAITS(read(fd, buffer, n)) : real.read(fd, buffer, n);
}

SBT_EXPORT ssize_t read(int fd, void *buffer, size_t n) {
    return SBT_LIKELY(plain.read != NULL) ? plain.read(fd, buffer, n) : slow_read(fd, buffer, n);
}

static SBT_NOINLINE ssize_t slow_readv(int fd, const struct iovec *parts, int n) {
    if (is_plain(AT(readv)))
        return real.readv(fd, parts, n);
    return may_wait(fd) ? WAITS(readv(fd, parts, n)) : real.readv(fd, parts, n);
}

SBT_EXPORT ssize_t readv(int fd, const struct iovec *parts, int n) {
    return SBT_LIKELY(plain.readv != NULL) ? plain.readv(fd, parts, n) : slow_readv(fd, parts, n);
}

static SBT_NOINLINE ssize_t slow_write(int fd, const void *buffer, size_t n) {
    if (is_plain(AT(write)))
        return real.write(fd, buffer, n);
    return may_wait_to_write(fd, n) ? WAITS(write(fd, buffer, n)) : real.write(fd, buffer, n);
}

SBT_EXPORT ssize_t write(int fd, const void *buffer, size_t n) {
    return SBT_LIKELY(plain.write != NULL) ? plain.write(fd, buffer, n) : slow_write(fd, buffer, n);
}

static SBT_NOINLINE ssize_t slow_writev(int fd, const struct iovec *parts, int n) {
    if (is_plain(AT(writev)))
        return real.writev(fd, parts, n);
    return may_wait_to_write(fd, SIZE_MAX) ? WAITS(writev(fd, parts, n)) : real.writev(fd, parts, n);
}

SBT_EXPORT ssize_t writev(int fd, const struct iovec *parts, int n) {
    return SBT_LIKELY(plain.writev != NULL) ? plain.writev(fd, parts, n) : slow_writev(fd, parts, n);
}

/* ---- sockets ---- */

static SBT_NOINLINE ssize_t slow_recv(int fd, void *buffer, size_t n, int flags) {
    if (is_plain(AT(recv)))
        return real.recv(fd, buffer, n, flags);
    return WAITS(recv(fd, buffer, n, flags));
}

SBT_EXPORT ssize_t recv(int fd, void *buffer, size_t n, int flags) {
    return SBT_LIKELY(plain.recv != NULL) ? plain.recv(fd, buffer, n, flags) : slow_recv(fd, buffer, n, flags);
}

static SBT_NOINLINE ssize_t slow_recvfrom(int fd, void *restrict buffer, size_t n, int flags,
                                          struct sockaddr *restrict from, socklen_t *restrict size) {
    if (is_plain(AT(recvfrom)))
        return real.recvfrom(fd, buffer, n, flags, from, size);
    return WAITS(recvfrom(fd, buffer, n, flags, from, size));
}

SBT_EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t n, int flags, struct sockaddr *restrict from,
                            socklen_t *restrict size) {
    return SBT_LIKELY(plain.recvfrom != NULL) ? plain.recvfrom(fd, buffer, n, flags, from, size)
                                              : slow_recvfrom(fd, buffer, n, flags, from, size);
}

static SBT_NOINLINE ssize_t slow_recvmsg(int fd, struct msghdr *message, int flags) {
    if (is_plain(AT(recvmsg)))
        return real.recvmsg(fd, message, flags);
    return WAITS(recvmsg(fd, message, flags));
}

SBT_EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    return SBT_LIKELY(plain.recvmsg != NULL) ? plain.recvmsg(fd, message, flags) : slow_recvmsg(fd, message, flags);
}

static SBT_NOINLINE ssize_t slow_send(int fd, const void *buffer, size_t n, int flags) {
    if (is_plain(AT(send)))
        return real.send(fd, buffer, n, flags);
    return may_wait_to_write(fd, n) ? WAITS(send(fd, buffer, n, flags)) : real.send(fd, buffer, n, flags);
}

SBT_EXPORT ssize_t send(int fd, const void *buffer, size_t n, int flags) {
    return SBT_LIKELY(plain.send != NULL) ? plain.send(fd, buffer, n, flags) : slow_send(fd, buffer, n, flags);
}

static SBT_NOINLINE ssize_t slow_sendto(int fd, const void *buffer, size_t n, int flags, const struct sockaddr *to,
                                        socklen_t size) {
    if (is_plain(AT(sendto)))
        return real.sendto(fd, buffer, n, flags, to, size);
    return may_wait_to_write(fd, n) ? WAITS(sendto(fd, buffer, n, flags, to, size))
                                    : real.sendto(fd, buffer, n, flags, to, size);
}

SBT_EXPORT ssize_t sendto(int fd, const void *buffer, size_t n, int flags, const struct sockaddr *to, socklen_t size) {
    return SBT_LIKELY(plain.sendto != NULL) ? plain.sendto(fd, buffer, n, flags, to, size)
                                            : slow_sendto(fd, buffer, n, flags, to, size);
}

static SBT_NOINLINE ssize_t slow_sendmsg(int fd, const struct msghdr *message, int flags) {
    if (is_plain(AT(sendmsg)))
        return real.sendmsg(fd, message, flags);
    return may_wait_to_write(fd, SIZE_MAX) ? WAITS(sendmsg(fd, message, flags)) : real.sendmsg(fd, message, flags);
}

SBT_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    return SBT_LIKELY(plain.sendmsg != NULL) ? plain.sendmsg(fd, message, flags) : slow_sendmsg(fd, message, flags);
}

static SBT_NOINLINE int slow_accept(int fd, struct sockaddr *restrict from, socklen_t *restrict size) {
    if (is_plain(AT(accept)))
        return real.accept(fd, from, size);
    return WAITS(accept(fd, from, size));
}

SBT_EXPORT int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict size) {
    return SBT_LIKELY(plain.accept != NULL) ? plain.accept(fd, from, size) : slow_accept(fd, from, size);
}

static SBT_NOINLINE int slow_accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags) {
    if (is_plain(AT(accept4)))
        return real.accept4(fd, from, size, flags);
    return WAITS(accept4(fd, from, size, flags));
}

SBT_EXPORT int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags) {
    return SBT_LIKELY(plain.accept4 != NULL) ? plain.accept4(fd, from, size, flags)
                                             : slow_accept4(fd, from, size, flags);
}

static SBT_NOINLINE int slow_connect(int fd, const struct sockaddr *to, socklen_t size) {
    if (is_plain(AT(connect)))
        return real.connect(fd, to, size);
    return WAITS(connect(fd, to, size));
}

SBT_EXPORT int connect(int fd, const struct sockaddr *to, socklen_t size) {
    return SBT_LIKELY(plain.connect != NULL) ? plain.connect(fd, to, size) : slow_connect(fd, to, size);
}

/* ---- children ---- */

static SBT_NOINLINE pid_t slow_wait(int *status) {
    if (is_plain(AT(wait)))
        return real.wait(status);
    return WAITS(wait(status));
}

SBT_EXPORT pid_t wait(int *status) {
    return SBT_LIKELY(plain.wait != NULL) ? plain.wait(status) : slow_wait(status);
}

static SBT_NOINLINE pid_t slow_waitpid(pid_t pid, int *status, int options) {
    if (is_plain(AT(waitpid)))
        return real.waitpid(pid, status, options);
    return (options & WNOHANG) == 0 ? WAITS(waitpid(pid, status, options)) : real.waitpid(pid, status, options);
}

SBT_EXPORT pid_t waitpid(pid_t pid, int *status, int options) {
    return SBT_LIKELY(plain.waitpid != NULL) ? plain.waitpid(pid, status, options) : slow_waitpid(pid, status, options);
}

static SBT_NOINLINE pid_t slow_wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (is_plain(AT(wait4)))
        return real.wait4(pid, status, options, usage);
    return (options & WNOHANG) == 0 ? WAITS(wait4(pid, status, options, usage))
                                    : real.wait4(pid, status, options, usage);
}

SBT_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    return SBT_LIKELY(plain.wait4 != NULL) ? plain.wait4(pid, status, options, usage)
                                           : slow_wait4(pid, status, options, usage);
}

static SBT_NOINLINE int slow_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    if (is_plain(AT(waitid)))
        return real.waitid(type, id, info, options);
    return (options & WNOHANG) == 0 ? WAITS(waitid(type, id, info, options)) : real.waitid(type, id, info, options);
}

SBT_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    return SBT_LIKELY(plain.waitid != NULL) ? plain.waitid(type, id, info, options)
                                            : slow_waitid(type, id, info, options);
}

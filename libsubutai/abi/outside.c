/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that wait for other processes, for devices, or for time. They are glibc's. Under an engine that keeps an order
 * of all operations the caller leaves the order for the length of the call, and a sleep is an operation. For every
 * other engine there is only the call.
 *
 * Under an engine that keeps no order each call costs a load, a predicted branch and a jump; the slow forms are not
 * inlined, so that none needs a register. In the recording library the recorder sees each call besides
 * (abi_outside_seen).
 *
 * Not outside are calls on regular files and on memory devices, calls that do not wait, and a write that there is room
 * for. But a loop of calls that do not wait is outside now and then: it waits actively.
 */
#include <errno.h>
#include <limits.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/abi.h"
#include "abi/outside.h"
#include "core/log.h"
#include "os/arch.h"
#include "os/mapped.h"
#include "os/real_outside.h"
#include "switch/switch.h"

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

/*
 * The call is seen for the length of the block that this stands in, however that ends. Only an exported function may
 * have it, or what is always a part of one: the place of the call is its return address.
 */
#ifdef SBT_OBSERVED
const struct abi_outside_observer *abi_outside_observer;
uint32_t abi_outside_unseen = 1;
void (*abi_vfork_begins)(void);
bool (*abi_looks_up_observed)(void *handle, const char *symbol, const void *caller);
void (*abi_user_changes)(uid_t effective, bool for_good);
void (*abi_files_end)(void);

static inline void seen_end(struct abi_outside_seen *seen) {
    if (SBT_LIKELY(seen->thread != NULL && abi_outside_is_seen()))
        abi_outside_observer->end(seen);
}

static inline struct abi_outside_seen seen_begin(const void *site) {
    struct abi_outside_seen seen = {.site = site};
    if (SBT_LIKELY(abi_outside_is_seen() && sbt_engine.order == NULL))
        abi_outside_observer->begin(&seen);
    return seen;
}
void abi_outside_restrict(bool restricts, long number, const long *argument) {
    bool filters =
        number == SYS_seccomp && (argument[0] == SECCOMP_SET_MODE_STRICT || argument[0] == SECCOMP_SET_MODE_FILTER);
    bool by_prctl = number == SYS_prctl &&
                    (argument[0] == PR_SET_SECCOMP || (argument[0] == PR_SET_TSC && argument[1] == PR_TSC_SIGSEGV));
    if (filters || by_prctl)
        abi_outside_see(!restricts);
}

#define SEEN                                                                                                           \
    struct abi_outside_seen seen __attribute__((cleanup(seen_end), unused)) = seen_begin(__builtin_return_address(0))
#else
#define SEEN
#endif

/* The exported function. Relaxed, with is_plain's store: a pointer that is seen is valid, as the C library's code is.
 */
#define OUTSIDE_FROM(place, result, name, parameters, arguments)                                                       \
    static inline __attribute__((always_inline)) result do_##name parameters {                                         \
        SEEN;                                                                                                          \
        place;                                                                                                         \
        __typeof__(plain.name) call = __atomic_load_n(&plain.name, __ATOMIC_RELAXED);                                  \
        return SBT_LIKELY(call != NULL) ? call arguments : slow_##name arguments;                                      \
    }                                                                                                                  \
    SBT_EXPORT result name parameters {                                                                                \
        return do_##name arguments;                                                                                    \
    }

#define ANYWHERE (void)0
#define AT_HOME_IF(sleeps) (SBT_UNLIKELY(sbt_switch_wanted) && (sleeps) ? sbt_pin_before_sleep() : (void)0)
#define OUTSIDE(result, name, parameters, arguments) OUTSIDE_FROM(ANYWHERE, result, name, parameters, arguments)

/* The same, where the kernel never restarts the call after a signal. */
#define OUTSIDE_SLEEP(sleeps, result, name, parameters, arguments)                                                     \
    OUTSIDE_FROM(AT_HOME_IF(sleeps), result, name, parameters, arguments)

/* The same, where the caller only leaves the order if the call may wait. */
#define SLOW_IF(waits, result, name, parameters, arguments)                                                            \
    static SBT_NOINLINE result slow_##name parameters {                                                                \
        return is_plain(AT(name)) || !(waits) ? real.name arguments : WAITS(name arguments);                           \
    }
#define OUTSIDE_IF(waits, result, name, parameters, arguments)                                                         \
    SLOW_IF(waits, result, name, parameters, arguments)                                                                \
    OUTSIDE(result, name, parameters, arguments)

#define NS_IN_SECOND 1000000000
#define MEMORY_DEVICES 1                /* the major number of /dev/null, /dev/urandom */
#define SECONDS_NEVER ((time_t)1 << 32) /* a longer sleep never ends, and the sum does not overflow */

/* A look that does not wait, of a loop of such looks. The engine keeps an order. */
static bool loops(void) {
    return sbt_engine.order->looks();
}

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

bool abi_outside_sleeps(const struct timespec *time, int *r) {
    if (!has_order() || time == NULL || !is_valid(time) || ns_of(time) == 0)
        return false;
    *r = result(sleep_for(time, NULL));
    return true;
}

static SBT_NOINLINE int slow_nanosleep(const struct timespec *time, struct timespec *left) {
    return is_plain(AT(nanosleep)) || !is_valid(time) ? real.nanosleep(time, left) : result(sleep_for(time, left));
}

OUTSIDE_SLEEP(true, int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))

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

OUTSIDE_SLEEP(true, int, clock_nanosleep,
              (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
              (clock, flags, time, left))

static SBT_NOINLINE int slow_usleep(useconds_t us) {
    if (is_plain(AT(usleep)))
        return real.usleep(us);
    return result(sleep_for(&(struct timespec){(time_t)(us / 1000000), (long)(us % 1000000) * 1000}, NULL));
}

OUTSIDE_SLEEP(true, int, usleep, (useconds_t us), (us))

static SBT_NOINLINE unsigned slow_sleep(unsigned seconds) {
    struct timespec left;
    if (is_plain(AT(sleep)))
        return real.sleep(seconds);
    if (sleep_for(&(struct timespec){(time_t)seconds, 0}, &left) == 0)
        return 0;
    return (unsigned)left.tv_sec + (left.tv_nsec >= NS_IN_SECOND / 2);
}

OUTSIDE_SLEEP(true, unsigned, sleep, (unsigned seconds), (seconds))

/* C11: 0, -1 if a handler has run, another negative value otherwise. */
static SBT_NOINLINE int slow_thrd_sleep(const struct timespec *time, struct timespec *left) {
    if (is_plain(AT(thrd_sleep)) || !is_valid(time))
        return real.thrd_sleep(time, left);
    return sleep_for(time, left) == 0 ? 0 : -1;
}

OUTSIDE_SLEEP(true, int, thrd_sleep, (const struct timespec *time, struct timespec *left), (time, left))

SLOW_IF(true, int, pause, (void), ())
OUTSIDE_SLEEP(true, int, pause, (void), ())

/* ---- waiting for files ---- */

static SBT_NOINLINE int slow_poll(struct pollfd *fds, nfds_t n, int ms) {
    if (is_plain(AT(poll)) || (ms == 0 && !loops()))
        return real.poll(fds, n, ms);
    if (n == 0 && ms > 0)
        return result(sleep_for(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL));
    return WAITS(poll(fds, n, ms));
}

OUTSIDE_SLEEP(ms != 0, int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms))

static SBT_NOINLINE int slow_select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                                    struct timeval *restrict timeout) {
    if (is_plain(AT(select)) || (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_usec == 0 && !loops()))
        return real.select(n, in, out, except, timeout);
    if (n == 0 && timeout != NULL && timeout->tv_sec >= 0 && timeout->tv_usec >= 0 && timeout->tv_usec < 1000000)
        return result(sleep_for(&(struct timespec){timeout->tv_sec, timeout->tv_usec * 1000}, NULL));
    return WAITS(select(n, in, out, except, timeout));
}

OUTSIDE_SLEEP(timeout == NULL || timeout->tv_sec != 0 || timeout->tv_usec != 0, int, select,
              (int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
               struct timeval *restrict timeout),
              (n, in, out, except, timeout))

SLOW_IF(ms != 0 || loops(), int, epoll_wait, (int epoll, struct epoll_event *events, int n, int ms),
        (epoll, events, n, ms))
OUTSIDE_SLEEP(ms != 0, int, epoll_wait, (int epoll, struct epoll_event *events, int n, int ms), (epoll, events, n, ms))

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

OUTSIDE_IF(may_wait(fd), ssize_t, read, (int fd, void *buffer, size_t n), (fd, buffer, n))

SBT_EXPORT int eventfd_read(int fd, eventfd_t *value) {
    ssize_t r = do_read(fd, value, sizeof *value);
    return r == (ssize_t)sizeof *value ? 0 : -1;
}

OUTSIDE_IF(may_wait(fd), ssize_t, readv, (int fd, const struct iovec *parts, int n), (fd, parts, n))

OUTSIDE_IF(may_wait_to_write(fd, n), ssize_t, write, (int fd, const void *buffer, size_t n), (fd, buffer, n))

OUTSIDE_IF(may_wait_to_write(fd, SIZE_MAX), ssize_t, writev, (int fd, const struct iovec *parts, int n), (fd, parts, n))

OUTSIDE_IF((operation & LOCK_UN) == 0 && ((operation & LOCK_NB) == 0 || loops()), int, flock, (int fd, int operation),
           (fd, operation))

/* ---- queues and semaphores that processes share ---- */

/* Of System V's the kernel restarts none. */
#define OUTSIDE_SYSTEM_V(waits, sleeps, result, name, parameters, arguments)                                           \
    SLOW_IF(waits, result, name, parameters, arguments)                                                                \
    OUTSIDE_SLEEP(sleeps, result, name, parameters, arguments)

OUTSIDE_SYSTEM_V((flags & IPC_NOWAIT) == 0 || loops(), (flags & IPC_NOWAIT) == 0, ssize_t, msgrcv,
                 (int queue, void *message, size_t n, long type, int flags), (queue, message, n, type, flags))

OUTSIDE_SYSTEM_V((flags & IPC_NOWAIT) == 0 || loops(), (flags & IPC_NOWAIT) == 0, int, msgsnd,
                 (int queue, const void *message, size_t n, int flags), (queue, message, n, flags))

/* One that only raises semaphores does not wait, nor is it a look. */
static bool may_wait_for(const struct sembuf *operations, size_t n) {
    bool looks = false;
    if (n == 0 || n > SHRT_MAX || !sbt_mapped_readable(operations, n * sizeof *operations))
        return false; /* the kernel refuses it */
    for (size_t i = 0; i < n; i++) {
        if (operations[i].sem_op > 0)
            continue;
        if ((operations[i].sem_flg & IPC_NOWAIT) == 0)
            return true;
        looks = true;
    }
    return looks && loops();
}

OUTSIDE_SYSTEM_V(may_wait_for(operations, n), true, int, semop, (int set, struct sembuf *operations, size_t n),
                 (set, operations, n))

OUTSIDE_SYSTEM_V(may_wait_for(operations, n), true, int, semtimedop,
                 (int set, struct sembuf *operations, size_t n, const struct timespec *timeout),
                 (set, operations, n, timeout))

/* POSIX's. The system call, because the function of the C library was in a library of its own. */
static bool may_wait_for_message(mqd_t queue) {
    struct mq_attr attributes;
    return sbt_syscall3(SYS_mq_getsetattr, queue, 0, &attributes) == 0 && (attributes.mq_flags & O_NONBLOCK) == 0;
}

OUTSIDE_IF(may_wait_for_message(queue) || loops(), ssize_t, mq_receive,
           (mqd_t queue, char *message, size_t n, unsigned *priority), (queue, message, n, priority))

OUTSIDE_IF(may_wait_for_message(queue) || loops(), ssize_t, mq_timedreceive,
           (mqd_t queue, char *restrict message, size_t n, unsigned *restrict priority,
            const struct timespec *restrict end),
           (queue, message, n, priority, end))

OUTSIDE_IF(may_wait_for_message(queue), int, mq_send, (mqd_t queue, const char *message, size_t n, unsigned priority),
           (queue, message, n, priority))

OUTSIDE_IF(may_wait_for_message(queue), int, mq_timedsend,
           (mqd_t queue, const char *message, size_t n, unsigned priority, const struct timespec *end),
           (queue, message, n, priority, end))

/* ---- sockets ---- */

OUTSIDE_IF((flags & MSG_DONTWAIT) == 0 || loops(), ssize_t, recv, (int fd, void *buffer, size_t n, int flags),
           (fd, buffer, n, flags))

OUTSIDE_IF((flags & MSG_DONTWAIT) == 0 || loops(), ssize_t, recvfrom,
           (int fd, void *restrict buffer, size_t n, int flags, struct sockaddr *restrict from,
            socklen_t *restrict size),
           (fd, buffer, n, flags, from, size))

OUTSIDE_IF((flags & MSG_DONTWAIT) == 0 || loops(), ssize_t, recvmsg, (int fd, struct msghdr *message, int flags),
           (fd, message, flags))

OUTSIDE_IF(may_wait_to_write(fd, n), ssize_t, send, (int fd, const void *buffer, size_t n, int flags),
           (fd, buffer, n, flags))

OUTSIDE_IF(may_wait_to_write(fd, n), ssize_t, sendto,
           (int fd, const void *buffer, size_t n, int flags, const struct sockaddr *to, socklen_t size),
           (fd, buffer, n, flags, to, size))

OUTSIDE_IF(may_wait_to_write(fd, SIZE_MAX), ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
           (fd, message, flags))

OUTSIDE_IF(true, int, accept, (int fd, struct sockaddr *restrict from, socklen_t *restrict size), (fd, from, size))

OUTSIDE_IF(true, int, accept4, (int fd, struct sockaddr *restrict from, socklen_t *restrict size, int flags),
           (fd, from, size, flags))

OUTSIDE_IF(true, int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))

OUTSIDE_IF((flags & MSG_DONTWAIT) == 0 || loops(), int, recvmmsg,
           (int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *timeout),
           (fd, messages, n, flags, timeout))

OUTSIDE_IF(may_wait_to_write(fd, SIZE_MAX), int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned n, int flags),
           (fd, messages, n, flags))

/*
 * ---- what is called instead if a program is compiled with _FORTIFY_SOURCE ----
 * `size` is that of the array.
 */
extern ssize_t __read_chk(int fd, void *buffer, size_t n, size_t size);
extern ssize_t __recv_chk(int fd, void *buffer, size_t n, size_t size, int flags);
extern ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t n, size_t size, int flags,
                              struct sockaddr *restrict from, socklen_t *restrict from_size);
extern int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);

SBT_EXPORT ssize_t __read_chk(int fd, void *buffer, size_t n, size_t size) {
    if (SBT_UNLIKELY(n > size))
        __chk_fail();
    return do_read(fd, buffer, n);
}

SBT_EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t n, size_t size, int flags) {
    if (SBT_UNLIKELY(n > size))
        __chk_fail();
    return do_recv(fd, buffer, n, flags);
}

SBT_EXPORT ssize_t __recvfrom_chk(int fd, void *restrict buffer, size_t n, size_t size, int flags,
                                  struct sockaddr *restrict from, socklen_t *restrict from_size) {
    if (SBT_UNLIKELY(n > size))
        __chk_fail();
    return do_recvfrom(fd, buffer, n, flags, from, from_size);
}

SBT_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size) {
    if (SBT_UNLIKELY(n > size / sizeof *fds))
        __chk_fail();
    return do_poll(fds, n, ms);
}

/* ---- children ---- */

OUTSIDE_IF(true, pid_t, wait, (int *status), (status))

OUTSIDE_IF((options & WNOHANG) == 0 || loops(), pid_t, waitpid, (pid_t pid, int *status, int options),
           (pid, status, options))

OUTSIDE_IF((options & WNOHANG) == 0 || loops(), pid_t, wait4,
           (pid_t pid, int *status, int options, struct rusage *usage), (pid, status, options, usage))

OUTSIDE_IF(true, int, system, (const char *command), (command))

OUTSIDE_IF((options & WNOHANG) == 0 || loops(), int, waitid, (idtype_t type, id_t id, siginfo_t *info, int options),
           (type, id, info, options))

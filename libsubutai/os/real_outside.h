/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * glibc's own functions that abi/outside.c passes on, as os/real.h has the others. They are apart because their headers
 * declare common names, because only a library that is preloaded has them, and because each is looked up at its first
 * call: most programs call few of them.
 */
#ifndef SBT_OS_REAL_OUTSIDE_H
#define SBT_OS_REAL_OUTSIDE_H

#include <mqueue.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "os/real.h"

/* Functions that wait for the outside, or for time (abi/outside.c). */
#define SBT_REAL_OUTSIDE_FUNCTIONS(F)                                                                                  \
    F(int, nanosleep, (const struct timespec *, struct timespec *))                                                    \
    F(int, clock_nanosleep, (clockid_t, int, const struct timespec *, struct timespec *))                              \
    F(int, usleep, (useconds_t))                                                                                       \
    F(unsigned, sleep, (unsigned))                                                                                     \
    F(int, thrd_sleep, (const struct timespec *, struct timespec *))                                                   \
    F(int, pause, (void))                                                                                              \
    F(int, poll, (struct pollfd *, nfds_t, int))                                                                       \
    F(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *))                                              \
    F(int, epoll_wait, (int, struct epoll_event *, int, int))                                                          \
    F(ssize_t, read, (int, void *, size_t))                                                                            \
    F(ssize_t, readv, (int, const struct iovec *, int))                                                                \
    F(ssize_t, write, (int, const void *, size_t))                                                                     \
    F(ssize_t, writev, (int, const struct iovec *, int))                                                               \
    F(ssize_t, recv, (int, void *, size_t, int))                                                                       \
    F(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *))                                   \
    F(ssize_t, recvmsg, (int, struct msghdr *, int))                                                                   \
    F(ssize_t, send, (int, const void *, size_t, int))                                                                 \
    F(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))                           \
    F(ssize_t, sendmsg, (int, const struct msghdr *, int))                                                             \
    F(int, accept, (int, struct sockaddr *, socklen_t *))                                                              \
    F(int, accept4, (int, struct sockaddr *, socklen_t *, int))                                                        \
    F(int, connect, (int, const struct sockaddr *, socklen_t))                                                         \
    F(pid_t, wait, (int *))                                                                                            \
    F(pid_t, waitpid, (pid_t, int *, int))                                                                             \
    F(pid_t, wait4, (pid_t, int *, int, struct rusage *))                                                              \
    F(int, waitid, (idtype_t, id_t, siginfo_t *, int))                                                                 \
    F(int, recvmmsg, (int, struct mmsghdr *, unsigned, int, struct timespec *))                                        \
    F(int, sendmmsg, (int, struct mmsghdr *, unsigned, int))                                                           \
    F(int, system, (const char *))                                                                                     \
    F(int, flock, (int, int))                                                                                          \
    F(ssize_t, msgrcv, (int, void *, size_t, long, int))                                                               \
    F(int, msgsnd, (int, const void *, size_t, int))                                                                   \
    F(int, semop, (int, struct sembuf *, size_t))                                                                      \
    F(int, semtimedop, (int, struct sembuf *, size_t, const struct timespec *))                                        \
    F(ssize_t, mq_receive, (mqd_t, char *, size_t, unsigned *))                                                        \
    F(ssize_t, mq_timedreceive, (mqd_t, char *, size_t, unsigned *, const struct timespec *))                          \
    F(int, mq_send, (mqd_t, const char *, size_t, unsigned))                                                           \
    F(int, mq_timedsend, (mqd_t, const char *, size_t, unsigned, const struct timespec *))

struct sbt_real_outside {
    SBT_REAL_OUTSIDE_FUNCTIONS(SBT_REAL_POINTER)
};

/*
 * The function of that name behind ours; NULL: there is none. A plain function is found without the dynamic linker's
 * lock, and the message that dlerror has for the program stays.
 */
void *sbt_real_lookup(const char *name);

#endif

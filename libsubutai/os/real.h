/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * glibc's own functions (or those of the next interposer): for objects that stay glibc's, and for what only glibc can
 * do. Looked up once, by sbt_real_start. Each look-up succeeds, because a failed one allocates. A call before that is a
 * bug.
 */
#ifndef SBT_OS_REAL_H
#define SBT_OS_REAL_H

#include <dlfcn.h>
#include <grp.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* F(result, name, parameters): the functions that are defined here and may have to be passed on. */
#define SBT_REAL_FUNCTIONS(F)                                                                                          \
    F(int, pthread_mutex_init, (pthread_mutex_t *, const pthread_mutexattr_t *))                                       \
    F(int, pthread_mutex_destroy, (pthread_mutex_t *))                                                                 \
    F(int, pthread_mutex_lock, (pthread_mutex_t *))                                                                    \
    F(int, pthread_mutex_trylock, (pthread_mutex_t *))                                                                 \
    F(int, pthread_mutex_timedlock, (pthread_mutex_t *, const struct timespec *))                                      \
    F(int, pthread_mutex_clocklock, (pthread_mutex_t *, clockid_t, const struct timespec *))                           \
    F(int, pthread_mutex_unlock, (pthread_mutex_t *))                                                                  \
    F(int, pthread_barrier_init, (pthread_barrier_t *, const pthread_barrierattr_t *, unsigned))                       \
    F(int, pthread_barrier_destroy, (pthread_barrier_t *))                                                             \
    F(int, pthread_barrier_wait, (pthread_barrier_t *))                                                                \
    F(int, pthread_rwlock_init, (pthread_rwlock_t *, const pthread_rwlockattr_t *))                                    \
    F(int, pthread_rwlock_destroy, (pthread_rwlock_t *))                                                               \
    F(int, pthread_rwlock_rdlock, (pthread_rwlock_t *))                                                                \
    F(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t *))                                                             \
    F(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t *, const struct timespec *))                                  \
    F(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t *, clockid_t, const struct timespec *))                       \
    F(int, pthread_rwlock_wrlock, (pthread_rwlock_t *))                                                                \
    F(int, pthread_rwlock_trywrlock, (pthread_rwlock_t *))                                                             \
    F(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t *, const struct timespec *))                                  \
    F(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t *, clockid_t, const struct timespec *))                       \
    F(int, pthread_rwlock_unlock, (pthread_rwlock_t *))                                                                \
    F(int, pthread_spin_init, (pthread_spinlock_t *, int))                                                             \
    F(int, pthread_spin_destroy, (pthread_spinlock_t *))                                                               \
    F(int, pthread_spin_lock, (pthread_spinlock_t *))                                                                  \
    F(int, pthread_spin_trylock, (pthread_spinlock_t *))                                                               \
    F(int, pthread_spin_unlock, (pthread_spinlock_t *))                                                                \
    F(int, sem_init, (sem_t *, int, unsigned))                                                                         \
    F(int, sem_destroy, (sem_t *))                                                                                     \
    F(int, sem_wait, (sem_t *))                                                                                        \
    F(int, sem_trywait, (sem_t *))                                                                                     \
    F(int, sem_timedwait, (sem_t *, const struct timespec *))                                                          \
    F(int, sem_clockwait, (sem_t *, clockid_t, const struct timespec *))                                               \
    F(int, sem_post, (sem_t *))                                                                                        \
    F(int, sem_getvalue, (sem_t *, int *))                                                                             \
    F(int, pthread_once, (pthread_once_t *, void (*)(void)))                                                           \
    F(int, pthread_create, (pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))                           \
    F(int, pthread_join, (pthread_t, void **))                                                                         \
    F(int, pthread_timedjoin_np, (pthread_t, void **, const struct timespec *))                                        \
    F(int, pthread_clockjoin_np, (pthread_t, void **, clockid_t, const struct timespec *))                             \
    F(int, thrd_create, (thrd_t *, thrd_start_t, void *))                                                              \
    F(int, thrd_join, (thrd_t, int *))                                                                                 \
    F(int, mtx_init, (mtx_t *, int))

/* The same; but on x86-64 only the second version of these, GLIBC_2.3.2, has the present layout. */
#define SBT_REAL_COND_FUNCTIONS(F)                                                                                     \
    F(int, pthread_cond_init, (pthread_cond_t *, const pthread_condattr_t *))                                          \
    F(int, pthread_cond_destroy, (pthread_cond_t *))                                                                   \
    F(int, pthread_cond_wait, (pthread_cond_t *, pthread_mutex_t *))                                                   \
    F(int, pthread_cond_timedwait, (pthread_cond_t *, pthread_mutex_t *, const struct timespec *))                     \
    F(int, pthread_cond_signal, (pthread_cond_t *))                                                                    \
    F(int, pthread_cond_broadcast, (pthread_cond_t *))

/* Added to glibc later, so they have a single version. */
#define SBT_REAL_COND_CLOCK_FUNCTIONS(F)                                                                               \
    F(int, pthread_cond_clockwait, (pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *))

/* Functions that belong to one kernel thread (abi/kernel_thread/pinned.c). */
#define SBT_REAL_KERNEL_THREAD_FUNCTIONS(F)                                                                            \
    F(pid_t, gettid, (void))                                                                                           \
    F(int, sigaltstack, (const stack_t *restrict, stack_t *restrict))                                                  \
    F(int, sigwait, (const sigset_t *restrict, int *restrict))                                                         \
    F(int, sigwaitinfo, (const sigset_t *restrict, siginfo_t *restrict))                                               \
    F(int, sigtimedwait, (const sigset_t *restrict, siginfo_t *restrict, const struct timespec *restrict))             \
    F(int, sigsuspend, (const sigset_t *))                                                                             \
    F(int, pthread_sigmask, (int, const sigset_t *restrict, sigset_t *restrict))                                       \
    F(int, sigprocmask, (int, const sigset_t *restrict, sigset_t *restrict))                                           \
    F(int, nice, (int))                                                                                                \
    F(int, setpriority, (__priority_which_t, id_t, int))                                                               \
    F(int, sched_setaffinity, (pid_t, size_t, const cpu_set_t *))                                                      \
    F(int, sched_setscheduler, (pid_t, int, const struct sched_param *))                                               \
    F(int, sched_setparam, (pid_t, const struct sched_param *))                                                        \
    F(int, timer_create, (clockid_t, struct sigevent *, timer_t *))                                                    \
    F(int, mq_notify, (mqd_t, const struct sigevent *))                                                                \
    F(int, sigpending, (sigset_t *))                                                                                   \
    F(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))                                \
    F(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *))                    \
    F(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *))                                       \
    F(int, pthread_setaffinity_np, (pthread_t, size_t, const cpu_set_t *))                                             \
    F(int, pthread_setschedparam, (pthread_t, int, const struct sched_param *))                                        \
    F(int, pthread_setschedprio, (pthread_t, int))                                                                     \
    F(int, pthread_kill, (pthread_t, int))                                                                             \
    F(int, pthread_sigqueue, (pthread_t, int, const union sigval))                                                     \
    F(int, pthread_cancel, (pthread_t))                                                                                \
    F(int, pthread_setname_np, (pthread_t, const char *))                                                              \
    F(int, pthread_getname_np, (pthread_t, char *, size_t))                                                            \
    F(int, sched_getcpu, (void))                                                                                       \
    F(int, tgkill, (pid_t, pid_t, int))                                                                                \
    F(int, pthread_getcpuclockid, (pthread_t, clockid_t *))                                                            \
    F(int, unshare, (int))                                                                                             \
    F(int, setns, (int, int))                                                                                          \
    F(int, personality, (unsigned long))                                                                               \
    F(long, ptrace, (enum __ptrace_request, ...))                                                                      \
    F(int, capset, (void *, const void *))                                                                             \
    F(int, setfsuid, (uid_t))                                                                                          \
    F(int, setfsgid, (gid_t))                                                                                          \
    F(int, pkey_alloc, (unsigned, unsigned))                                                                           \
    F(int, pkey_set, (int, unsigned))                                                                                  \
    F(int, setuid, (uid_t))                                                                                            \
    F(int, seteuid, (uid_t))                                                                                           \
    F(int, setreuid, (uid_t, uid_t))                                                                                   \
    F(int, setresuid, (uid_t, uid_t, uid_t))                                                                           \
    F(int, setgid, (gid_t))                                                                                            \
    F(int, setegid, (gid_t))                                                                                           \
    F(int, setregid, (gid_t, gid_t))                                                                                   \
    F(int, setresgid, (gid_t, gid_t, gid_t))                                                                           \
    F(int, setgroups, (size_t, const gid_t *))                                                                         \
    F(int, initgroups, (const char *, gid_t))                                                                          \
    F(int, clone, (int (*)(void *), void *, int, void *, ...))                                                         \
    F(pid_t, vfork, (void))                                                                                            \
    F(void *, dlopen, (const char *, int))                                                                             \
    F(void *, dlmopen, (Lmid_t, const char *, int))                                                                    \
    F(int, sigaction, (int, const struct sigaction *restrict, struct sigaction *restrict))                             \
    F(int, __libc_current_sigrtmax, (void))                                                                            \
    F(int, pthread_detach, (pthread_t))                                                                                \
    F(int, thrd_detach, (thrd_t))                                                                                      \
    F(__sighandler_t, signal, (int, __sighandler_t))                                                                   \
    F(int, __libc_start_main,                                                                                          \
      (sbt_main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *))

/*
 * Readings of clocks and of CPU time. The C library's own, found past ours, answer too: with the time of the kernel
 * thread that runs the caller.
 */
#define SBT_REAL_CPU_TIME_FUNCTIONS(F)                                                                                 \
    F(int, clock_gettime, (clockid_t, struct timespec *))                                                              \
    F(int, gettimeofday, (struct timeval *restrict, void *restrict))                                                   \
    F(time_t, time, (time_t *))                                                                                        \
    F(int, timespec_get, (struct timespec *, int))                                                                     \
    F(int, getrusage, (__rusage_who_t, struct rusage *))

/* Functions of newer C libraries; NULL in older ones. */
#define SBT_REAL_NEW_FUNCTIONS(F)                                                                                      \
    F(pid_t, _Fork, (void))                                                                                            \
    F(int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *))

extern int capset(void *header, const void *data); /* declared only by libcap's headers */

typedef int sbt_main_function(int argc, char **argv, char **environment);
/* No header declares these. */
extern int __libc_start_main(sbt_main_function *program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                             void (*linker_fini)(void), void *stack_end);

#define SBT_REAL_POINTER(result, name, parameters) result(*name) parameters;

struct sbt_real {
    SBT_REAL_FUNCTIONS(SBT_REAL_POINTER)
    SBT_REAL_COND_FUNCTIONS(SBT_REAL_POINTER)
    SBT_REAL_COND_CLOCK_FUNCTIONS(SBT_REAL_POINTER)
    SBT_REAL_KERNEL_THREAD_FUNCTIONS(SBT_REAL_POINTER)
    SBT_REAL_CPU_TIME_FUNCTIONS(SBT_REAL_POINTER)
    SBT_REAL_NEW_FUNCTIONS(SBT_REAL_POINTER)
};

extern struct sbt_real sbt_real;

/* The C library's dlsym, found without initialising anything. The library itself calls it too. */
typedef void *sbt_dlsym_function(void *handle, const char *symbol);
sbt_dlsym_function *sbt_real_dlsym(void);

/* The same for dlvsym. */
typedef void *sbt_dlvsym_function(void *handle, const char *symbol, const char *version);
sbt_dlvsym_function *sbt_real_dlvsym(void);

/* Is the C library of that version or newer? Asked before newer functions are looked up: a failed look-up allocates. */
bool sbt_real_is_2_35(void);

/* The library is linked into a program, not preloaded: real_linked.c in place of real_next.c. */
extern const bool sbt_real_is_linked;

/* Look everything up. NULL; or the name of a function that this C library lacks. Allocates only in that case. */
const char *sbt_real_start(void);

#endif

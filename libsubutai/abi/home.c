/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of the C library that belong to one kernel thread: served by going home first, and staying there where what
 * they do or tell stays with the kernel thread (switch/home.c). Without contexts nothing is done but the call.
 */
#ifndef SBT_PREFIX

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/abi.h"
#include "switch/switch.h"

/* ---- which kernel thread it is: nothing else tells whether the program will come back to it ---- */
SBT_EXPORT pid_t gettid(void) {
    sbt_switch_stay_home(false);
    return THEIRS(gettid());
}

/*
 * On which core it runs now. The C library asks the memory that the kernel keeps that in (rseq), which hangs on the TLS
 * base and goes with the context: away from home it tells where the home ran last.
 */
SBT_EXPORT int sched_getcpu(void) {
    unsigned cpu;
    if (SBT_LIKELY(!sbt_switch_carried()) || sbt_syscall3(SYS_getcpu, &cpu, NULL, NULL) != 0)
        return THEIRS(sched_getcpu());
    return (int)cpu;
}

SBT_EXPORT int sigaltstack(const stack_t *restrict stack, stack_t *restrict old) {
    sbt_switch_stay_home(false);
    return THEIRS(sigaltstack(stack, old));
}

/* Signals of the calling thread: who has waited for some is one that does. */
SBT_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal) {
    sbt_switch_stay_home(false);
    return THEIRS(sigwait(set, signal));
}

SBT_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info) {
    sbt_switch_stay_home(false);
    return THEIRS(sigwaitinfo(set, info));
}

SBT_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                            const struct timespec *restrict timeout) {
    sbt_switch_stay_home(false);
    return THEIRS(sigtimedwait(set, info, timeout));
}

SBT_EXPORT int sigsuspend(const sigset_t *set) {
    sbt_switch_stay_home(false);
    return THEIRS(sigsuspend(set));
}

SBT_EXPORT int sigpending(sigset_t *set) {
    sbt_switch_stay_home(false);
    return THEIRS(sigpending(set));
}

/* With a mask for the length of the call, which may block the signals by which threads are fetched. */
SBT_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
    if (mask != NULL)
        sbt_switch_stay_home(false);
    return THEIRS(ppoll(fds, n, timeout, mask));
}

SBT_EXPORT int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                       const struct timespec *restrict timeout, const sigset_t *restrict mask) {
    if (mask != NULL)
        sbt_switch_stay_home(false);
    return THEIRS(pselect(n, in, out, except, timeout, mask));
}

SBT_EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int n, int timeout, const sigset_t *mask) {
    if (mask != NULL)
        sbt_switch_stay_home(false);
    return THEIRS(epoll_pwait(epoll, events, n, timeout, mask));
}

SBT_EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int n, const struct timespec *timeout,
                            const sigset_t *mask) {
    if (mask != NULL)
        sbt_switch_stay_home(false);
    sbt_init();
    if (sbt_real.epoll_pwait2 != NULL)
        return sbt_real.epoll_pwait2(epoll, events, n, timeout, mask);
    errno = ENOSYS;
    return -1;
}

/* ---- masks go with the context ---- */
static const sigset_t *without_kicks(int how, const sigset_t *set, sigset_t *copy) {
    if (set == NULL || how == SIG_UNBLOCK)
        return set;
    *copy = *set;
    return sbt_switch_spare_kicks(copy) ? copy : set;
}

SBT_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    sigset_t copy;
    int r = THEIRS(pthread_sigmask(how, without_kicks(how, set, &copy), old));
    if (set != NULL)
        sbt_switch_mask_changed();
    return r;
}

SBT_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    sigset_t copy;
    int r = THEIRS(sigprocmask(how, without_kicks(how, set, &copy), old));
    if (set != NULL)
        sbt_switch_mask_changed();
    return r;
}

/* ---- how a kernel thread is scheduled, which threads that it creates inherit ---- */
SBT_EXPORT int nice(int more) {
    sbt_switch_stay_home(true);
    return THEIRS(nice(more));
}

SBT_EXPORT int setpriority(__priority_which_t which, id_t who, int priority) {
    if (which == PRIO_PROCESS)
        sbt_switch_keep_home((uint32_t)who);
    return THEIRS(setpriority(which, who, priority));
}

SBT_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus) {
    sbt_switch_keep_home((uint32_t)pid);
    return THEIRS(sched_setaffinity(pid, size, cpus));
}

SBT_EXPORT int sched_setscheduler(pid_t pid, int policy, const struct sched_param *parameters) {
    sbt_switch_keep_home((uint32_t)pid);
    return THEIRS(sched_setscheduler(pid, policy, parameters));
}

SBT_EXPORT int sched_setparam(pid_t pid, const struct sched_param *parameters) {
    sbt_switch_keep_home((uint32_t)pid);
    return THEIRS(sched_setparam(pid, parameters));
}

SBT_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus) {
    sbt_switch_keep_thread_home(thread);
    return THEIRS(pthread_setaffinity_np(thread, size, cpus));
}

SBT_EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters) {
    sbt_switch_keep_thread_home(thread);
    return THEIRS(pthread_setschedparam(thread, policy, parameters));
}

SBT_EXPORT int pthread_setschedprio(pthread_t thread, int priority) {
    sbt_switch_keep_thread_home(thread);
    return THEIRS(pthread_setschedprio(thread, priority));
}

/*
 * ---- signals and cancellations for a thread ----
 * The handler decides whether they interrupt system calls. What is ignored is nothing to come home for; what ends or
 * stops the process has to find a thread that does not block it.
 */
static bool is_ignored(int signal, const struct sigaction *action) {
    return action->sa_handler == SIG_IGN ||
           (action->sa_handler == SIG_DFL &&
            (signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT));
}

static bool is_for_handling(int signal, enum sbt_summons *how) {
    struct sigaction action;
    if (signal == 0 || sigaction(signal, NULL, &action) != 0 || is_ignored(signal, &action))
        return false;
    *how = (action.sa_flags & SA_RESTART) != 0 ? SBT_SUMMONS_TO_GO_ON : SBT_SUMMONS_INTERRUPT;
    return true;
}

static void sent(pthread_t thread, int signal) {
    enum sbt_summons how;
    if (is_for_handling(signal, &how))
        sbt_switch_summon(thread, how);
}

void sbt_sent_to_tid(uint32_t tid, int signal) {
    enum sbt_summons how;
    if (is_for_handling(signal, &how))
        sbt_switch_summon_tid(tid, how);
}

SBT_EXPORT int tgkill(pid_t pid, pid_t tid, int signal) {
    bool self = (uint32_t)tid == sbt_thread_tid();
    if (self)
        sbt_switch_stay_home(false);
    int r = THEIRS(tgkill(pid, tid, signal));
    if (r == 0 && !self)
        sbt_sent_to_tid((uint32_t)tid, signal);
    return r;
}

SBT_EXPORT int pthread_kill(pthread_t thread, int signal) {
    bool self = pthread_equal(thread, pthread_self());
    if (self) /* for good: if it is blocked, it is pending there */
        sbt_switch_stay_home(false);
    int r = THEIRS(pthread_kill(thread, signal));
    if (r == 0 && !self)
        sent(thread, signal);
    return r;
}

SBT_EXPORT int pthread_sigqueue(pthread_t thread, int signal, const union sigval value) {
    bool self = pthread_equal(thread, pthread_self());
    if (self) /* for good: if it is blocked, it is pending there */
        sbt_switch_stay_home(false);
    int r = THEIRS(pthread_sigqueue(thread, signal, value));
    if (r == 0 && !self)
        sent(thread, signal);
    return r;
}

SBT_EXPORT int pthread_cancel(pthread_t thread) {
    if (pthread_equal(thread, pthread_self()))
        sbt_switch_stay_home(false);
    int r = THEIRS(pthread_cancel(thread));
    if (r == 0)
        sbt_switch_summon(thread, SBT_SUMMONS_CANCEL);
    return r;
}

/* ---- timers: those of a thread's own CPU time, and those that signal one thread ---- */
#define CLOCK_OF_A_THREAD 4 /* in the kernel's negative clock ids */

SBT_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
    if (event != NULL && event->sigev_notify == SIGEV_THREAD_ID)
        sbt_switch_keep_home((uint32_t)event->_sigev_un._tid);
    if (clock == CLOCK_THREAD_CPUTIME_ID || (clock < 0 && (clock & CLOCK_OF_A_THREAD) != 0))
        sbt_switch_stay_home(false);
    return THEIRS(timer_create(clock, event, timer));
}

SBT_EXPORT int pthread_getcpuclockid(pthread_t thread, clockid_t *clock) {
    sbt_switch_keep_thread_home(thread);
    return THEIRS(pthread_getcpuclockid(thread, clock));
}

/* ---- names: the C library asks the kernel for the calling thread's own, and reads another's by its id ---- */
SBT_EXPORT int pthread_setname_np(pthread_t thread, const char *name) {
    sbt_switch_hold_home();
    int r = THEIRS(pthread_setname_np(thread, name));
    sbt_switch_release();
    return r;
}

SBT_EXPORT int pthread_getname_np(pthread_t thread, char *name, size_t size) {
    sbt_switch_hold_home();
    int r = THEIRS(pthread_getname_np(thread, name, size));
    sbt_switch_release();
    return r;
}

#endif

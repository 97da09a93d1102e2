/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions of the C library that belong to one kernel thread. The caller's fiber goes home first. It stays there if
 * the effect of the function, or its answer, belongs to that kernel thread (switch/pin.c). Without fibers only the call
 * is made.
 */

#include <errno.h>
#include <mqueue.h>
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
#include "core/priority.h"
#include "os/mapped.h"
#include "os/unwinder.h"
#include "switch/monitor.h"
#include "switch/switch.h"

/*
 * ---- the id of the kernel thread ----
 * It is the home thread's, wherever the fiber runs. To know it does no harm: a call that is given the id of a thread
 * judges that thread. A pinned thread asks the kernel, because it may be in a child that shares its memory.
 */
SBT_EXPORT pid_t gettid(void) {
    uint32_t tid = sbt_switch_home_tid();
    return tid != 0 ? (pid_t)tid : THEIRS(gettid());
}

/*
 * The core that runs the caller. The C library would read it from memory that the kernel writes (rseq). That memory
 * hangs on the TLS base and goes with the fiber: away from home it names the core where the home thread ran last.
 */
SBT_EXPORT int sched_getcpu(void) {
    unsigned cpu;
    if (SBT_LIKELY(!sbt_switch_carried()) || sbt_syscall3(SYS_getcpu, &cpu, NULL, NULL) != 0)
        return THEIRS(sched_getcpu());
    return (int)cpu;
}

/*
 * The alternate signal stack is the home thread's. A carrier has one of its own (switch/signal_stack.h).
 */
static bool is_borne(const stack_t *stack) {
    return stack == NULL || (sbt_mapped_readable(stack, sizeof *stack) &&
                             sbt_switch_bears_signal_stack(stack->ss_flags, stack->ss_size));
}

SBT_EXPORT int sigaltstack(const stack_t *restrict stack, stack_t *restrict old) {
    if (SBT_UNLIKELY(sbt_switch_wanted) && !is_borne(stack))
        sbt_pin_self(false);
    sbt_pin_hold();
    int r = THEIRS(sigaltstack(stack, old));
    sbt_pin_release();
    return r;
}

/* With that timeout a call only looks, and does not wait. */
static bool is_look(const struct timespec *timeout) {
    return timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0;
}

/* Signals of the calling thread. A thread that has waited for signals will do so again. */
SBT_EXPORT int sigwait(const sigset_t *restrict set, int *restrict signal) {
    sbt_pin_self(false);
    return THEIRS_WAITS(sigwait(set, signal));
}

SBT_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info) {
    sbt_pin_self(false);
    return THEIRS_WAITS(sigwaitinfo(set, info));
}

SBT_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                            const struct timespec *restrict timeout) {
    sbt_pin_self(false);
    return THEIRS_WAITS_IF(!is_look(timeout), sigtimedwait(set, info, timeout));
}

SBT_EXPORT int sigsuspend(const sigset_t *set) {
    sbt_pin_self(false);
    return THEIRS_WAITS(sigsuspend(set));
}

SBT_EXPORT int sigpending(sigset_t *set) {
    sbt_pin_self(false);
    return THEIRS(sigpending(set));
}

/*
 * With a mask for the length of the call, which may block the signals of recalls; or without one
 * (sbt_pin_before_sleep).
 */
static void before_wait(const sigset_t *mask, bool sleeps) {
    if (mask != NULL)
        sbt_pin_self(false);
    else if (sleeps)
        sbt_pin_before_sleep();
}

static int do_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
    before_wait(mask, !is_look(timeout));
    int r;
    if (n == 0 && mask == NULL && abi_outside_sleeps(timeout, &r))
        return r;
    return THEIRS_WAITS_IF(!is_look(timeout), ppoll(fds, n, timeout, mask));
}

SBT_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
    return do_ppoll(fds, n, timeout, mask);
}

/* Called instead if a program is compiled with _FORTIFY_SOURCE. `size` is that of the array. */
extern int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size);

SBT_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                           size_t size) {
    if (SBT_UNLIKELY(n > size / sizeof *fds))
        __chk_fail();
    return do_ppoll(fds, n, timeout, mask);
}

SBT_EXPORT int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict except,
                       const struct timespec *restrict timeout, const sigset_t *restrict mask) {
    before_wait(mask, !is_look(timeout));
    int r;
    if (n == 0 && mask == NULL && abi_outside_sleeps(timeout, &r))
        return r;
    return THEIRS_WAITS_IF(!is_look(timeout), pselect(n, in, out, except, timeout, mask));
}

SBT_EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int n, int timeout, const sigset_t *mask) {
    before_wait(mask, timeout != 0);
    return THEIRS_WAITS_IF(timeout != 0, epoll_pwait(epoll, events, n, timeout, mask));
}

SBT_EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int n, const struct timespec *timeout,
                            const sigset_t *mask) {
    before_wait(mask, !is_look(timeout));
    sbt_init();
    if (sbt_real.epoll_pwait2 != NULL)
        return THEIRS_WAITS_IF(!is_look(timeout), epoll_pwait2(epoll, events, n, timeout, mask));
    errno = ENOSYS;
    return -1;
}

/* ---- the highest signal, SIGRTMAX: a program that has learnt it may wait for it ---- */
SBT_EXPORT int __libc_current_sigrtmax(void) {
    sbt_init();
    if (sbt_switch_wanted)
        sbt_recall_reserve();
    return sbt_real.__libc_current_sigrtmax();
}

/* ---- masks go with the fiber ---- */
static const sigset_t *without_recall_signals(int how, const sigset_t *set, sigset_t *copy) {
    if (set == NULL || how == SIG_UNBLOCK)
        return set;
    *copy = *set;
    return sbt_recall_spare_signals(copy) ? copy : set;
}

SBT_EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    sigset_t copy;
    if (set != NULL)
        sbt_switch_handles_signals();
    int r = THEIRS(pthread_sigmask(how, without_recall_signals(how, set, &copy), old));
    if (set != NULL) {
        sbt_switch_mask_changed();
        sbt_receive_mask_set();
    }
    return r;
}

SBT_EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old) {
    sigset_t copy;
    if (set != NULL)
        sbt_switch_handles_signals();
    int r = THEIRS(sigprocmask(how, without_recall_signals(how, set, &copy), old));
    if (set != NULL) {
        sbt_switch_mask_changed();
        sbt_receive_mask_set();
    }
    return r;
}

/* ---- how a kernel thread is scheduled, inherited by the kernel threads that it creates ---- */
SBT_EXPORT int nice(int more) {
    sbt_pin_self(true);
    return THEIRS(nice(more));
}

SBT_EXPORT int setpriority(__priority_which_t which, id_t id, int priority) {
    if (which == PRIO_PROCESS)
        sbt_pin_tid((uint32_t)id, true);
    return THEIRS(setpriority(which, id, priority));
}

SBT_EXPORT int sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *cpus) {
    bool is_own = pid == 0 || (uint32_t)pid == sbt_thread_tid();
    if (is_own)
        sbt_pin_before_affinity();
    else
        sbt_pin_tid((uint32_t)pid, true);
    int r = THEIRS(sched_setaffinity(pid, size, cpus));
    if (is_own)
        sbt_pin_after_affinity();
    return r;
}

SBT_EXPORT int sched_setscheduler(pid_t pid, int policy, const struct sched_param *parameters) {
    sbt_pin_tid((uint32_t)pid, true);
    sbt_priority_note(policy);
    return THEIRS(sched_setscheduler(pid, policy, parameters));
}

SBT_EXPORT int sched_setparam(pid_t pid, const struct sched_param *parameters) {
    sbt_pin_tid((uint32_t)pid, true);
    return THEIRS(sched_setparam(pid, parameters));
}

SBT_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus) {
    bool is_own = pthread_equal(thread, pthread_self());
    if (is_own)
        sbt_pin_before_affinity();
    else
        sbt_pin_thread(thread);
    int r = THEIRS(pthread_setaffinity_np(thread, size, cpus));
    if (is_own)
        sbt_pin_after_affinity();
    return r;
}

SBT_EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters) {
    sbt_pin_thread(thread);
    sbt_priority_note(policy);
    return THEIRS(pthread_setschedparam(thread, policy, parameters));
}

SBT_EXPORT int pthread_setschedprio(pthread_t thread, int priority) {
    sbt_pin_thread(thread);
    return THEIRS(pthread_setschedprio(thread, priority));
}

/*
 * ---- signals and cancellations for a thread ----
 *
 * The handler's flags decide whether the signal interrupts system calls. A thread does not come home for a signal that
 * is ignored. A signal that ends or stops the process must find a thread that does not block it.
 */
static bool is_ignored(int signal, const struct sigaction *action) {
    return action->sa_handler == SIG_IGN ||
           (action->sa_handler == SIG_DFL &&
            (signal == SIGCHLD || signal == SIGURG || signal == SIGWINCH || signal == SIGCONT));
}

static bool is_for_handling(int signal, enum sbt_recall_how *how) {
    struct sigaction action;
    if (signal == 0 || sigaction(signal, NULL, &action) != 0 || is_ignored(signal, &action))
        return false;
    *how = (action.sa_flags & SA_RESTART) != 0 ? SBT_RECALL_TO_GO_ON : SBT_RECALL_INTERRUPT;
    return true;
}

static void sent(pthread_t thread, int signal) {
    enum sbt_recall_how how;
    if (is_for_handling(signal, &how))
        sbt_recall_thread(thread, how);
}

void sbt_sent_to_tid(uint32_t tid, int signal) {
    enum sbt_recall_how how;
    if (is_for_handling(signal, &how))
        sbt_recall_tid(tid, how);
}

SBT_EXPORT int tgkill(pid_t pid, pid_t tid, int signal) {
    bool self = (uint32_t)tid == sbt_thread_tid();
    if (self)
        sbt_pin_self(false);
    int r = THEIRS(tgkill(pid, tid, signal));
    if (r == 0 && !self)
        sbt_sent_to_tid((uint32_t)tid, signal);
    return r;
}

SBT_EXPORT int pthread_kill(pthread_t thread, int signal) {
    bool self = pthread_equal(thread, pthread_self());
    if (self) /* for good: a blocked signal is pending there */
        sbt_pin_self(false);
    int r = THEIRS(pthread_kill(thread, signal));
    if (r == 0 && !self)
        sent(thread, signal);
    return r;
}

SBT_EXPORT int pthread_sigqueue(pthread_t thread, int signal, const union sigval value) {
    bool self = pthread_equal(thread, pthread_self());
    if (self) /* for good: a blocked signal is pending there */
        sbt_pin_self(false);
    int r = THEIRS(pthread_sigqueue(thread, signal, value));
    if (r == 0 && !self)
        sent(thread, signal);
    return r;
}

SBT_EXPORT int pthread_cancel(pthread_t thread) {
    if (pthread_equal(thread, pthread_self()))
        sbt_pin_self(false);
    sbt_init();
    (void)sbt_unwinder_load(); /* for our own clean-ups. Without one the C library ends the process, and says why */
    int r = sbt_engine.order != NULL ? sbt_engine.order->cancel(thread) : sbt_real.pthread_cancel(thread);
    if (r == 0)
        sbt_recall_thread(thread, SBT_RECALL_CANCEL);
    return r;
}

/* ---- timers of a thread's own CPU time, and timers that signal one thread ---- */
#define CLOCK_OF_A_THREAD 4 /* in the kernel's negative clock ids */

SBT_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
    if (event != NULL && event->sigev_notify == SIGEV_THREAD_ID)
        sbt_pin_tid((uint32_t)event->_sigev_un._tid, false);
    if (clock == CLOCK_THREAD_CPUTIME_ID || (clock < 0 && (clock & CLOCK_OF_A_THREAD) != 0))
        sbt_pin_self(false);
    return THEIRS(timer_create(clock, event, timer));
}

/* ---- a notification of a message queue belongs to the process, and ends where any of its threads closes the queue
 * ---- */
SBT_EXPORT int mq_notify(mqd_t queue, const struct sigevent *notification) {
    if (notification != NULL)
        sbt_monitor_keep_descriptors();
    return THEIRS(mq_notify(queue, notification));
}

SBT_EXPORT int pthread_getcpuclockid(pthread_t thread, clockid_t *clock) {
    sbt_pin_thread(thread);
    return THEIRS(pthread_getcpuclockid(thread, clock));
}

/* ---- readings of a thread's own CPU time: see abi/clock.c ---- */
SBT_EXPORT int getrusage(__rusage_who_t scope, struct rusage *usage) {
    if ((int)scope == RUSAGE_THREAD)
        sbt_pin_self(false);
    return THEIRS(getrusage(scope, usage));
}

/* ---- names: the C library asks the kernel for the caller's own name, and reads another thread's by its id ---- */
SBT_EXPORT int pthread_setname_np(pthread_t thread, const char *name) {
    sbt_pin_hold();
    int r = THEIRS(pthread_setname_np(thread, name));
    sbt_pin_release();
    return r;
}

SBT_EXPORT int pthread_getname_np(pthread_t thread, char *name, size_t size) {
    sbt_pin_hold();
    int r = THEIRS(pthread_getname_np(thread, name, size));
    sbt_pin_release();
    return r;
}

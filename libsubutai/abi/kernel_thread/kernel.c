/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that change a kernel thread, or all kernel threads, from then on. The caller's fiber goes home for good;
 * for some functions only with certain arguments. Some functions end switching. Without fibers only the call is made.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/abi.h"
#include "abi/futex.h"
#include "abi/kernel_thread/child.h"
#include "abi/outside.h"
#include "core/cpus.h"
#include "core/log.h"
#include "core/priority.h"
#include "os/fence.h"
#include "os/mapped.h"
#include "switch/monitor.h"
#include "switch/switch.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#define IOPRIO_OF_THREAD 1     /* IOPRIO_WHO_PROCESS, which means a thread; no header has it */
#define PIDFD_OF_THREAD O_EXCL /* PIDFD_THREAD; older headers lack it */

extern int prctl(int option, ...);

static long result_of(long r) {
    if (r >= 0 || r < -4095)
        return r;
    errno = (int)-r;
    return -1;
}

/*
 * What a call concerns: the process; the name of the thread; the kernel thread; the kernel thread and those that it
 * creates.
 */
enum scope { OF_PROCESS, OF_NAME, OF_THREAD, INHERITED };

static void go_home_for(enum scope scope) {
    if (scope == OF_THREAD || scope == INHERITED)
        sbt_pin_self(scope == INHERITED);
}

/* ---- any system call: those that are known to mean the same on every kernel thread, and the rest ---- */
static bool is_futex_without_owner(long operation) {
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAKE:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET:
        return true;
    default: /* operations that know owners, which are kernel threads */
        return false;
    }
}

/*
 * What a thread reads of its own scheduling is what its carrier has too: a thread that has changed it is pinned, and so
 * are the threads that it creates. Files are the process's: Intel's OpenMP library reads one by number when it starts.
 */
static enum scope scope_of_call(long number, long first) {
    switch (number) {
    case SYS_clock_gettime:
        return first == CLOCK_THREAD_CPUTIME_ID ? OF_THREAD : OF_PROCESS;
    case SYS_getrusage:
        return first == RUSAGE_THREAD ? OF_THREAD : OF_PROCESS;
    case SYS_sched_getaffinity:
    case SYS_sched_getscheduler:
    case SYS_sched_getparam:
    case SYS_sched_getattr:
    case SYS_sched_get_priority_max:
    case SYS_sched_get_priority_min:
#ifdef SYS_open
    case SYS_open:
#endif
    case SYS_openat:
    case SYS_close:
    case SYS_read:
    case SYS_pread64:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_lseek:
    case SYS_getrandom:
    case SYS_getpid:
    case SYS_memfd_create:
    case SYS_membarrier:
    case SYS_copy_file_range:
    case SYS_statx:
    case SYS_renameat2:
    case SYS_getdents64:
    case SYS_getcpu:
    case SYS_pidfd_open:
    case SYS_io_setup:
    case SYS_io_submit:
    case SYS_io_getevents:
    case SYS_io_destroy:
        return OF_PROCESS;
    case SYS_io_uring_setup: /* a ring may belong to a single kernel thread */
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
        return OF_THREAD;
    default:
        return INHERITED;
    }
}

/*
 * The thread that a call changes, or signals, by its kernel id. A program may read its threads' ids as it likes; what
 * it does with them comes here. 0: the caller, or the call knows no thread.
 */
static uint32_t target_of(long number, const long *argument) {
    switch (number) {
    case SYS_tkill:
    case SYS_sched_setaffinity:
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr:
        return (uint32_t)argument[0];
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
    case SYS_perf_event_open:
        return (uint32_t)argument[1];
    case SYS_setpriority:
        return argument[0] == PRIO_PROCESS ? (uint32_t)argument[1] : 0;
    case SYS_ioprio_set:
        return argument[0] == IOPRIO_OF_THREAD ? (uint32_t)argument[1] : 0;
    case SYS_pidfd_open:
        return (argument[1] & PIDFD_OF_THREAD) != 0 ? (uint32_t)argument[0] : 0;
    default:
        return 0;
    }
}

static bool is_signal(long number) {
    return number == SYS_tkill || number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo;
}

/* The owner of a futex with priority inheritance gets the waiter's priority, if it is where the kernel knows it. */
static void recall_owner(const uint32_t *word) {
    if ((uintptr_t)word % sizeof *word == 0 && sbt_mapped_readable(word, sizeof *word))
        sbt_recall_tid(__atomic_load_n(word, __ATOMIC_RELAXED) & FUTEX_TID_MASK, SBT_RECALL_TO_GO_ON);
}

static bool installs_handler(long number, const long *argument) {
    typedef void handler_function(int signal);
    handler_function *const *handler = (handler_function *const *)argument[1]; /* the first member of the action */
    return number == SYS_rt_sigaction && (uintptr_t)handler % sizeof *handler == 0 &&
           sbt_mapped_readable(handler, sizeof *handler) && *handler != SIG_DFL && *handler != SIG_IGN;
}

/* A timer signals a thread: that has to be where the signal arrives. */
static void pin_for_timer(const struct sigevent *event) {
    if (event != NULL && sbt_mapped_readable(event, sizeof *event) && event->sigev_notify == SIGEV_THREAD_ID)
        sbt_pin_tid((uint32_t)event->_sigev_un._tid, false);
}

/* Is the caller's affinity set to what it is? Then nothing changes, for its carrier either. libomp does so. */
static bool keeps_affinity(size_t size, const void *cpus) {
    unsigned char now[sizeof(cpu_set_t)] = {0}, wanted[sizeof(cpu_set_t)] = {0};
    if (size > sizeof wanted || !sbt_mapped_readable(cpus, size))
        return false;
    memcpy(wanted, cpus, size);
    return sbt_syscall3(SYS_sched_getaffinity, 0, sizeof now, now) > 0 && memcmp(now, wanted, sizeof now) == 0;
}

/*
 * The program installs a filter of system calls. Without its rules the call only asks what the kernel can do. A filter
 * of the calling thread alone leaves carriers and the monitor alone. A thread at home makes calls that the C library's
 * threads make too, but for the heavy fence.
 */
static void filters_system_calls(bool of_all) {
    sbt_init();
    sbt_switch_before_filter();
    sbt_fence_forbid();
    sbt_cpus_forbid();
    sbt_switch_filters(of_all);
}

static void judge_filter(long number, const long *argument) {
    bool by_prctl = number == SYS_prctl && argument[0] == PR_SET_SECCOMP;
    long mode =
        by_prctl ? argument[1] == SECCOMP_MODE_FILTER ? SECCOMP_SET_MODE_FILTER : SECCOMP_SET_MODE_STRICT : argument[0];
    if (!by_prctl && number != SYS_seccomp)
        return;
    if (mode == SECCOMP_SET_MODE_STRICT || (mode == SECCOMP_SET_MODE_FILTER && argument[2] != 0))
        filters_system_calls(!by_prctl && mode == SECCOMP_SET_MODE_FILTER &&
                             (argument[1] & SECCOMP_FILTER_FLAG_TSYNC) != 0);
}

/*
 * Calls that wait for what the kernel does beside the program. No function of the C library makes them: a program that
 * makes them by instructions of its own, as liburing does, is not seen.
 */
static bool may_wait(long number, const long *argument) {
    switch (number) {
    case SYS_io_uring_enter:
        return ((unsigned)argument[2] != 0 && (argument[3] & IORING_ENTER_GETEVENTS) != 0) ||
               (argument[3] & IORING_ENTER_SQ_WAIT) != 0; /* for room in a queue that a thread of the kernel reads */
    case SYS_io_getevents:
    case SYS_io_pgetevents:
        return argument[1] > 0;
    default:
        return false;
    }
}

static long call(long number, const long *a) {
    return sbt_syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static SBT_NOINLINE long call_outside(long number, const long *argument) {
    ABI_OUTSIDE;
    return call(number, argument);
}

/* ---- children ---- */
static void judge_child(long number, const long *argument) {
    const uint64_t *flags = (const uint64_t *)argument[0]; /* of clone3: the first member of its arguments */
    if (number == SYS_clone)
        abi_child_begins((uint64_t)argument[0]);
    else if (number == SYS_clone3 && (uintptr_t)flags % sizeof *flags == 0 && sbt_mapped_readable(flags, sizeof *flags))
        abi_child_begins(*flags);
}

/* A file that is open can be written when the process has forbidden itself to open any. */
static SBT_NOINLINE void files_end(void) {
    sbt_log_keep();
    if (sbt_engine.order != NULL)
        sbt_engine.order->files_end();
#ifdef SBT_OBSERVED
    if (abi_files_end != NULL)
        abi_files_end();
#endif
}

SBT_EXPORT long syscall(long number, ...) {
    long argument[6]; /* the most that a call can have: the kernel ignores arguments that were not given */
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(more, long);
    va_end(more);
    if (number == SYS_futex && is_futex_without_owner(argument[1]))
        return result_of(abi_futex_from(__builtin_return_address(0), (uint32_t *)argument[0], (int)argument[1],
                                        (uint32_t)argument[2], (uintptr_t)argument[3], (uint32_t *)argument[4],
                                        (uint32_t)argument[5]));
    if (number == SYS_gettid)
        return gettid();
    if (number == SYS_unshare || number == SYS_setns)
        sbt_switch_leave_alone();
    uint32_t target = target_of(number, argument);
    bool another = target != 0 && target != sbt_thread_tid();
    bool binds =
        !another && number == SYS_sched_setaffinity && !keeps_affinity((size_t)argument[1], (const void *)argument[2]);
    judge_filter(number, argument);
    abi_outside_restrict(true, number, argument);
    if (SBT_UNLIKELY(number == SYS_landlock_restrict_self))
        files_end();
    judge_child(number, argument);
    if (another && !is_signal(number))
        sbt_pin_tid(target, number != SYS_pidfd_open); /* no thread inherits a file for another one */
    else if (binds)
        sbt_pin_before_affinity();
    else if (!another && number != SYS_sched_setaffinity)
        go_home_for(number == SYS_pidfd_open && target != 0 ? OF_THREAD : scope_of_call(number, argument[0]));
    if (SBT_UNLIKELY(sbt_switch_wanted && number == SYS_futex) &&
        ((argument[1] & FUTEX_CMD_MASK) == FUTEX_LOCK_PI || (argument[1] & FUTEX_CMD_MASK) == FUTEX_LOCK_PI2))
        recall_owner((const uint32_t *)argument[0]);
    if (SBT_UNLIKELY(sbt_switch_wanted) && installs_handler(number, argument))
        sbt_switch_handles_signals();
    if (SBT_UNLIKELY(sbt_switch_wanted && number == SYS_timer_create))
        pin_for_timer((const struct sigevent *)argument[1]);
    if (number == SYS_mq_notify && argument[1] != 0)
        sbt_monitor_keep_descriptors();
    if (number == SYS_sched_setscheduler)
        sbt_priority_note((int)argument[1]);
    else if (number == SYS_sched_setattr)
        sbt_priority_note(SCHED_FIFO); /* perhaps: the policy is in memory that may not be mapped */
    long r = may_wait(number, argument) ? call_outside(number, argument) : call(number, argument);
    if (r < 0)
        abi_outside_restrict(false, number, argument);
    if (binds)
        sbt_pin_after_affinity();
    if (r == 0 && another && is_signal(number))
        sbt_sent_to_tid(target, (int)argument[number == SYS_tkill ? 1 : 2]);
    return result_of(r);
}

/* ---- properties of a kernel thread, inherited by the kernel threads that it creates ---- */
static enum scope scope_of_option(int option) {
    switch (option) {
    case PR_SET_NAME:
    case PR_GET_NAME:
        return OF_NAME;
    case PR_SET_DUMPABLE:
    case PR_GET_DUMPABLE:
    case PR_SET_PTRACER:
    case PR_SET_CHILD_SUBREAPER:
    case PR_SET_THP_DISABLE:
    case PR_SET_MM:
    case 0x53564d41: /* PR_SET_VMA; older headers lack it */
        return OF_PROCESS;
    default:
        return INHERITED;
    }
}

SBT_EXPORT int prctl(int option, ...) {
    unsigned long argument[4];
    va_list more;
    va_start(more, option);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(more, unsigned long);
    va_end(more);
    enum scope scope = scope_of_option(option);
    const long call[] = {option, (long)argument[0], (long)argument[1]};
    judge_filter(SYS_prctl, call);
    abi_outside_restrict(true, SYS_prctl, call);
    if (sbt_switch_running_load() != 0) /* before there are carriers, all threads inherit it */
        go_home_for(scope);
    if (scope == OF_NAME)
        sbt_pin_hold();
    long r =
        sbt_syscall6(SYS_prctl, option, (long)argument[0], (long)argument[1], (long)argument[2], (long)argument[3], 0);
    if (r < 0)
        abi_outside_restrict(false, SYS_prctl, call);
    if (scope == OF_NAME)
        sbt_pin_release();
    return (int)result_of(r);
}

SBT_EXPORT int unshare(int flags) {
    sbt_switch_leave_alone();
    sbt_pin_self(true);
    return THEIRS(unshare(flags));
}

SBT_EXPORT int setns(int fd, int type) {
    sbt_switch_leave_alone();
    sbt_pin_self(true);
    return THEIRS(setns(fd, type));
}

SBT_EXPORT int personality(unsigned long persona) {
    sbt_pin_self(true);
    return THEIRS(personality(persona));
}

SBT_EXPORT long ptrace(enum __ptrace_request request, ...) {
    va_list more;
    va_start(more, request);
    pid_t pid = va_arg(more, pid_t);
    void *address = va_arg(more, void *), *data = va_arg(more, void *);
    va_end(more);
    sbt_pin_self(false); /* tracer and traced are kernel threads */
    return THEIRS(ptrace(request, pid, address, data));
}

SBT_EXPORT int capset(void *header, const void *data) {
    sbt_pin_self(true);
    return THEIRS(capset(header, data));
}

SBT_EXPORT int setfsuid(uid_t user) {
    sbt_pin_self(true);
    return THEIRS(setfsuid(user));
}

SBT_EXPORT int setfsgid(gid_t group) {
    sbt_pin_self(true);
    return THEIRS(setfsgid(group));
}

/* Rights to memory are in a register that a switch does not save. */
SBT_EXPORT int pkey_alloc(unsigned flags, unsigned rights) {
    sbt_pin_self(true);
    return THEIRS(pkey_alloc(flags, rights));
}

SBT_EXPORT int pkey_set(int key, unsigned rights) {
    sbt_pin_self(true);
    return THEIRS(pkey_set(key, rights));
}

/*
 * ---- credentials ----
 * The C library signals every thread and waits for it, and a parked home thread does not answer. So all fibers go to
 * their home threads and switching ends. Programs do this once if at all, most of them before they have threads.
 */
static bool ends_switching_for(const char *function) {
    if (sbt_switch_end("the program", function, "the C library carries out in every kernel thread"))
        return true;
    errno = EAGAIN;
    return false;
}

/* The same, and the effective user may change to that one, for good or for a while; (uid_t)-1: it stays. */
static bool may_become(uid_t effective, bool for_good, const char *function) {
    if (!ends_switching_for(function))
        return false;
#ifdef SBT_OBSERVED
    if (abi_user_changes != NULL && effective != (uid_t)-1)
        abi_user_changes(effective, for_good);
#else
    (void)effective, (void)for_good;
#endif
    return true;
}

SBT_EXPORT int setuid(uid_t user) {
    return may_become(user, true, "setuid") ? THEIRS(setuid(user)) : -1;
}

SBT_EXPORT int seteuid(uid_t user) {
    return may_become(user, false, "seteuid") ? THEIRS(seteuid(user)) : -1;
}

SBT_EXPORT int setreuid(uid_t real, uid_t effective) {
    return may_become(effective, real != (uid_t)-1, "setreuid") ? THEIRS(setreuid(real, effective)) : -1;
}

SBT_EXPORT int setresuid(uid_t real, uid_t effective, uid_t saved) {
    return may_become(effective, saved == effective, "setresuid") ? THEIRS(setresuid(real, effective, saved)) : -1;
}

SBT_EXPORT int setgid(gid_t group) {
    return ends_switching_for("setgid") ? THEIRS(setgid(group)) : -1;
}

SBT_EXPORT int setegid(gid_t group) {
    return ends_switching_for("setegid") ? THEIRS(setegid(group)) : -1;
}

SBT_EXPORT int setregid(gid_t real, gid_t effective) {
    return ends_switching_for("setregid") ? THEIRS(setregid(real, effective)) : -1;
}

SBT_EXPORT int setresgid(gid_t real, gid_t effective, gid_t saved) {
    return ends_switching_for("setresgid") ? THEIRS(setresgid(real, effective, saved)) : -1;
}

SBT_EXPORT int setgroups(size_t n, const gid_t *groups) {
    return ends_switching_for("setgroups") ? THEIRS(setgroups(n, groups)) : -1;
}

SBT_EXPORT int initgroups(const char *user, gid_t group) {
    return ends_switching_for("initgroups") ? THEIRS(initgroups(user, group)) : -1;
}

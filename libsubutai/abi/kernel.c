/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Functions that change a kernel thread, or all of them, from then on: what is served by going home for good, by
 * argument where it may be harmless, and what ends switching. Without contexts nothing is done but the call.
 */
#ifndef SBT_PREFIX

#include <errno.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/abi.h"
#include "core/fence.h"
#include "core/handlers.h"
#include "switch/switch.h"

extern int prctl(int option, ...);

static long result_of(long r) {
    if (r >= 0 || r < -4095)
        return r;
    errno = (int)-r;
    return -1;
}

/* What a call is about: the whole process; the thread's name; the kernel thread; that and those that it creates. */
enum whose { EVERYBODYS, OF_A_NAME, OF_A_THREAD, INHERITED };

static void go_home_for(enum whose whose) {
    if (whose == OF_A_THREAD || whose == INHERITED)
        sbt_switch_stay_home(whose == INHERITED);
}

/* ---- any system call: those that are known to mean the same on every kernel thread, and the rest ---- */
static bool is_futex_of_anybody(long operation) {
    switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAKE:
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
    case FUTEX_WAKE_OP:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET:
        return true;
    default: /* those with owners, who are kernel threads */
        return false;
    }
}

static enum whose whose_call(long number, long second) {
    switch (number) {
    case SYS_futex:
        return is_futex_of_anybody(second) ? EVERYBODYS : INHERITED;
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
        return EVERYBODYS;
    case SYS_gettid:
    case SYS_io_uring_setup: /* a ring may be for one kernel thread only */
    case SYS_io_uring_enter:
    case SYS_io_uring_register:
        return OF_A_THREAD;
    default:
        return INHERITED;
    }
}

/* It may forbid those that carriers and the watcher make, and whoever sleeps on a guard. */
static void filters_system_calls(void) {
    sbt_init();
    sbt_fence_forbid();
    sbt_switch_refuse("a filter of system calls", "may end the process for the library's own");
}

SBT_EXPORT long syscall(long number, ...) {
    long argument[6]; /* as many as there can be: those that were not given are not looked at by the kernel */
    va_list more;
    va_start(more, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(more, long);
    va_end(more);
    bool signals = number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo;
    uint32_t tid = (uint32_t)argument[number == SYS_tkill ? 0 : 1];
    bool another = (signals || number == SYS_tkill) && tid != sbt_thread_tid();
    if (number == SYS_seccomp || (number == SYS_prctl && argument[0] == PR_SET_SECCOMP))
        filters_system_calls();
    if (!another)
        go_home_for(whose_call(number, argument[1]));
    long r = sbt_syscall6(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    if (r == 0 && another)
        sbt_sent_to_tid(tid, (int)argument[number == SYS_tkill ? 1 : 2]);
    return result_of(r);
}

/* ---- properties of a kernel thread, which those that it creates inherit ---- */
static enum whose whose_option(int option) {
    switch (option) {
    case PR_SET_NAME:
    case PR_GET_NAME:
        return OF_A_NAME;
    case PR_SET_DUMPABLE:
    case PR_GET_DUMPABLE:
    case PR_SET_PTRACER:
    case PR_SET_CHILD_SUBREAPER:
    case PR_SET_THP_DISABLE:
    case PR_SET_MM:
    case 0x53564d41: /* PR_SET_VMA, which older headers lack */
        return EVERYBODYS;
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
    enum whose whose = whose_option(option);
    if (option == PR_SET_SECCOMP)
        filters_system_calls();
    if (sbt_switch_running_load() != 0) /* before that, everybody inherits it */
        go_home_for(whose);
    if (whose == OF_A_NAME)
        sbt_switch_hold_home();
    long r =
        sbt_syscall6(SYS_prctl, option, (long)argument[0], (long)argument[1], (long)argument[2], (long)argument[3], 0);
    if (whose == OF_A_NAME)
        sbt_switch_release();
    return (int)result_of(r);
}

SBT_EXPORT int unshare(int flags) {
    sbt_switch_stay_home(true);
    return THEIRS(unshare(flags));
}

SBT_EXPORT int setns(int fd, int type) {
    sbt_switch_stay_home(true);
    return THEIRS(setns(fd, type));
}

SBT_EXPORT int personality(unsigned long persona) {
    sbt_switch_stay_home(true);
    return THEIRS(personality(persona));
}

SBT_EXPORT long ptrace(enum __ptrace_request request, ...) {
    va_list more;
    va_start(more, request);
    pid_t pid = va_arg(more, pid_t);
    void *address = va_arg(more, void *), *data = va_arg(more, void *);
    va_end(more);
    sbt_switch_stay_home(false); /* tracer and traced are kernel threads */
    return THEIRS(ptrace(request, pid, address, data));
}

SBT_EXPORT int capset(void *header, const void *data) {
    sbt_switch_stay_home(true);
    return THEIRS(capset(header, data));
}

SBT_EXPORT int setfsuid(uid_t user) {
    sbt_switch_stay_home(true);
    return THEIRS(setfsuid(user));
}

SBT_EXPORT int setfsgid(gid_t group) {
    sbt_switch_stay_home(true);
    return THEIRS(setfsgid(group));
}

/* Rights to memory are in a register that no switch saves. */
SBT_EXPORT int pkey_alloc(unsigned flags, unsigned rights) {
    sbt_switch_stay_home(true);
    return THEIRS(pkey_alloc(flags, rights));
}

SBT_EXPORT int pkey_set(int key, unsigned rights) {
    sbt_switch_stay_home(true);
    return THEIRS(pkey_set(key, rights));
}

/*
 * ---- credentials ----
 * The C library signals every thread and waits for it, and a husk does not answer: everybody comes home, for good.
 * Programs do this once if at all, most of them before they have threads.
 */
#define CREDENTIALS(name, parameters, ...)                                                                             \
    SBT_EXPORT int name parameters {                                                                                   \
        if (!sbt_switch_end("the program", #name, "all kernel threads must answer")) {                                 \
            errno = EAGAIN;                                                                                            \
            return -1;                                                                                                 \
        }                                                                                                              \
        return THEIRS(name(__VA_ARGS__));                                                                              \
    }

CREDENTIALS(setuid, (uid_t user), user)
CREDENTIALS(seteuid, (uid_t user), user)
CREDENTIALS(setreuid, (uid_t real, uid_t effective), real, effective)
CREDENTIALS(setresuid, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
CREDENTIALS(setgid, (gid_t group), group)
CREDENTIALS(setegid, (gid_t group), group)
CREDENTIALS(setregid, (gid_t real, gid_t effective), real, effective)
CREDENTIALS(setresgid, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
CREDENTIALS(setgroups, (size_t n, const gid_t *groups), n, groups)
CREDENTIALS(initgroups, (const char *user, gid_t group), user, group)

/* ---- a child without the handlers of fork ---- */
SBT_EXPORT pid_t _Fork(void) {
    sbt_init();
    if (sbt_real._Fork == NULL) {
        errno = ENOSYS;
        return -1;
    }
    sbt_switch_hold_home(); /* the child has the kernel thread that forks, and no other */
    pid_t child = sbt_real._Fork();
    if (child == 0) {
        sbt_handlers_start();
        sbt_switch_fork_child();
    } else {
        sbt_switch_release();
    }
    return child;
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See refused.h. What is not known to be harmless stands here. */
#include "switch/refused.h"

#include <string.h>

#define MASK "depends on signals of one kernel thread"
#define SCHEDULING "sets how one kernel thread is scheduled"
#define KERNEL "changes what belongs to one kernel thread"
#define HIDDEN "may look up what is served elsewhere"
#define ALL "may signal every kernel thread and wait for it"
#define CHILD "makes processes that are told of by nobody"
#define CPU "may keep data of its own for each CPU or kernel thread"

static const struct {
    const char *symbol, *reason;
} refused[] = {
    {"sigblock", MASK},
    {"sigsetmask", MASK},
    {"sighold", MASK},
    {"sigrelse", MASK},
    {"sigset", MASK},
    {"sigpause", MASK},
    {"sched_setattr", SCHEDULING},
    {"__rseq_offset", CPU},
    {"__rseq_size", CPU},
    {"arch_prctl", KERNEL},
    {"cap_set_proc", ALL},
    {"psx_syscall3", ALL},
    {"psx_syscall6", ALL},
    {"clone", CHILD},
    {"dlvsym", HIDDEN},
};

static const char *base_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

bool sbt_switch_is_libc(const char *file) {
    static const char *const parts[] = {"libc.so", "ld-linux", "libm.so", "libpthread.so", "libdl.so", "librt.so"};
    const char *base = base_of(file);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (begins(base, parts[i]))
            return true;
    return false;
}

const char *sbt_switch_refused_library(const char *file) {
    const char *base = base_of(file);
    if (begins(base, "libgomp.so") || begins(base, "libomp.so") || begins(base, "libiomp5.so"))
        return "waits by futexes of its own";
    if (strstr(base, "tcmalloc") != NULL)
        return CPU;
    return NULL;
}

const char *sbt_switch_refused(const char *symbol) {
    if (symbol[0] == '_' && symbol[1] == '_' && begins(symbol + 2, "sig"))
        symbol += 2;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (strcmp(symbol, refused[i].symbol) == 0)
            return refused[i].reason;
    return NULL;
}

static bool among(const char *symbol, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(symbol, names[i]) == 0)
            return true;
    return false;
}

bool sbt_switch_is_interruption(const char *symbol) {
    static const char *const names[] = {"pthread_kill", "pthread_sigqueue", "tgkill"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_switch_is_summons(const char *symbol) {
    static const char *const names[] = {"pthread_kill", "pthread_sigqueue", "pthread_cancel", "tgkill"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_switch_is_mask(const char *symbol) {
    static const char *const names[] = {"pthread_sigmask", "sigprocmask", "pthread_attr_setsigmask_np"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_switch_is_jump(const char *symbol) {
    static const char *const names[] = {"siglongjmp", "longjmp", "__longjmp_chk", "setcontext", "swapcontext"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_switch_main_stays(const char *symbol) {
    /* Handlers: the kernel gives a process's signals to the main thread first, and interrupts what it waits for. */
    static const char *const names[] = {"sigaction",   "__sigaction",  "signal",       "bsd_signal", "__sysv_signal",
                                        "sigvec",      "siginterrupt", "pthread_exit", "thrd_exit",  "sigwait",
                                        "sigwaitinfo", "sigtimedwait", "sigsuspend"};
    return sbt_switch_is_mask(symbol) || among(symbol, names, sizeof names / sizeof *names);
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The table of eligibility_table.h. Only functions that are known to be harmless are left out. */
#include "core/eligibility_table.h"

#include <string.h>

/* Each text ends the sentence "PROGRAM uses SYMBOL, which ...". A user reads there why --wait switch is off. */
#define MASK "sets or waits for a thread's signals in an old way, which Subutai does not follow"
#define SCHEDULING "chooses how the kernel schedules a thread, by a call that Subutai does not follow"
#define KERNEL "can change registers of the kernel's thread, which a switched thread would leave behind"
#define ALL "can have every thread run a function at once, and a switched thread may not be able to answer"
#define CPU "can keep data for each CPU, and a switched thread moves between CPUs at any time"
#define OWN_CALLS "is of an unknown build, and waits in the kernel in a way that cannot be replaced by switching"

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
    {"psx_syscall3", ALL},
    {"psx_syscall6", ALL},
};

static const char *base_of(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

bool sbt_eligibility_is_libc(const char *file) {
    static const char *const parts[] = {"libc.so", "ld-linux", "libm.so", "libpthread.so", "libdl.so", "librt.so"};
    const char *base = base_of(file);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (begins(base, parts[i]))
            return true;
    return false;
}

bool sbt_eligibility_is_gomp(const char *file) {
    const char *base = base_of(file);
    return begins(base, "libgomp.so") || (begins(base, "libgomp-") && strstr(base, ".so") != NULL);
}

/* The caches of gperftools' tcmalloc are its threads', in thread-local memory. Those of Google's other one are CPUs'.
 */
static bool keeps_by_cpu(const char *base) {
    static const char version[] = ".so.4";
    size_t length = strlen(base);
    bool of_gperftools = begins(base, "libtcmalloc") && length >= sizeof version &&
                         strcmp(base + length - (sizeof version - 1), version) == 0;
    return strstr(base, "tcmalloc") != NULL && !of_gperftools;
}

const char *sbt_eligibility_refused_library(const char *file) {
    const char *base = base_of(file);
    if (sbt_eligibility_is_gomp(base))
        return OWN_CALLS;
    if (keeps_by_cpu(base))
        return CPU;
    if (begins(base, "libpsx.so"))
        return ALL;
    return NULL;
}

const char *sbt_eligibility_refused(const char *symbol) {
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

bool sbt_eligibility_is_interruption(const char *symbol) {
    static const char *const names[] = {"pthread_kill", "pthread_sigqueue", "tgkill"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_eligibility_is_recall(const char *symbol) {
    static const char *const names[] = {"pthread_kill", "pthread_sigqueue", "pthread_cancel", "tgkill"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_eligibility_is_mask(const char *symbol) {
    static const char *const names[] = {"pthread_sigmask", "sigprocmask", "pthread_attr_setsigmask_np"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_eligibility_is_jump(const char *symbol) {
    static const char *const names[] = {"siglongjmp", "longjmp", "__longjmp_chk", "setcontext", "swapcontext"};
    return among(symbol, names, sizeof names / sizeof *names);
}

bool sbt_eligibility_is_handling(const char *symbol) {
    static const char *const names[] = {"sigaction",     "__sigaction", "signal", "bsd_signal",
                                        "__sysv_signal", "sysv_signal", "ssignal"};
    return among(symbol, names, sizeof names / sizeof *names);
}

/* "libomp.so.5", "libomp-14.so.5", "libiomp5.so", or a copy in a package of Python's: "libiomp5-0123abcd.so". */
static bool is_llvms_openmp(const char *base) {
    static const char *const names[] = {"libomp", "libiomp5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *rest = base + strlen(names[i]);
        if (!begins(base, names[i]))
            continue;
        if (*rest == '-')
            rest += 1 + strspn(rest + 1, "0123456789abcdef");
        if (begins(rest, ".so"))
            return true;
    }
    return false;
}

/*
 * pthread_exit: threads of libgomp's pools end so when the thread that has used a pool ends. The main thread is in no
 * other thread's pool. LLVM's library has a function that calls it, and calls that function nowhere.
 *
 * sigprocmask: Intel's build of LLVM's library has code of a Fortran compiler in it that calls it for files, and calls
 * that code nowhere. A mask that is changed all the same is seen then (sbt_switch_handles_signals).
 */
static bool is_never_called_by_main(const char *file, const char *symbol) {
    const char *base = base_of(file);
    return (strcmp(symbol, "pthread_exit") == 0 && (sbt_eligibility_is_gomp(file) || is_llvms_openmp(base))) ||
           (strcmp(symbol, "sigprocmask") == 0 && begins(base, "libiomp5") && is_llvms_openmp(base));
}

bool sbt_eligibility_pins_main(const char *file, const char *symbol) {
    /*
     * The kernel gives a signal to the process to the main thread first, and interrupts that thread's wait. So these
     * need it there, as handlers do.
     */
    static const char *const names[] = {"sigvec",  "siginterrupt", "pthread_exit", "thrd_exit",
                                        "sigwait", "sigwaitinfo",  "sigtimedwait", "sigsuspend"};
    return (sbt_eligibility_is_mask(symbol) || among(symbol, names, sizeof names / sizeof *names)) &&
           !is_never_called_by_main(file, symbol);
}

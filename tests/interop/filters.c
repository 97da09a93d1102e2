/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * filters PROGRAM LIBRARY: PROGRAM is started under filters of system calls (seccomp) that were there before it, as in
 * containers and sandboxes. Each filter answers one system call that the library makes, at its start or later, with
 * EPERM, with ENOSYS, or with the end of the process. The oracle is PROGRAM without the library, under the same filter:
 * what runs there runs with the library, prints the same and says one line at most; whatever else, nothing hangs.
 *
 * A filter that ends the process for a call that its author does not know ends it with the library too, if that makes
 * the call: docs/limits.md lists those, and `made_by` is that list.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/checks.h"
#include "lib/tap.h"

#define SECONDS 10 /* a run is some 10 ms */
#define TEXT_MAX 4096
#define CHILD_SIGNALLED 100 /* PROGRAM's exit status, and the signal that ended what it had forked */

enum { NATIVE = 0, GLIBC = 1, DIRECT = 2, SWITCH = 4, NI = 8, DET = 16 };
#define ALL_ENGINES (GLIBC | DIRECT | SWITCH | NI | DET)
#define SERVED (DIRECT | SWITCH | NI | DET)

static const struct engine {
    const char *name;
    unsigned bit;
    const char *variables[2];
} engines[] = {
    {"native", NATIVE, {NULL}}, /* the oracle, first */
    {"glibc", GLIBC, {"SUBUTAI_ENGINE=glibc"}},
    {"direct", DIRECT, {NULL}},
    {"switch", SWITCH, {"SUBUTAI_WAIT=switch"}},
    {"turns", SWITCH, {"SUBUTAI_WAIT=turns!"}},
    {"ni", NI, {"SUBUTAI_ENGINE=ni", "SUBUTAI_NI_SERVICE=dedicated"}},
    {"det", DET, {"SUBUTAI_ENGINE=det"}},
};
#define N_ENGINES (sizeof engines / sizeof *engines)

static const struct action {
    const char *name;
    uint32_t answer;
} actions[] = {
    {"EPERM", SECCOMP_RET_ERRNO | EPERM},
    {"ENOSYS", SECCOMP_RET_ERRNO | ENOSYS},
    {"end", SECCOMP_RET_KILL_PROCESS},
};

#define OTHERS (-1) /* in place of a call's number: all calls that are not in `needed` */

/* A call, or where `bits` is set the calls of that number with one of these bits in an argument. */
struct call {
    const char *name;
    long number;
    int argument;
    uint32_t bits;
    unsigned made_by; /* engines of which docs/limits.md says that they make it */
};

#define CALL(name, ...)                                                                                                \
    { #name, SYS_##name, __VA_ARGS__ }

static const struct call calls[] = {
    CALL(clock_getres, 0, 0, 0),
    CALL(clock_gettime, 0, 0, DIRECT | SWITCH | DET),
    CALL(clock_nanosleep, 0, 0, 0),
    CALL(clone3, 0, 0, 0),
    CALL(close_range, 0, 0, SWITCH | DET),
    CALL(faccessat, 0, 0, NI),
    CALL(fcntl, 0, 0, 0),
    CALL(futex_waitv, 0, 0, 0),
    CALL(getcpu, 0, 0, SWITCH | DET),
    CALL(getdents64, 0, 0, 0),
    CALL(getitimer, 0, 0, 0),
    CALL(getpid, 0, 0, ALL_ENGINES),
    CALL(getppid, 0, 0, DET),
    CALL(getrandom, 0, 0, 0),
    CALL(getrusage, 0, 0, SWITCH | DET),
    CALL(gettid, 0, 0, ALL_ENGINES),
    CALL(io_uring_setup, 0, 0, 0),
    CALL(madvise, 0, 0, 0),
    CALL(mbind, 0, 0, 0),
    CALL(membarrier, 0, 0, 0),
    CALL(memfd_create, 0, 0, 0),
    CALL(mremap, 0, 0, 0),
    CALL(nanosleep, 0, 0, DIRECT | SWITCH | DET),
    CALL(newfstatat, 0, 0, 0),
    CALL(perf_event_open, 0, 0, 0),
    CALL(pidfd_open, 0, 0, 0),
    CALL(prctl, 0, 0, SERVED),
    CALL(pread64, 0, 0, 0),
    CALL(prlimit64, 0, 0, 0),
    CALL(readlinkat, 0, 0, 0),
    CALL(rseq, 0, 0, 0),
    CALL(rt_sigaction, 0, 0, 0),
    CALL(rt_sigprocmask, 0, 0, 0),
    CALL(sched_getaffinity, 0, 0, ALL_ENGINES),
    CALL(sched_getparam, 0, 0, SERVED),
    CALL(sched_getscheduler, 0, 0, ALL_ENGINES),
    CALL(sched_setaffinity, 0, 0, NI),
    CALL(sched_yield, 0, 0, SERVED),
    CALL(set_robust_list, 0, 0, 0),
    CALL(sigaltstack, 0, 0, 0),
    CALL(statx, 0, 0, 0),
    CALL(tgkill, 0, 0, 0),
    CALL(timer_create, 0, 0, 0),
    CALL(unlinkat, 0, 0, 0),
    {"mprotect to code", SYS_mprotect, 2, PROT_EXEC, 0},
    {"what the C library does not call", OTHERS, 0, 0, ALL_ENGINES},
    {"openat of a directory", SYS_openat, 2, O_DIRECTORY, 0},
    {"madvise to wipe in children", SYS_madvise, 2, MADV_WIPEONFORK & ~MADV_DONTNEED, ALL_ENGINES},
};

/* What the C library calls for PROGRAM, and what this program calls until it is PROGRAM. */
static const long needed[] = {
    SYS_brk,
    SYS_clone,
    SYS_clone3,
    SYS_close,
    SYS_execve,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_getrandom,
    SYS_ioctl,
    SYS_madvise,
    SYS_mmap,
    SYS_mprotect,
    SYS_munmap,
    SYS_newfstatat,
    SYS_openat,
    SYS_pread64,
    SYS_prlimit64,
    SYS_read,
    SYS_restart_syscall,
    SYS_rseq,
    SYS_faccessat,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_set_tid_address,
    SYS_rt_sigreturn,
    SYS_set_robust_list,
    SYS_wait4,
    SYS_write,
#ifdef __x86_64__
    SYS_access,
    SYS_arch_prctl,
#endif
};
#define N_NEEDED (sizeof needed / sizeof *needed)

/* ---- a filter ---- */
static struct sock_filter filter[2 * N_NEEDED + 8];

static unsigned short filter_of_others(uint32_t answer) {
    unsigned short n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < N_NEEDED; i++) {
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)needed[i], 0, 1);
        filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    return n;
}

static unsigned short filter_of(const struct call *c, uint32_t answer) {
    const struct sock_filter one[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)c->number, 0, 3),
        /* the low half, on both machines */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + 8 * (unsigned)c->argument)),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, c->bits, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    memcpy(filter, one, sizeof one);
    if (c->bits == 0)
        filter[2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
    return sizeof one / sizeof *one;
}

static void install(const struct call *c, uint32_t answer) {
    struct sock_fprog program = {c->number == OTHERS ? filter_of_others(answer) : filter_of(c, answer), filter};
    OK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    OK_ERRNO(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* ---- one run ---- */
struct run {
    pid_t child;
    int out, err; /* files in memory */
    int status;
    char text[TEXT_MAX];
    char said[TEXT_MAX];
};

static const char *library;
static char *subject[2];

static void become(const struct engine *e, const struct call *c, uint32_t answer, const struct run *r) {
    const struct rlimit none = {0, 0};
    const char *stretch = getenv("CK_TIMEOUT_MULTIPLIER");
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &none);
    if (e->bit != NATIVE)
        setenv("LD_PRELOAD", library, 1);
    for (size_t i = 0; i < sizeof e->variables / sizeof *e->variables && e->variables[i] != NULL; i++)
        putenv((char *)(uintptr_t)e->variables[i]);
    alarm(SECONDS * (stretch != NULL ? (unsigned)atoi(stretch) : 1)); /* a hang ends by SIGALRM */
    dup2(r->out, STDOUT_FILENO);
    dup2(r->err, STDERR_FILENO);
    install(c, answer);
    execv(subject[0], subject);
    _exit(127);
}

static void start(struct run *r, const struct engine *e, const struct call *c, uint32_t answer) {
    r->out = memfd_create("stdout", MFD_CLOEXEC);
    r->err = memfd_create("stderr", MFD_CLOEXEC);
    CHECK(r->out >= 0 && r->err >= 0);
    r->child = fork();
    SYS(r->child);
    if (r->child == 0)
        become(e, c, answer, r);
}

static void read_all(int file, char *text) {
    ssize_t n = pread(file, text, TEXT_MAX - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(file);
}

static void end(struct run *r) {
    CHECK(waitpid(r->child, &r->status, 0) == r->child);
    kill(-r->child, SIGKILL); /* what it has forked */
    read_all(r->out, r->text);
    read_all(r->err, r->said);
}

/* ---- what it came to ---- */
static bool hangs(const struct run *r) {
    return WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGALRM;
}

static bool is_ended_by_filter(const struct run *r) {
    return (WIFSIGNALED(r->status) && WTERMSIG(r->status) == SIGSYS) ||
           (WIFEXITED(r->status) && WEXITSTATUS(r->status) == CHILD_SIGNALLED + SIGSYS);
}

static bool says_one_line_at_most(const struct run *r) {
    const char *end = strchr(r->said, '\n');
    return end == NULL || end[1] == '\0';
}

static bool is_right(const struct run *r, const struct run *native, const struct engine *e, const struct call *c,
                     uint32_t answer) {
    if (native->status != 0)
        return !hangs(r) || hangs(native);
    if (answer == SECCOMP_RET_KILL_PROCESS && (c->made_by & e->bit) != 0 && is_ended_by_filter(r))
        return true;
    return r->status == 0 && strcmp(r->text, native->text) == 0 && says_one_line_at_most(r);
}

static void note(const struct run *r, const char *name) {
    tap_note("%s: %s %d, printed %zu bytes, said: %s", name, WIFSIGNALED(r->status) ? "signal" : "status",
             WIFSIGNALED(r->status) ? WTERMSIG(r->status) : WEXITSTATUS(r->status), strlen(r->text), r->said);
}

static void try(const struct call *c, const struct action *a) {
    static struct run runs[N_ENGINES];
    bool ok = true;
    for (size_t i = 0; i < N_ENGINES; i++)
        start(&runs[i], &engines[i], c, a->answer);
    for (size_t i = 0; i < N_ENGINES; i++)
        end(&runs[i]);
    for (size_t i = 1; i < N_ENGINES; i++) {
        if (is_right(&runs[i], &runs[0], &engines[i], c, a->answer))
            continue;
        note(&runs[i], engines[i].name);
        ok = false;
    }
    if (!ok)
        note(&runs[0], engines[0].name);
    tap_point(ok, "%s: %s", c->name, a->name);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return tap_bail_out("filters PROGRAM LIBRARY");
    subject[0] = argv[1];
    library = argv[2];
    if (prctl(PR_GET_SECCOMP) < 0) {
        tap_skip_all("the kernel has no filters of system calls");
        return tap_end();
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (size_t k = 0; k < sizeof actions / sizeof *actions; k++)
            try(&calls[i], &actions[k]);
    return tap_end();
}

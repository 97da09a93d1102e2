/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * An interposer like any other (libfaketime, allocators, tracers), which looks up the functions behind its own in its
 * constructor and cannot be called before. Under the C library nothing calls it before, since the C library calls its
 * own functions directly. Whatever start-up of the library calls one of these names through its symbol ends here.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* F(name): what preloaded libraries are known to define, and what the library uses. */
/* clang-format off */
#define NAMES(F)                                                                                                       \
    F(clock_gettime) F(gettimeofday) F(time) F(nanosleep) F(clock_nanosleep) F(usleep) F(sleep) F(getenv)              \
    F(secure_getenv) F(setenv) F(getauxval) F(getpid) F(sysconf) F(open) F(open64) F(openat) F(read) F(write)          \
    F(close) F(fstat) F(fstat64) F(fopen) F(readlink) F(mmap) F(mmap64) F(munmap) F(mprotect) F(madvise) F(malloc)     \
    F(calloc) F(realloc) F(free) F(posix_memalign) F(aligned_alloc) F(sched_getaffinity) F(poll) F(select) F(fork)     \
    F(execve) F(pthread_cond_init) F(pthread_cond_timedwait) F(pthread_cond_destroy) F(pthread_rwlock_init)            \
    F(pthread_barrier_init) F(pthread_spin_init) F(sem_init) F(sem_timedwait) F(pthread_create) F(pthread_detach)      \
    F(pthread_condattr_init) F(pthread_condattr_setpshared) F(pthread_rwlockattr_init) F(pthread_barrierattr_init)     \
    F(pthread_attr_init) F(pthread_attr_setstacksize) F(pthread_attr_setdetachstate) F(pthread_key_create)             \
    F(pthread_setspecific) F(pthread_getspecific) F(sigaction) F(pthread_sigmask) F(sigprocmask) F(dlopen)             \
    F(snprintf) F(vsnprintf) F(strtoul) F(setlocale) F(pthread_self) F(pthread_setcancelstate)                         \
    F(pthread_testcancel) F(sigfillset) F(sigemptyset) F(dl_iterate_phdr) F(sched_yield) F(raise)
/* clang-format on */

#define POINTER(name) void *real_##name __attribute__((visibility("hidden")));
NAMES(POINTER)

/* Jumps on, so that one definition serves every signature. */
#if defined(__x86_64__)
#define JUMP(name)                                                                                                     \
    "cmpq $0, real_" name "(%rip)\n je 1f\n jmp *real_" name "(%rip)\n"                                                \
    "1: leaq name_" name "(%rip), %rdi\n jmp too_early\n"
#elif defined(__aarch64__)
#define JUMP(name)                                                                                                     \
    "adrp x16, real_" name "\n ldr x16, [x16, :lo12:real_" name "]\n cbz x16, 1f\n br x16\n"                           \
    "1: adrp x0, name_" name "\n add x0, x0, :lo12:name_" name "\n b too_early\n"
#endif
#define DEFINE(name)                                                                                                   \
    __asm__(".section .rodata\n name_" #name ": .asciz \"" #name "\"\n .text\n .balign 16\n .globl " #name "\n"        \
            ".type " #name ", %function\n" #name ": " JUMP(#name) ".size " #name ", . - " #name "\n");
NAMES(DEFINE)

void too_early(const char *name) __attribute__((used, visibility("hidden")));
void too_early(const char *name) {
    static char text[] = " is called before the constructor of the library that defines it\n";
    struct iovec parts[] = {{(char *)name, strlen(name)}, {text, sizeof text - 1}};
    if (writev(2, parts, 2) >= 0)
        abort();
    _exit(1);
}

#define FIND(name) void *found_##name = dlsym(RTLD_NEXT, #name);
#define KEEP(name) real_##name = found_##name;

__attribute__((constructor)) static void get_ready(void) {
    NAMES(FIND)
    NAMES(KEEP)
}

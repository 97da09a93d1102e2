/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Remote Core Locking: critical sections that are sent to a server thread in place of a lock that is handed over.
 *
 * After J.-P. Lozi et al., Remote Core Locking: Migrating Critical-Section Execution to Improve the Performance of
 * Multithreaded Applications, USENIX ATC 2012, and Lozi's thesis, UPMC 2014. A program that can be changed writes each
 * section as a function; local variables go into a context. All sections of a lock run on that lock's server, so the
 * data that they share stays in one cache. Link with -lsubutai-rcl. The library works with and without preloading.
 *
 * A section runs on the server's thread: errno, pthread_self and thread-local variables are the server's. Sections may
 * block, in system calls or in rcl_cond_wait: another thread of the server then serves the other locks. They may call
 * rcl_execute for other locks of any server, in an order without circles, as with mutexes. They must not use their own
 * lock again, nor end their thread, leave by longjmp or an exception, or fork other than to exec. The server's threads
 * take no signals but those that a section's own instructions cause (SIGSEGV). No function here is for signal handlers.
 *
 * Errors are returned as numbers of errno.h; errno is not set.
 */
#ifndef SUBUTAI_RCL_H
#define SUBUTAI_RCL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rcl_server;

/*
 * To be made by rcl_lock_init or rcl_cond_init; what is inside is the library's. Clients read which server a lock has,
 * and the server writes whether it is held. The gaps keep the two out of one cache line, in an array of locks too.
 */
struct rcl_lock {
    struct rcl_server *server;
    char gap[56];
    uint32_t held;
    char gap_behind[60];
};
struct rcl_cond {
    uint32_t sequence;
};

/*
 * A server, with its threads: servicing threads, a management thread, and if it is pinned a backup thread. `cpu`: the
 * CPU on which it runs, -1: any that the caller may use. The process's CPUs are those of its first thread when this
 * library was loaded: a thread that pins itself later takes none away. EINVAL: the process may not use that CPU, or has
 * a server there. EAGAIN: there are as many servers as CPUs, or no thread could be made. Does not block. If the CPU is
 * taken from the process later, the kernel runs the server on those that are left.
 */
int rcl_server_create(struct rcl_server **server, int cpu);
/*
 * Blocks until its threads have ended. No section may be under way, and none of its locks may be used any more. EINVAL:
 * no server. EDEADLK: called from a section of the same server.
 */
int rcl_server_destroy(struct rcl_server *server);

/* The lock's memory stays until its server is destroyed. EINVAL: no lock or no server. */
int rcl_lock_init(struct rcl_lock *lock, struct rcl_server *server);
/*
 * Runs function(context) under the lock on the lock's server, and returns when it has run. Blocks: a thread that has
 * looked for some tens of microseconds sleeps. EINVAL: no lock or no function, or in a forked child the server's CPU
 * may not be used any more. EAGAIN: more than RCL_MAX_CLIENTS threads that use servers are alive, or in a forked child
 * no thread could be made. From a section of the same server the function is called directly.
 */
int rcl_execute(struct rcl_lock *lock, void (*function)(void *context), void *context);

enum { RCL_MAX_CLIENTS = 1024 };

int rcl_cond_init(struct rcl_cond *cond);
/*
 * In a section of that lock, the innermost one: gives the lock up, blocks until a signal or broadcast that comes after,
 * or spuriously, and takes the lock again. EPERM: the caller is not in a section of that lock.
 */
int rcl_cond_wait(struct rcl_cond *cond, struct rcl_lock *lock);
/* Wake one, or all. In a section or outside; do not block. */
int rcl_cond_signal(struct rcl_cond *cond);
int rcl_cond_broadcast(struct rcl_cond *cond);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the kernel says about this process's threads in /proc. */
#ifndef SBT_OS_PROC_H
#define SBT_OS_PROC_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The state letter of a kernel thread of this process, as in proc(5): 'R' runs or could run; 'S' and 'D' sleep; 'Z' is
 * the process's first thread and has ended; '\0': there is no such thread, or the kernel does not say. Three system
 * calls, no allocation, no libc lock; uses a file descriptor for that time.
 */
char sbt_proc_state(uint32_t tid);

/*
 * What a kernel thread of this process has used so far, in ns: CPU time, and waits for a CPU but for one under way.
 * False: there is no such thread, or the kernel does not say (CONFIG_SCHED_INFO). System calls and file descriptor as
 * above.
 */
bool sbt_proc_used(uint32_t tid, uint64_t *cpu_ns, uint64_t *queued_ns);
/* The same in its schedstat's text: "986686 2000 1", CPU time, waits, and how often it got a CPU. */
bool sbt_proc_used_in(const char *text, uint64_t *cpu_ns, uint64_t *queued_ns);

/* The caller's kernel thread id, where gettid is refused; 0: the kernel does not say. A system call. */
uint32_t sbt_proc_tid(void);

/* When this process started, as in field 22 of its stat in proc(5), which does not change; 0: the kernel does not say.
 */
uint64_t sbt_proc_start(void);
/* The same of a stat file's text. */
uint64_t sbt_proc_start_in(const char *text);

/*
 * Runnable threads of all processes of the machine at this moment, the caller among them; 0: the kernel does not say.
 * In a container it may be the container's alone.
 */
uint32_t sbt_proc_n_runnable(void);

/* The same in /proc/loadavg's text: "0.10 0.20 0.30 3/100 4711", the loads, runnable and all threads, a process. */
uint32_t sbt_proc_runnable_in(const char *text);

/*
 * Does another kernel thread of this process sleep in a system call that was made between those addresses? Also true if
 * the kernel does not say. Three system calls and three for each thread.
 */
bool sbt_proc_any_sleeps_in(uintptr_t from, uintptr_t to);

/*
 * Is it so of one of this process's kernel threads, other than the caller? Also true if the kernel does not say which
 * there are. Three system calls, beside those of `is`; uses a file descriptor for that time.
 */
bool sbt_proc_any_thread(bool (*is)(uint32_t tid, void *argument), void *argument);

/* Has this process a timer (timer_create)? Also true if the kernel does not say. Three system calls. */
bool sbt_proc_has_timers(void);

/*
 * The other threads have ended, and been joined: until the kernel has no other thread of this process. It lets a join
 * return a little before that. For a fifth of a second at most.
 */
void sbt_proc_await_alone(void);

#endif

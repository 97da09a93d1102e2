/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The objects that the dynamic linker has loaded, for the library's own looks at them.
 *
 * dl_iterate_phdr holds a lock of the dynamic linker's. glibc's fork does not free that lock in the child:
 *  1. A thread of ours looks at the objects: the monitor, or one that creates a thread.
 *  2. Another thread forks. The child has a copy of the lock, and not the thread that holds it.
 *  3. The child creates a thread, looks at the objects, and waits for ever.
 * So a fork waits until no thread is inside, and no thread goes inside during a fork. A look blocks signals, because a
 * handler may fork.
 *
 * Both waits have a limit, after which they go on: the program's own call-back of dl_iterate_phdr may hold the dynamic
 * linker's lock and fork, and an atfork handler of the program's may wait for the thread that looks. A fork waits anew
 * whenever a thread has come out, and longer while a thread inside is known to have the lock: then the program's
 * call-back has not, and the thread comes out as soon as it has a core.
 */
#ifndef SBT_OS_OBJECTS_H
#define SBT_OS_OBJECTS_H

#include <link.h>
#include <stddef.h>

/* dl_iterate_phdr. Blocks during a fork, and while the dynamic linker changes its list. `f` must not block. */
int sbt_objects_iterate(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument);

/* Before a fork, by the forking thread: blocks while a thread is inside. Afterwards one of the two, in that order. */
void sbt_objects_fork_prepare(void);
void sbt_objects_fork_parent(void);
/* In the child where the kernel does not wipe memory (os/fork.h); otherwise nothing is left to do. */
void sbt_objects_fork_child(void);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A forked child's own network interfaces; of the group of files of thread.h. */
#ifndef SBT_ENGINE_NI_FORK_H
#define SBT_ENGINE_NI_FORK_H

struct ni_thread;

/* Before a fork, by the thread that forks: wait until its own requests have been served. */
void ni_fork_prepare(void);
/* In the child, as an atfork handler, and before it creates a thread. */
void ni_fork_child(void);
/* The work of ni_fork_child; after _Fork it is done at the first operation. */
void ni_child_begins(void);
/* In a child: give the caller's request `which` of t an answer, if the fork has forgotten it. */
void ni_fork_answer_forgotten(struct ni_thread *t, int which);

#endif

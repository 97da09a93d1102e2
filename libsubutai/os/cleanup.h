/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Clean-ups that the C library calls also when a signal handler leaves the frame by longjmp: glibc's
 * pthread_cleanup_push of before 2003, which is not in its headers. They are a list of the thread's, of frames on its
 * stack; a thread's end and a cancellation call them too, before the unwinder's clean-ups of the same frame.
 */
#ifndef SBT_OS_CLEANUP_H
#define SBT_OS_CLEANUP_H

#include <pthread.h>

extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer, void (*routine)(void *), void *argument);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code with futex calls that the library does not see: instructions of its own in place of the C library's syscall().
 * It is found by looking for a system-call instruction soon after the number of futex(2), in the code of each loaded
 * object. The C library's own files are left out: what they wait on is their own.
 *
 * A word is waited on and woken by the same code, if not by the same function. So
 *  - waits of an object that contains such instructions are left to the kernel, where the object's own wake-ups reach
 *    them, even if they come through syscall();
 *  - a wake-up that has found fewer waiters than it may wake asks the kernel too, while there is such an object.
 */
#ifndef SBT_ABI_UNSEEN_H
#define SBT_ABI_UNSEEN_H

#include <stdbool.h>
#include <stdint.h>

/* May a waiter be in the kernel that unseen code has brought there? Never blocks. */
bool abi_unseen_any(void);

/*
 * Does code at that address belong to an object with unseen calls, or to one that is not known yet? Looks at objects
 * that were loaded since the last time: one of the first calls, and the first after a load, take a while, and take the
 * dynamic linker's lock.
 */
bool abi_unseen_at(const void *code);

/*
 * Under an engine that keeps an order. The creator of the first thread looks, when libraries with sites are served.
 * Does any code make futex calls that are not seen? Before that look: yes. May look, as abi_unseen_at.
 */
void abi_unseen_before_threads(void);
bool abi_unseen_in_order(void);

/* A wake-up has asked the kernel. If it is always asked because nothing has been looked at, look. As abi_unseen_at. */
void abi_unseen_asked_kernel(void);

/* Does the program create threads by clone? They share the creator's thread-local storage: nothing can be served. */
bool abi_unseen_clones(void);

/* The calling thread is about to load code; and it may have done so. */
void abi_unseen_load_begins(void);
void abi_unseen_load_over(void);
/* It ends, and so its last load is over. May block for another thread that looks. */
void abi_unseen_thread_ends(void);

#endif

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

#include "os/arch.h"

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

/* What is known. All atomic. */
struct abi_unseen {
    uint32_t n;       /* ranges of unseen code; written by release, after the entries */
    uint32_t looked;  /* objects that were loaded, ever, when a thread last looked; 0: it has not */
    uint32_t loading; /* loads that have begun, and may not be over: among them the caller's, if it has one */
    uint32_t clones;  /* 1: the program creates threads by clone */
};
extern struct abi_unseen abi_unseen SBT_HIDDEN;

/*
 * Is there no such code, no load and no such thread? Then abi_unseen_at and abi_unseen_clones say so too. The acquire
 * pairs with look_once's release: what that look has found is seen.
 */
static inline bool abi_unseen_is_nothing(void) {
    return __atomic_load_n(&abi_unseen.looked, __ATOMIC_ACQUIRE) != 0 &&
           (__atomic_load_n(&abi_unseen.loading, __ATOMIC_RELAXED) | __atomic_load_n(&abi_unseen.n, __ATOMIC_RELAXED) |
            __atomic_load_n(&abi_unseen.clones, __ATOMIC_RELAXED)) == 0;
}

/* Does the program create threads by clone? They share the creator's thread-local storage: nothing can be served. */
bool abi_unseen_clones(void);

/* The calling thread is about to load code; and it may have done so. */
void abi_unseen_load_begins(void);
void abi_unseen_load_over(void);
/* It ends, and so its last load is over. May block for another thread that looks. */
void abi_unseen_thread_ends(void);

#endif

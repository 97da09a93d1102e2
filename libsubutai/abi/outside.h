/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the recorder, which is above abi/, sees the calls that wait for the outside (outside.c). Only the recording
 * library asks for an observer. Under an engine that keeps an order no call is seen: there it also waits for its turn.
 */
#ifndef SBT_ABI_OUTSIDE_H
#define SBT_ABI_OUTSIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A call under way, on the frame of the exported function. */
struct abi_outside_seen {
    const void *site;  /* the call's return address */
    void *thread;      /* the observer's; NULL: the end is not to be told */
    const void *outer; /* the observer's; so is outer_at */
    uintptr_t outer_at;
};

/* `end` is also called if the thread is cancelled in the call. Both leave errno alone. */
struct abi_outside_observer {
    void (*begin)(struct abi_outside_seen *seen);
    void (*end)(struct abi_outside_seen *seen);
};

/* In the recording library: called before a vfork. NULL: it is not to be told. */
extern void (*abi_vfork_begins)(void);
/*
 * The recorder's, or NULL. The program looks a function up in that handle's scope, where it would not find the
 * recorder's of the same name: is it to get that all the same? The dynamic linker may be asked, and its message stays.
 */
extern bool (*abi_looks_up_observed)(void *handle, const char *symbol, const void *caller);
/* The same before the process's effective user may change to this one, for good or for a while. */
extern void (*abi_user_changes)(uid_t effective, bool for_good);
/* The same before the process may forbid itself to open files (Landlock). */
extern void (*abi_files_end)(void);

/* Set in a constructor, for good. */
extern const struct abi_outside_observer *abi_outside_observer;

/*
 * The reasons why no call is seen; 0: calls are seen. Atomic. It begins with one reason, which is that there is no
 * observer.
 *
 * A reason for good: the program restricts what a thread may do (seccomp), and that ends a program that does anything
 * else. The observer makes system calls, and reads the processor's clock, where the C library does neither. A forked
 * child inherits the reason as it inherits the filter.
 */
extern uint32_t abi_outside_unseen;

static inline void abi_outside_see(bool see) {
    __atomic_fetch_add(&abi_outside_unseen, see ? UINT32_MAX : 1, __ATOMIC_RELAXED);
}

/* Before a system call of the program's, which may restrict it so; and if that has failed, with false. */
#ifdef SBT_OBSERVED
void abi_outside_restrict(bool restricts, long number, const long *argument);
#else
static inline void abi_outside_restrict(bool restricts, long number, const long *argument) {
    (void)restricts, (void)number, (void)argument;
}
#endif

static inline bool abi_outside_is_seen(void) {
    return __atomic_load_n(&abi_outside_unseen, __ATOMIC_RELAXED) == 0;
}

/* Is there a reason for good? Constructors of other libraries may ask this before there is an observer. */
static inline bool abi_outside_is_restricted(void) {
    return __atomic_load_n(&abi_outside_unseen, __ATOMIC_RELAXED) > (abi_outside_observer == NULL);
}

#endif

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How the recorder, which is above abi/, sees the calls that wait for the outside (outside.c). Only the recording
 * library asks for an observer. Under an engine that keeps an order no call is seen: there it also waits for its turn.
 */
#ifndef SBT_ABI_OUTSIDE_H
#define SBT_ABI_OUTSIDE_H

/* A call under way, on the frame of the exported function. */
struct abi_outside_seen {
    const void *site;  /* the call's return address */
    void *thread;      /* the observer's; NULL: the end is not to be told */
    const void *outer; /* the observer's */
};

/* `end` is also called if the thread is cancelled in the call. Both leave errno alone. */
struct abi_outside_observer {
    void (*begin)(struct abi_outside_seen *seen);
    void (*end)(struct abi_outside_seen *seen);
};

/* NULL: there is none. Set in a constructor, for good. */
extern const struct abi_outside_observer *abi_outside_observer;

#endif

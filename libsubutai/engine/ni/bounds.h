/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How much fits into the arrays of a mailbox and of a server's stack. Any numbers from 1 on are right, so the test of
 * the serving (tests/model/ni_walk.c) has smaller ones, to come to each bound soon.
 */
#ifndef SBT_ENGINE_NI_BOUNDS_H
#define SBT_ENGINE_NI_BOUNDS_H

#define NI_RING 16 /* requests that a mailbox holds, as many as the paper's NI buffers */

enum {
    NI_MAX_WAKES = 32,        /* threads to wake that a server notes; it wakes further threads at once */
    NI_MAX_TOUCHED = NI_RING, /* tiles to which it has sent something; it serves these before it takes more requests */
    NI_MAX_TODO = 32          /* tiles to serve; further tiles are served by a nested call */
};

#endif

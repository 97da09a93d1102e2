/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How large things are. The walk of tests/model has another file in the place of this one: its stacks are small. */
#ifndef ATAC_BOUNDS_H
#define ATAC_BOUNDS_H

enum {
    ATAC_MAX_THREADS = 1024,
    PILE_MAX_OFFER = 32 /* tasks that a victim offers at once at most */
};

#endif

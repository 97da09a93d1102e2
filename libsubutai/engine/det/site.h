/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program's call of an operation: where the library was entered.
 *
 * Frames are unwound by libgcc's _Unwind_Backtrace, for the reasons of observe/stack.h, up to the first that is not the
 * library's. That takes a microsecond. On x86-64 the way is remembered: the library's own return addresses, and how far
 * each lies from the frame of the caller of det_site. If all of them are in their places again, the program's return
 * address is in its place too, because each of these functions has a frame of a fixed size.
 */
#ifndef SBT_ENGINE_DET_SITE_H
#define SBT_ENGINE_DET_SITE_H

#include <stdbool.h>
#include <stdint.h>

enum { DET_WAY_FRAMES = 8, DET_WAYS = 4, DET_WAY_PLACES = 64 };

/* Zeroed at first. The caller serializes the calls. */
struct det_site_ways {
    struct det_way {
        uint32_t n; /* 0: none */
        struct {
            uint32_t words; /* from the caller's frame */
            uintptr_t address;
        } own[DET_WAY_FRAMES];
        uint32_t words; /* to the program's return address */
    } ways[DET_WAY_PLACES][DET_WAYS];
    uint32_t next; /* way of a place that is forgotten next */
};

/* Before the first call. If the C library is too old for that, no site is found. */
void det_site_start(void);
/*
 * In an operation, before there is a second thread: libgcc initialises itself at its first unwinding, by pthread_once.
 * Later the initialiser might be another thread's, which waits for the turn; and the log would change the schedule.
 */
void det_site_warm(void);
/* The caller is libgcc's unwinder, on behalf of one of these functions. */
bool det_site_unwinds(void);
/*
 * The return address in the program; 0: not found. `frame` is the caller's __builtin_frame_address(0). Does not block
 * or allocate.
 */
uintptr_t det_site(struct det_site_ways *ways, const uintptr_t *frame);

#endif

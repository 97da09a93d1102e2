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
/*
 * The caller is libgcc's unwinder, on behalf of one of these functions. Its calls of pthread_once and of mutexes are no
 * operations.
 */
bool det_site_unwinds(void);
/* A call of the library by the program. */
struct det_call {
    uintptr_t site;         /* the return address; 0: not found */
    const uintptr_t *place; /* where that stands in the stack; NULL: not known */
};

/* `frame` is the caller's __builtin_frame_address(0). Does not block or allocate. */
struct det_call det_site(struct det_site_ways *ways, const uintptr_t *frame);

/*
 * The call of the function that has made the call, that of the function which this is in, and so on: return addresses.
 *
 * On x86-64 each is one load, at a distance from the one before which the function's unwind table says for the call
 * (os/cfa.h): a function without a frame pointer has a frame of a fixed size there. Frames of other functions, those of
 * more than DET_FRAME_BYTES, and all of other machines, are unwound each time. Both ways find the same.
 */
enum { DET_CALLER_SITES = 4096, DET_CALLER_ROW = 64 /* places where a call may be */ };

/*
 * Of a frame that is not unwound. Code may be unloaded, and other code be where it was: then the load is not of a
 * return address, and may be beyond the stack, of a fiber's that has a guard page. So the kernel is asked where the
 * load is in another page than the place before it, of which it is known that it can be read. What is found of such a
 * call is wrong until the process ends, as is the call site's own name in the log.
 */
enum { DET_FRAME_BYTES = 1024, DET_PAGE_BYTES = 4096 /* the smallest */ };

/* Zeroed at first. The caller serializes the calls. */
struct det_callers {
    struct det_frame {
        uintptr_t address; /* of a call; 0: free */
        enum { DET_FRAME_FIXED, DET_FRAME_VARIES } kind;
        uint32_t words; /* FIXED: from the place of that return address to the next one's */
    } frame[DET_CALLER_SITES];
};

/* The first n, or 0 where there is none or it is not found. As det_site. */
void det_chain(struct det_callers *callers, const struct det_call *call, unsigned n, uintptr_t *chain);

#endif

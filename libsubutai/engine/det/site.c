/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/det/site.h"

#include <stdbool.h>
#include <stddef.h>

#include "os/unwind.h"

static bool is_started; /* otherwise there are no sites */

struct walk {
    const uintptr_t *frame, *last; /* the caller's; the last place, from there on */
    uintptr_t from, site;          /* the return address of `frame`; what is looked for */
    struct det_way *way;
    bool has_begun, is_fixed; /* all places are known */
};

/* Places go up, the first from next to the frame. False: it is not known how far it is to this one. */
static bool note_place(struct walk *w, const uintptr_t *place, uint32_t *words) {
    bool goes_up = w->last == w->frame ? place == w->frame + 1 : place > w->last;
    *words = (uint32_t)(place - w->frame);
    w->last = place;
    return goes_up;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *w = argument;
    struct det_way *way = w->way;
    uintptr_t address = _Unwind_GetIP(context);
    uint32_t words = 0;
    w->has_begun = w->has_begun || address == w->from;
    if (!w->has_begun)
        return _URC_NO_REASON;
    const uintptr_t *place = sbt_unwind_place(context, address);
    w->is_fixed = w->is_fixed && place != NULL && note_place(w, place, &words);
    if (!sbt_is_own_code(address)) {
        w->site = address;
        way->words = words;
        return _URC_END_OF_STACK;
    }
    if (way->n == DET_WAY_FRAMES)
        return _URC_END_OF_STACK;
    way->own[way->n].words = words;
    way->own[way->n++].address = address;
    return _URC_NO_REASON;
}

void det_site_start(void) {
    is_started = sbt_unwind_start();
}

static _Unwind_Reason_Code stop(struct _Unwind_Context *context, void *argument) {
    (void)context;
    (void)argument;
    return _URC_END_OF_STACK;
}

static _Thread_local bool unwinds __attribute__((tls_model("initial-exec")));

bool det_site_unwinds(void) {
    return unwinds;
}

/* Handlers of the program are deferred meanwhile: the caller is in an operation. */
static void unwind(_Unwind_Trace_Fn visit, void *argument) {
    unwinds = true;
    _Unwind_Backtrace(visit, argument);
    unwinds = false;
}

void det_site_warm(void) {
    if (is_started)
        unwind(stop, NULL);
}

/*
 * It ends at the program: the same functions may also have been called by another of the library's.
 *
 * No read is beyond the stack, however small that is. The first place is the caller's own return address. An address
 * that is in its place is that of a function that has its frame there, of a fixed size, and the next place is behind
 * that frame. So the order of the comparisons matters.
 */
static bool is_there(const struct det_way *way, const uintptr_t *frame) {
    for (uint32_t i = 0; i < way->n; i++)
        if (frame[way->own[i].words] != way->own[i].address)
            return false;
    return way->n > 0 && !sbt_is_own_code(frame[way->words]);
}

uintptr_t det_site(struct det_site_ways *ways, const uintptr_t *frame) {
    struct det_way found = {.n = 0};
    struct walk w = {.frame = frame, .last = frame, .from = frame[1], .way = &found, .is_fixed = true};
    struct det_way *place = ways->ways[(frame[1] >> 2) % DET_WAY_PLACES];
    if (!is_started)
        return 0;
    for (uint32_t i = 0; i < DET_WAYS; i++)
        if (is_there(&place[i], frame))
            return frame[place[i].words];
    unwind(step, &w);
    if (w.is_fixed && w.site != 0)
        place[ways->next++ % DET_WAYS] = found;
    return w.site;
}

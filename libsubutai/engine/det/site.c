/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/det/site.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "engine/det/det.h"
#include "engine/det/places.h"
#include "os/cfa.h"
#include "os/mapped.h"
#include "os/unwind.h"

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
    uintptr_t address = sbt_unwinder.ip(context);
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
    sbt_unwind_want();
}

static _Unwind_Reason_Code stop(struct _Unwind_Context *context, void *argument) {
    (void)context;
    (void)argument;
    return _URC_END_OF_STACK;
}

bool det_site_unwinds(void) {
    return det_self.unwinds;
}

/* Handlers of the program are deferred meanwhile: the caller is in an operation. */
static void unwind(_Unwind_Trace_Fn visit, void *argument) {
    det_self.unwinds = true;
    sbt_unwinder.backtrace(visit, argument);
    det_self.unwinds = false;
}

void det_site_warm(void) {
    if (sbt_unwind_can())
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

struct det_call det_site(struct det_site_ways *ways, const uintptr_t *frame) {
    struct det_way found = {.n = 0};
    struct walk w = {.frame = frame, .last = frame, .from = frame[1], .way = &found, .is_fixed = true};
    struct det_way *place = ways->ways[(frame[1] >> 2) % DET_WAY_PLACES];
    if (!sbt_unwind_can())
        return (struct det_call){0};
    for (uint32_t i = 0; i < DET_WAYS; i++)
        if (is_there(&place[i], frame))
            return (struct det_call){frame[place[i].words], &frame[place[i].words]};
    unwind(step, &w);
    w.is_fixed = w.is_fixed && w.site != 0;
    if (w.is_fixed)
        place[ways->next++ % DET_WAYS] = found;
    return (struct det_call){w.site, w.is_fixed ? w.last : NULL};
}

/* ---- callers ---- */

struct chain_walk {
    uintptr_t site, *chain;
    uintptr_t end; /* what ends the chain: 0, or an address of this library */
    unsigned n, n_found;
    bool is_there; /* the frame of `site` has been visited */
};

/* This library begins the program's threads. The unwinding and the table end a chain by this and nothing else. */
static bool is_end(uintptr_t address) {
    return address == 0 || sbt_is_own_code(address);
}

static _Unwind_Reason_Code step_chain(struct _Unwind_Context *context, void *argument) {
    struct chain_walk *w = argument;
    uintptr_t address = sbt_unwinder.ip(context);
    if (w->is_there) {
        if (is_end(address)) {
            w->end = address;
            return _URC_END_OF_STACK;
        }
        w->chain[w->n_found++] = address;
    }
    w->is_there = w->is_there || address == w->site;
    return w->n_found == w->n ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* NULL: it is not known, and there is no room. */
static struct det_frame *frame_of(struct det_callers *callers, uintptr_t address) {
    uint32_t i = (uint32_t)(address * UINT64_C(0x9E3779B97F4A7C15) >> 40) % DET_CALLER_SITES;
    for (uint32_t n = 0; n < DET_CALLER_ROW; n++, i = (i + 1) % DET_CALLER_SITES)
        if (callers->frame[i].address == address || callers->frame[i].address == 0)
            return &callers->frame[i];
    return NULL;
}

/* Code that is made at run time is soon other code. */
static bool is_in_file(uintptr_t return_address) {
    uint32_t range = det_range_of(return_address - 1);
    return range != DET_NO_RANGE && det_range(range)->path[0] != '\0';
}

/*
 * `caller` is the return address behind that call, in this library or not. What is learnt is true of each visit: the
 * size of the frame, and not what it was called from.
 */
static void learn(struct det_frame *frame, const struct det_call *call, uintptr_t caller) {
    const uint32_t word = sizeof(uintptr_t);
    uint32_t bytes;
    frame->address = call->site;
    frame->kind = DET_FRAME_VARIES;
    det_self.unwinds = true;
    bool is_fixed = sbt_cfa_at(call->site, &bytes);
    det_self.unwinds = false;
    if (!is_fixed || bytes > DET_FRAME_BYTES || bytes % word != 0 || call->place[bytes / word] != caller ||
        !is_in_file(call->site))
        return;
    frame->kind = DET_FRAME_FIXED;
    frame->words = bytes / word;
}

static bool is_in_page(const uintptr_t *place, const uintptr_t *other) {
    return ((uintptr_t)place ^ (uintptr_t)other) < DET_PAGE_BYTES;
}

/* Of a frame that has been learnt, the next call; place NULL: it has to be unwound. */
static struct det_call next_call(const struct det_frame *frame, const struct det_call *call) {
    if (frame == NULL || frame->address != call->site || frame->kind == DET_FRAME_VARIES)
        return (struct det_call){0};
    const uintptr_t *place = &call->place[frame->words];
    if (!is_in_page(call->place, place) && !sbt_mapped_now(place, sizeof *place))
        return (struct det_call){0};
    return (struct det_call){*place, place};
}

void det_chain(struct det_callers *callers, const struct det_call *call, unsigned n, uintptr_t *chain) {
    struct chain_walk w = {.site = call->site, .chain = chain, .n = n};
    struct det_call at = *call, next;
    struct det_frame *frame = NULL;
    unsigned k = 0;
    memset(chain, 0, n * sizeof *chain);
    if (at.site == 0)
        return;
    for (; k < n && at.place != NULL; at = next) {
        frame = frame_of(callers, at.site);
        next = next_call(frame, &at);
        if (next.place == NULL)
            break;
        if (is_end(next.site))
            return;
        chain[k++] = next.site;
    }
    if (k == n)
        return;
    memset(chain, 0, n * sizeof *chain);
    unwind(step_chain, &w);
    const uintptr_t caller = k < w.n_found ? chain[k] : k == w.n_found ? w.end : 0;
    if (frame != NULL && frame->address == 0 && at.place != NULL && caller != 0)
        learn(frame, &at, caller);
}

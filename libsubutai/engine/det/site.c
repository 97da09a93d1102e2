/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "engine/det/site.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <unwind.h>

#include "os/real.h"

/* The linker's name for where this library begins: with its ELF header. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));

static uintptr_t n_own_bytes; /* from there to the end of the library's code; 0: no sites */

static bool is_own(uintptr_t address) {
    return address - (uintptr_t)__ehdr_start < n_own_bytes;
}

struct walk {
    const uintptr_t *frame;
    uintptr_t from, site; /* the return address of `frame`; what is looked for */
    struct det_way *way;
    bool has_begun, is_fixed; /* all places are known */
};

/* On x86-64 a return address is below the frame to which it returns. */
static bool note_place(struct walk *w, struct _Unwind_Context *context, uintptr_t address, uint32_t *words) {
#if defined(__x86_64__)
    const uintptr_t *place = (const uintptr_t *)_Unwind_GetCFA(context) - 1;
    *words = (uint32_t)(place - w->frame);
    return *place == address;
#else
    (void)w;
    (void)context;
    (void)address;
    (void)words;
    return false;
#endif
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *w = argument;
    struct det_way *way = w->way;
    uintptr_t address = _Unwind_GetIP(context);
    uint32_t words = 0;
    w->has_begun = w->has_begun || address == w->from;
    if (!w->has_begun)
        return _URC_NO_REASON;
    w->is_fixed = note_place(w, context, address, &words) && w->is_fixed;
    if (!is_own(address)) {
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
    const ElfW(Ehdr) *header = (const void *)__ehdr_start;
    const ElfW(Phdr) *part = (const void *)(__ehdr_start + header->e_phoff);
    if (!sbt_real_is_2_35() || sbt_real_dlsym()(RTLD_DEFAULT, "_dl_find_object") == NULL)
        return;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (part[i].p_type == PT_LOAD && (part[i].p_flags & PF_X) != 0)
            n_own_bytes = part[i].p_vaddr + part[i].p_memsz;
}

static _Unwind_Reason_Code stop(struct _Unwind_Context *context, void *argument) {
    (void)context;
    (void)argument;
    return _URC_END_OF_STACK;
}

void det_site_warm(void) {
    if (n_own_bytes != 0)
        _Unwind_Backtrace(stop, NULL);
}

/* It ends at the program: the same functions may also have been called by another of the library's. */
static bool is_there(const struct det_way *way, const uintptr_t *frame) {
    for (uint32_t i = 0; i < way->n; i++)
        if (frame[way->own[i].words] != way->own[i].address)
            return false;
    return way->n > 0 && !is_own(frame[way->words]);
}

uintptr_t det_site(struct det_site_ways *ways, const uintptr_t *frame) {
    struct det_way found = {.n = 0};
    struct walk w = {.frame = frame, .from = frame[1], .way = &found, .is_fixed = true};
    struct det_way *place = ways->ways[(frame[1] >> 2) % DET_WAY_PLACES];
    if (n_own_bytes == 0)
        return 0;
    for (uint32_t i = 0; i < DET_WAYS; i++)
        if (is_there(&place[i], frame))
            return frame[place[i].words];
    _Unwind_Backtrace(step, &w);
    if (w.is_fixed && w.site != 0)
        place[ways->next++ % DET_WAYS] = found;
    return w.site;
}

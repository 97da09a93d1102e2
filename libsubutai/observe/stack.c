/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See stack.h. */
#include "observe/stack.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "os/unwind.h"

/* N_WAYS: stacks of a place, as of a call site in a function that a loop calls from so many lines. */
enum { N_PLACES = 8, N_WAYS = 16, MAX_FRAMES = 48 };
_Static_assert((int)MAX_FRAMES <= (int)TRACE_MAX_STACK, "trace/format.h");

struct frame {
    uintptr_t address;      /* to which it returns: a call site */
    const uintptr_t *place; /* where that is in memory; NULL: not known */
};

struct stack {
    uintptr_t at; /* the frame of rec_stack_take; 0: free */
    uint32_t number, n;
    bool known; /* all places are */
    struct frame frames[MAX_FRAMES];
};

struct rec_stacks {
    struct {
        struct stack ways[N_WAYS];
        uint32_t next; /* the way that is forgotten next */
    } places[N_PLACES];
};

/* ---- unwinding ---- */

struct walk {
    uintptr_t site;
    bool found; /* the site's frame; the ones before it are the recorder's */
    struct stack *to;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *w = argument;
    int interrupted; /* a signal handler returns there, from another stack perhaps, and that may be unmapped later */
    uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
    w->found = w->found || address == w->site;
    if (!w->found)
        return _URC_NO_REASON;
    if (address == 0 || w->to->n == MAX_FRAMES)
        return _URC_END_OF_STACK;
    if (sbt_is_own_code(address)) /* the program does not know the frames that a thread's routine is called from */
        return _URC_NO_REASON;
    struct frame *frame = &w->to->frames[w->to->n++];
    *frame = (struct frame){address, sbt_unwind_place(context, address)};
    w->to->known = w->to->known && frame->place != NULL && interrupted == 0;
    return _URC_NO_REASON;
}

/* A site that no frame returns to was called by a jump: then it is the whole stack. */
static void unwind(struct stack *to, uintptr_t site) {
    struct walk w = {.site = site, .to = to};
    to->n = 0;
    to->known = true;
    _Unwind_Backtrace(step, &w);
    if (to->n > 0)
        return;
    to->frames[0] = (struct frame){site, NULL};
    to->n = 1;
    to->known = false;
}

/* From the inside outwards: what is compared last is as far out as the thread's own frames are. */
static bool is_same(const struct stack *s, uintptr_t site) {
    if (!s->known || s->frames[0].address != site)
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        if (*s->frames[i].place != s->frames[i].address)
            return false;
    return true;
}

/* ---- numbers ---- */

/* Stacks are known by a hash of their addresses, which is not an address of the program's: the top bit is set. */
static uintptr_t name_of(const struct stack *s) {
    uint64_t hash = s->n;
    for (uint32_t i = 0; i < s->n; i++) {
        hash = (hash ^ s->frames[i].address) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash | UINT64_C(1) << 63;
}

static void define(struct rec_thread *t, const struct stack *s) {
    uint32_t sites[MAX_FRAMES], n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t site = rec_site_of(t, s->frames[i].address);
        if (site != SBT_TRACE_NONE)
            sites[n++] = site;
    }
    if (!trace_define_stack(&t->encoder, s->number, sites, n)) {
        rec_flush(t);
        trace_define_stack(&t->encoder, s->number, sites, n);
    }
    if (!trace_encoder_has_room(&t->encoder))
        rec_flush(t);
}

static uint32_t number_of(struct rec_thread *t, struct stack *s) {
    struct rec_node *node = rec_node_at(name_of(s));
    uint64_t signals;
    if (node == NULL)
        return 0;
    bool fresh = __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) != REC_STACK &&
                 rec_node_claim(node, REC_STACK, &rec.n_stacks, &signals);
    if (fresh)
        rec_node_claimed(node, REC_STACK, signals);
    s->number = node->number + 1;
    if (fresh)
        define(t, s);
    return s->number;
}

/* ---- the interface ---- */

void rec_stack_start(void) {
    struct stack first;
    if (sbt_options.value[SBT_OPT_RECORD_STACKS].u == 0)
        return;
    if (!sbt_unwind_start()) {
        sbt_log(1, "no call stacks are recorded: they need glibc 2.35 or later", NULL);
        return;
    }
    unwind(&first, 0); /* libgcc makes its tables ready, here and not in a call of the program's */
    rec.stack_min_ns = STACK_MIN_NS;
}

SBT_NOINLINE uint32_t rec_stack_take(struct rec_thread *t, const void *site) {
    uintptr_t at = (uintptr_t)__builtin_frame_address(0);
    if (t->stacks == NULL)
        t->stacks = rec_map(sizeof *t->stacks);
    if (t->stacks == NULL || site == NULL)
        return 0;
    __typeof(&t->stacks->places[0]) place = &t->stacks->places[(at >> 4 ^ (uintptr_t)site) % N_PLACES];
    for (uint32_t i = 0; i < N_WAYS; i++)
        if (place->ways[i].at == at && is_same(&place->ways[i], (uintptr_t)site))
            return place->ways[i].number;
    struct stack *s = &place->ways[place->next++ % N_WAYS];
    s->at = 0;
    unwind(s, (uintptr_t)site);
    s->number = number_of(t, s);
    s->at = s->number != 0 ? at : 0;
    return s->number;
}

void rec_stack_forget(struct rec_thread *t) {
    if (t->stacks != NULL)
        sbt_syscall3(SYS_munmap, t->stacks, sizeof *t->stacks, 0);
    t->stacks = NULL;
}

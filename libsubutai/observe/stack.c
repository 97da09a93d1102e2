/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See stack.h. */
#include "observe/stack.h"

#include <string.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "os/unwind.h"

/*
 * N_WAYS: stacks of a place, as of a call site in a function that a loop calls from so many lines. One of up to eight
 * frames is compared by what is in one cache line, and in the program's own stack.
 */
enum { N_PLACES = 8, N_WAYS = 16, MAX_FRAMES = 48 };
_Static_assert((int)MAX_FRAMES <= (int)TRACE_MAX_STACK, "trace/format.h");

struct stack {
    uintptr_t at; /* as it was given to rec_stack_take; 0: free */
    uintptr_t site;
    uint64_t name;
    uint32_t number, n;
    int32_t places[MAX_FRAMES]; /* where in memory the return addresses are: in words from `at` on */
} __attribute__((aligned(64)));

struct place {
    struct stack ways[N_WAYS];
    uint32_t next; /* the way that is forgotten next */
};

struct rec_stacks {
    struct place places[N_PLACES];
};

/* ---- unwinding ---- */

/* A stack that is being unwound. */
struct walk {
    uintptr_t at, site;
    bool found; /* the site's frame; the ones before it are the recorder's */
    bool known; /* all places are */
    uint32_t n;
    uintptr_t addresses[MAX_FRAMES]; /* to which the frames return: call sites */
    int32_t places[MAX_FRAMES];      /* as in struct stack */
};

/* False: `place` is not known, or on another stack, so far away. */
static bool place_of(const struct walk *w, const uintptr_t *place, int32_t *words) {
    int64_t distance = ((int64_t)(uintptr_t)place - (int64_t)w->at) / (int64_t)sizeof *place;
    *words = (int32_t)distance;
    return place != NULL && *words == distance && w->at % sizeof *place == 0;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *w = argument;
    int interrupted; /* a signal handler returns there, from another stack perhaps, and that may be unmapped later */
    uintptr_t address = _Unwind_GetIPInfo(context, &interrupted);
    w->found = w->found || address == w->site;
    if (!w->found)
        return _URC_NO_REASON;
    if (address == 0 || w->n == MAX_FRAMES)
        return _URC_END_OF_STACK;
    if (sbt_is_own_code(address)) /* the program does not know the frames that a thread's routine is called from */
        return _URC_NO_REASON;
    bool known = place_of(w, sbt_unwind_place(context, address), &w->places[w->n]);
    w->known = w->known && known && interrupted == 0;
    w->addresses[w->n++] = address;
    return _URC_NO_REASON;
}

/* A site that no frame returns to was called by a jump: then it is the whole stack. */
static void unwind(struct walk *w) {
    w->known = true;
    _Unwind_Backtrace(step, w);
    if (w->n > 0)
        return;
    w->addresses[0] = w->site;
    w->n = 1;
    w->known = false;
}

/* ---- names ---- */

/* Stacks are known by a hash of their addresses, which is not an address of the program's: the top bit is set. */
static inline uint64_t name_begin(uint32_t n) {
    return n;
}

static inline uint64_t name_add(uint64_t hash, uintptr_t address) {
    hash = (hash ^ address) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static inline uint64_t name_end(uint64_t hash) {
    return hash | UINT64_C(1) << 63;
}

static uint64_t name_of(const struct walk *w) {
    uint64_t hash = name_begin(w->n);
    for (uint32_t i = 0; i < w->n; i++)
        hash = name_add(hash, w->addresses[i]);
    return name_end(hash);
}

/*
 * The addresses that are in the stack's places now have the name that they had. The site is compared on its own: behind
 * another function of the recorder's the places may have what an earlier call has left there.
 */
static inline bool is_same(const struct stack *s, const uintptr_t *at, uintptr_t site) {
    if (s->at != (uintptr_t)at || s->site != site)
        return false;
    uint64_t hash = name_begin(s->n);
    for (uint32_t i = 0; i < s->n; i++)
        hash = name_add(hash, at[s->places[i]]);
    return name_end(hash) == s->name;
}

/* ---- numbers ---- */

static void define(struct rec_thread *t, uint32_t number, const struct walk *w) {
    uint32_t sites[MAX_FRAMES], n = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t site = rec_site_of(t, w->addresses[i]);
        if (site != SBT_TRACE_NONE)
            sites[n++] = site;
    }
    if (!trace_define_stack(&t->encoder, number, sites, n)) {
        rec_flush(t);
        trace_define_stack(&t->encoder, number, sites, n);
    }
    if (!trace_encoder_has_room(&t->encoder))
        rec_flush(t);
}

static uint32_t number_of(struct rec_thread *t, uint64_t name, const struct walk *w) {
    struct rec_node *node = rec_node_at(name);
    uint64_t signals;
    if (node == NULL)
        return 0;
    bool fresh = __atomic_load_n(&node->type, __ATOMIC_ACQUIRE) != REC_STACK &&
                 rec_node_claim(node, REC_STACK, &rec.n_stacks, &signals);
    if (fresh)
        rec_node_claimed(node, REC_STACK, signals);
    if (fresh)
        define(t, node->number + 1, w);
    return node->number + 1;
}

/* ---- the interface ---- */

void rec_stack_start(void) {
    struct walk first = {.n = 0};
    if (sbt_options.value[SBT_OPT_RECORD_STACKS].u == 0)
        return;
    if (!sbt_unwind_start()) {
        sbt_log(1, "no call stacks are recorded: they need glibc 2.35 or later", NULL);
        return;
    }
    unwind(&first); /* libgcc makes its tables ready, here and not in a call of the program's */
    rec.stack_min_ns = STACK_MIN_NS;
}

static struct place *place_for(struct rec_stacks *stacks, uintptr_t at, uintptr_t site) {
    return &stacks->places[(at >> 4 ^ site) % N_PLACES];
}

/* The stack is not among the last ones. It is `to` from now on. */
static SBT_NOINLINE uint32_t take_anew(struct rec_thread *t, uintptr_t at, uintptr_t site, struct stack *to) {
    struct walk w = {.at = at, .site = site};
    to->at = 0;
    unwind(&w);
    to->site = site;
    to->name = name_of(&w);
    to->number = number_of(t, to->name, &w);
    to->n = w.n;
    memcpy(to->places, w.places, w.n * sizeof w.places[0]);
    if (to->number != 0 && w.known)
        to->at = at;
    return to->number;
}

static uint32_t number_in(const struct place *place, const void *at, uintptr_t site) {
    for (uint32_t i = 0; i < N_WAYS; i++)
        if (is_same(&place->ways[i], at, site))
            return place->ways[i].number;
    return 0;
}

uint32_t rec_stack_known(const struct rec_thread *t, const void *at, const void *site) {
    uintptr_t from = (uintptr_t)site;
    bool can_be = t->stacks != NULL && at != NULL;
    return can_be ? number_in(place_for(t->stacks, (uintptr_t)at, from), at, from) : 0;
}

SBT_NOINLINE uint32_t rec_stack_take(struct rec_thread *t, const void *at, const void *site) {
    if (t->stacks == NULL)
        t->stacks = rec_map(sizeof *t->stacks);
    if (t->stacks == NULL || site == NULL)
        return 0;
    struct place *place = place_for(t->stacks, (uintptr_t)at, (uintptr_t)site);
    uint32_t number = rec_stack_known(t, at, site);
    return number != 0 ? number : take_anew(t, (uintptr_t)at, (uintptr_t)site, &place->ways[place->next++ % N_WAYS]);
}

void rec_stack_forget(struct rec_thread *t) {
    if (t->stacks != NULL)
        sbt_syscall3(SYS_munmap, t->stacks, sizeof *t->stacks, 0);
    t->stacks = NULL;
}

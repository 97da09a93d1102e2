/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* See stack.h. */
#include "observe/stack.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "core/log.h"
#include "os/initial.h"
#include "os/unwind.h"

/*
 * N_WAYS: stacks of a place, as of a call site in a function that a loop calls from so many lines. One of up to eight
 * frames is compared by what is in one cache line, and in the program's own stack.
 */
enum { N_PLACES = 8, N_WAYS = 16, MAX_FRAMES = 48, PAGE = 4096, OWN_STACK = 8 << 20 };
_Static_assert((int)MAX_FRAMES <= (int)TRACE_MAX_STACK, "trace/format.h");

/* Where in memory a return address is: words above the one before, the first above `at`. */
struct frame {
    uint16_t words, hash; /* hash: bits of the name of the stack up to here */
};

struct stack {
    uintptr_t at; /* as it was given to rec_stack_take; 0: free */
    uintptr_t site;
    uint64_t name;
    uint32_t number, n;
    struct frame frames[MAX_FRAMES];
} __attribute__((aligned(64)));

struct place {
    struct stack ways[N_WAYS];
    uint32_t next; /* the way that is forgotten next */
};

struct rec_stacks {
    struct place places[N_PLACES];
    uintptr_t end, begin; /* of what is known to be the thread's own stack; 0: not looked at yet */
};

/* ---- unwinding ---- */

/* A stack that is being unwound. */
struct walk {
    uintptr_t at, site;
    bool found; /* the site's frame; the ones before it are the recorder's */
    bool known; /* all places are */
    uint32_t n;
    uint64_t name;                   /* of the frames until now */
    uintptr_t last;                  /* the last place */
    uintptr_t addresses[MAX_FRAMES]; /* to which the frames return: call sites */
    struct frame frames[MAX_FRAMES]; /* as in struct stack */
};

/* Stacks are known by a hash of their addresses, which is not an address of the program's: the top bit is set. */
static inline uint64_t name_add(uint64_t hash, uintptr_t address) {
    hash = (hash ^ address) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static inline uint64_t name_end(uint64_t hash) {
    return hash | UINT64_C(1) << 63;
}

static inline uint16_t part_of(uint64_t hash) {
    return (uint16_t)(hash >> 32);
}

/*
 * False: `place` is not known, or not above the one before it by what can be noted. So what is remembered begins with
 * an `at` below the site's frame, as a word of the recorder's own frames is, and thread-local data are not.
 */
static bool go_to(struct walk *w, uintptr_t place, uint16_t *words) {
    uintptr_t bytes = place - w->last;
    w->last = place;
    *words = (uint16_t)(bytes / sizeof place);
    return place != 0 && bytes != 0 && bytes % sizeof place == 0 && bytes / sizeof place <= UINT16_MAX;
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *argument) {
    struct walk *w = argument;
    int interrupted; /* a signal handler returns there, from another stack perhaps, and that may be unmapped later */
    uintptr_t address = sbt_unwinder.ip_info(context, &interrupted);
    w->found = w->found || address == w->site;
    if (!w->found)
        return _URC_NO_REASON;
    if (address == 0 || w->n == MAX_FRAMES)
        return _URC_END_OF_STACK;
    if (sbt_is_own_code(address)) /* the program does not know the frames that a thread's routine is called from */
        return _URC_NO_REASON;
    struct frame *frame = &w->frames[w->n];
    bool known = go_to(w, (uintptr_t)sbt_unwind_place(context, address), &frame->words);
    w->known = w->known && known && interrupted == 0;
    w->name = name_add(w->name, address);
    frame->hash = part_of(w->name);
    w->addresses[w->n++] = address;
    return _URC_NO_REASON;
}

/* A site that no frame returns to was called by a jump: then it is the whole stack. */
static void unwind(struct walk *w) {
    w->known = w->at % sizeof(uintptr_t) == 0;
    w->last = w->at;
    sbt_unwinder.backtrace(step, w);
    if (w->n == 0) {
        w->addresses[0] = w->site;
        w->n = 1;
        w->name = name_add(0, w->site);
        w->known = false;
    }
    w->name = name_end(w->name);
}

/* ---- what is remembered ---- */

/* The kernel reads a set of signals there (otherwise EFAULT), and only then refuses what it is to do with it. */
static bool is_readable(uintptr_t page) {
    enum { NO_CHANGE = -1, SET_BYTES = 8 };
    return sbt_syscall6(SYS_rt_sigprocmask, NO_CHANGE, (long)page, 0, SET_BYTES, 0, 0) == -EINVAL;
}

/*
 * Is the stack from `at` to `last` the thread's own, which is there as long as the thread is? That ends below the
 * control block, and the first thread's below what the kernel has given the process. It goes down as far as memory can
 * be read: below a thread's stack there is a page that cannot, and stacks of coroutines may be below that.
 */
static bool is_on_own_stack(const struct rec_thread *t, uintptr_t at, uintptr_t last) {
    struct rec_stacks *s = t->stacks;
    if (s->end == 0) {
        s->end = t->tid == rec.process_id ? sbt_auxiliary(AT_RANDOM, 0) : (uintptr_t)__builtin_thread_pointer();
        s->begin = s->end / PAGE * PAGE;
    }
    if (s->end - at >= OWN_STACK || last >= s->end)
        return false;
    while (at < s->begin && is_readable(s->begin - PAGE))
        s->begin -= PAGE;
    return at >= s->begin;
}

/*
 * The addresses that are in the stack's places now have the name that they had. They are compared from the inside out,
 * and no further than to the first that differs: what is behind that is not this stack's frame. The site is compared on
 * its own: behind another function of the recorder's the places may have what an earlier call has left there.
 */
static inline bool is_same(const struct stack *s, const uintptr_t *at, uintptr_t site) {
    if (s->at != (uintptr_t)at || s->site != site)
        return false;
    uint64_t hash = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        at += s->frames[i].words;
        hash = name_add(hash, *at);
        if (part_of(hash) != s->frames[i].hash)
            return false;
    }
    return name_end(hash) == s->name;
}

/* It takes the place of the one that has been there for longest. */
static void remember(struct place *place, const struct walk *w, uint32_t number) {
    struct stack *to = &place->ways[place->next++ % N_WAYS];
    to->at = w->at;
    to->site = w->site;
    to->name = w->name;
    to->number = number;
    to->n = w->n;
    memcpy(to->frames, w->frames, w->n * sizeof w->frames[0]);
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

static uint32_t number_of(struct rec_thread *t, const struct walk *w) {
    struct rec_node *node = rec_node_at(w->name);
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
    sbt_unwind_want();
    (void)sbt_unwind_construct(); /* this is a constructor */
    if (!sbt_unwind_can()) {
        sbt_log(1, "no call stacks are recorded: they need glibc 2.35 or later, and libgcc_s.so.1", NULL);
        return;
    }
    unwind(&first); /* libgcc makes its tables ready, here and not in a call of the program's */
    rec.stack_min_ns = STACK_MIN_NS;
}

static struct place *place_for(struct rec_stacks *stacks, uintptr_t at, uintptr_t site) {
    return &stacks->places[(at >> 4 ^ site) % N_PLACES];
}

/*
 * The stack is not among the last ones. It is from now on, if all of it is the thread's own stack: another one may be
 * unmapped when the next call comes from there, on a smaller one at the same address.
 */
static SBT_NOINLINE uint32_t take_anew(struct rec_thread *t, uintptr_t at, uintptr_t site) {
    struct walk w = {.at = at, .site = site};
    unwind(&w);
    uint32_t number = number_of(t, &w);
    if (number != 0 && w.known && is_on_own_stack(t, at, w.last))
        remember(place_for(t->stacks, at, site), &w, number);
    return number;
}

static uint32_t number_in(const struct place *place, const void *at, uintptr_t site) {
    for (uint32_t i = 0; i < N_WAYS; i++)
        if (is_same(&place->ways[i], at, site))
            return place->ways[i].number;
    return 0;
}

uint32_t rec_stack_known(const struct rec_thread *t, const void *at, const void *site) {
    uintptr_t from = (uintptr_t)site;
    return t->stacks != NULL ? number_in(place_for(t->stacks, (uintptr_t)at, from), at, from) : 0;
}

SBT_NOINLINE uint32_t rec_stack_take(struct rec_thread *t, const void *at, const void *site) {
    if (t->stacks == NULL)
        t->stacks = rec_map(sizeof *t->stacks);
    if (t->stacks == NULL || site == NULL)
        return 0;
    uint32_t number = rec_stack_known(t, at, site);
    return number != 0 ? number : take_anew(t, (uintptr_t)at, (uintptr_t)site);
}

void rec_stack_forget(struct rec_thread *t) {
    if (t->stacks != NULL)
        sbt_syscall3(SYS_munmap, t->stacks, sizeof *t->stacks, 0);
    t->stacks = NULL;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the recorder's OpenMP files share: regions (openmp.c), sections (openmp_lock.c), clang's calls (openmp_kmpc.c).
 */
#ifndef SBT_OBSERVE_OPENMP_INNER_H
#define SBT_OBSERVE_OPENMP_INNER_H

#include "observe/observe.h"
#include "observe/openmp.h"

typedef void rec_openmp_body(void *data);

struct rec_openmp_region {
    rec_openmp_body *body;
    void *data;
    const void *site;
    const struct rec_openmp_library *library;
    const struct rec_openmp_member *first; /* the thread that has met the region */
    uint64_t wake, woken_ns;               /* the number of the wake-up, and when it was over */
    uint32_t object;                       /* of all regions: its number */
    uint32_t ordered; /* 1 + the team's place among those in ordered sections; 0: none yet; atomic */
    /*
     * The last barrier, which the team's threads number alike, and the one at the end. When a thread comes to a barrier
     * all others have read what they agreed on at the last one: they have passed it, or are in it.
     */
    struct rec_openmp_meeting {
        uint64_t number, agreed; /* 0: none yet; atomic */
        uintptr_t address;       /* by which the barrier goes */
        uint64_t generation;
    } barrier, end;
    uint32_t n_arrived;     /* at the end; atomic */
    uint64_t last_ns;       /* the last arrival; atomic */
    struct rec_call at_end; /* the first thread's, from its arrival on */
};

/* What a thread is in. */
struct rec_openmp_place {
    struct rec_openmp_region *region;         /* NULL: none, or one that is not recorded */
    const struct rec_openmp_library *library; /* of the region; NULL: none */
    rec_openmp_body *task;                    /* of gcc's code, that the thread runs in it; NULL: none, or not known */
    unsigned n_threads;                       /* of the team */
    uint32_t n_barriers;                      /* that the thread has met in the region */
    uint32_t n_serial;                        /* regions of one thread within it, which have no barriers */
    bool reduces;                             /* __kmpc_reduce has met the team for `reduction` */
    struct rec_call reduction;                /* under way; a task that runs meanwhile may have regions */
};

/* A call in which the thread may run tasks. */
struct rec_openmp_waiting {
    struct rec_call *call;            /* NULL: none is under way, or the thread runs a task there */
    struct rec_openmp_region *ending; /* at the end of which it is; NULL: at none */
    unsigned n_threads;               /* of that region's team */
};

extern _Thread_local struct rec_openmp_member {
    struct rec_openmp_place in;
    const struct rec_openmp_section *section; /* the call under way */
    bool waits;                               /* for a region: `wait` is under way */
    struct rec_call wait;
    struct rec_openmp_waiting waiting;
    uint32_t n_tasks;  /* that the thread runs, one within the other */
    uint64_t apart_ns; /* of the innermost one so far: other tasks within it, and waits for them */
    unsigned n_asked;  /* threads that the next region of clang's code asks for; 0: as many as there may be */
} rec_openmp_self __attribute__((tls_model("initial-exec")));

/* The function of the run-time library that the caller at `site` would have called; NULL: there is none. */
sbt_function *rec_openmp_real(enum rec_openmp_name name, const void *site);
/* Does the call seem to come from here because it is the region's last one, and a jump? */
bool rec_openmp_is_jump(const void *site);
/* Of a region that begins there: the site's own library, in whatever region that is. */
const struct rec_openmp_library *rec_openmp_library_at(enum rec_openmp_name name, const void *site);

/* The caller meets a region, of 0 for all threads, of which `library` and `body` are set; afterwards at_end is left. */
void rec_openmp_begin_region(struct rec_openmp_region *r, unsigned n_threads, const void *site);
/* Behind the run-time library's call, in the thread that has met the region. */
void rec_openmp_end_region(struct rec_openmp_region *r);
/* Around the region's body, by each thread of the team. */
void rec_openmp_enter_region(struct rec_openmp_region *r, struct rec_openmp_place *outer);
void rec_openmp_leave_region(struct rec_openmp_region *r, const struct rec_openmp_place *outer);
/* The caller is about to wait at a barrier of its region; afterwards the call is left. */
void rec_openmp_meet(struct rec_call *c, const void *site);
/* Tasks that the caller runs from now on are not part of the call. `ending`: as above. */
static inline void rec_openmp_waits(struct rec_call *c, struct rec_openmp_region *ending) {
    rec_openmp_self.waiting =
        (struct rec_openmp_waiting){c->thread != NULL ? c : NULL, ending, rec_openmp_self.in.n_threads};
}
static inline void rec_openmp_waits_no_more(const struct rec_call *c) {
    if (rec_openmp_self.waiting.call == c)
        rec_openmp_self.waiting.call = NULL;
}
/* The caller was at the barrier, and goes on. */
static inline void rec_openmp_met(struct rec_call *c) {
    rec_openmp_waits_no_more(c);
    rec_leave(c, 0);
}
/* The caller has run a task in the call that it waits in. */
void rec_openmp_arrive_again(const struct rec_openmp_waiting *w);
/* openmp_kmpc.c: is it a call by a run-time library itself? */
bool rec_openmp_is_inner(const void *site);

/* A call of a section or lock, and how the run-time library's function is called. */
struct rec_openmp_section {
    void *object;
    const void *site;
    enum rec_openmp_name name;
    enum {
        REC_OPENMP_PLAIN,
        REC_OPENMP_OF_OBJECT,
        REC_OPENMP_AT_PLACE,
        REC_OPENMP_AT_PLACE_OF_OBJECT,
        REC_OPENMP_WITH_HINT
    } form;
    void *place; /* clang's: where it is in the source, and the thread's number */
    int thread;
    uint32_t hint;
};
void rec_openmp_enter_section(const struct rec_openmp_section *s);
void rec_openmp_leave_section(const struct rec_openmp_section *s);
/* The object of the ordered sections of the caller's team. NULL: they are not recorded. */
void *rec_openmp_ordered(void);
/* The region is over, in which no thread of the team is any more. */
void rec_openmp_end_ordered(struct rec_openmp_region *r);

/* Calls clang's code of a region with `n` arguments, of which args has room for eight at least. */
void rec_openmp_invoke(void (*microtask)(int *, int *, ...), int *thread, int *in_team, void **args, long n);
/* Is it a call that this function has made? */
bool rec_openmp_is_invoked(const void *site);

#endif

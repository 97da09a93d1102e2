/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP's tasks, as far as threads run them while they wait: at a barrier, at the end of a region, in taskwait and at
 * the end of a taskgroup. A thread has arrived at a barrier when it has run its last task there. Until then its time
 * between tasks is a wait at `openmp_tasks`, where no known thread wakes it, and the tasks are its work. Else the tasks
 * of the other threads would count as a barrier that lets its threads go late.
 *
 * The run-time library is given a function of this file's instead of a task's own, and what that needs with the task's
 * data:
 *  - GNU's names: the data is copied by a function of the caller's, so a header comes in front of the copy. A
 *    taskloop's range is written over the first two words of the copy, so these are the header's first.
 *  - LLVM's: the task's shared variables lie behind its private ones. The private ones get 16 bytes more, and the last
 *    8 of these are the task's function. If they do not lie there the task is left as it is.
 *
 * Why not by LLVM's tools interface (OMPT): a process has one tool, which may be the user's; GNU's library has no such
 * interface; and regions and barriers have their names by call sites with both.
 *
 * A profile counts the tasks by their functions, as holds of `openmp_tasks` (trace.h): the time of each without the
 * tasks that the thread has run meanwhile, and without its waits for tasks.
 *
 * A task may run within another one, on its thread's stack, as deep as the program's tasks have tasks of their own. The
 * stack that this file takes of it is bounded:
 *  - Of a task that is MOST_NESTED deep nothing is noted, nor of waits for tasks in it. It has begun in the midst of
 * its thread's work.
 *  - There, one that is to run at once (GNU's name) is left as it is. Another one may get to a thread that waits, so it
 *    is left as it is at MOST_MADE only: the run-time library may run it at once as well.
 */
#include <errno.h>
#include <string.h>

#include "observe/openmp_inner.h"
#include "observe/profile.h"

enum { MOST_NESTED = 64, MOST_MADE = 1000 };

static char openmp_tasks[8]; /* an object without an address in the program; a report shows it by this name */

/*
 * What the thread has waited for since the call began, or since its last task. No wake-up is known to have ended it, so
 * it says that none has: a prediction lets such a wait last as long as it did.
 */
static struct sbt_trace_event wait_of(const struct rec_call *c) {
    return (struct sbt_trace_event){.op = SBT_TRACE_FUTEX_WAIT,
                                    .type = SBT_TRACE_FUTEX,
                                    .result = ETIMEDOUT,
                                    .object = SBT_TRACE_NONE,
                                    .other = SBT_TRACE_NONE,
                                    .site = c->event.site};
}

/* A task that the thread runs: what it was in before, and since when it has run. */
struct running {
    struct rec_openmp_waiting waiting;
    uint64_t begin_ns, apart_ns;
};

static bool is_nested_too_deep(void) {
    return SBT_UNLIKELY(rec_openmp_self.n_tasks >= MOST_NESTED);
}

static void begin_task(struct running *outer) {
    struct rec_openmp_member *self = &rec_openmp_self;
    struct rec_call *call = self->waiting.call;
    outer->waiting = self->waiting;
    self->waiting.call = NULL;
    if (call != NULL) {
        struct sbt_trace_event idle = wait_of(call);
        rec_interrupt(call, &idle, openmp_tasks);
    }
    outer->begin_ns = rec_profiles() ? rec_now_ns() : 0;
    outer->apart_ns = self->apart_ns + (call != NULL ? rec_above_zero(outer->begin_ns, call->begin_ns) : 0);
    self->apart_ns = 0;
    self->n_tasks++;
}

/* `function`: the task's. */
static void end_task(const struct running *outer, uintptr_t function) {
    struct rec_openmp_member *self = &rec_openmp_self;
    if (outer->begin_ns != 0) {
        const struct rec_key key = {(uintptr_t)openmp_tasks, function + 1, SBT_TRACE_FUTEX_WAIT,
                                    SBT_TRACE_FUTEX,         false,        0};
        rec_profile_held(&key, rec_above_zero(rec_above_zero(rec_now_ns(), outer->begin_ns), self->apart_ns));
    }
    self->n_tasks--;
    struct rec_call *call = outer->waiting.call;
    self->waiting = outer->waiting;
    if (call != NULL) {
        rec_resume(call);
        rec_openmp_arrive_again(&outer->waiting);
    }
    if (outer->begin_ns == 0)
        return;
    /*
     * What was recorded meanwhile is apart as well, if the thread was off its core there. It ends where the call's time
     * begins anew, which is apart by itself: rec_resume may write a profile behind that, for milliseconds.
     */
    const bool resumed = call != NULL && call->begin_ns > outer->begin_ns;
    self->apart_ns = outer->apart_ns + rec_above_zero(resumed ? call->begin_ns : rec_now_ns(), outer->begin_ns);
}

/* ---- GNU's names ---- */

typedef void copy_function(void *to, void *from);

enum { IS_REDUCTION = 1 << 12, IS_DETACHED = 1 << 13 }; /* flags of a task */

/* In front of the task's data. The first three are where a run-time library looks for them in the data. */
struct header {
    long range[2];   /* of a taskloop */
    void *reduction; /* of one, too */
    rec_openmp_body *body;
    const struct rec_openmp_library *library; /* that the task's code calls; NULL: not known */
    uint32_t offset;                          /* of the data */
    bool is_loop, is_copied;
};

/* A task that is being made. */
struct made {
    struct header header;
    copy_function *copy;
    void *data;
    size_t size;
};

static void copy_task(void *to, void *from) {
    const struct made *m = from;
    char *data = (char *)to + m->header.offset;
    memcpy(to, &m->header, sizeof m->header);
    ((struct header *)to)->is_copied = true;
    if (m->copy != NULL)
        m->copy(data, m->data);
    else if (m->size != 0)
        memcpy(data, m->data, m->size);
}

/* LLVM's library does not copy the data of a task that runs at once. */
static char *data_of(void *task) {
    const struct header *h = task;
    return h->is_copied ? (char *)task + h->offset : ((const struct made *)task)->data;
}

static SBT_NOINLINE void run_seen(rec_openmp_body *body, char *data, const struct rec_openmp_library *library) {
    struct running outer;
    struct rec_openmp_place *in = &rec_openmp_self.in;
    const struct rec_openmp_library *outer_library = in->library;
    rec_openmp_body *outer_task = in->task;
    void *none[8] = {0};
    begin_task(&outer);
    in->task = body;
    if (library != NULL) /* a task that is run at the end of a region finds none */
        in->library = library;
    /* as a region's code: a last call that is a jump is known by that */
    rec_openmp_invoke((void (*)(int *, int *, ...))(sbt_function *)body, (int *)(void *)data, NULL, none, 0);
    in->library = outer_library;
    in->task = outer_task;
    end_task(&outer, (uintptr_t)body);
}

static void run_task(void *task) {
    const struct header *h = task;
    char *data = data_of(task);
    if (h->is_loop)
        memcpy(data, h->range, sizeof h->range);
    if (!is_nested_too_deep()) {
        run_seen(h->body, data, h->library);
        return;
    }
    rec_openmp_self.n_tasks++;
    h->body(data);
    rec_openmp_self.n_tasks--;
}

/* *size and *align: of the data, and then of what is in its place. */
static void make(struct made *m, rec_openmp_body *body, void *data, copy_function *copy, long *size, long *align,
                 const struct rec_openmp_library *library) {
    const size_t a = *align > (long)_Alignof(struct header) ? (size_t)*align : _Alignof(struct header);
    memset(m, 0, sizeof *m);
    m->header.body = body;
    m->header.library = library;
    m->header.offset = (uint32_t)((sizeof(struct header) + a - 1) & -a);
    m->copy = copy;
    m->data = data;
    m->size = *size > 0 ? (size_t)*size : 0;
    *size = (long)(m->header.offset + m->size);
    *align = (long)a;
}

/* Header and data in one piece of `room`, which needs no function to be copied. */
static void *piece_of(const struct made *m, char *room, size_t align) {
    struct header *h = (struct header *)(void *)(room + (-(uintptr_t)room & (align - 1)));
    *h = m->header;
    h->is_copied = true;
    if (m->size != 0)
        memcpy((char *)h + h->offset, m->data, m->size);
    return h;
}

/* Without a run-time library the one thread runs the task at once. */
static SBT_NOINLINE void run_alone(rec_openmp_body *body, void *data, copy_function *copy, size_t size, size_t align,
                                   const void *range, size_t range_size) {
    char *room = __builtin_alloca(size + align);
    room += -(uintptr_t)room & (align - 1);
    if (copy != NULL)
        copy(room, data);
    else
        memcpy(room, data, size);
    if (range != NULL)
        memcpy(room, range, range_size);
    body(room);
}

typedef void task_function(rec_openmp_body *body, void *data, copy_function *copy, long size, long align, bool defers,
                           unsigned flags, void **depend, int priority, void *detach);
/* Apart from what calls it, so that `made` is not on the stack of a task that is left as it is. */
static SBT_NOINLINE void begin_seen(task_function *real, const struct rec_openmp_library *library,
                                    rec_openmp_body *body, void *data, copy_function *copy, long size, long align,
                                    bool defers, unsigned flags, void **depend, int priority, void *detach) {
    struct made m;
    make(&m, body, data, copy, &size, &align, library);
    real(run_task, &m, copy_task, size, align, defers, flags, depend, priority, detach);
}

/* A detached task is left as it is, too: the library writes into its data. */
SBT_EXPORT task_function GOMP_task;
void GOMP_task(rec_openmp_body *body, void *data, copy_function *copy, long size, long align, bool defers,
               unsigned flags, void **depend, int priority, void *detach) {
    const void *site = REC_SITE_HERE;
    task_function *real = (task_function *)rec_openmp_real(REC_OPENMP_GOMP_task, site);
    if (real == NULL)
        run_alone(body, data, copy, (size_t)size, (size_t)align, NULL, 0);
    else if ((flags & IS_DETACHED) != 0 || (is_nested_too_deep() && !defers) || rec_openmp_self.n_tasks >= MOST_MADE)
        real(body, data, copy, size, align, defers, flags, depend, priority, detach);
    else
        begin_seen(real, rec_openmp_library_of(REC_OPENMP_GOMP_task, site, rec_openmp_self.in.library), body, data,
                   copy, size, align, defers, flags, depend, priority, detach);
}

/* LLVM's library gets the function as it is: tasks of its taskloops are not seen. */
#define TASKLOOP(name, number)                                                                                         \
    typedef void name##_function(rec_openmp_body *body, void *data, copy_function *copy, long size, long align,        \
                                 unsigned flags, unsigned long n_tasks, int priority, number from, number to,          \
                                 number step);                                                                         \
    SBT_EXPORT name##_function name;                                                                                   \
    void name(rec_openmp_body *body, void *data, copy_function *copy, long size, long align, unsigned flags,           \
              unsigned long n_tasks, int priority, number from, number to, number step) {                              \
        name##_function *real = (name##_function *)rec_openmp_real(REC_OPENMP_##name, REC_SITE_HERE);                  \
        struct made m;                                                                                                 \
        if (real == NULL) {                                                                                            \
            const number range[2] = {from, to};                                                                        \
            run_alone(body, data, copy, (size_t)size, (size_t)align, range, sizeof range);                             \
            return;                                                                                                    \
        }                                                                                                              \
        if (is_nested_too_deep() || rec_openmp_real(REC_OPENMP___kmpc_fork_call, REC_SITE_HERE) != NULL) {             \
            real(body, data, copy, size, align, flags, n_tasks, priority, from, to, step);                             \
            return;                                                                                                    \
        }                                                                                                              \
        make(&m, body, data, copy, &size, &align,                                                                      \
             rec_openmp_library_of(REC_OPENMP_##name, REC_SITE_HERE, rec_openmp_self.in.library));                     \
        m.header.is_loop = true;                                                                                       \
        if ((flags & IS_REDUCTION) != 0)                                                                               \
            memcpy(&m.header.reduction, (char *)data + sizeof m.header.range, sizeof m.header.reduction);              \
        /* With a function to copy, a loop that is not deferred has all its tasks on the stack at once. */             \
        void *piece = copy == NULL ? piece_of(&m, __builtin_alloca((size_t)(size + align)), (size_t)align) : NULL;     \
        real(run_task, piece != NULL ? piece : &m, piece != NULL ? NULL : copy_task, size, align, flags, n_tasks,      \
             priority, from, to, step);                                                                                \
    }
TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

/* ---- LLVM's names ---- */

typedef int entry_function(int thread, void *task);

/* The beginning of a task, which the compiler's code knows. */
struct task {
    void *shared;
    entry_function *entry;
};

enum { ROOM = 16 };

static SBT_NOINLINE int run_seen_entry(entry_function *entry, int thread, void *task) {
    struct running outer;
    begin_task(&outer);
    int result = entry(thread, task);
    end_task(&outer, (uintptr_t)entry);
    return result;
}

static int run_entry(int thread, void *task) {
    entry_function *entry;
    memcpy(&entry, (char *)((struct task *)task)->shared - sizeof entry, sizeof entry);
    return is_nested_too_deep() ? entry(thread, task) : run_seen_entry(entry, thread, task);
}

typedef void *alloc_function(void *place, int thread, int flags, size_t size, size_t size_shared, entry_function *);
SBT_EXPORT alloc_function __kmpc_omp_task_alloc;
void *__kmpc_omp_task_alloc(void *place, int thread, int flags, size_t size, size_t size_shared,
                            entry_function *entry) {
    const void *site = REC_SITE_HERE;
    alloc_function *real = (alloc_function *)rec_openmp_real(REC_OPENMP___kmpc_omp_task_alloc, site);
    if (real == NULL || rec_openmp_is_inner(site)) /* without a library the program cannot begin a task, either */
        return real != NULL ? real(place, thread, flags, size, size_shared, entry) : NULL;
    struct task *task =
        real(place, thread, flags, size + ROOM, size_shared > 0 ? size_shared : sizeof entry, run_entry);
    const size_t behind = (size + ROOM + 7) & -(size_t)8;
    if (task == NULL)
        return NULL;
    if (task->shared == (char *)task + behind)
        memcpy((char *)task->shared - sizeof entry, &entry, sizeof entry);
    else
        task->entry = entry;
    return task;
}

/* ---- waits for tasks ---- */

/* False: there was no region yet, so no other thread runs tasks. */
static bool begin_wait(struct rec_call *c, const void *site) {
    if (rec_openmp_is_jump(site)) /* the last call of a task, or else of a region, is a jump */
        site = rec_openmp_self.in.task != NULL     ? (const char *)(uintptr_t)rec_openmp_self.in.task + 1
               : rec_openmp_self.in.region != NULL ? (const char *)(uintptr_t)rec_openmp_self.in.region->body + 1
                                                   : site;
    const bool is_timed = rec_openmp_self.n_tasks != 0 && rec_profiles();
    const uint64_t begin_ns = is_timed ? rec_now_ns() : 0;
    if (!rec_openmp_is_seen() || !rec_enter(c, SBT_TRACE_FUTEX_WAIT, SBT_TRACE_FUTEX, openmp_tasks, site))
        return false;
    if (is_timed)
        rec_openmp_self.apart_ns += rec_above_zero(c->begin_ns, begin_ns);
    rec_openmp_waits(c, NULL);
    return true;
}

static void end_wait(struct rec_call *c) {
    struct sbt_trace_event idle = wait_of(c);
    rec_openmp_waits_no_more(c);
    rec_interrupt(c, &idle, openmp_tasks);
    if (rec_openmp_self.n_tasks != 0 && rec_profiles())
        rec_openmp_self.apart_ns += rec_above_zero(rec_now_ns(), c->begin_ns);
}

static SBT_NOINLINE void wait_seen(void (*real)(void), const void *site) {
    struct rec_call c;
    bool waits = begin_wait(&c, site);
    if (real != NULL)
        real();
    if (waits)
        end_wait(&c);
}

#define WAIT(name)                                                                                                     \
    SBT_EXPORT void name(void);                                                                                        \
    void name(void) {                                                                                                  \
        const void *site = REC_SITE_HERE;                                                                              \
        void (*real)(void) = (void (*)(void))rec_openmp_real(REC_OPENMP_##name, site);                                 \
        if (is_nested_too_deep() && real != NULL)                                                                      \
            real();                                                                                                    \
        else                                                                                                           \
            wait_seen(real, site);                                                                                     \
    }
WAIT(GOMP_taskwait)
WAIT(GOMP_taskgroup_end)

typedef int wait_at_place(void *place, int thread);

static SBT_NOINLINE int wait_at_place_seen(wait_at_place *real, void *place, int thread, const void *site) {
    struct rec_call c;
    bool waits = !rec_openmp_is_inner(site) && begin_wait(&c, site);
    int result = real != NULL ? real(place, thread) : 0;
    if (waits)
        end_wait(&c);
    return result;
}

#define WAIT_AT_PLACE(name)                                                                                            \
    SBT_EXPORT wait_at_place name;                                                                                     \
    int name(void *place, int thread) {                                                                                \
        const void *site = REC_SITE_HERE;                                                                              \
        wait_at_place *real = (wait_at_place *)rec_openmp_real(REC_OPENMP_##name, site);                               \
        return is_nested_too_deep() && real != NULL ? real(place, thread)                                              \
                                                    : wait_at_place_seen(real, place, thread, site);                   \
    }
WAIT_AT_PLACE(__kmpc_omp_taskwait)
WAIT_AT_PLACE(__kmpc_end_taskgroup)

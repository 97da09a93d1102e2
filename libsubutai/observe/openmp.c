/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP by the entry points of GNU's run-time library, which gcc's code calls, and which LLVM's library has too:
 * parallel regions and barriers. openmp_lock.c has critical sections and locks, openmp_kmpc.c what clang's code calls.
 * The library waits by ways of its own, also in user space, so what it does inside says nothing of the program; its
 * futex calls are no events where this file sees its regions.
 *
 * A region becomes
 *  - a wake-up by the thread that meets it, as of a futex that the team's threads wait for between regions;
 *  - in each thread of the team a wait at a barrier, when its part is done, and in workers a wait for the next region
 *    behind it (arrival.c).
 *
 * The barrier of a region is an object by the address of its function, an explicit barrier one by its call site, each
 * with the team's size in the bits above an address: what a barrier's count is never changes. Its generations are
 * numbered by the object. A team agrees on them in the region, which lies on its first thread's stack: no thread of the
 * team is in the region when that thread goes on.
 *
 * openmp_task.c has tasks, which threads run while they wait.
 */
#include <limits.h>

#include "observe/openmp_inner.h"

#define SIZE_SHIFT 48                      /* above any address of a program */
#define MOST_THREADS ((unsigned)INT16_MAX) /* of a team that is recorded */

_Thread_local struct rec_openmp_member rec_openmp_self __attribute__((tls_model("initial-exec")));

/* An object that has no address in the program. A report shows it by this name. */
static char openmp_regions[8];

const void *rec_openmp_regions(void) {
    return openmp_regions;
}

static void run_member(void *region);

/* No other functions of this library call the program's code that calls these functions. */
bool rec_openmp_is_jump(const void *site) {
    return (uintptr_t)site - (uintptr_t)run_member < 4096 || rec_openmp_is_invoked(site);
}

static bool is_seen; /* atomic; relaxed: only what it says matters */

bool rec_openmp_is_seen(void) {
    return __atomic_load_n(&is_seen, __ATOMIC_RELAXED);
}

void rec_openmp_see(void) {
    if (!rec_openmp_is_seen()) /* many threads read its cache line */
        __atomic_store_n(&is_seen, true, __ATOMIC_RELAXED);
}

/*
 * The function of the run-time library that the caller would have called. The last call of a region is a jump, and
 * seems to come from run_member.
 */
sbt_function *rec_openmp_real(enum rec_openmp_name name, const void *site) {
    const struct rec_openmp_library *library = rec_openmp_self.in.library;
    if (!rec_openmp_is_jump(site) || library == NULL || library->functions[name] == NULL)
        library = rec_openmp_library_of(name, site, library);
    return library != NULL ? library->functions[name] : NULL;
}

static unsigned ask_size(const struct rec_openmp_library *library, enum rec_openmp_name name) {
    int (*get)(void) = (int (*)(void))library->functions[name];
    int n = get != NULL ? get() : 1;
    return n > 0 ? (unsigned)n : 1;
}

/* ---- barriers ---- */

/*
 * A barrier may have several call sites, as the compiler has doubled the end of a loop. The first thread that comes
 * says which one it goes by. From then on the other sites are known for the same.
 */
static uintptr_t site_known(uintptr_t site) {
    const struct rec_node *node = rec_node_find(site);
    uint64_t known = node != NULL ? __atomic_load_n(&node->acquired, __ATOMIC_RELAXED) : 0;
    return known != 0 ? (uintptr_t)known : site;
}

static void know_site(uintptr_t site, uintptr_t as) {
    struct rec_node *node = site != as ? rec_node_find(site) : NULL;
    if (node != NULL)
        __atomic_store_n(&node->acquired, as, __ATOMIC_RELAXED);
}

static bool enter_barrier(struct rec_call *c, uintptr_t address, const void *site) {
    const uint64_t object = address | (uint64_t)rec_openmp_self.in.n_threads << SIZE_SHIFT;
    return rec_enter_unread(c, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, (const void *)object, site);
}

enum { TEAM_LOOKS = 5000 };

/* The number of the calling thread's barrier comes to the front of the place: true of the first thread of the team. */
static bool is_first_at(struct rec_openmp_meeting *m, uint64_t number) {
    uint64_t seen = __atomic_load_n(&m->number, __ATOMIC_ACQUIRE);
    return seen < number &&
           __atomic_compare_exchange_n(&m->number, &seen, number, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/*
 * The calling thread arrives at its barrier of that number; the address is where it comes from. The team agrees on an
 * address and a generation.
 *  1. The first thread stores the number (is_first_at).
 *  2. It begins its call, gets the generation, and stores address, generation and last that the number is agreed on.
 *  3. Another thread waits until that is so. The first one may be held up for long: after a while the other goes on,
 * and its call is no event.
 */
static void arrive(struct rec_call *c, struct rec_openmp_meeting *m, uint64_t number, uintptr_t address,
                   const void *site) {
    c->thread = NULL;
    c->event.order = 0;
    if (is_first_at(m, number)) {
        m->address = site_known(address);
        enter_barrier(c, m->address, site);
        m->generation = REC_COUNTED(c->node, acquired);
        __atomic_store_n(&m->agreed, number, __ATOMIC_RELEASE);
    } else {
        for (unsigned i = 0; i < TEAM_LOOKS && __atomic_load_n(&m->agreed, __ATOMIC_ACQUIRE) < number; i++)
            rec_wait_a_moment(i);
        if (__atomic_load_n(&m->agreed, __ATOMIC_ACQUIRE) != number)
            return;
        enter_barrier(c, m->address, site);
        know_site(address, m->address);
    }
    c->event.order = m->generation;
    if (c->event.order == 1)
        c->event.size = rec_openmp_self.in.n_threads;
}

/* A barrier in a region, which is the program's code, or the end of a loop in it. */
void rec_openmp_meet(struct rec_call *c, const void *site) {
    struct rec_openmp_region *r = rec_openmp_self.in.n_serial == 0 ? rec_openmp_self.in.region : NULL;
    c->thread = NULL;
    if (r == NULL)
        return;
    uint32_t number = ++rec_openmp_self.in.n_barriers;
    if (rec_openmp_is_jump(site)) /* the region's last call is a jump */
        site = (const char *)(uintptr_t)r->body + 1;
    arrive(c, &r->barrier, number, (uintptr_t)site, site);
    rec_openmp_waits(c, NULL);
}

/* True: the region was cancelled. */
static bool meet(void (*plain)(void), bool (*cancellable)(void), const void *site) {
    struct rec_call c;
    bool cancelled = false;
    rec_openmp_meet(&c, site);
    if (plain != NULL)
        plain();
    if (cancellable != NULL)
        cancelled = cancellable();
    rec_openmp_met(&c);
    return cancelled;
}

#define BARRIER(name)                                                                                                  \
    SBT_EXPORT void name(void);                                                                                        \
    void name(void) {                                                                                                  \
        meet((void (*)(void))rec_openmp_real(REC_OPENMP_##name, REC_SITE_HERE), NULL, REC_SITE_HERE);                  \
    }
#define CANCELLABLE(name)                                                                                              \
    SBT_EXPORT bool name(void);                                                                                        \
    bool name(void) {                                                                                                  \
        return meet(NULL, (bool (*)(void))rec_openmp_real(REC_OPENMP_##name, REC_SITE_HERE), REC_SITE_HERE);           \
    }
BARRIER(GOMP_barrier)
BARRIER(GOMP_loop_end)
BARRIER(GOMP_sections_end)
CANCELLABLE(GOMP_barrier_cancel)
CANCELLABLE(GOMP_loop_end_cancel)
CANCELLABLE(GOMP_sections_end_cancel)

/* ---- regions ---- */

/* A worker has got a region: what it waited for since the end of the last one. */
static void end_wait(const struct rec_openmp_region *r) {
    struct sbt_trace_event rest = {.op = SBT_TRACE_FUTEX_WAIT,
                                   .type = SBT_TRACE_FUTEX,
                                   .object = r->object,
                                   .other = SBT_TRACE_NONE,
                                   .site = rec_openmp_self.wait.event.site,
                                   .at_ns = r->woken_ns,
                                   .order = r->wake};
    if (rec_openmp_self.waits)
        rec_leave_then(&rec_openmp_self.wait, &rest);
    rec_openmp_self.waits = false;
    rec_openmp_waits_no_more(&rec_openmp_self.wait);
}

/*
 * When the last thread came, which may be another than the one that says so, and for which generation. A thread that
 * has run a task at the end of the region comes later than it first did, perhaps when all have come:
 *  1. It makes `last_ns` later, and then looks whether all have come. The thread that comes as the last one says so,
 * and then looks at `last_ns`. So one of the two says the later time (seq_cst).
 *  2. Both may say a time at once, and the earlier one last. So whichever has said a time looks again.
 */
static void say_arrival(struct rec_openmp_region *r, const struct rec_call *c, uint32_t n_arrives, unsigned n_threads) {
    uint64_t last_ns = __atomic_load_n(&r->last_ns, __ATOMIC_RELAXED), said_ns = 0;
    while (last_ns < c->begin_ns &&
           !__atomic_compare_exchange_n(&r->last_ns, &last_ns, c->begin_ns, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    if (__atomic_add_fetch(&r->n_arrived, n_arrives, __ATOMIC_SEQ_CST) != n_threads || c->event.order == 0)
        return;
    while ((last_ns = __atomic_load_n(&r->last_ns, __ATOMIC_SEQ_CST)) != said_ns) {
        rec_all_arrived(c->event.object, c->event.order, last_ns);
        said_ns = last_ns;
    }
}

/* The first thread goes on when the run-time library lets it. A worker must not touch the region any more then. */
static void end_region(struct rec_openmp_region *r) {
    bool is_first = r->first == &rec_openmp_self;
    struct rec_call *c = is_first ? &r->at_end : &rec_openmp_self.wait;
    arrive(c, &r->end, 1, (uintptr_t)r->body, r->site);
    say_arrival(r, c, 1, rec_openmp_self.in.n_threads);
    rec_openmp_waits(c, r);
    if (is_first) /* perhaps of a region in a task, that a worker runs while it waits */
        return;
    rec_openmp_self.waits = c->thread != NULL;
    if (rec_openmp_self.waits)
        rec_arrived(c);
}

/* The task that the thread has run is not over for the run-time library, so the region is not either. */
void rec_openmp_arrive_again(const struct rec_openmp_waiting *w) {
    if (w->ending == NULL)
        return;
    say_arrival(w->ending, w->call, 0, w->n_threads);
    if (w->call == &rec_openmp_self.wait)
        rec_arrived(w->call);
}

void rec_openmp_enter_region(struct rec_openmp_region *r, struct rec_openmp_place *outer) {
    unsigned n = ask_size(r->library, REC_OPENMP_omp_get_num_threads);
    *outer = rec_openmp_self.in;
    if (r->first != &rec_openmp_self)
        end_wait(r);
    rec_openmp_self.in = (struct rec_openmp_place){
        .region = n > 1 && n <= MOST_THREADS ? r : NULL, .library = r->library, .n_threads = n};
}

void rec_openmp_leave_region(struct rec_openmp_region *r, const struct rec_openmp_place *outer) {
    if (rec_openmp_self.in.region != NULL)
        end_region(r);
    rec_openmp_self.in = *outer;
}

static void run_member(void *region) {
    struct rec_openmp_region *r = region;
    struct rec_openmp_place outer;
    rec_openmp_enter_region(r, &outer);
    r->body(r->data);
    rec_openmp_leave_region(r, &outer);
}

void rec_openmp_begin_region(struct rec_openmp_region *r, unsigned n_threads, const void *site) {
    struct rec_call c;
    unsigned n = n_threads != 0 ? n_threads : ask_size(r->library, REC_OPENMP_omp_get_max_threads);
    r->site = site;
    r->first = &rec_openmp_self;
    r->object = SBT_TRACE_NONE;
    rec_openmp_see();
    if (n == 1 || !rec_enter(&c, SBT_TRACE_FUTEX_WAKE, SBT_TRACE_FUTEX, openmp_regions, site))
        return;
    rec_signal_count(&c, true);
    rec_signal_given(&c, LONG_MAX);
    r->wake = c.event.order;
    r->object = c.event.object;
    c.event.size = n - 1;
    rec_leave(&c, 0);
    r->woken_ns = c.event.at_ns + c.event.took_ns;
}

void rec_openmp_end_region(struct rec_openmp_region *r) {
    rec_openmp_met(&r->at_end);
    rec_openmp_end_ordered(r);
}

/* Of a region that begins there: the site's own library, in whatever region that is. */
const struct rec_openmp_library *rec_openmp_library_at(enum rec_openmp_name name, const void *site) {
    const struct rec_openmp_library *own = rec_openmp_self.in.library;
    const bool is_own = rec_openmp_is_jump(site) && own != NULL && own->functions[name] != NULL;
    return is_own ? own : rec_openmp_library_of(name, site, NULL);
}

/* Without a run-time library the region has one thread. */
#define REGION(name, parameters, arguments)                                                                            \
    typedef void name##_function parameters;                                                                           \
    SBT_EXPORT name##_function name;                                                                                   \
    void name parameters {                                                                                             \
        struct rec_openmp_region r = {                                                                                 \
            .body = f, .data = data, .library = rec_openmp_library_at(REC_OPENMP_##name, REC_SITE_HERE)};              \
        name##_function *real = r.library != NULL ? (name##_function *)r.library->functions[REC_OPENMP_##name] : NULL; \
        if (real == NULL) {                                                                                            \
            f(data);                                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        rec_openmp_begin_region(&r, n, REC_SITE_HERE);                                                                 \
        f = run_member;                                                                                                \
        data = &r;                                                                                                     \
        real arguments;                                                                                                \
        rec_openmp_end_region(&r);                                                                                     \
    }
#define LOOP(name) /* with a size of chunks */                                                                         \
    REGION(name,                                                                                                       \
           (rec_openmp_body * f, void *data, unsigned n, long from, long to, long step, long chunk, unsigned flags),   \
           (f, data, n, from, to, step, chunk, flags))
#define PLAIN_LOOP(name)                                                                                               \
    REGION(name, (rec_openmp_body * f, void *data, unsigned n, long from, long to, long step, unsigned flags),         \
           (f, data, n, from, to, step, flags))
REGION(GOMP_parallel, (rec_openmp_body * f, void *data, unsigned n, unsigned flags), (f, data, n, flags))
REGION(GOMP_parallel_sections, (rec_openmp_body * f, void *data, unsigned n, unsigned count, unsigned flags),
       (f, data, n, count, flags))
LOOP(GOMP_parallel_loop_static)
LOOP(GOMP_parallel_loop_dynamic)
LOOP(GOMP_parallel_loop_guided)
LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
LOOP(GOMP_parallel_loop_nonmonotonic_guided)
PLAIN_LOOP(GOMP_parallel_loop_runtime)
PLAIN_LOOP(GOMP_parallel_loop_nonmonotonic_runtime)
PLAIN_LOOP(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/*
 * A region with reductions of tasks is not recorded: the run-time library reads its data, so there can be no function
 * in between. Its barriers are not those of the region around it.
 */
typedef unsigned reductions(rec_openmp_body *f, void *data, unsigned n, unsigned flags);
SBT_EXPORT reductions GOMP_parallel_reductions;
unsigned GOMP_parallel_reductions(rec_openmp_body *f, void *data, unsigned n, unsigned flags) {
    const struct rec_openmp_library *library =
        rec_openmp_library_at(REC_OPENMP_GOMP_parallel_reductions, REC_SITE_HERE);
    const struct rec_openmp_place outer = rec_openmp_self.in;
    reductions *real = library != NULL ? (reductions *)library->functions[REC_OPENMP_GOMP_parallel_reductions] : NULL;
    unsigned n_threads = 1;
    rec_openmp_self.in = (struct rec_openmp_place){.library = library};
    if (real != NULL)
        n_threads = real(f, data, n, flags);
    else
        f(data);
    rec_openmp_self.in = outer;
    return n_threads;
}

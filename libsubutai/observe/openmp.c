/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP by the entry points of GNU's run-time library, which gcc's code calls, and which LLVM's library has too:
 * parallel regions, barriers, critical sections and locks. The library waits by ways of its own, also in user space,
 * so what it does inside says nothing of the program; its futex calls are no events where this file sees its regions.
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
 * Not here: tasks, and what clang's code calls (__kmpc_*); LLVM's library waits by pthread mutexes and conditions
 * there.
 */
#include "observe/openmp.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "observe/observe.h"

#define SIZE_SHIFT 48                      /* above any address of a program */
#define MOST_THREADS ((unsigned)INT16_MAX) /* of a team that is recorded */

typedef void body(void *data);

struct region {
    body *body;
    void *data;
    const void *site;
    const struct rec_openmp_library *library;
    const struct member *first; /* the thread that has met the region */
    uint64_t wake;              /* the number of the wake-up */
    uint32_t object;            /* of all regions: its number */
    /*
     * The last barrier, which the team's threads number alike, and the one at the end. When a thread comes to a barrier
     * all others have read what they agreed on at the last one: they have passed it, or are in it.
     */
    struct meeting {
        uint64_t number, agreed; /* 0: none yet; atomic */
        uintptr_t address;       /* by which the barrier goes */
        uint64_t generation;
    } barrier, end;
    uint32_t n_arrived;     /* at the end; atomic */
    uint64_t last_ns;       /* the last arrival; atomic */
    struct rec_call at_end; /* the first thread's, from its arrival on */
};

/* What a thread is in. */
static _Thread_local struct member {
    struct {
        struct region *region;                    /* NULL: none, or one that is not recorded */
        const struct rec_openmp_library *library; /* of the region; NULL: none */
        unsigned n_threads;                       /* of the team */
        uint32_t n_barriers;                      /* that the thread has met in the region */
    } in;
    const struct section *section; /* the call under way */
    bool waits;                    /* for a region: `wait` is under way */
    struct rec_call wait;
} self __attribute__((tls_model("initial-exec")));

/* Objects that have no address in the program. A report shows them by these names. */
static char openmp_regions[8], openmp_critical[8], openmp_atomic[8];

static void run_member(void *region);

/* No other function of this library calls the program's code that calls these functions. */
static bool is_in_run_member(const void *site) {
    return (uintptr_t)site - (uintptr_t)run_member < 4096;
}

static bool is_seen; /* atomic; relaxed: only what it says matters */

bool rec_openmp_is_seen(void) {
    return __atomic_load_n(&is_seen, __ATOMIC_RELAXED);
}

/*
 * The function of the run-time library that the caller would have called. The last call of a region is a jump, and
 * seems to come from run_member.
 */
static sbt_function *real_of(enum rec_openmp_name name, const void *site) {
    const struct rec_openmp_library *library =
        is_in_run_member(site) ? self.in.library : rec_openmp_library_of(site, self.in.library);
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
    const uint64_t object = address | (uint64_t)self.in.n_threads << SIZE_SHIFT;
    return rec_enter_unread(c, SBT_TRACE_BARRIER_WAIT, SBT_TRACE_BARRIER, (const void *)object, site);
}

enum { TEAM_LOOKS = 5000 };

/* The number of the calling thread's barrier comes to the front of the place: true of the first thread of the team. */
static bool is_first_at(struct meeting *m, uint64_t number) {
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
static void arrive(struct rec_call *c, struct meeting *m, uint64_t number, uintptr_t address, const void *site) {
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
        c->event.size = self.in.n_threads;
}

/* A barrier in a region, which is the program's code, or the end of a loop in it. True: the region was cancelled. */
static bool meet(void (*plain)(void), bool (*cancellable)(void), const void *site) {
    struct region *r = self.in.region;
    struct rec_call c = {.thread = NULL};
    bool cancelled = false;
    if (r != NULL) {
        uint32_t number = ++self.in.n_barriers;
        if (is_in_run_member(site)) /* the region's last call is a jump */
            site = (const char *)(uintptr_t)r->body + 1;
        arrive(&c, &r->barrier, number, (uintptr_t)site, site);
    }
    if (plain != NULL)
        plain();
    if (cancellable != NULL)
        cancelled = cancellable();
    rec_leave(&c, 0);
    return cancelled;
}

#define BARRIER(name)                                                                                                  \
    SBT_EXPORT void name(void);                                                                                        \
    void name(void) {                                                                                                  \
        meet((void (*)(void))real_of(REC_OPENMP_##name, REC_SITE_HERE), NULL, REC_SITE_HERE);                          \
    }
#define CANCELLABLE(name)                                                                                              \
    SBT_EXPORT bool name(void);                                                                                        \
    bool name(void) {                                                                                                  \
        return meet(NULL, (bool (*)(void))real_of(REC_OPENMP_##name, REC_SITE_HERE), REC_SITE_HERE);                   \
    }
BARRIER(GOMP_barrier)
BARRIER(GOMP_loop_end)
BARRIER(GOMP_sections_end)
CANCELLABLE(GOMP_barrier_cancel)
CANCELLABLE(GOMP_loop_end_cancel)
CANCELLABLE(GOMP_sections_end_cancel)

/* ---- regions ---- */

/* A worker has got a region: what it waited for since the end of the last one. */
static void end_wait(const struct region *r) {
    struct sbt_trace_event rest = {.op = SBT_TRACE_FUTEX_WAIT,
                                   .type = SBT_TRACE_FUTEX,
                                   .object = r->object,
                                   .other = SBT_TRACE_NONE,
                                   .site = self.wait.event.site,
                                   .order = r->wake};
    if (self.waits)
        rec_leave_then(&self.wait, &rest);
    self.waits = false;
}

/* The last thread that comes here notes when the last one came, which may be another, and for which generation. */
static void count_arrival(struct region *r, const struct rec_call *c) {
    uint64_t last_ns = __atomic_load_n(&r->last_ns, __ATOMIC_RELAXED);
    while (last_ns < c->begin_ns &&
           !__atomic_compare_exchange_n(&r->last_ns, &last_ns, c->begin_ns, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    if (__atomic_add_fetch(&r->n_arrived, 1, __ATOMIC_ACQ_REL) != self.in.n_threads || c->event.order == 0)
        return;
    rec_all_arrived(c->event.object, c->event.order, __atomic_load_n(&r->last_ns, __ATOMIC_RELAXED));
}

/* The first thread goes on when the run-time library lets it. A worker must not touch the region any more then. */
static void end_region(struct region *r) {
    bool is_first = r->first == &self;
    struct rec_call *c = is_first ? &r->at_end : &self.wait;
    arrive(c, &r->end, 1, (uintptr_t)r->body, r->site);
    count_arrival(r, c);
    if (is_first) /* perhaps of a region in a task, that a worker runs while it waits */
        return;
    self.waits = c->thread != NULL;
    if (self.waits)
        rec_arrived(c);
}

static void run_member(void *region) {
    struct region *r = region;
    const __typeof(self.in) outer = self.in;
    unsigned n = ask_size(r->library, REC_OPENMP_omp_get_num_threads);
    if (r->first != &self)
        end_wait(r);
    self.in.library = r->library;
    self.in.region = n > 1 && n <= MOST_THREADS ? r : NULL;
    self.in.n_threads = n;
    self.in.n_barriers = 0;
    r->body(r->data);
    if (self.in.region != NULL)
        end_region(r);
    self.in = outer;
}

static void begin_region(struct region *r, unsigned n_threads, const void *site) {
    struct rec_call c;
    unsigned n = n_threads != 0 ? n_threads : ask_size(r->library, REC_OPENMP_omp_get_max_threads);
    r->site = site;
    r->first = &self;
    r->object = SBT_TRACE_NONE;
    __atomic_store_n(&is_seen, true, __ATOMIC_RELAXED);
    if (n == 1 || !rec_enter(&c, SBT_TRACE_FUTEX_WAKE, SBT_TRACE_FUTEX, openmp_regions, site))
        return;
    rec_signal_count(&c, true);
    rec_signal_given(&c, LONG_MAX);
    r->wake = c.event.order;
    r->object = c.event.object;
    c.event.size = n - 1;
    rec_leave(&c, 0);
}

/* Of a region that begins there: the site's own library, in whatever region that is. */
static const struct rec_openmp_library *library_at(const void *site) {
    return is_in_run_member(site) ? self.in.library : rec_openmp_library_of(site, NULL);
}

/* Without a run-time library the region has one thread. */
#define REGION(name, parameters, arguments)                                                                            \
    typedef void name##_function parameters;                                                                           \
    SBT_EXPORT name##_function name;                                                                                   \
    void name parameters {                                                                                             \
        struct region r = {.body = f, .data = data, .library = library_at(REC_SITE_HERE)};                             \
        name##_function *real = r.library != NULL ? (name##_function *)r.library->functions[REC_OPENMP_##name] : NULL; \
        if (real == NULL) {                                                                                            \
            f(data);                                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        begin_region(&r, n, REC_SITE_HERE);                                                                            \
        f = run_member;                                                                                                \
        data = &r;                                                                                                     \
        real arguments;                                                                                                \
        rec_leave(&r.at_end, 0);                                                                                       \
    }
#define LOOP(name) /* with a size of chunks */                                                                         \
    REGION(name, (body * f, void *data, unsigned n, long from, long to, long step, long chunk, unsigned flags),        \
           (f, data, n, from, to, step, chunk, flags))
#define PLAIN_LOOP(name)                                                                                               \
    REGION(name, (body * f, void *data, unsigned n, long from, long to, long step, unsigned flags),                    \
           (f, data, n, from, to, step, flags))
REGION(GOMP_parallel, (body * f, void *data, unsigned n, unsigned flags), (f, data, n, flags))
REGION(GOMP_parallel_sections, (body * f, void *data, unsigned n, unsigned count, unsigned flags),
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
typedef unsigned reductions(body *f, void *data, unsigned n, unsigned flags);
SBT_EXPORT reductions GOMP_parallel_reductions;
unsigned GOMP_parallel_reductions(body *f, void *data, unsigned n, unsigned flags) {
    const struct rec_openmp_library *library = library_at(REC_SITE_HERE);
    const __typeof(self.in) outer = self.in;
    reductions *real = library != NULL ? (reductions *)library->functions[REC_OPENMP_GOMP_parallel_reductions] : NULL;
    unsigned n_threads = 1;
    self.in = (__typeof(self.in)){.library = library};
    if (real != NULL)
        n_threads = real(f, data, n, flags);
    else
        f(data);
    self.in = outer;
    return n_threads;
}

/* ---- critical sections and locks ---- */

/* A call. `has_argument`: the library's function is called with the object. */
struct section {
    void *object;
    const void *site;
    enum rec_openmp_name name;
    bool has_argument;
};

/* Threads in sections, by the object's hash; atomic, relaxed: a hint whether a thread has to wait. */
static uint32_t n_inside[64], n_inside_of; /* n_inside_of: the fork generation; others' threads are not in a child */

static uint32_t *inside_of(const void *object) {
    if (SBT_UNLIKELY(n_inside_of != sbt_fork_generation())) {
        n_inside_of = sbt_fork_generation();
        memset(n_inside, 0, sizeof n_inside);
    }
    return &n_inside[REC_CACHE_PLACE((uintptr_t)object)];
}

static void call(const struct section *s) {
    sbt_function *real = real_of(s->name, s->site);
    if (real != NULL && s->has_argument)
        ((void (*)(void *))real)(s->object);
    else if (real != NULL)
        real();
}

static int wait_now(void *object, const struct rec_limit *limit) {
    (void)object, (void)limit;
    call(self.section);
    return 0;
}

static int release_now(void *object) {
    (void)object;
    call(self.section);
    return 0;
}

static struct rec_key key_of(const struct section *s, unsigned op, bool failed) {
    return (struct rec_key){(uintptr_t)s->object, (uintptr_t)s->site, (uint8_t)op, SBT_TRACE_MUTEX, failed, 0};
}

static void enter_section(const struct section *s) {
    struct rec_key key = key_of(s, SBT_TRACE_MUTEX_LOCK, false);
    uint32_t *inside = inside_of(s->object);
    if (!rec_profiles()) {
        struct rec_call c;
        rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, s->object, s->site);
        call(s);
        c.event.order = rec_acquired(c.node);
        rec_leave(&c, 0);
    } else if (__atomic_load_n(inside, __ATOMIC_RELAXED) == 0) {
        call(s);
        rec_profile_acquired(&key);
    } else {
        const struct section *outer = self.section; /* a handler's call comes within one */
        self.section = s;
        rec_profile_wait(&key, wait_now, NULL);
        self.section = outer;
    }
    __atomic_fetch_add(inside, 1, __ATOMIC_RELAXED);
}

static void leave_section(const struct section *s) {
    struct rec_key key = key_of(s, SBT_TRACE_MUTEX_UNLOCK, false);
    __atomic_fetch_sub(inside_of(s->object), 1, __ATOMIC_RELAXED);
    if (!rec_profiles()) {
        struct rec_call c;
        rec_enter(&c, SBT_TRACE_MUTEX_UNLOCK, SBT_TRACE_MUTEX, s->object, s->site);
        call(s);
        rec_leave(&c, 0);
        return;
    }
    rec_profile_releasing(s->object);
    const struct section *outer = self.section;
    self.section = s;
    if (rec_is_waited_for(s->object))
        rec_profile_release(&key, release_now);
    else
        call(s);
    self.section = outer;
}

#define UNNAMED(name, what, object)                                                                                    \
    SBT_EXPORT void name(void);                                                                                        \
    void name(void) {                                                                                                  \
        const struct section s = {object, REC_SITE_HERE, REC_OPENMP_##name, false};                                    \
        what(&s);                                                                                                      \
    }
#define NAMED(name, what)                                                                                              \
    SBT_EXPORT void name(void *object);                                                                                \
    void name(void *object) {                                                                                          \
        const struct section s = {object, REC_SITE_HERE, REC_OPENMP_##name, true};                                     \
        what(&s);                                                                                                      \
    }
UNNAMED(GOMP_critical_start, enter_section, openmp_critical)
UNNAMED(GOMP_critical_end, leave_section, openmp_critical)
UNNAMED(GOMP_atomic_start, enter_section, openmp_atomic)
UNNAMED(GOMP_atomic_end, leave_section, openmp_atomic)
NAMED(GOMP_critical_name_start, enter_section)
NAMED(GOMP_critical_name_end, leave_section)
NAMED(omp_set_lock, enter_section)
NAMED(omp_unset_lock, leave_section)

static void begin_life(const struct section *s) {
    call(s);
    rec_init(SBT_TRACE_MUTEX, s->object, 0, s->site);
}

static void end_life(const struct section *s) {
    struct rec_call c;
    if (rec_profiles()) {
        call(s);
        rec_profile_destroyed(SBT_TRACE_MUTEX, s->object, s->site, 0);
        return;
    }
    rec_enter(&c, SBT_TRACE_DESTROY, SBT_TRACE_MUTEX, s->object, s->site);
    call(s);
    rec_destroyed(&c, 0);
}

NAMED(omp_init_lock, begin_life)
NAMED(omp_destroy_lock, end_life)

SBT_EXPORT int omp_test_lock(void *lock);
int omp_test_lock(void *lock) {
    const struct section s = {lock, REC_SITE_HERE, REC_OPENMP_omp_test_lock, true};
    int (*real)(void *) = (int (*)(void *))real_of(s.name, s.site);
    struct rec_call c = {.thread = NULL};
    if (!rec_profiles())
        rec_enter(&c, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, lock, s.site);
    int got = real != NULL ? real(lock) : 0;
    const struct rec_key key = key_of(&s, SBT_TRACE_MUTEX_TRYLOCK, got == 0);
    if (got != 0)
        __atomic_fetch_add(inside_of(lock), 1, __ATOMIC_RELAXED);
    if (!rec_profiles()) {
        c.event.order = got != 0 ? rec_acquired(c.node) : 0;
        rec_leave(&c, got != 0 ? 0 : EBUSY);
    } else if (got != 0) {
        rec_profile_acquired(&key);
    } else {
        rec_profile_count(&key);
    }
    return got;
}

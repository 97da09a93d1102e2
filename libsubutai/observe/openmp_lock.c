/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * OpenMP's critical sections, ordered sections and locks: mutexes. The run-time library waits for them by ways of its
 * own, so the recorder guesses whether a call has to wait: if another thread is in a section of the same hash. A thread
 * waits for its turn at an ordered section when no thread is in one, too, so each of these is an event.
 */
#include <errno.h>
#include <string.h>

#include "observe/openmp_inner.h"

/* Objects that have no address in the program. A report shows them by these names. */
static char openmp_critical[8], openmp_atomic[8];

/*
 * Teams that are in regions at once have their turns each for itself. A team takes a place with its first ordered
 * section, and gives it back with the end of its region. Without nested teams it is always the first place.
 */
enum { N_TEAMS = 64, NO_PLACE = N_TEAMS + 1 };
static char openmp_ordered[N_TEAMS][8];
static uint64_t taken; /* places, by bits; atomic */

static bool is_ordered(const void *object) {
    return (uintptr_t)object - (uintptr_t)openmp_ordered < sizeof openmp_ordered;
}

static uint32_t take_place(void) {
    uint64_t seen = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    while (seen != UINT64_MAX)
        if (__atomic_compare_exchange_n(&taken, &seen, seen | (seen + 1), true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return (uint32_t)__builtin_ctzll(~seen) + 1;
    return NO_PLACE;
}

static void give_place(uint32_t place) {
    if (place != 0 && place != NO_PLACE)
        __atomic_fetch_and(&taken, ~(UINT64_C(1) << (place - 1)), __ATOMIC_RELEASE);
}

/* Threads of a team may ask at once; a team that found no place has none in the whole region. */
void *rec_openmp_ordered(void) {
    struct rec_openmp_region *r = rec_openmp_self.in.n_serial == 0 ? rec_openmp_self.in.region : NULL;
    if (r == NULL) /* a team of one thread, which has to wait for none, or a region that is not recorded */
        return NULL;
    uint32_t place = __atomic_load_n(&r->ordered, __ATOMIC_RELAXED);
    if (place == 0) {
        const uint32_t mine = take_place();
        if (__atomic_compare_exchange_n(&r->ordered, &place, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            place = mine;
        else
            give_place(mine);
    }
    return place != NO_PLACE ? openmp_ordered[place - 1] : NULL;
}

void rec_openmp_end_ordered(struct rec_openmp_region *r) {
    give_place(r->ordered);
}

/* Threads in sections, by the object's hash; atomic, relaxed: a hint whether a thread has to wait. */
static uint32_t n_inside[REC_N_CACHED],
    n_inside_of; /* n_inside_of: the fork generation; others' threads are not in a child */

static uint32_t *inside_of(const void *object) {
    if (SBT_UNLIKELY(n_inside_of != sbt_fork_generation())) {
        n_inside_of = sbt_fork_generation();
        memset(n_inside, 0, sizeof n_inside);
    }
    return &n_inside[REC_CACHE_PLACE((uintptr_t)object)];
}

static void call(const struct rec_openmp_section *s) {
    sbt_function *real = rec_openmp_real(s->name, s->site);
    if (real == NULL)
        return;
    switch (s->form) {
    case REC_OPENMP_PLAIN:
        real();
        break;
    case REC_OPENMP_OF_OBJECT:
        ((void (*)(void *))real)(s->object);
        break;
    case REC_OPENMP_AT_PLACE:
        ((void (*)(void *, int))real)(s->place, s->thread);
        break;
    case REC_OPENMP_AT_PLACE_OF_OBJECT:
        ((void (*)(void *, int, void *))real)(s->place, s->thread, s->object);
        break;
    case REC_OPENMP_WITH_HINT:
        ((void (*)(void *, int, void *, uint32_t))real)(s->place, s->thread, s->object, s->hint);
        break;
    }
}

static int wait_now(void *object, const struct rec_limit *limit) {
    (void)object, (void)limit;
    call(rec_openmp_self.section);
    return 0;
}

static int release_now(void *object) {
    (void)object;
    call(rec_openmp_self.section);
    return 0;
}

static struct rec_key key_of(const struct rec_openmp_section *s, unsigned op, bool failed) {
    return (struct rec_key){(uintptr_t)s->object, (uintptr_t)s->site, (uint8_t)op, SBT_TRACE_MUTEX, failed, 0};
}

void rec_openmp_enter_section(const struct rec_openmp_section *s) {
    if (s->object == NULL) { /* not recorded */
        call(s);
        return;
    }
    rec_openmp_see();
    struct rec_key key = key_of(s, SBT_TRACE_MUTEX_LOCK, false);
    uint32_t *inside = inside_of(s->object);
    if (!rec_profiles()) {
        struct rec_call c;
        rec_enter(&c, SBT_TRACE_MUTEX_LOCK, SBT_TRACE_MUTEX, s->object, s->site);
        call(s);
        c.event.order = rec_acquired(c.node);
        rec_leave(&c, 0);
    } else if (__atomic_load_n(inside, __ATOMIC_RELAXED) == 0 && !is_ordered(s->object)) {
        call(s);
        rec_profile_acquired(&key);
    } else {
        const struct rec_openmp_section *outer = rec_openmp_self.section; /* a handler's call comes within one */
        rec_openmp_self.section = s;
        rec_profile_wait(&key, wait_now, NULL);
        rec_openmp_self.section = outer;
    }
    __atomic_fetch_add(inside, 1, __ATOMIC_RELAXED);
}

void rec_openmp_leave_section(const struct rec_openmp_section *s) {
    if (s->object == NULL) {
        call(s);
        return;
    }
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
    const struct rec_openmp_section *outer = rec_openmp_self.section;
    rec_openmp_self.section = s;
    if (rec_is_waited_for(s->object))
        rec_profile_release(&key, release_now);
    else
        call(s);
    rec_openmp_self.section = outer;
}

#define UNNAMED(name, what, object)                                                                                    \
    SBT_EXPORT void name(void);                                                                                        \
    void name(void) {                                                                                                  \
        const struct rec_openmp_section s = {object, REC_SITE_HERE, REC_OPENMP_##name, .form = REC_OPENMP_PLAIN};      \
        what(&s);                                                                                                      \
    }
#define NAMED(name, what)                                                                                              \
    SBT_EXPORT void name(void *object);                                                                                \
    void name(void *object) {                                                                                          \
        const struct rec_openmp_section s = {object, REC_SITE_HERE, REC_OPENMP_##name, .form = REC_OPENMP_OF_OBJECT};  \
        what(&s);                                                                                                      \
    }
UNNAMED(GOMP_critical_start, rec_openmp_enter_section, openmp_critical)
UNNAMED(GOMP_critical_end, rec_openmp_leave_section, openmp_critical)
UNNAMED(GOMP_atomic_start, rec_openmp_enter_section, openmp_atomic)
UNNAMED(GOMP_atomic_end, rec_openmp_leave_section, openmp_atomic)
UNNAMED(GOMP_ordered_start, rec_openmp_enter_section, rec_openmp_ordered())
UNNAMED(GOMP_ordered_end, rec_openmp_leave_section, rec_openmp_ordered())
NAMED(GOMP_critical_name_start, rec_openmp_enter_section)
NAMED(GOMP_critical_name_end, rec_openmp_leave_section)
NAMED(omp_set_lock, rec_openmp_enter_section)
NAMED(omp_unset_lock, rec_openmp_leave_section)

static void begin_life(const struct rec_openmp_section *s) {
    call(s);
    rec_init(SBT_TRACE_MUTEX, s->object, 0, s->site);
}

static void end_life(const struct rec_openmp_section *s) {
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

static int test(const struct rec_openmp_section *s) {
    rec_openmp_see();
    int (*real)(void *) = (int (*)(void *))rec_openmp_real(s->name, s->site);
    struct rec_call c = {.thread = NULL};
    if (!rec_profiles())
        rec_enter(&c, SBT_TRACE_MUTEX_TRYLOCK, SBT_TRACE_MUTEX, s->object, s->site);
    int got = real != NULL ? real(s->object) : 0;
    if (got > 1) { /* a nested lock that the caller holds already */
        rec_drop(&c);
        return got;
    }
    const struct rec_key key = key_of(s, SBT_TRACE_MUTEX_TRYLOCK, got == 0);
    if (got != 0)
        __atomic_fetch_add(inside_of(s->object), 1, __ATOMIC_RELAXED);
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

SBT_EXPORT int omp_test_lock(void *lock);
int omp_test_lock(void *lock) {
    const struct rec_openmp_section s = {lock, REC_SITE_HERE, REC_OPENMP_omp_test_lock, .form = REC_OPENMP_OF_OBJECT};
    return test(&s);
}

/* ---- nested locks: as of a recursive mutex, the outermost calls are recorded ---- */

/*
 * The nested locks that the thread holds, and how often. A task that does not end in the thread that began it may hold
 * one too: that one's inner calls are taken for outermost ones, as those of the locks for which there is no room.
 */
enum { N_NESTED = 16 };
static _Thread_local struct {
    void *lock;
    uint32_t n;
} nested[N_NESTED] __attribute__((tls_model("initial-exec")));

static uint32_t *depth_of(void *lock, bool make) {
    unsigned room = N_NESTED;
    for (unsigned i = 0; i < N_NESTED; i++) {
        if (nested[i].n != 0 && nested[i].lock == lock)
            return &nested[i].n;
        if (nested[i].n == 0)
            room = i;
    }
    if (!make || room == N_NESTED)
        return NULL;
    nested[room].lock = lock;
    return &nested[room].n;
}

static void enter_nested(const struct rec_openmp_section *s) {
    uint32_t *n = depth_of(s->object, false);
    if (n != NULL)
        call(s);
    else
        rec_openmp_enter_section(s);
    if (n != NULL || (n = depth_of(s->object, true)) != NULL)
        ++*n;
}

static void leave_nested(const struct rec_openmp_section *s) {
    uint32_t *n = depth_of(s->object, false);
    if (n != NULL && --*n > 0)
        call(s);
    else
        rec_openmp_leave_section(s);
}

NAMED(omp_init_nest_lock, begin_life)
NAMED(omp_destroy_nest_lock, end_life)
NAMED(omp_set_nest_lock, enter_nested)
NAMED(omp_unset_nest_lock, leave_nested)

SBT_EXPORT int omp_test_nest_lock(void *lock);
int omp_test_nest_lock(void *lock) {
    const struct rec_openmp_section s = {lock, REC_SITE_HERE, REC_OPENMP_omp_test_nest_lock,
                                         .form = REC_OPENMP_OF_OBJECT};
    int got = test(&s);
    uint32_t *n = got > 0 ? depth_of(lock, true) : NULL;
    if (n != NULL)
        *n = (uint32_t)got;
    return got;
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Random programs that cannot dead-lock, on random chips, under every policy, in free and in recorded order: each must
 * end, with all its work and all its calls done, and the same again a second time. What must hold is checked by the
 * simulator's callbacks: a mutex has one owner, and in recorded order the recorded ones one after another, a thread's
 * states follow each other without gap or overlap, a core has one thread at a time, and no run is shorter than the
 * bounds of its trace.
 */
#include <string.h>

#include "build.h"
#include "lib/suite.h"
#include "random.h"

enum { MAX_THREADS = 40, MAX_MUTEXES = 30, MAX_CORES = 64 };

/* Kinds of which there is one object at a time; objects that must know their size are initialised before all threads.
 */
enum { RWLOCK, SPIN, READY, CONDITION, BARRIER, SEM, N_KINDS };
enum { PAGE = 256, N_PHASES = 6, MAX_OBJECTS = (N_PHASES + 2) * PAGE };

struct program {
    struct build b;
    uint32_t n_threads, n_mutexes, next;
    uint32_t mutex[MAX_MUTEXES], object[N_KINDS]; /* their numbers: each life has another one */
    uint64_t n_acquired[MAX_OBJECTS], n_signals;
    uint64_t owners[MAX_OBJECTS]; /* the threads that have locked it, in the recorded order; 0 for mutexes that
                                     conditions are used with */
    uint64_t work, n_calls;
};

static uint64_t some_work(struct program *p) {
    uint64_t work = below(4) == 0 ? below(20000) : below(300);
    p->work += work;
    return work;
}

static uint64_t one_more(uint64_t owners, uint32_t thread) {
    return (owners ^ (thread + 1)) * UINT64_C(0x100000001b3);
}

static void put(struct program *p, uint32_t thread, enum sbt_trace_op op, uint32_t object) {
    if (object != p->object[READY] && (op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_MUTEX_TRYLOCK))
        p->owners[object] = one_more(p->owners[object], thread);
    if (op == SBT_TRACE_MUTEX_LOCK || op == SBT_TRACE_MUTEX_TRYLOCK)
        lock_nth(&p->b, thread, object, ++p->n_acquired[object], some_work(p));
    else
        call(&p->b, thread, op, object, some_work(p));
    p->n_calls++;
}

/* Locks nest upwards. In recorded order these calls come one after another. */
static void some_calls(struct program *p, uint32_t thread) {
    uint32_t first = below(p->n_mutexes), n = 1 + below(3);
    switch (below(8)) {
    case 7:
        build_event(&p->b, thread,
                    (struct sbt_trace_event){.op = SBT_TRACE_OUTSIDE_WAIT,
                                             .object = SBT_TRACE_NONE,
                                             .other = SBT_TRACE_NONE,
                                             .work_ns = some_work(p),
                                             .took_ns = below(3) * below(3000)});
        break;
    case 6:
        build_event(&p->b, thread,
                    (struct sbt_trace_event){.op = SBT_TRACE_MUTEX_TRYLOCK,
                                             .type = SBT_TRACE_MUTEX,
                                             .object = p->mutex[first],
                                             .other = SBT_TRACE_NONE,
                                             .result = EBUSY,
                                             .work_ns = some_work(p)});
        p->n_calls++;
        break;
    case 0:
        put(p, thread, below(2) ? SBT_TRACE_RWLOCK_RDLOCK : SBT_TRACE_RWLOCK_WRLOCK, p->object[RWLOCK]);
        put(p, thread, SBT_TRACE_RWLOCK_UNLOCK, p->object[RWLOCK]);
        break;
    case 1:
        put(p, thread, SBT_TRACE_SEM_WAIT, p->object[SEM]);
        put(p, thread, SBT_TRACE_SEM_POST, p->object[SEM]);
        break;
    case 2:
        put(p, thread, SBT_TRACE_SPIN_LOCK, p->object[SPIN]);
        put(p, thread, SBT_TRACE_SPIN_UNLOCK, p->object[SPIN]);
        break;
    default:
        for (uint32_t i = 0; i < n && first + i < p->n_mutexes; i++)
            put(p, thread, below(5) ? SBT_TRACE_MUTEX_LOCK : SBT_TRACE_MUTEX_TRYLOCK, p->mutex[first + i]);
        for (uint32_t i = n; i-- > 0;)
            if (first + i < p->n_mutexes)
                put(p, thread, SBT_TRACE_MUTEX_UNLOCK, p->mutex[first + i]);
    }
}

/*
 * One thread signals, the others wait: for a broadcast, or each for a signal of its own, in any order. Recorded: all
 * wait; then come the signals. After each signal its waiter has the mutex once more, after a broadcast all waiters.
 */
static void some_waits(struct program *p) {
    uint32_t waker = below(p->n_threads), n = p->n_threads - 1, order[MAX_THREADS];
    uint32_t ready = p->object[READY], condition = p->object[CONDITION];
    uint64_t relock[MAX_THREADS], locked = below(2), *n_acquired = &p->n_acquired[ready], first = *n_acquired;
    bool broadcast = below(2);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        uint32_t k = below(i), swap = order[k];
        order[k] = order[i - 1];
        order[i - 1] = swap;
    }
    for (uint32_t i = 0; i < n;
         i++) /* n waits, the locks of the waker until then, and the waiters that were woken before */
        relock[i] = first + n + locked * (broadcast ? 1 : order[i] + 1) + order[i] + 1;
    for (uint32_t t = 0, i = 0; t < p->n_threads; t++) {
        if (t == waker)
            continue;
        put(p, t, SBT_TRACE_MUTEX_LOCK, ready);
        build_event(&p->b, t,
                    (struct sbt_trace_event){.op = SBT_TRACE_COND_WAIT,
                                             .type = SBT_TRACE_COND,
                                             .object = condition,
                                             .other = ready,
                                             .order = p->n_signals + 1 + (broadcast ? 0 : order[i]),
                                             .relock = relock[i],
                                             .work_ns = some_work(p)});
        i++;
        p->n_calls++;
        put(p, t, SBT_TRACE_MUTEX_UNLOCK, ready);
    }
    for (uint32_t i = 0; i < (broadcast ? 1 : n); i++) {
        if (locked)
            put(p, waker, SBT_TRACE_MUTEX_LOCK, ready);
        uint64_t work = some_work(p);
        signal_(&p->b, waker, broadcast ? SBT_TRACE_COND_BROADCAST : SBT_TRACE_COND_SIGNAL, condition, ++p->n_signals,
                work);
        p->n_calls++;
        if (locked)
            put(p, waker, SBT_TRACE_MUTEX_UNLOCK, ready);
        *n_acquired += broadcast ? n : 1;
    }
}

static enum sbt_trace_type type_of(uint32_t kind) {
    static const enum sbt_trace_type types[N_KINDS] = {SBT_TRACE_RWLOCK, SBT_TRACE_SPIN,    SBT_TRACE_MUTEX,
                                                       SBT_TRACE_COND,   SBT_TRACE_BARRIER, SBT_TRACE_SEM};
    return types[kind];
}

static uint32_t new_number(struct program *p, uint32_t kind) {
    if (kind == CONDITION)
        p->n_signals = 0;
    if (kind == BARRIER || kind == SEM) /* one after another in a page of their own */
        return p->object[kind] + 2;
    return p->next++;
}

/* By the thread that used the object last in the trace, which need not be the last here. Sometimes all objects and the
 * rest of their page: then its memory is given back. */
static void some_destroys(struct program *p) {
    uint32_t thread = below(p->n_threads), page = p->next / PAGE * PAGE;
    bool all = below(3) == 0;
    if (all) {
        for (uint32_t i = page; i < page + PAGE; i++) {
            destroy(&p->b, thread, SBT_TRACE_MUTEX, i);
            p->owners[i] = 0; /* the order is forgotten with all else */
        }
        p->next = page + PAGE;
    }
    for (uint32_t i = 0; i < p->n_mutexes; i++)
        if (all || below(4) == 0) {
            if (!all)
                destroy(&p->b, thread, SBT_TRACE_MUTEX, p->mutex[i]);
            p->mutex[i] = p->next++;
        }
    for (uint32_t kind = 0; kind < N_KINDS; kind++)
        if (all || below(4) == 0) {
            if (!all || kind == BARRIER || kind == SEM)
                destroy(&p->b, below(2) ? thread : below(p->n_threads), type_of(kind), p->object[kind]);
            p->object[kind] = new_number(p, kind);
        }
}

static const struct sbt_trace *write_program(struct program *p) {
    *p = (struct program){.n_threads = 1 + below(MAX_THREADS), .n_mutexes = 1 + below(MAX_MUTEXES), .next = PAGE};
    build_open(&p->b);
    p->object[BARRIER] = 0;
    p->object[SEM] = 1;
    for (uint32_t i = 0, size = 1 + below(3); i <= N_PHASES; i++) {
        init(&p->b, 0, SBT_TRACE_BARRIER, 2 * i, p->n_threads);
        init(&p->b, 0, SBT_TRACE_SEM, 2 * i + 1, size);
    }
    for (uint32_t i = 0; i < p->n_mutexes; i++)
        p->mutex[i] = p->next++;
    for (uint32_t kind = 0; kind < BARRIER; kind++)
        p->object[kind] = p->next++;
    create_all(&p->b, p->n_threads);
    for (uint32_t phase = 1 + below(N_PHASES); phase-- > 0;) {
        uint32_t left[MAX_THREADS], n = 0;
        for (uint32_t t = 0; t < p->n_threads; t++)
            n += left[t] = below(12);
        while (n > 0) { /* any order of all their calls */
            uint32_t t = below(p->n_threads);
            if (left[t] > 0) {
                some_calls(p, t);
                left[t]--;
                n--;
            }
        }
        if (below(2) && p->n_threads > 1)
            some_waits(p);
        if (below(2))
            for (uint32_t t = 0; t < p->n_threads; t++)
                put(p, t, SBT_TRACE_BARRIER_WAIT, p->object[BARRIER]);
        if (below(2))
            some_destroys(p);
    }
    end_all(&p->b, p->n_threads);
    return build_close(&p->b);
}

/* ---- what must hold ---- */

struct watch {
    uint64_t hash;
    uint64_t thread_to[8][MAX_THREADS], core_to[MAX_CORES];
    uint64_t n_intervals;
    uint32_t owner[8][MAX_OBJECTS]; /* a thread and 1 */
    uint64_t owners[8][MAX_OBJECTS];
};

static bool on_grant(void *context, uint32_t application, uint32_t mutex, uint32_t thread) {
    struct watch *w = context;
    uint32_t *owner = &w->owner[application][mutex];
    if (*owner != 0)
        ck_abort_msg("mutex %u: given to thread %u, and %u has it", mutex, thread, *owner - 1);
    *owner = thread + 1;
    w->owners[application][mutex] = one_more(w->owners[application][mutex], thread);
    return true;
}

static void on_release(void *context, uint32_t application, uint32_t mutex, uint32_t thread) {
    struct watch *w = context;
    uint32_t *owner = &w->owner[application][mutex];
    if (*owner != thread + 1)
        ck_abort_msg("mutex %u: released for thread %u, and %u has it", mutex, thread, *owner - 1);
    *owner = 0;
}

static void on_interval(void *context, const struct sim_interval *i) {
    struct watch *w = context;
    const uint64_t words[] = {i->application, i->thread, i->core, i->state, i->from_ns, i->to_ns};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        w->hash = (w->hash ^ words[k]) * UINT64_C(0x100000001b3);
    w->n_intervals++;
    /* Check notes each assertion in a file, and there are millions of intervals. */
    uint64_t *thread_to = &w->thread_to[i->application][i->thread];
    if (i->from_ns >= i->to_ns)
        ck_abort_msg("an interval of nothing at %ju ns", (uintmax_t)i->from_ns);
    if (*thread_to != 0 && i->from_ns != *thread_to)
        ck_abort_msg("a thread's time has a gap at %ju ns", (uintmax_t)i->from_ns);
    *thread_to = i->to_ns;
    if (i->state != SIM_WORK && i->state != SIM_CALL)
        return;
    if (i->from_ns < w->core_to[i->core])
        ck_abort_msg("two threads on a core at %ju ns", (uintmax_t)i->from_ns);
    w->core_to[i->core] = i->to_ns;
}

/* What interrupts take counts as work of the threads that they interrupt. */
static void expect_work(const struct sim_config *config, uint64_t work, uint64_t recorded) {
    bool interrupts = config->host.interrupt_ns != 0 && (config->host.effects & SIM_HOST_INTERRUPTS) != 0;
    bool host = config->sync == SIM_GLIBC || config->sync == SIM_DIRECT;
    if (host && interrupts)
        ck_assert_uint_ge(work, recorded);
    else
        ck_assert_uint_eq(work, recorded);
}

static void expect_bounds(const struct sim_config *config, const struct sbt_trace *trace, uint32_t n,
                          const struct sim_summary *s) {
    struct sim_bounds bounds = bounds_of(trace, config->recorded_order);
    uint32_t n_cores = config->width * config->height, in_a_row = config->sched.policy == CSA_OAT ? n : 1;
    expect_work(config, s->work_ns, bounds.work_ns * n);
    ck_assert_uint_ge(s->makespan_ns, bounds.path_ns * in_a_row);
    ck_assert_uint_ge(s->makespan_ns * n_cores, bounds.work_ns * n);
}

static uint64_t watched(struct sim_config *config, const struct sbt_trace *trace, uint32_t n, const struct program *p) {
    static struct watch w;
    memset(&w, 0, sizeof w);
    config->context = &w;
    config->on_interval = on_interval;
    config->on_grant = on_grant;
    config->on_release = on_release;
    struct sim *sim = simulate_surveyed(config, trace, n); /* with it signals are exchanged on the host */
    struct sim_summary s = sim_summary(sim);
    expect_work(config, s.work_ns, n * p->work);
    ck_assert_uint_eq(s.n_calls, n * p->n_calls);
    for (int i = 0; i < SIM_N_DEVIATIONS; i++)
        ck_assert_msg(s.n_deviations[i] == 0, "%ju %s", (uintmax_t)s.n_deviations[i],
                      sim_deviation_name((enum sim_deviation)i));
    ck_assert_uint_ge(s.makespan_ns * config->width * config->height, s.work_ns + s.call_ns);
    expect_bounds(config, trace, n, &s);
    for (uint32_t i = 0; i < n; i++) {
        const struct sim_application *a = sim_application(sim, i);
        uint64_t all = 0;
        ck_assert_uint_eq(a->n_threads, p->n_threads);
        for (uint32_t k = 0; config->recorded_order && k < MAX_OBJECTS; k++)
            if (p->owners[k] != 0 && p->owners[k] != w.owners[i][k])
                ck_abort_msg("mutex %u: not in recorded order", k);
        for (uint32_t k = 0; k < p->n_threads; k++) {
            struct sim_thread_result r = result_of(sim, i, k);
            all = r.in_ns[SIM_WORK] + r.in_ns[SIM_CALL] + r.in_ns[SIM_WAIT] + r.in_ns[SIM_READY] + r.in_ns[SIM_OUTSIDE];
            ck_assert_uint_le(r.to_ns - r.from_ns, all); /* and what it waited for its first turn */
            ck_assert_uint_le(r.to_ns, a->to_ns);
        }
    }
    w.hash ^= s.makespan_ns;
    sim_free(sim);
    return w.hash;
}

/* Few channels, and costs from nothing to much. */
static void random_optical(struct sim_config *config) {
    config->optical.n_channels = 1 + below(4);
    config->optical.transport_cycles = below(3) * 40;
    config->optical.controller_cycles = below(3) * 30;
    config->optical.check_cycles = below(3);
    config->interface_cycles = below(3) * 150;
}

static void many(uint64_t first, uint64_t n) {
    for (uint64_t round = first; round < first + n; round++) {
        struct program p;
        struct sim_config config;
        random_begin(round);
        const struct sbt_trace *trace = write_program(&p);
        random_chip(&config);
        uint32_t n_apps = 1 + below(3);
        random_optical(&config);
        for (int sync = 0; sync < SIM_N_SYNCS; sync++)
            for (int policy = 0; policy < CSA_N_POLICIES; policy++) {
                config.sync = (enum sim_sync)sync;
                config.sched.policy = (enum csa_policy)policy;
                uint64_t one = watched(&config, trace, n_apps, &p);
                ck_assert_msg(one == watched(&config, trace, n_apps, &p), "round %ju, %s, %s: two results",
                              (uintmax_t)round, sim_sync_name(config.sync), csa_policy_name(config.sched.policy));
            }
        for (int sync = SIM_N_SYNCS; sync < SIM_N_ALL_SYNCS; sync++) {
            config.sync = (enum sim_sync)sync;
            config.sched.policy = CSA_RR;
            random_host(&config);
            uint64_t one = watched(&config, trace, n_apps, &p);
            ck_assert_msg(one == watched(&config, trace, n_apps, &p), "round %ju, %s: two results", (uintmax_t)round,
                          sim_sync_name(config.sync));
        }
        build_discard();
    }
}

TEST_EACH(random_programs_end, 4) {
    const char *only = getenv("SIM_RANDOM"); /* one round, as a failure names it */
    if (only == NULL)
        many((uint64_t)number * 15, 15);
    else if (number == 0)
        many(strtoull(only, NULL, 10), 1);
}

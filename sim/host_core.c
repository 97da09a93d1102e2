/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "host_core.h"

enum { PREFERRED_MOST = 64 }; /* libsubutai/switch/tuning.h */

/* ---- idle cores ---- */

struct sim_host_core *sim_host_find_idle(struct sim *sim, uint32_t from) {
    if (sim->host->n_idle == 0)
        return NULL;
    uint32_t n_words = (sim->n_cores + 63) / 64, start = (from + 1) % sim->n_cores;
    for (uint32_t i = 0; i <= n_words; i++) {
        uint32_t word = (start / 64 + i) % n_words;
        uint64_t bits = sim->idle[word];
        if (i == 0)
            bits &= ~UINT64_C(0) << start % 64;
        if (bits != 0)
            return &sim->host->cores[word * 64 + (uint32_t)__builtin_ctzll(bits)];
    }
    return NULL;
}

/* ---- run queues ---- */

static bool comes_before(const struct sim_thread *a, const struct sim_thread *b) {
    return a->host.key < b->host.key || (a->host.key == b->host.key && a->host.sequence < b->host.sequence);
}

/* ---- a carrier's ---- */

static void push_fiber(struct sim_host_core *core, struct sim_thread *t) {
    bool yielded = t->host.yielded;
    struct sim_thread *last = core->fibers[yielded].last;
    t->host.behind = NULL;
    *(last != NULL ? &last->host.behind : &core->fibers[yielded].first) = t;
    core->fibers[yielded].last = t;
    core->n_ready++;
}

/* Those that yielded come behind the others, but not for ever. */
static bool takes_yielded(struct sim_host_core *core) {
    if (core->fibers[false].first == NULL)
        return true;
    if (core->fibers[true].first == NULL)
        return false;
    bool turn = core->n_preferred >= PREFERRED_MOST;
    core->n_preferred = turn ? 0 : core->n_preferred + 1;
    return turn;
}

static struct sim_thread *take_fiber(struct sim_host_core *core) {
    bool yielded = takes_yielded(core);
    struct sim_thread *t = core->fibers[yielded].first;
    if ((core->fibers[yielded].first = t->host.behind) == NULL)
        core->fibers[yielded].last = NULL;
    core->n_ready--;
    return t;
}

/* ---- the kernel's ---- */

static bool push_thread(struct sim *sim, struct sim_host_core *core, struct sim_thread *t) {
    if (core->n_ready == core->capacity) {
        uint32_t capacity = core->capacity == 0 ? 16 : core->capacity * 2;
        struct sim_thread **queue = realloc(core->queue, capacity * sizeof(struct sim_thread *));
        if (queue == NULL) {
            sim_fail(sim, SIM_NO_MEMORY, "out of memory");
            return false;
        }
        core->queue = queue;
        core->capacity = capacity;
    }
    t->host.sequence = ++sim->host->sequence;
    t->host.key = t->host.deadline;
    uint32_t i = core->n_ready++;
    for (; i > 0 && comes_before(t, core->queue[(i - 1) / 2]); i = (i - 1) / 2)
        core->queue[i] = core->queue[(i - 1) / 2];
    core->queue[i] = t;
    return true;
}

static struct sim_thread *take_thread(struct sim_host_core *core, uint32_t i) {
    struct sim_thread *taken = core->queue[i], *moved = core->queue[--core->n_ready];
    if (moved == taken)
        return taken;
    for (; i > 0 && comes_before(moved, core->queue[(i - 1) / 2]); i = (i - 1) / 2)
        core->queue[i] = core->queue[(i - 1) / 2];
    for (uint32_t child; (child = 2 * i + 1) < core->n_ready; i = child) {
        if (child + 1 < core->n_ready && comes_before(core->queue[child + 1], core->queue[child]))
            child++;
        if (!comes_before(core->queue[child], moved))
            break;
        core->queue[i] = core->queue[child];
    }
    core->queue[i] = moved;
    return taken;
}

/* ---- either's ---- */

/* The core's run queue is not empty any more, or is empty now. */
static void note_queue(struct sim *sim, const struct sim_host_core *core) {
    sim->host->queues[core->number / 64] ^= UINT64_C(1) << core->number % 64;
}

bool sim_host_push(struct sim *sim, struct sim_host_core *core, struct sim_thread *t) {
    if (sim->host->fibers)
        push_fiber(core, t);
    else if (!push_thread(sim, core, t))
        return false;
    if (core->n_ready == 1)
        note_queue(sim, core);
    t->place = SIM_IN_QUEUE;
    sim->n_ready += !sim_host_is_server(sim, core->number);
    return true;
}

struct sim_thread *sim_host_take_at(struct sim *sim, struct sim_host_core *core, uint32_t i) {
    sim->n_ready -= !sim_host_is_server(sim, core->number);
    struct sim_thread *t = sim->host->fibers ? take_fiber(core) : take_thread(core, i);
    if (core->n_ready == 0)
        note_queue(sim, core);
    return t;
}

uint32_t sim_host_take_fibers(struct sim *sim, struct sim_host_core *from, struct sim_host_core *to, uint32_t n) {
    if (from->fibers[true].first != NULL || to->n_ready > 0)
        return 0;
    struct sim_thread *t = from->fibers[false].first, *last = NULL;
    to->fibers[false].first = t;
    for (uint32_t i = 0; i < n; i++, t = t->host.behind)
        last = t, t->core = to->number;
    to->fibers[false].last = last;
    last->host.behind = NULL;
    if ((from->fibers[false].first = t) == NULL)
        from->fibers[false].last = NULL;
    to->n_ready = n;
    note_queue(sim, to);
    if ((from->n_ready -= n) == 0)
        note_queue(sim, from);
    return n;
}

/* ---- virtual time ---- */

static uint32_t n_counted(const struct sim_host_core *core) {
    return sim_host_n_here(core) + core->n_delayed;
}

static int64_t mean_v(const struct sim_host_core *core) {
    uint32_t n = n_counted(core);
    return n == 0 ? core->rest_v : n == 1 ? core->sum_v : core->sum_v / (int64_t)n;
}

/*
 * The thread moves the mean of n threads by 1 / (n + 1) of its distance
 * to it, and has its lag to the mean that is then.
 */
void sim_host_join(const struct sim *sim, struct sim_host_core *core, struct sim_thread *t, uint64_t slice) {
    int64_t n = n_counted(core);
    t->core = core->number;
    if (sim->host->fibers)
        return;
    t->host.v = mean_v(core) - (n > 0 ? t->host.lag * (n + 1) / n : 0);
    t->host.deadline = t->host.v + (int64_t)slice;
    core->sum_v += t->host.v;
}

void sim_host_leave(struct sim *sim, struct sim_host_core *core, struct sim_thread *t) {
    if (sim->host->fibers)
        return;
    int64_t most = (int64_t)(sim->host->model.slice_ns + sim->host->model.tick_ns);
    uint32_t n_others = n_counted(core);
    int64_t mean = n_others == 0 ? core->sum_v : core->sum_v / (int64_t)(n_others + 1), lag = mean - t->host.v;
    t->host.lag = lag > most ? most : lag < -most ? -most : lag;
    core->sum_v -= t->host.v;
    if (n_others == 0)
        core->rest_v = t->host.v;
}

/* ---- which thread runs next ---- */

bool sim_host_is_eligible(const struct sim_host_core *core, const struct sim_thread *t) {
    return t->host.v <= mean_v(core);
}

/* The place of the eligible thread that comes first, at or below place i of the heap; `best` if that comes before it.
 */
static uint32_t first_eligible(const struct sim_host_core *core, uint32_t i, uint32_t best) {
    if (i >= core->n_ready || (best < core->n_ready && !comes_before(core->queue[i], core->queue[best])))
        return best;
    if (sim_host_is_eligible(core, core->queue[i]))
        return i;
    best = first_eligible(core, 2 * i + 1, best);
    return first_eligible(core, 2 * i + 2, best);
}

/* ---- threads that sleep with a debt ---- */

void sim_host_delay(const struct sim *sim, struct sim_host_core *core, struct sim_thread *t) {
    if (t->host.v >= t->host.deadline)
        t->host.deadline = t->host.v + (int64_t)sim->host->model.slice_ns;
    t->host.delayed = true;
    t->host.behind = core->delayed;
    core->delayed = t;
    core->n_delayed++;
}

static void remove_delayed(struct sim_host_core *core, struct sim_thread *t) {
    struct sim_thread **at = &core->delayed;
    while (*at != t)
        at = &(*at)->host.behind;
    *at = t->host.behind;
    core->n_delayed--;
    t->host.delayed = false;
}

bool sim_host_has_paid(const struct sim *sim, const struct sim_host_core *core, const struct sim_thread *t) {
    if (core->n_ready > 0 || core->on == NULL || !sim_host_has(sim, SIM_HOST_SLICES))
        return false;
    uint64_t now = sim_now(sim), tick = now - now % sim->host->model.tick_ns;
    int64_t since = (int64_t)(tick - core->from), n = n_counted(core); /* often below 0 */
    return core->on->host.v + since >= core->on->host.deadline && t->host.v <= (core->sum_v + since) / n;
}

/* The debt is paid. A credit is not kept (DELAY_ZERO). */
static void leave_delayed(struct sim *sim, struct sim_host_core *core, struct sim_thread *t) {
    remove_delayed(core, t);
    sim_host_leave(sim, core, t);
    t->host.lag = 0;
}

void sim_host_leave_if_paid(struct sim *sim, struct sim_thread *t) {
    struct sim_host_core *core = sim_host_core_of(sim, t);
    if (!t->host.delayed || !sim_host_has_paid(sim, core, t))
        return;
    sim_host_count(sim, core);
    leave_delayed(sim, core, t);
}

void sim_host_end_delay(struct sim *sim, struct sim_host_core *core, struct sim_thread *t) {
    if (sim_host_is_eligible(core, t)) {
        leave_delayed(sim, core, t);
        sim_host_join(sim, core, t, sim->host->model.slice_ns);
    } else {
        remove_delayed(core, t);
    }
}

static struct sim_thread *first_delayed(const struct sim_host_core *core) {
    struct sim_thread *first = NULL;
    for (struct sim_thread *t = core->delayed; t != NULL; t = t->host.behind)
        if (sim_host_is_eligible(core, t) && (first == NULL || t->host.deadline < first->host.deadline))
            first = t;
    return first;
}

/* The mean is never below all threads. */
struct sim_thread *sim_host_take_next(struct sim *sim, struct sim_host_core *core) {
    if (sim->host->fibers)
        return sim_host_take_at(sim, core, 0);
    for (;;) {
        uint32_t place = first_eligible(core, 0, UINT32_MAX);
        struct sim_thread *t = core->n_delayed > 0 ? first_delayed(core) : NULL;
        if (t == NULL || (place < core->n_ready && core->queue[place]->host.deadline <= t->host.deadline))
            return core->n_ready == 0 ? NULL : sim_host_take_at(sim, core, place < core->n_ready ? place : 0);
        leave_delayed(sim, core, t);
    }
}

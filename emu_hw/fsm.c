/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One function for each state, with its accesses in the order in which the hardware makes them. The time of a packet
 * follows from the accesses and cycles before it, so the formulas of Table III are a result, not an input.
 *
 * All states are in this one file: together they are the step of the machine, which the compiler joins to one function.
 * fsm_ni.c has what a network interface does outside of its steps.
 */
#include "fsm.h"

#include "queue.h"

struct run {
    struct hw_ni *ni;
    struct hw_spm *spm;
    struct hw_step *step;
    struct hw_output *outputs;
    uint64_t first_access; /* how many accesses there had been when the step began */
    uint32_t id;           /* flit 1 */
    uint32_t caller;       /* flit 2: the thread and its core */
    uint32_t index;        /* the ID's control element */
    enum hw_op op;
};

/* ---- time and packets ---- */

static uint32_t accesses(const struct run *run) {
    return (uint32_t)(hw_spm_n_accesses(run->spm) - run->first_access);
}

static uint32_t elapsed(const struct run *run) {
    const struct hw_timing *t = &run->ni->timing;
    return t->entry_cycles + accesses(run) * t->memory_cycles + run->step->n_cycles * t->fsm_cycles;
}

/* Tells the NI that a packet can leave. That takes one c, and the packet leaves after it. */
static void inject(struct run *run, enum hw_op op, uint32_t argument, uint32_t primitive, uint32_t to) {
    struct hw_output *output = &run->outputs[run->step->n_outputs++];
    struct hw_message message = {.destination = hw_low(to),
                                 .source = run->spm->ni,
                                 .op = op,
                                 .argument = argument,
                                 .primitive = primitive,
                                 .thread = hw_high(to),
                                 .core = hw_low(to)};
    run->step->n_cycles++;
    output->packet = hw_packet_encode(&run->spm->layout, &message);
    output->at_cycles = elapsed(run);
}

static void refuse(struct run *run, enum hw_reason reason) {
    enum hw_op op = hw_op_is_request((uint32_t)run->op) ? run->op : HW_OP_NONE;
    inject(run, HW_OP_NACK, hw_nack_argument(op, reason), run->id, run->caller);
    run->step->status = HW_STATUS_REFUSED;
    run->step->state = HW_STATE_REFUSE;
}

/* ---- words of the addressed primitive ---- */

static uint32_t read_word(struct run *run, uint32_t index, uint32_t word) {
    return hw_spm_read(run->spm, hw_control_word(index, word));
}

static void write_word(struct run *run, uint32_t index, uint32_t word, uint32_t value) {
    hw_spm_write(run->spm, hw_control_word(index, word), value);
}

static bool is_held(uint32_t mutex_word2) {
    return hw_low(mutex_word2) != 0;
}

/* Is there a queue element that is not promised to a barrier? */
static bool has_room(const struct run *run) {
    return run->spm->n_free > run->spm->n_reserved;
}

static void again(struct run *run) {
    run->ni->stats.n_again++;
    inject(run, HW_OP_AGAIN, 0, run->id, run->caller);
}

static void no_room(struct run *run) {
    if (run->ni->full == HW_FULL_AGAIN)
        again(run);
    else
        run->step->status = HW_STATUS_HELD;
}

/* ---- Allocation and Deallocation ---- */

static void no_space(struct run *run, enum hw_space space) {
    run->ni->stats.n_no_space++;
    inject(run, HW_OP_NO_SPACE, space, run->id, run->caller);
}

/* R w0 until an element is free, W w0, inject, W w1, W w2: k + 3 accesses, k the number of elements read. */
static void allocate(struct run *run, enum hw_kind kind, uint32_t bound, uint32_t max) {
    struct hw_spm *spm = run->spm;
    uint32_t promise = kind == HW_KIND_BARRIER && spm->reserving ? max - 1 : 0;
    if (promise > (uint32_t)(spm->n_free - spm->n_reserved)) {
        no_space(run, HW_SPACE_QUEUE);
        return;
    }
    for (uint32_t i = 0; i < spm->n_control; i++) {
        uint32_t old = read_word(run, i, 0);
        if (old & HW_ID_IN_USE)
            continue;
        uint32_t generation = hw_id_generation(&spm->layout, old) + 1 + spm->generation_skip;
        uint32_t id = HW_ID_IN_USE | hw_id_make(&spm->layout, spm->ni, kind, generation, bound, i);
        write_word(run, i, 0, id);
        inject(run, HW_OP_ALLOCATED, 0, id, run->caller);
        write_word(run, i, 1, 0);
        write_word(run, i, 2, max);
        spm->n_reserved = (uint16_t)(spm->n_reserved + promise);
        run->ni->n_control_used++;
        return;
    }
    no_space(run, HW_SPACE_CONTROL);
}

/* R w1, R w2, W w0: 3 accesses. False: the primitive is in use; fewer accesses, and nothing has changed. */
static bool deallocate(struct run *run) {
    struct hw_spm *spm = run->spm;
    uint32_t id = run->id;
    enum hw_kind kind = hw_id_kind(&spm->layout, id);
    if (read_word(run, run->index, 1) != 0)
        return false;
    uint32_t state = read_word(run, run->index, 2);
    if (kind == HW_KIND_BARRIER ? hw_high(state) != 0 : is_held(state))
        return false;
    write_word(run, run->index, 0,
               hw_id_make(&spm->layout, spm->ni, HW_KIND_NONE, hw_id_generation(&spm->layout, id), 0, run->index));
    if (kind == HW_KIND_BARRIER && spm->reserving)
        spm->n_reserved = (uint16_t)(spm->n_reserved - (hw_low(state) - 1));
    run->ni->n_control_used--;
    return true;
}

/* ---- Mutex ---- */

/* R w2. If the mutex is free: W w2, inject = 2m + c. If it is held: put = 6m to 11m. */
static void lock(struct run *run) {
    if (!is_held(read_word(run, run->index, 2))) {
        write_word(run, run->index, 2, hw_owner(run->spm, run->caller));
        inject(run, HW_OP_GRANT, 0, run->id, run->caller);
    } else if (has_room(run)) {
        hw_queue_put(run->spm, run->index, run->caller);
    } else {
        no_room(run);
    }
}

static __attribute__((noinline)) void hand_over(struct run *run, uint32_t index, struct hw_first first) {
    struct hw_spm *spm = run->spm;
    hw_queue_first_waiter(spm, &first);
    inject(run, HW_OP_GRANT, 1, hw_spm_tag(spm, index), first.waiter);
    write_word(run, index, 2, hw_owner(spm, first.waiter));
    hw_queue_drop_first(spm, index, &first);
}

/* R w1, W w2 = 2m. With a waiter, R head.w1 and inject come between them, at 2m + c, and the rest of taking the waiter
 * out follows: 10m + c. True: a waiter has the mutex now. */
static inline bool unlock(struct run *run, uint32_t index) {
    struct hw_first first = hw_queue_first(run->spm, index);
    if (first.at != HW_NIL) {
        hand_over(run, index, first);
        return true;
    }
    write_word(run, index, 2, 0);
    run->step->made_room = true;
    return false;
}

/* R w2, [W w2,] inject: 2m + c, or m + c if the mutex is held. */
static void trylock(struct run *run) {
    bool held = is_held(read_word(run, run->index, 2));
    if (!held)
        write_word(run, run->index, 2, hw_owner(run->spm, run->caller));
    inject(run, held ? HW_OP_BUSY : HW_OP_GRANT, 0, run->id, run->caller);
}

/* ---- Barrier ---- */

/*
 * R w2, W w2, put = 7m to 12m. The last thread to arrive: R w2, inject to itself at m + c; then for each waiter 9
 * accesses to take it out, R w2, W w2, and 3c, of which the last is its packet's: m + c + p(11m + 3c).
 */
static void barrier_wait(struct run *run) {
    struct hw_spm *spm = run->spm;
    uint32_t state = read_word(run, run->index, 2);
    uint32_t n_arrived = hw_high(state), n_threads = hw_low(state);
    if (n_arrived + 1 < n_threads) {
        if (spm->n_free == 0) {
            no_room(run);
            return;
        }
        write_word(run, run->index, 2, hw_pair(n_arrived + 1, n_threads));
        hw_queue_put(spm, run->index, run->caller);
        spm->n_reserved = (uint16_t)(spm->n_reserved - spm->reserving);
        return;
    }
    inject(run, HW_OP_RELEASE, 1, run->id, run->caller);
    for (uint32_t n = n_arrived; n > 0; n--) {
        struct hw_first first = hw_queue_first(spm, run->index);
        hw_queue_first_waiter(spm, &first);
        hw_queue_drop_first(spm, run->index, &first);
        state = read_word(run, run->index, 2);
        write_word(run, run->index, 2, hw_pair(hw_high(state) - 1u, hw_low(state)));
        spm->n_reserved = (uint16_t)(spm->n_reserved + spm->reserving);
        run->step->n_cycles += 2;
        inject(run, HW_OP_RELEASE, 0, run->id, first.waiter);
    }
}

/* ---- Condition ---- */

/* put, c, and all of Mutex Unlock. The head of fsm.h says what happens without room. */
static void condition_wait(struct run *run, uint32_t mutex) {
    if (has_room(run)) {
        hw_queue_put(run->spm, run->index, run->caller);
        run->step->n_cycles++;
        unlock(run, mutex);
    } else if (run->ni->full == HW_FULL_AGAIN) {
        again(run);
    } else if (unlock(run, mutex)) {
        run->step->n_cycles++;
        hw_queue_put(run->spm, run->index, run->caller);
    } else {
        run->ni->stats.n_woken++;
        inject(run, HW_OP_WOKEN, 0, run->id, run->caller);
    }
}

/* The first waiter gets a mutex that is free: the other 8 accesses to take the waiter out, W mutex.w2, inject. */
static void grant_first(struct run *run, uint32_t mutex, struct hw_first *first) {
    hw_queue_first_waiter(run->spm, first);
    hw_queue_drop_first(run->spm, run->index, first);
    write_word(run, mutex, 2, hw_owner(run->spm, first->waiter));
    inject(run, HW_OP_GRANT, 1, hw_spm_tag(run->spm, mutex), first->waiter);
}

/*
 * R w1; without a waiter that is all: m. R mutex.w2. If the mutex is free the first waiter gets it, 11m + c, and the
 * other waiters move to the mutex's queue, 7m more. If it is held all waiters move, 9m.
 */
static void broadcast(struct run *run, uint32_t mutex, struct hw_first *first) {
    if (!is_held(read_word(run, mutex, 2)))
        grant_first(run, mutex, first);
    if (first->at != HW_NIL)
        hw_queue_splice(run->spm, mutex, run->index, first->at, first->tail);
}

/*
 * R w1; without a waiter that is all: m. R mutex.w2. If the mutex is free the first waiter gets it, 11m + c. If it is
 * held the waiter is taken out, 8 accesses more, and put into the mutex's queue as Mutex Lock does, c and up to 10
 * accesses: 20m + c. There is a free element for that: the waiter's own.
 */
static void signal(struct run *run, uint32_t mutex, struct hw_first *first) {
    if (!is_held(read_word(run, mutex, 2))) {
        grant_first(run, mutex, first);
        return;
    }
    hw_queue_first_waiter(run->spm, first);
    hw_queue_drop_first(run->spm, run->index, first);
    run->step->n_cycles++;
    hw_queue_put(run->spm, mutex, first->waiter);
}

static void condition(struct run *run) {
    struct hw_spm *spm = run->spm;
    uint32_t mutex = hw_id_bound(&spm->layout, run->id);
    bool is_bound = hw_id_kind(&spm->layout, hw_spm_tag(spm, mutex)) == HW_KIND_MUTEX;
    if (run->op == HW_OP_COND_WAIT) {
        if (is_bound)
            condition_wait(run, mutex);
        else
            refuse(run, HW_REASON_UNBOUND);
        return;
    }
    struct hw_first first = hw_queue_first(spm, run->index);
    if (first.at == HW_NIL)
        return;
    if (!is_bound)
        refuse(run, HW_REASON_UNBOUND);
    else if (run->op == HW_OP_BROADCAST)
        broadcast(run, mutex, &first);
    else
        signal(run, mutex, &first);
}

/* ---- ours ---- */

static void withdraw(struct run *run) {
    bool found = hw_queue_remove(run->spm, run->index, run->caller);
    inject(run, found ? HW_OP_WITHDRAWN : HW_OP_GONE, 0, run->id, run->caller);
}

/* As Deallocation, with an answer: 3m + c. A mutex to which a condition is bound is not idle; the tags tell that
 * without an access. */
static void evict(struct run *run) {
    struct hw_spm *spm = run->spm;
    bool bound = false;
    if (hw_id_kind(&spm->layout, run->id) == HW_KIND_MUTEX)
        for (uint32_t i = 0; i < spm->n_control; i++) {
            uint32_t tag = hw_spm_tag(spm, i);
            bound |= hw_id_kind(&spm->layout, tag) == HW_KIND_CONDITION && hw_id_bound(&spm->layout, tag) == run->index;
        }
    inject(run, !bound && deallocate(run) ? HW_OP_EVICTED : HW_OP_BUSY, 0, run->id, run->caller);
}

/* ---- one step ---- */

static enum hw_state state_of(enum hw_op op) {
    static const uint8_t states[HW_N_REQUESTS] = {
        [HW_OP_NONE] = HW_STATE_REFUSE,
        [HW_OP_ALLOC_MUTEX] = HW_STATE_ALLOCATION,
        [HW_OP_ALLOC_CONDITION] = HW_STATE_ALLOCATION,
        [HW_OP_ALLOC_BARRIER] = HW_STATE_ALLOCATION,
        [HW_OP_DEALLOC] = HW_STATE_DEALLOCATION,
        [HW_OP_LOCK] = HW_STATE_MUTEX_LOCK,
        [HW_OP_UNLOCK] = HW_STATE_MUTEX_UNLOCK,
        [HW_OP_BARRIER_WAIT] = HW_STATE_BARRIER_WAIT,
        [HW_OP_COND_WAIT] = HW_STATE_CONDITION_WAIT,
        [HW_OP_BROADCAST] = HW_STATE_CONDITION_BROADCAST,
        [HW_OP_SIGNAL] = HW_STATE_CONDITION_SIGNAL,
        [HW_OP_TRYLOCK] = HW_STATE_TRYLOCK,
        [HW_OP_WITHDRAW] = HW_STATE_WITHDRAW,
        [HW_OP_EVICT] = HW_STATE_EVICT,
    };
    return (enum hw_state)states[op];
}

/* The kinds of primitives that have this operation, a bit for each. */
static uint32_t kinds_of(enum hw_op op) {
    enum { MUTEX = 1 << HW_KIND_MUTEX, CONDITION = 1 << HW_KIND_CONDITION, BARRIER = 1 << HW_KIND_BARRIER };
    static const uint8_t kinds[HW_N_REQUESTS] = {
        [HW_OP_ALLOC_CONDITION] = MUTEX,
        [HW_OP_DEALLOC] = MUTEX | CONDITION | BARRIER,
        [HW_OP_LOCK] = MUTEX,
        [HW_OP_UNLOCK] = MUTEX,
        [HW_OP_BARRIER_WAIT] = BARRIER,
        [HW_OP_COND_WAIT] = CONDITION,
        [HW_OP_BROADCAST] = CONDITION,
        [HW_OP_SIGNAL] = CONDITION,
        [HW_OP_TRYLOCK] = MUTEX,
        [HW_OP_WITHDRAW] = MUTEX | CONDITION,
        [HW_OP_EVICT] = MUTEX | CONDITION | BARRIER,
    };
    return kinds[op];
}

static enum hw_reason check(struct run *run, const struct hw_packet *request) {
    const struct hw_spm *spm = run->spm;
    if (!hw_packet_is_request(&spm->layout, request, spm->ni))
        return HW_REASON_MALFORMED;
    if (run->op == HW_OP_ALLOC_MUTEX || run->op == HW_OP_ALLOC_BARRIER)
        return HW_REASON_NONE;
    run->index = hw_id_index(&spm->layout, run->id);
    if (run->index >= spm->n_control || !(run->id & HW_ID_IN_USE) || hw_spm_tag(spm, run->index) != run->id)
        return HW_REASON_STALE;
    return kinds_of(run->op) >> hw_id_kind(&spm->layout, run->id) & 1 ? HW_REASON_NONE : HW_REASON_KIND;
}

static void execute(struct run *run) {
    switch (run->op) {
    case HW_OP_ALLOC_MUTEX:
        allocate(run, HW_KIND_MUTEX, 0, 0);
        break;
    case HW_OP_ALLOC_CONDITION:
        allocate(run, HW_KIND_CONDITION, run->index, 0);
        break;
    case HW_OP_ALLOC_BARRIER:
        allocate(run, HW_KIND_BARRIER, 0, run->id);
        break;
    case HW_OP_DEALLOC:
        if (!deallocate(run))
            refuse(run, HW_REASON_BUSY);
        break;
    case HW_OP_LOCK:
        lock(run);
        break;
    case HW_OP_UNLOCK:
        unlock(run, run->index);
        break;
    case HW_OP_BARRIER_WAIT:
        barrier_wait(run);
        break;
    case HW_OP_COND_WAIT:
    case HW_OP_BROADCAST:
    case HW_OP_SIGNAL:
        condition(run);
        break;
    case HW_OP_TRYLOCK:
        trylock(run);
        break;
    case HW_OP_WITHDRAW:
        withdraw(run);
        break;
    case HW_OP_EVICT:
        evict(run);
        break;
    default:
        break; /* check() refuses all other operations */
    }
}

static inline void count(struct hw_ni *ni, const struct hw_step *step) {
    struct hw_ni_stats *stats = &ni->stats;
    stats->busy_cycles += step->response_cycles;
    if (step->status == HW_STATUS_HELD)
        stats->n_held++;
    else
        stats->n_steps[step->state]++;
    uint16_t n_queue_used = (uint16_t)(ni->spm.n_queue - ni->spm.n_free);
    if (n_queue_used > stats->max_queue)
        stats->max_queue = n_queue_used;
    if (ni->n_control_used > stats->max_control)
        stats->max_control = ni->n_control_used;
}

/* NACK to the source of the request, whatever its flit 2 says. */
static __attribute__((noinline)) void turn_down(struct run *run, const struct hw_packet *request,
                                                enum hw_reason reason) {
    const struct hw_layout *layout = &run->spm->layout;
    struct hw_message message = hw_packet_decode(layout, request);
    if (message.source < layout->n_tiles) {
        run->caller = hw_pair(message.thread, message.source);
        refuse(run, reason);
    } else {
        run->step->status = HW_STATUS_DROPPED;
        run->step->state = HW_STATE_REFUSE;
    }
}

static __attribute__((noinline)) void any_step(struct hw_ni *ni, const struct hw_packet *request, struct hw_step *step,
                                               struct hw_output *outputs) {
    struct hw_spm *spm = &ni->spm;
    struct run run = {.ni = ni,
                      .spm = spm,
                      .step = step,
                      .outputs = outputs,
                      .first_access = hw_spm_n_accesses(spm),
                      .id = request->flit[1],
                      .caller = request->flit[2],
                      .op = hw_packet_op(request)};
    int32_t room = spm->n_free - spm->n_reserved;
    enum hw_reason reason = check(&run, request); /* first: the request may be in memory that the step writes */
    *step = (struct hw_step){.status = HW_STATUS_DONE};
    if (__builtin_expect(reason == HW_REASON_NONE, 1)) {
        step->state = state_of(run.op);
        execute(&run);
    } else {
        turn_down(&run, request, reason);
    }
    step->n_accesses = accesses(&run);
    step->response_cycles = elapsed(&run) + ni->timing.exit_cycles;
    step->made_room |= spm->n_free - spm->n_reserved > room;
    count(ni, step);
}

/*
 * A short way for the two most frequent requests: LOCK of a free mutex, and UNLOCK of a mutex without waiters. It does
 * what lock() and unlock() would do, and tests/model/reference.c checks it like them. False: the request is another
 * one, and nothing has been done.
 */
static inline bool usual_step(struct hw_ni *ni, const struct hw_packet *request, struct hw_step *step,
                              struct hw_output *output) {
    struct hw_spm *spm = &ni->spm;
    uint32_t header = request->flit[0], id = request->flit[1], caller = request->flit[2], bits = spm->layout.tile_bits;
    uint32_t core = hw_low(caller), ours = (uint32_t)spm->ni << (32 - bits), index = hw_id_index(&spm->layout, id);
    uint32_t op =
        header -
        (ours | core << (32 - 2 * bits)); /* any other bit that is set makes it another request, or a malformed one */
    bool locks = op == (uint32_t)HW_OP_LOCK << HW_ARGUMENT_BITS;
    if ((!locks && op != (uint32_t)HW_OP_UNLOCK << HW_ARGUMENT_BITS) || core >= spm->layout.n_tiles ||
        index >= spm->n_control || hw_spm_tag(spm, index) != id || (id & HW_ID_IN_USE) == 0 ||
        hw_id_kind(&spm->layout, id) != HW_KIND_MUTEX)
        return false;
    uint32_t word2 = hw_control_word(index, 2);
    if (locks ? is_held(hw_spm_peek(spm, word2)) : hw_spm_peek(spm, hw_control_word(index, 1)) >> 16 != HW_NIL)
        return false;
    spm->n_reads++;
    hw_spm_write(spm, word2, locks ? hw_owner(spm, caller) : 0);
    uint32_t ready = ni->timing.entry_cycles + 2 * ni->timing.memory_cycles + locks * ni->timing.fsm_cycles;
    *step = (struct hw_step){.status = HW_STATUS_DONE,
                             .state = locks ? HW_STATE_MUTEX_LOCK : HW_STATE_MUTEX_UNLOCK,
                             .n_accesses = 2,
                             .n_cycles = locks,
                             .response_cycles = ready + ni->timing.exit_cycles,
                             .n_outputs = locks,
                             .made_room = !locks};
    if (locks) {
        uint32_t answer = core << (32 - bits) | ours >> bits | (uint32_t)HW_OP_GRANT << HW_ARGUMENT_BITS;
        *output = (struct hw_output){{{answer, id, caller}}, ready};
    }
    count(ni, step);
    return true;
}

void hw_fsm_step(struct hw_ni *ni, const struct hw_packet *request, struct hw_step *step, struct hw_output *outputs) {
    if (!usual_step(ni, request, step, outputs))
        any_step(ni, request, step, outputs);
}

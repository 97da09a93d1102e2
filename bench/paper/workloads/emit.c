/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "emit.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

const uint32_t workload_sizes[WORKLOAD_N_SIZES] = {16, 32, 64};

const struct workload_model workload_models[] = {
    {"bodytrack", "a master and workers: broadcast, barrier, work with mutexes, barrier", workload_bodytrack},
    {"streamcluster", "thousands of barriers", workload_streamcluster},
    {"x264", "a pipeline of frames, each waiting for rows of the one before", workload_x264},
    {"facesim", "a queue of tasks; the paper has its speed-ups only", workload_facesim},
};
const uint32_t workload_n_models = sizeof workload_models / sizeof *workload_models;

/* splitmix64: the same numbers everywhere. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

uint64_t workload_draw(struct workload *w, uint64_t mean) {
    uint64_t reach = mean / 1000 * w->request->spread_permille + mean % 1000 * w->request->spread_permille / 1000;
    return mean - reach + draw(&w->random) % (2 * reach + 1);
}

uint64_t workload_slowest(const struct workload *w, uint32_t n) {
    uint64_t mean = w->request->worker_ns;
    return mean + mean * w->request->spread_permille / 1000 * (n - 1) / (n + 1);
}

void workload_set_held(struct workload *w, uint64_t path_ns, uint64_t millionths, uint64_t n) {
    w->held = (uint64_t)((double)path_ns * (double)millionths / 1e6 / (double)n + 0.5);
}

uint64_t workload_part(uint64_t total, uint64_t parts, uint64_t i) {
    return total * (i + 1) / parts - total * i / parts;
}

static void emit(struct workload *w, uint32_t thread, enum sbt_trace_op op, uint32_t object, uint32_t other,
                 uint64_t order, uint64_t relock) {
    struct sbt_trace_event event = {
        .op = (uint8_t)op,
        .type = object == SBT_TRACE_NONE ? SBT_TRACE_NO_OBJECT : w->objects[object].type,
        .object = object,
        .other = other,
        .site = SBT_TRACE_NONE,
        .size = op == SBT_TRACE_INIT ? w->objects[object].size : 0,
        .work_ns = w->work_ns[thread],
        .order = order,
        .relock = relock,
    };
    w->work_ns[thread] = 0;
    w->counts->n_events++;
    if (!w->error)
        w->error = w->append(w->to, thread, &event);
}

uint32_t workload_init(struct workload *w, enum sbt_trace_type type, uint32_t size) {
    if (w->n_objects == WORKLOAD_MAX_OBJECTS) {
        w->error = ENOBUFS;
        return 0;
    }
    uint32_t object = w->n_objects++;
    w->objects[object].type = (uint8_t)type;
    w->objects[object].size = size;
    w->counts->n_mutexes += type == SBT_TRACE_MUTEX;
    w->counts->n_conditions += type == SBT_TRACE_COND;
    w->counts->n_barriers += type == SBT_TRACE_BARRIER;
    emit(w, 0, SBT_TRACE_INIT, object, SBT_TRACE_NONE, 0, 0);
    return object;
}

void workload_work(struct workload *w, uint32_t thread, uint64_t ns) {
    w->work_ns[thread] += ns;
}

void workload_create(struct workload *w, uint32_t thread) {
    emit(w, 0, SBT_TRACE_THREAD_CREATE, SBT_TRACE_NONE, thread, 0, 0);
}

void workload_lock(struct workload *w, uint32_t thread, uint32_t mutex) {
    w->counts->mutex_events++;
    emit(w, thread, SBT_TRACE_MUTEX_LOCK, mutex, SBT_TRACE_NONE, ++w->objects[mutex].order, 0);
}

void workload_hold(struct workload *w, uint32_t thread) {
    uint64_t ns = workload_draw(w, w->held);
    w->counts->held_ns += ns;
    workload_work(w, thread, ns);
}

void workload_unlock(struct workload *w, uint32_t thread, uint32_t mutex) {
    w->counts->mutex_events++;
    emit(w, thread, SBT_TRACE_MUTEX_UNLOCK, mutex, SBT_TRACE_NONE, 0, 0);
}

void workload_section(struct workload *w, uint32_t thread, uint32_t mutex) {
    workload_lock(w, thread, mutex);
    workload_hold(w, thread);
    workload_unlock(w, thread, mutex);
}

static uint64_t wake(struct workload *w, uint32_t thread, enum sbt_trace_op op, uint32_t condition) {
    uint64_t order = ++w->objects[condition].order;
    w->counts->condition_events++;
    emit(w, thread, op, condition, SBT_TRACE_NONE, order, 0);
    return order;
}

uint64_t workload_broadcast(struct workload *w, uint32_t thread, uint32_t condition) {
    return wake(w, thread, SBT_TRACE_COND_BROADCAST, condition);
}

uint64_t workload_signal(struct workload *w, uint32_t thread, uint32_t condition) {
    return wake(w, thread, SBT_TRACE_COND_SIGNAL, condition);
}

void workload_wait(struct workload *w, uint32_t thread, uint32_t condition, uint32_t mutex, uint64_t ended_by) {
    w->counts->condition_events++;
    emit(w, thread, SBT_TRACE_COND_WAIT, condition, mutex, ended_by, ++w->objects[mutex].order);
}

void workload_barrier(struct workload *w, uint32_t thread, uint32_t barrier) {
    w->counts->barrier_events += 2;
    uint64_t generation = w->objects[barrier].order++ / w->objects[barrier].size + 1;
    emit(w, thread, SBT_TRACE_BARRIER_WAIT, barrier, SBT_TRACE_NONE, generation, 0);
}

void workload_finish(struct workload *w) {
    for (uint32_t i = 1; i < w->request->n_threads; i++) {
        emit(w, i, SBT_TRACE_THREAD_END, SBT_TRACE_NONE, SBT_TRACE_NONE, 0, 0);
        emit(w, 0, SBT_TRACE_THREAD_JOIN, SBT_TRACE_NONE, i, 0, 0);
    }
    for (uint32_t i = 0; i < w->n_objects; i++)
        emit(w, 0, SBT_TRACE_DESTROY, i, SBT_TRACE_NONE, 0, 0);
    emit(w, 0, SBT_TRACE_THREAD_END, SBT_TRACE_NONE, SBT_TRACE_NONE, 0, 0);
}

int workload_generate(const struct workload_request *request, workload_append *append, void *to,
                      struct workload_counts *counts, const char **why) {
    const struct workload_model *model = NULL;
    for (uint32_t i = 0; i < workload_n_models; i++)
        if (!strcmp(workload_models[i].name, request->application))
            model = &workload_models[i];
    uint32_t size = 0;
    while (size < WORKLOAD_N_SIZES && workload_sizes[size] != request->n_threads)
        size++;
    if (!model)
        *why = "no such application (legal: bodytrack, streamcluster, x264, facesim)";
    else if (size == WORKLOAD_N_SIZES)
        *why = "the number of threads is none of Table VI's (legal: 16, 32, 64)";
    else if (request->spread_permille >= 1000)
        *why = "the spread is not below 1000 thousandths";
    else if (!request->phase_ns || !request->worker_ns || request->phase_ns > UINT64_C(1000000000000) ||
             request->worker_ns > UINT64_C(1000000000000))
        *why = "a phase is not between 1 ns and 1000 s";
    else
        *why = NULL;
    if (*why)
        return EINVAL;

    memset(counts, 0, sizeof *counts);
    struct workload w = {
        .request = request, .size = size, .append = append, .to = to, .counts = counts, .random = request->seed};
    model->generate(&w);
    return w.error;
}

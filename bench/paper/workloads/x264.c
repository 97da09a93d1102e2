/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x264: no barrier, a condition for each mutex, a sliding window of frames as wide as the threads allow (section VI).
 *
 * 1 + 2 * 47 = 95 stages, mutexes and conditions: 47 frames. T0 reads a frame (one phase) and hands it over; worker
 * f % (n-1) encodes frame f in 22 rows, a phase each. A row needs the same row of the frame before: the reader locks
 * that frame's progress, and waits if it is early. A worker that has finished a row locks its own frame's progress, and
 * broadcasts if a reader waits. Each frame has a progress mutex and a hand-over mutex; the last mutex counts finished
 * frames, and T0 waits on it for the last frame.
 *
 * Table VI's 4154, 4340 and 4344 mutex events are 2077, 2170 and 2172 sections. 47 * 22 published rows, 2 * 47
 * hand-overs and 47 + 1 of the counter leave 901, 994 and 996 of the 46 * 22 rows that are read: a reader that has seen
 * a row need not ask for it again. Condition events are waits and one broadcast or signal for each. With 16
 * threads frames 15, 30 and 45 start when their worker is free, not when a row is ready; the other 43 frames and T0
 * have 43 waits.
 */
#include "emit.h"

enum { N_FRAMES = 47, N_ROWS = 22, SHARE_MILLIONTHS = 92900 }; /* section VIII-D: 9.29 % */

static const struct {
    uint64_t mutex_events, condition_events; /* Table VI */
} table_vi[WORKLOAD_N_SIZES] = {{4154, 86}, {4340, 310}, {4344, 354}};

struct pipeline {
    struct workload *w;
    uint32_t n_workers;
    uint32_t progress[N_FRAMES], progress_cond[N_FRAMES], handover[N_FRAMES], counter, counter_cond;
    bool waits[N_FRAMES][N_ROWS]; /* for that row of the frame before */
    bool asks[N_FRAMES][N_ROWS];  /* locks its progress; all that wait do */
    uint64_t path_ns;             /* from start to end, if all rows took the same time and calls none */

    uint32_t n_handed;
    uint32_t n_begun[N_FRAMES], n_done[N_FRAMES]; /* rows */
    uint64_t ended_by[N_FRAMES][N_ROWS];          /* the broadcast */
};

static uint32_t worker(const struct pipeline *p, uint32_t f) {
    return 1 + f % p->n_workers;
}

static void plan(struct pipeline *p, uint64_t n_waits, uint64_t n_reads) {
    const struct workload_request *request = p->w->request;
    uint32_t n_followers = 0, start[N_FRAMES] = {0}; /* in rows */
    uint64_t start_ns[N_FRAMES] = {2 * request->phase_ns};
    bool follows[N_FRAMES] = {false};
    for (uint32_t f = 1; f < N_FRAMES; f++) {
        bool reused = f >= p->n_workers;
        uint32_t ready = start[f - 1] + 1, idle = reused ? start[f - p->n_workers] + N_ROWS : 0;
        follows[f] = idle <= ready;
        start[f] = follows[f] ? ready : idle;
        n_followers += follows[f];

        uint64_t handed = (f + 2) * request->phase_ns, row = start_ns[f - 1] + request->worker_ns;
        uint64_t free = reused ? start_ns[f - p->n_workers] + N_ROWS * request->worker_ns : 0;
        start_ns[f] = handed > row ? handed : row;
        if (free > start_ns[f])
            start_ns[f] = free;
    }
    p->path_ns = start_ns[N_FRAMES - 1] + N_ROWS * request->worker_ns;

    uint32_t follower = 0, reader = 0;
    uint64_t n_left = (uint64_t)(N_FRAMES - 1) * N_ROWS - n_waits;
    for (uint32_t f = 1; f < N_FRAMES; f++) {
        uint64_t n = follows[f] ? workload_part(n_waits, n_followers, follower++) : 0;
        for (uint64_t i = 0; i < n; i++)
            p->waits[f][i * N_ROWS / n] = true;
        for (uint32_t r = 0; r < N_ROWS; r++)
            p->asks[f][r] = p->waits[f][r] || workload_part(n_reads - n_waits, n_left, reader++);
    }
}

static void start(struct pipeline *p) {
    struct workload *w = p->w;
    workload_work(w, 0, w->request->phase_ns);
    p->counter = workload_init(w, SBT_TRACE_MUTEX, 0);
    p->counter_cond = workload_init(w, SBT_TRACE_COND, 0);
    for (uint32_t f = 0; f < N_FRAMES; f++) {
        p->progress[f] = workload_init(w, SBT_TRACE_MUTEX, 0);
        p->progress_cond[f] = workload_init(w, SBT_TRACE_COND, 0);
        p->handover[f] = workload_init(w, SBT_TRACE_MUTEX, 0);
        workload_init(w, SBT_TRACE_COND,
                      0); /* no worker is early at a hand-over: T0 creates it then, or is far ahead */
    }
}

/* T0 goes as far as frame f, and after the last begins to wait for its end. */
static void hand_over(struct pipeline *p, uint32_t f) {
    struct workload *w = p->w;
    for (; p->n_handed <= f; p->n_handed++) {
        workload_work(w, 0, w->request->phase_ns);
        if (p->n_handed < p->n_workers)
            workload_create(w, p->n_handed + 1);
        workload_section(w, 0, p->handover[p->n_handed]);
        if (p->n_handed + 1 == N_FRAMES)
            workload_lock(w, 0, p->counter);
    }
}

static void do_row(struct pipeline *p, uint32_t f, uint32_t r);

/* As far as the wait for row r of the frame before, or past the question. */
static void begin_row(struct pipeline *p, uint32_t f, uint32_t r) {
    struct workload *w = p->w;
    if (p->n_begun[f] > r)
        return;
    if (r > 0) {
        do_row(p, f, r - 1);
    } else {
        if (f >= p->n_workers)
            do_row(p, f - p->n_workers, N_ROWS - 1);
        hand_over(p, f);
        workload_section(w, worker(p, f), p->handover[f]);
    }
    p->n_begun[f] = r + 1;
    if (!p->asks[f][r])
        return;
    if (p->waits[f][r]) {
        workload_lock(w, worker(p, f), p->progress[f - 1]);
    } else {
        do_row(p, f - 1, r);
        workload_section(w, worker(p, f), p->progress[f - 1]);
    }
}

/* First all that row r of frame f needs, then its publication. Its readers that are early wait by now. */
static void do_row(struct pipeline *p, uint32_t f, uint32_t r) {
    struct workload *w = p->w;
    uint32_t thread = worker(p, f);
    if (p->n_done[f] > r)
        return;
    begin_row(p, f, r);
    if (p->waits[f][r]) {
        do_row(p, f - 1, r);
        workload_wait(w, thread, p->progress_cond[f - 1], p->progress[f - 1], p->ended_by[f][r]);
        workload_hold(w, thread);
        workload_unlock(w, thread, p->progress[f - 1]);
    }
    workload_work(w, thread, workload_draw(w, w->request->worker_ns));

    bool awaited = f + 1 < N_FRAMES && p->waits[f + 1][r];
    if (awaited)
        begin_row(p, f + 1, r);
    workload_lock(w, thread, p->progress[f]);
    workload_hold(w, thread);
    if (awaited)
        p->ended_by[f + 1][r] = workload_broadcast(w, thread, p->progress_cond[f]);
    workload_unlock(w, thread, p->progress[f]);
    p->n_done[f] = r + 1;
    if (r + 1 == N_ROWS && f + 1 < N_FRAMES)
        workload_section(w, thread, p->counter);
}

void workload_x264(struct workload *w) {
    struct pipeline p = {.w = w, .n_workers = w->request->n_threads - 1};
    uint64_t n_sections = table_vi[w->size].mutex_events / 2;
    uint64_t n_reads = n_sections - (N_FRAMES * N_ROWS + 2 * N_FRAMES + N_FRAMES + 1);
    plan(&p, table_vi[w->size].condition_events / 2 - 1, n_reads);
    workload_set_held(w, p.path_ns, SHARE_MILLIONTHS, n_sections);

    start(&p);
    for (uint32_t f = 0; f < N_FRAMES; f++)
        do_row(&p, f, N_ROWS - 1);
    uint32_t last = worker(&p, N_FRAMES - 1);
    workload_lock(w, last, p.counter);
    workload_hold(w, last);
    uint64_t all_done = workload_signal(w, last, p.counter_cond);
    workload_unlock(w, last, p.counter);
    workload_wait(w, 0, p.counter_cond, p.counter, all_done);
    workload_hold(w, 0);
    workload_unlock(w, 0, p.counter);

    /* Some workers have almost no synchronization (section VIII-C): with 64 threads, 16 have no frame. */
    for (uint32_t i = N_FRAMES; i < p.n_workers; i++)
        workload_create(w, i + 1);
    workload_finish(w);
}

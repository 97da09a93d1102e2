// SPDX-License-Identifier: LGPL-2.1-or-later
// C++20's objects, which libstdc++ makes wait by futex(2). A program of its own with subutai-bench's main.c, so that
// the other kinds run in a process without libstdc++.
#include <barrier>
#include <latch>
#include <memory>
#include <new>
#include <optional>
#include <semaphore>

#include "rounds.h"

// ---- what all threads meet at ----
template <typename Meet> static void rounds(bench *b, bench_worker *w, Meet meet) {
    const uint64_t share = bench_share(b, 1);
    for (bool last = false; !last; w->ops++) {
        const uint64_t round = w->ops;
        if (w->id == 0)
            bench_round_begin(b, round, share);
        meet(round);
        last = bench_round_is_last(round);
    }
}

static uint64_t finish_rounds(bench *b) {
    for (int i = 0; i < b->n_workers; i++)
        bench_check_equal("a thread's number of rounds", b->workers[i].ops, b->workers[0].ops);
    return b->workers[0].ops;
}

// A latch is for one round. Thread 0 makes that of the round before anew: it has been left by all, and is used again in
// the round after next, for which all wait for thread 0 first.
static struct { alignas(BENCH_LINE) std::optional<std::latch> latch; } latches[3];

static void latch_setup(bench *b) {
    for (auto &l : latches)
        l.latch.emplace(b->threads);
}

static void latch_worker(bench *b, bench_worker *w) {
    rounds(b, w, [b, w](uint64_t round) {
        latches[round % 3].latch->arrive_and_wait();
        if (w->id == 0 && round > 0)
            latches[(round - 1) % 3].latch.emplace(b->threads);
    });
}

static std::unique_ptr<std::barrier<>> meeting;

static void barrier_setup(bench *b) {
    meeting = std::make_unique<std::barrier<>>(b->threads);
}

static void barrier_worker(bench *b, bench_worker *w) {
    rounds(b, w, [](uint64_t) { meeting->arrive_and_wait(); });
}

// ---- cxx-semaphore: thread 0 lets all others go, each says when it is done, and thread 0 waits for all ----
static struct {
    alignas(BENCH_LINE) std::counting_semaphore<> go{0};
    alignas(BENCH_LINE) std::counting_semaphore<> done{0};
} crew;
static std::atomic<uint64_t> n_done;

static void lead(bench *b, bench_worker *w) {
    const uint64_t share = bench_share(b, 1), n = static_cast<uint64_t>(b->n_workers - 1);
    for (bool last = false; !last; w->ops++) {
        bench_rounds[0].number = w->ops;
        bench_rounds[0].last = last = !bench_more(b, w->ops + 1, share);
        crew.go.release(b->n_workers - 1);
        for (uint64_t i = 0; i < n; i++)
            crew.done.acquire();
        bench_check_equal("how many were done", n_done.load(std::memory_order_relaxed), n * (w->ops + 1));
    }
}

// A quick thread may go twice in a round, and then another does not: all go as often as thread 0 says in all.
static void follow(bench_worker *w) {
    for (bool last = false; !last; w->ops++) {
        crew.go.acquire();
        last = bench_rounds[0].last;
        n_done.fetch_add(1, std::memory_order_relaxed);
        crew.done.release();
    }
}

static void semaphore_worker(bench *b, bench_worker *w) {
    w->id == 0 ? lead(b, w) : follow(w);
}

static uint64_t semaphore_finish(bench *b) {
    const uint64_t rounds = b->workers[0].ops, n = static_cast<uint64_t>(b->n_workers - 1);
    bench_check_equal("how often the others went", bench_total_ops(b) - rounds, n * rounds);
    return rounds;
}

static void no_setup(bench *) {}

static const bench_kind cxx_latch = {
    "cxx-latch", "round at a std::latch", 0, bench_n_threads, latch_setup, latch_worker, finish_rounds};
static const bench_kind cxx_barrier = {
    "cxx-barrier", "round at a std::barrier", 0, bench_n_threads, barrier_setup, barrier_worker, finish_rounds};
static const bench_kind cxx_semaphore = {
    "cxx-semaphore", "round by which one thread lets all others go", 0, bench_at_least_two, no_setup, semaphore_worker,
    semaphore_finish};

extern "C" const bench_kind *const bench_kinds[] = {&cxx_latch, &cxx_barrier, &cxx_semaphore, nullptr};

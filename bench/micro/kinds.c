/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kinds of subutai-bench. A kind without a worker is another program's, subutai-bench-rust's or
 * subutai-bench-cxx's, with run-time libraries that no other kind is to have in its process.
 */
#include "bench.h"

#define ELSEWHERE(variable, name, operation)                                                                           \
    static const struct bench_kind variable = {name, operation, 0, NULL, NULL, NULL, NULL}
ELSEWHERE(rust_barrier, "rust-barrier", "round at Rust's Barrier");
ELSEWHERE(rust_ring, "rust-ring", "turn handed to the next thread, Rust's Mutex and Condvar");
ELSEWHERE(rust_mpsc, "rust-mpsc", "item from many threads to one, a Rust channel of 16 places");
ELSEWHERE(cxx_latch, "cxx-latch", "round at C++20's std::latch");
ELSEWHERE(cxx_barrier, "cxx-barrier", "round at C++20's std::barrier");
ELSEWHERE(cxx_semaphore, "cxx-semaphore",
          "round by which one thread lets all others go, C++20's std::counting_semaphore");

const struct bench_kind *const bench_kinds[] = {
    &bench_uncontended,   &bench_contended,     &bench_barrier,     &bench_broadcast,       &bench_turn_ring,
    &bench_bounded_queue, &bench_signal_storm,  &bench_rwlock,      &bench_semaphore,       &bench_long_wait,
    &bench_yield,         &bench_ping_pong,     &bench_small_locks, &bench_trylock_barrier, &bench_omp_barrier,
    &bench_omp_parallel,  &bench_yield_barrier, &bench_locks,       &rust_barrier,          &rust_ring,
    &rust_mpsc,           &cxx_latch,           &cxx_barrier,       &cxx_semaphore,         NULL,
};

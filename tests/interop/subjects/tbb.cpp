// SPDX-License-Identifier: LGPL-2.1-or-later
// oneTBB: its workers and locks wait by futex(2): self-checking, prints the same each time.
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <cstdio>
#include <thread>

int main() {
    oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, 8);
    oneapi::tbb::task_arena arena(8);
    long sum = 0, locked = 0, piped = 0, written = 0;
    oneapi::tbb::mutex mutex;
    oneapi::tbb::rw_mutex rw;
    for (int round = 0; round < 50; round++)
        arena.execute([&] {
            sum += oneapi::tbb::parallel_reduce(
                oneapi::tbb::blocked_range<long>(0, 20000), 0L,
                [](const oneapi::tbb::blocked_range<long> &r, long part) {
                    for (long i = r.begin(); i != r.end(); i++)
                        part += i % 7;
                    return part;
                },
                [](long a, long b) { return a + b; });
            oneapi::tbb::parallel_for(0, 200, [&](int i) {
                oneapi::tbb::mutex::scoped_lock lock(mutex);
                locked += i;
            });
            oneapi::tbb::parallel_for(0, 100, [&](int i) {
                oneapi::tbb::rw_mutex::scoped_lock lock(rw, i % 4 == 0);
                if (i % 4 == 0)
                    written++;
            });
        });
    int next = 0;
    arena.execute([&] {
        oneapi::tbb::parallel_pipeline(
            4, oneapi::tbb::make_filter<void, int>(oneapi::tbb::filter_mode::serial_in_order,
                                                   [&](oneapi::tbb::flow_control &flow) {
                                                       if (next == 1000)
                                                           flow.stop();
                                                       return next++;
                                                   }) &
                   oneapi::tbb::make_filter<int, int>(oneapi::tbb::filter_mode::parallel, [](int i) { return i * 2; }) &
                   oneapi::tbb::make_filter<int, void>(oneapi::tbb::filter_mode::serial_in_order,
                                                       [&](int i) { piped = piped * 31 % 1000003 + i; }));
    });
    oneapi::tbb::concurrent_bounded_queue<int> queue;
    queue.set_capacity(2);
    long taken = 0;
    std::thread consumer([&] {
        for (int i = 0; i < 3000; i++) {
            int item = 0;
            queue.pop(item);
            taken += item;
        }
    });
    for (int i = 0; i < 3000; i++)
        queue.push(i);
    consumer.join();
    std::printf("sum %ld locked %ld written %ld piped %ld taken %ld\n", sum, locked, written, piped, taken);
}

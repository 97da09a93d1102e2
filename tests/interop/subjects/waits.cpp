// SPDX-License-Identifier: LGPL-2.1-or-later
// C++20's waits, which libstdc++ makes by futex(2): self-checking, prints the same each time.
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stop_token>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static constexpr int THREADS = 12, ROUNDS = 300;

template <typename F> static void in_threads(F f) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&f, i] { f(i); });
}

static void atomic_wait() {
    std::atomic<int> turn{0};
    std::atomic_flag go;
    std::atomic<long> wide{0};
    std::jthread other([&] {
        go.wait(false);
        wide.store(1);
        wide.notify_all();
    });
    in_threads([&](int me) {
        for (int now = turn.load(); now < THREADS * ROUNDS; now = turn.load())
            if (now % THREADS == me) {
                turn.store(now + 1);
                turn.notify_all();
            } else {
                turn.wait(now);
            }
    });
    go.test_and_set();
    go.notify_one();
    wide.wait(0);
    std::printf("atomic %d %ld\n", turn.load(), wide.load());
}

static void latches() {
    int late = 0;
    for (int round = 0; round < ROUNDS / 10; round++) {
        std::latch all(THREADS);
        std::atomic<int> arrived{0}, wrong{0};
        in_threads([&](int) {
            arrived++;
            all.arrive_and_wait();
            wrong += arrived != THREADS;
        });
        late += wrong;
    }
    std::printf("latch, late %d\n", late);
}

static void barriers() {
    int completions = 0;
    std::atomic<int> arrived{0}, wrong{0};
    std::barrier all(THREADS, [&]() noexcept { completions++; });
    in_threads([&](int) {
        for (int round = 1; round <= ROUNDS; round++) {
            arrived++;
            all.arrive_and_wait();
            wrong += arrived < round * THREADS;
            all.arrive_and_wait();
        }
    });
    std::printf("barrier %d completions %d wrong %d\n", arrived.load(), completions, wrong.load());
}

static void semaphores() {
    std::counting_semaphore<4> room(4), items(0);
    std::binary_semaphore once(0);
    std::atomic<int> inside{0}, most{0}, taken{0};
    in_threads([&](int me) {
        for (int i = 0; i < ROUNDS; i++)
            if (me % 2 == 0) {
                room.acquire();
                int now = ++inside;
                for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);)
                    ;
                inside--;
                items.release();
            } else {
                items.acquire();
                taken++;
                room.release();
            }
    });
    bool empty = !once.try_acquire_for(20ms);
    once.release();
    std::printf("semaphore %d within %d empty %d then %d\n", taken.load(), most <= 4, empty, once.try_acquire_for(60s));
}

static void stop_tokens() {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::atomic<int> stopped{0};
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < THREADS; i++)
            threads.emplace_back([&](std::stop_token token) {
                std::unique_lock lock(mutex);
                changed.wait(lock, token, [] { return false; });
                stopped += token.stop_requested();
            });
    }
    std::printf("stopped %d\n", stopped.load());
}

int main() {
    atomic_wait();
    latches();
    barriers();
    semaphores();
    stop_tokens();
}

/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The C++ library's synchronization: every class that ends in a pthread call (std::mutex tells from
 * __pthread_key_create whether the process has threads; condition_variable::wait_for binds pthread_cond_clockwait),
 * and those that wait on futexes directly and must not be disturbed. Prints results that no schedule changes; a broken
 * invariant ends the program with status 1.
 */
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <latch>
#include <list>
#include <memory>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <syncstream>
#include <thread>
#include <vector>

#include "lib/checks.h"

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

template <class F> static void threads(int n, F body) {
    std::vector<std::jthread> all;
    for (int i = 0; i < n; i++)
        all.emplace_back([=, &body] { body(i); });
}

template <class M> static long counts(int n, int rounds) {
    M m;
    long counter = 0;
    threads(n, [&](int) {
        for (int i = 0; i < rounds; i++) {
            std::lock_guard guard(m);
            counter++;
        }
    });
    return counter;
}

static long mutexes() {
    long total = counts<std::mutex>(8, 20000) + counts<std::timed_mutex>(4, 5000);
    total += counts<std::shared_mutex>(4, 5000) + counts<std::shared_timed_mutex>(4, 5000);
    std::recursive_mutex recursive;
    std::recursive_timed_mutex recursive_timed;
    threads(4, [&](int) {
        for (int i = 0; i < 2000; i++) {
            std::lock_guard outer(recursive);
            std::lock_guard inner(recursive);
            std::scoped_lock both(recursive, recursive_timed);
            CHECK(recursive_timed.try_lock_for(1ms));
            recursive_timed.unlock();
            total++;
        }
    });
    std::mutex held;
    held.lock();
    threads(1, [&](int) { CHECK(!held.try_lock()); });
    held.unlock();
    return total;
}

static long deadlines() {
    std::timed_mutex timed;
    std::shared_timed_mutex shared;
    timed.lock();
    shared.lock();
    threads(3, [&](int i) {
        auto before = steady::now();
        if (i == 0)
            CHECK(!timed.try_lock_for(30ms));
        else if (i == 1)
            CHECK(!timed.try_lock_until(std::chrono::system_clock::now() + 30ms));
        else
            CHECK(!shared.try_lock_shared_for(30ms));
        auto took = steady::now() - before;
        CHECK(took >= 29ms && took < 20s);
    });
    timed.unlock();
    shared.unlock();
    std::mutex m;
    std::condition_variable cv;
    std::condition_variable_any any;
    std::unique_lock lock(m);
    auto before = steady::now();
    CHECK(cv.wait_for(lock, 30ms) == std::cv_status::timeout);
    CHECK(cv.wait_until(lock, std::chrono::system_clock::now() + 30ms) == std::cv_status::timeout);
    CHECK(cv.wait_until(lock, steady::now() + 30ms) == std::cv_status::timeout);
    CHECK(any.wait_for(lock, 30ms) == std::cv_status::timeout);
    auto took = steady::now() - before;
    CHECK(took >= 118ms && took < 20s);
    return 7;
}

template <class CV, class M> static long turns(int n, int rounds) {
    M m;
    CV cv;
    long turn = 0;
    threads(n, [&](int i) {
        for (int r = 0; r < rounds; r++) {
            std::unique_lock<M> lock(m);
            if (r % 2 == 0)
                cv.wait(lock, [&] { return turn % n == i; });
            else
                CHECK(cv.wait_for(lock, 60s, [&] { return turn % n == i; }));
            CHECK(turn == long(r) * n + i);
            turn++;
            cv.notify_all();
        }
    });
    return turn;
}

static long bounded_queue() {
    std::mutex m;
    std::condition_variable not_full, not_empty;
    std::list<int> queue;
    std::atomic<long> sum{0};
    threads(8, [&](int i) {
        for (int n = 0; n < 3000; n++) {
            std::unique_lock lock(m);
            if (i < 4) {
                not_full.wait(lock, [&] { return queue.size() < 3; });
                queue.push_back(i * 10000 + n);
                not_empty.notify_one();
            } else {
                not_empty.wait(lock, [&] { return !queue.empty(); });
                sum += queue.front();
                queue.pop_front();
                not_full.notify_one();
            }
        }
    });
    CHECK(queue.empty());
    return sum;
}

template <class M> static long readers_writers() {
    M m;
    long a = 0, b = 0;
    threads(8, [&](int i) {
        for (int n = 0; n < 2000; n++) {
            if (n % 8 == i) {
                std::unique_lock lock(m);
                a++;
                b += 2;
            } else {
                std::shared_lock lock(m);
                CHECK(b == 2 * a);
            }
        }
    });
    return a + b;
}

static long semaphores_and_barriers() {
    std::counting_semaphore<8> slots(3);
    std::binary_semaphore gate(0);
    std::atomic<int> inside{0}, phases{0};
    std::latch all_started(6);
    std::barrier barrier(6, [&]() noexcept { phases++; });
    threads(6, [&](int) {
        all_started.arrive_and_wait();
        for (int n = 0; n < 200; n++) {
            slots.acquire();
            CHECK(++inside <= 3);
            inside--;
            slots.release();
            barrier.arrive_and_wait();
            CHECK(phases == 2 * n + 1);
            barrier.arrive_and_wait();
        }
    });
    CHECK(!gate.try_acquire_for(20ms));
    threads(2, [&](int i) { i == 0 ? gate.acquire() : gate.release(); });
    std::atomic<int> word{0};
    threads(2, [&](int i) {
        for (int n = 0; n < 500; n++) {
            for (int seen; (seen = word.load()) % 2 != i;)
                word.wait(seen);
            word++;
            word.notify_all();
        }
    });
    return phases + word;
}

static long once() {
    std::once_flag flag;
    std::atomic<int> tried{0}, done{0}, caught{0};
    threads(8, [&](int) {
        try {
            std::call_once(flag, [&] {
                std::this_thread::sleep_for(1ms);
                if (tried++ < 3)
                    throw std::runtime_error("not yet");
                done++;
            });
        } catch (const std::runtime_error &) {
            caught++;
        }
        CHECK(done == 1 || caught > 0);
    });
    CHECK(done == 1 && tried == 4 && caught == 3);
    struct made {
        int value;
        made() : value(0) {
            std::this_thread::sleep_for(1ms);
            value = 42;
        }
    };
    threads(8, [&](int) {
        static made one;
        CHECK(one.value == 42);
    });
    return tried;
}

static long stop_tokens() {
    std::mutex m;
    std::condition_variable_any cv;
    std::atomic<int> stopped{0};
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 6; i++)
            all.emplace_back([&](std::stop_token token) {
                std::unique_lock lock(m);
                CHECK(!cv.wait(lock, token, [] { return false; }));
                std::stop_callback already(token, [&] { stopped++; });
            });
        std::this_thread::sleep_for(5ms);
    }
    return stopped;
}

static long futures() {
    std::vector<std::future<long>> results;
    for (int i = 0; i < 60; i++)
        results.push_back(std::async(std::launch::async, [i] {
            std::vector<long> v(1000);
            std::iota(v.begin(), v.end(), i);
            return std::accumulate(v.begin(), v.end(), 0L);
        }));
    long total = 0;
    for (auto &result : results) {
        CHECK(result.wait_for(60s) == std::future_status::ready);
        total += result.get();
    }
    std::promise<int> promise, failing;
    std::shared_future<int> shared = promise.get_future().share();
    std::atomic<int> sum{0};
    {
        std::vector<std::jthread> all;
        for (int i = 0; i < 5; i++)
            all.emplace_back([&] { sum += shared.get(); });
        CHECK(shared.wait_for(10ms) == std::future_status::timeout);
        std::jthread([&] { promise.set_value_at_thread_exit(7); }).join();
    }
    std::jthread([&] { failing.set_exception(std::make_exception_ptr(std::runtime_error("no"))); }).join();
    try {
        failing.get_future().get();
        FAIL("no exception came through the future");
    } catch (const std::runtime_error &) {
        sum++;
    }
    std::packaged_task<int(int)> task([](int x) { return x * 2; });
    std::future<int> doubled = task.get_future();
    std::jthread(std::move(task), 21).join();
    return total + sum + doubled.get();
}

/* Locks where a program's life begins and ends: static constructors and destructors, thread_local destructors. */
static std::mutex life;
static int alive;
struct early {
    early() {
        std::lock_guard guard(life);
        alive++;
    }
    ~early() {
        std::lock_guard guard(life);
        std::printf("destructor of a static object %d\n", --alive);
    }
};
static early first;

static long thread_locals() {
    static std::mutex m;
    static long gone;
    struct mark {
        int i = 1;
        ~mark() {
            std::lock_guard guard(m);
            gone += i;
        }
    };
    for (int round = 0; round < 20; round++)
        threads(10, [](int) {
            thread_local mark mine;
            mine.i = 2;
        });
    return gone;
}

int main() {
    std::cout << "mutexes " << mutexes() << "\n";
    std::cout << "deadlines " << deadlines() << "\n";
    std::cout << "condition_variable turns " << turns<std::condition_variable, std::mutex>(5, 300) << "\n";
    std::cout << "condition_variable_any turns " << turns<std::condition_variable_any, std::timed_mutex>(4, 200)
              << "\n";
    std::cout << "bounded queue " << bounded_queue() << "\n";
    std::cout << "shared_mutex " << readers_writers<std::shared_mutex>() << "\n";
    std::cout << "shared_timed_mutex " << readers_writers<std::shared_timed_mutex>() << "\n";
    std::cout << "semaphores, latch, barrier, atomic wait " << semaphores_and_barriers() << "\n";
    std::cout << "call_once " << once() << "\n";
    std::cout << "stop tokens " << stop_tokens() << "\n";
    std::cout << "futures " << futures() << "\n";
    std::cout << "thread_local destructors " << thread_locals() << "\n" << std::flush;
    return 0;
}

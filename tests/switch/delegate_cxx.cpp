// SPDX-License-Identifier: LGPL-2.1-or-later
// Exceptions through sections of a delegated mutex: thrown and caught inside, thrown out of one, and rethrown with a
// condition's wait on the way. Exit status 0: every section excluded the others, and every exception arrived.
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {
constexpr int n_threads = 12, rounds = 2000;

std::mutex hot;
std::condition_variable turned;
int inside, caught, turn;

void check(bool holds, const char *what) {
    if (holds)
        return;
    std::fprintf(stderr, "delegate_cxx: %s\n", what);
    std::exit(1);
}

struct entered {
    entered() {
        check(inside++ == 0, "two threads are in a section");
    }
    ~entered() {
        inside--;
    }
};

void section(int number, int i) {
    std::lock_guard<std::mutex> lock(hot);
    entered here;
    if (i % 64 == 0)
        sched_yield(); // others queue
    try {
        throw std::runtime_error(std::to_string(number));
    } catch (const std::runtime_error &e) {
        check(e.what() == std::to_string(number), "another thread's exception was caught");
        caught++;
        if (i % 2 == 0)
            throw;
    }
}

void think() {
    for (int i = 0; i < 300; i++)
        std::atomic_signal_fence(std::memory_order_seq_cst);
}

void take_turns(int number) {
    std::unique_lock<std::mutex> lock(hot);
    turned.wait(lock, [number] { return turn == number; });
    turn = (turn + 1) % n_threads;
    turned.notify_all();
    throw number;
}

void run(int number) {
    for (int i = 0; i < rounds; i++) {
        try {
            section(number, i);
            check(i % 2 != 0, "an exception did not leave its section");
        } catch (const std::runtime_error &e) {
            check(i % 2 == 0 && e.what() == std::to_string(number), "an exception came to another thread");
        }
        think();
    }
    for (int i = 0; i < 100; i++) {
        try {
            take_turns(number);
        } catch (int of) {
            check(of == number, "a number came to another thread");
        }
    }
}
} // namespace

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < n_threads; i++)
        threads.emplace_back(run, i);
    for (std::thread &thread : threads)
        thread.join();
    check(caught == n_threads * rounds, "a section is missing");
    return 0;
}

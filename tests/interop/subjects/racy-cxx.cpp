// SPDX-License-Identifier: LGPL-2.1-or-later
// C++20's latch, barrier, semaphore and atomic waits: what this program prints depends on the order of its threads, and
// they race for a plain variable as well. No timed waits of the library's: it looks at the clock, and spins or sleeps
// by what that says.
//
// usage: racy-cxx        one process
//        racy-cxx fork   and a forked child that does the same again
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <latch>
#include <linux/futex.h>
#include <memory>
#include <semaphore>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static constexpr int THREADS = 4, ROUNDS = 50;
static std::counting_semaphore<THREADS> slots(2);
static std::atomic<int> ticket{0}, gate{0};
static std::atomic<unsigned> order{0};
static volatile unsigned racy;

static void compute(int n) {
    for (int k = 0; k < n; k++)
        __asm__ volatile("" : : "r"(k));
}

// On a word that no thread changes: until so many microseconds are over.
static void futex_wait_for(long us) {
    static int word;
    const timespec time = {0, us * 1000};
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time, nullptr, 0);
}

static void round_of(int me, int round, std::barrier<> &sync) {
    slots.acquire();
    compute((me * 131 + round * 17) % 2000);
    int old = ticket.fetch_add(1);
    order = order * 33 + (unsigned)(old * THREADS + me);
    unsigned seen = racy;
    racy = seen * 5 + (unsigned)me;
    slots.release();
    if (round % 3 == 0) {
        futex_wait_for(20 + 7 * me + round % 5);
        order = order * 7 + (unsigned)me;
    }
    sync.arrive_and_wait();
    if (me == 0) {
        gate.store(round + 1);
        gate.notify_all();
    } else {
        gate.wait(round);
    }
}

static void run() {
    // Not on the stack: threads share their queues by some bits of the address, and a stack begins at any 16 bytes.
    auto all = std::make_unique<std::latch>(THREADS);
    auto sync = std::make_unique<std::barrier<>>(THREADS);
    std::vector<std::thread> threads;
    gate = 0;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back([&, i] {
            all->arrive_and_wait();
            (void)std::chrono::steady_clock::now();
            for (int round = 0; round < ROUNDS; round++)
                round_of(i, round, *sync);
        });
    for (auto &t : threads)
        t.join();
    printf("%08x %d %08x\n", order.load(), ticket.load(), racy);
    fflush(stdout);
}

int main(int argc, char **argv) {
    run();
    if (argc > 1 && strcmp(argv[1], "fork") == 0) {
        pid_t child = fork();
        int status = 0;
        if (child == 0) {
            run();
            return 0;
        }
        waitpid(child, &status, 0);
        run();
        return status != 0;
    }
    return 0;
}

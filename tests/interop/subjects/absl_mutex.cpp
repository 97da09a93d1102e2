// SPDX-License-Identifier: LGPL-2.1-or-later
// abseil's Mutex, CondVar, Barrier and Notification, which wait by futex(2): self-checking, prints the same each time.
#include <absl/synchronization/barrier.h>
#include <absl/synchronization/blocking_counter.h>
#include <absl/synchronization/mutex.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>

#include <cstdio>
#include <thread>
#include <vector>

static constexpr int THREADS = 12, ROUNDS = 300;

int main() {
    absl::Mutex mutex;
    absl::CondVar changed;
    absl::Notification go;
    absl::BlockingCounter done(THREADS);
    int turn = 0, sum = 0, readers_saw_less = 0;
    std::vector<std::thread> threads;
    for (int me = 0; me < THREADS; me++)
        threads.emplace_back([&, me] {
            go.WaitForNotification();
            for (int i = 0; i < ROUNDS; i++) {
                mutex.Lock();
                while (turn % THREADS != me)
                    changed.Wait(&mutex);
                turn++;
                changed.SignalAll();
                mutex.Unlock();
                absl::MutexLock lock(&mutex);
                sum += me;
            }
            done.DecrementCount();
        });
    std::thread reader([&] {
        absl::ReaderMutexLock lock(&mutex);
        auto over = [&] { return turn == THREADS * ROUNDS; };
        mutex.Await(absl::Condition(&over));
        readers_saw_less += turn != THREADS * ROUNDS;
    });
    go.Notify();
    done.Wait();
    reader.join();
    for (auto &t : threads)
        t.join();
    mutex.Lock();
    bool timed_out = changed.WaitWithTimeout(&mutex, absl::Milliseconds(20));
    mutex.Unlock();
    std::printf("turn %d sum %d less %d timed out %d\n", turn, sum, readers_saw_less, timed_out);
}

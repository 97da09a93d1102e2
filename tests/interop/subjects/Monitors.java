// SPDX-License-Identifier: LGPL-2.1-or-later
// Java monitors and java.util.concurrent: the JVM parks threads on its own mutex and condition pairs, its garbage
// collector and compiler threads on its monitors. Prints results that do not depend on the schedule.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.concurrent.locks.*;
import java.util.stream.*;

public class Monitors {
    interface Body { void run(int i) throws Exception; }

    static void threads(int n, Body body) throws Exception {
        List<Throwable> errors = new CopyOnWriteArrayList<>();
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int me = i;
            Thread t = new Thread(() -> {
                try { body.run(me); } catch (Throwable e) { errors.add(e); }
            });
            all.add(t);
            t.start();
        }
        for (Thread t : all) t.join();
        if (!errors.isEmpty()) throw new Exception("in a thread", errors.get(0));
    }

    static void expect(boolean ok, String what) { if (!ok) throw new AssertionError(what); }

    static int counter, turn;

    static String monitorCounts() throws Exception {
        Object lock = new Object();
        threads(8, i -> { for (int n = 0; n < 20000; n++) synchronized (lock) { counter++; } });
        return "" + counter;
    }

    static String waitNotifyTurns() throws Exception {
        Object lock = new Object();
        List<Integer> order = new ArrayList<>();
        threads(6, i -> {
            for (int n = 0; n < 200; n++) synchronized (lock) {
                while (turn % 6 != i) lock.wait();
                order.add(i);
                turn++;
                lock.notifyAll();
            }
        });
        for (int n = 0; n < order.size(); n++) expect(order.get(n) == n % 6, "turn " + n);
        synchronized (lock) {
            long before = System.nanoTime();
            lock.wait(50);
            expect(System.nanoTime() - before >= 49_000_000L, "timed wait came back early");
        }
        return "" + order.size();
    }

    static String blockingQueues() throws Exception {
        BlockingQueue<Integer> q = new ArrayBlockingQueue<>(8), linked = new LinkedBlockingQueue<>(4);
        SynchronousQueue<Integer> hand = new SynchronousQueue<>();
        AtomicLong sum = new AtomicLong();
        threads(8, i -> {
            for (int n = 0; n < 2000; n++) {
                switch (i) {
                    case 0: case 1: q.put(n); break;
                    case 2: case 3: linked.put(q.take()); break;
                    case 4: case 5: hand.put(linked.take()); break;
                    default: sum.addAndGet(hand.take());
                }
            }
        });
        expect(q.isEmpty() && linked.isEmpty() && q.poll(20, TimeUnit.MILLISECONDS) == null, "queues empty");
        return "" + sum.get();
    }

    static String reentrantAndConditions() throws Exception {
        ReentrantLock lock = new ReentrantLock(true);
        Condition even = lock.newCondition(), odd = lock.newCondition();
        int[] value = {0};
        threads(2, i -> {
            for (int n = 0; n < 3000; n++) {
                lock.lock();
                try {
                    lock.lock();
                    while (value[0] % 2 != i) (i == 0 ? even : odd).await();
                    value[0]++;
                    (i == 0 ? odd : even).signal();
                    lock.unlock();
                } finally { lock.unlock(); }
            }
        });
        return "" + value[0];
    }

    static String readersWriters() throws Exception {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        StampedLock stamped = new StampedLock();
        long[] pair = new long[4];
        threads(8, i -> {
            for (int n = 0; n < 3000; n++) {
                if (n % 8 == i) {
                    lock.writeLock().lock();
                    pair[0]++; pair[1]++;
                    lock.writeLock().unlock();
                    long s = stamped.writeLock();
                    pair[2]++; pair[3]++;
                    stamped.unlockWrite(s);
                } else {
                    lock.readLock().lock();
                    expect(pair[0] == pair[1], "torn under a read lock");
                    lock.readLock().unlock();
                    long s = stamped.readLock();
                    expect(pair[2] == pair[3], "torn under a stamped read lock");
                    stamped.unlockRead(s);
                }
            }
        });
        return pair[0] + " " + pair[3];
    }

    static String barriersAndLatches() throws Exception {
        int parties = 6;
        AtomicInteger phases = new AtomicInteger(), arrived = new AtomicInteger();
        CyclicBarrier barrier = new CyclicBarrier(parties, phases::incrementAndGet);
        CountDownLatch latch = new CountDownLatch(parties);
        Phaser phaser = new Phaser(parties);
        Semaphore semaphore = new Semaphore(2, true);
        AtomicInteger inside = new AtomicInteger();
        threads(parties, i -> {
            for (int n = 0; n < 300; n++) {
                arrived.incrementAndGet();
                barrier.await(60, TimeUnit.SECONDS);
                expect(arrived.get() >= parties * (n + 1), "left the barrier early");
                barrier.await(60, TimeUnit.SECONDS);
                phaser.arriveAndAwaitAdvance();
                semaphore.acquire();
                expect(inside.incrementAndGet() <= 2, "too many inside");
                inside.decrementAndGet();
                semaphore.release();
            }
            latch.countDown();
        });
        expect(latch.await(60, TimeUnit.SECONDS), "latch");
        return phases + " " + phaser.getPhase();
    }

    static String pools() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(8);
        List<Future<Long>> futures = new ArrayList<>();
        for (int i = 0; i < 500; i++) {
            long n = i;
            futures.add(pool.submit(() -> LongStream.rangeClosed(0, n).map(x -> x * x % 1009).sum()));
        }
        long total = 0;
        for (Future<Long> f : futures) total += f.get(60, TimeUnit.SECONDS);
        pool.shutdown();
        expect(pool.awaitTermination(60, TimeUnit.SECONDS), "pool did not end");
        long parallel = IntStream.range(0, 400_000).parallel().mapToLong(x -> (long) x * x % 7919).sum();
        CompletableFuture<Integer> chain = CompletableFuture.supplyAsync(() -> 20).thenApplyAsync(x -> x + 1)
            .thenCombineAsync(CompletableFuture.supplyAsync(() -> 2), (a, b) -> a * b);
        ScheduledExecutorService timer = Executors.newScheduledThreadPool(2);
        String late = timer.schedule(() -> "late", 20, TimeUnit.MILLISECONDS).get(60, TimeUnit.SECONDS);
        timer.shutdownNow();
        return total + " " + parallel + " " + chain.get(60, TimeUnit.SECONDS) + " " + late;
    }

    static String interruptAndPark() throws Exception {
        Object lock = new Object();
        AtomicInteger interrupted = new AtomicInteger();
        CountDownLatch waiting = new CountDownLatch(4);
        List<Thread> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            boolean parks = i % 2 == 0;
            Thread t = new Thread(() -> {
                waiting.countDown();
                if (parks) {
                    while (!Thread.interrupted()) LockSupport.park();
                    interrupted.incrementAndGet();
                } else {
                    synchronized (lock) {
                        try {
                            while (true) lock.wait();
                        } catch (InterruptedException e) {
                            interrupted.incrementAndGet();
                        }
                    }
                }
            });
            all.add(t);
            t.start();
        }
        waiting.await();
        for (Thread t : all) t.interrupt();
        for (Thread t : all) t.join();
        return "" + interrupted;
    }

    static String shortThreadsAndGarbage() throws Exception {
        AtomicLong sum = new AtomicLong();
        for (int round = 0; round < 20; round++) {
            threads(20, i -> {
                byte[][] junk = new byte[20][];
                for (int n = 0; n < 20; n++) junk[n] = new byte[20000];
                sum.addAndGet(i + junk.length);
            });
            if (round % 5 == 0) System.gc();
        }
        return "" + sum;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("monitor counts " + monitorCounts());
        System.out.println("wait/notify turns " + waitNotifyTurns());
        System.out.println("blocking queues " + blockingQueues());
        System.out.println("reentrant lock and conditions " + reentrantAndConditions());
        System.out.println("read-write and stamped locks " + readersWriters());
        System.out.println("barrier, latch, phaser, semaphore " + barriersAndLatches());
        System.out.println("pools and futures " + pools());
        System.out.println("interrupt and park " + interruptAndPark());
        System.out.println("short threads and garbage " + shortThreadsAndGarbage());
    }
}

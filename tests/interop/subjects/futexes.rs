// SPDX-License-Identifier: LGPL-2.1-or-later
// Every kind of wait of Rust's std, which waits by futex(2): a self-checking program that prints the same each time.
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 12;
const ROUNDS: usize = 300;

fn mutex() {
    let sum = Arc::new(Mutex::new(0usize));
    thread::scope(|s| {
        for i in 0..THREADS {
            let sum = &sum;
            s.spawn(move || {
                for _ in 0..ROUNDS * 10 {
                    *sum.lock().unwrap() += i;
                }
            });
        }
    });
    println!("mutex {}", *sum.lock().unwrap());
}

fn barrier() {
    let barrier = Barrier::new(THREADS);
    let (arrived, leaders, wrong) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                for round in 1..=ROUNDS {
                    arrived.fetch_add(1, Ordering::SeqCst);
                    leaders.fetch_add(barrier.wait().is_leader() as usize, Ordering::SeqCst);
                    wrong.fetch_add((arrived.load(Ordering::SeqCst) < round * THREADS) as usize, Ordering::SeqCst);
                    barrier.wait();
                }
            });
        }
    });
    println!("barrier {} leaders {} wrong {}", arrived.into_inner(), leaders.into_inner(), wrong.into_inner());
}

fn ring() {
    let turn = Mutex::new(0usize);
    let changed: Vec<Condvar> = (0..THREADS).map(|_| Condvar::new()).collect();
    thread::scope(|s| {
        for i in 0..THREADS {
            let (turn, changed) = (&turn, &changed);
            s.spawn(move || {
                for round in 0..ROUNDS {
                    let mut now = turn.lock().unwrap();
                    while *now != round * THREADS + i {
                        now = changed[i].wait(now).unwrap();
                    }
                    *now += 1;
                    changed[(i + 1) % THREADS].notify_one();
                }
            });
        }
    });
    println!("ring {}", turn.into_inner().unwrap());
}

fn timed() {
    let pair = (Mutex::new(()), Condvar::new());
    let begin = Instant::now();
    let (_guard, result) =
        pair.1.wait_timeout_while(pair.0.lock().unwrap(), Duration::from_millis(30), |_| true).unwrap();
    println!("timed out {} in time {}", result.timed_out(), begin.elapsed() >= Duration::from_millis(30));
    let begin = Instant::now();
    let (sender, receiver) = channel::<u32>();
    let empty = receiver.recv_timeout(Duration::from_millis(20)).is_err();
    drop(sender);
    println!("channel empty {} in time {} closed {}", empty, begin.elapsed() >= Duration::from_millis(20), receiver.recv().is_err());
}

fn rwlock() {
    let pair = RwLock::new((0usize, 0usize));
    let torn = AtomicUsize::new(0);
    thread::scope(|s| {
        for i in 0..THREADS {
            let (pair, torn) = (&pair, &torn);
            s.spawn(move || {
                for _ in 0..ROUNDS {
                    if i % 3 == 0 {
                        let mut w = pair.write().unwrap();
                        w.0 += 1;
                        thread::yield_now();
                        w.1 += 1;
                    } else {
                        let r = pair.read().unwrap();
                        torn.fetch_add((r.0 != r.1) as usize, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("rwlock {:?} torn {}", *pair.read().unwrap(), torn.load(Ordering::Relaxed));
}

fn channels() {
    let (sender, receiver) = channel();
    let (bounded, taken) = sync_channel(4);
    let workers: Vec<_> = (0..THREADS)
        .map(|i| {
            let (sender, bounded) = (sender.clone(), bounded.clone());
            thread::spawn(move || {
                for n in 0..ROUNDS {
                    sender.send(i * ROUNDS + n).unwrap();
                    bounded.send(n).unwrap();
                }
            })
        })
        .collect();
    drop((sender, bounded));
    let second = thread::spawn(move || taken.iter().sum::<usize>());
    println!("mpsc {} bounded {}", receiver.iter().sum::<usize>(), second.join().unwrap());
    for w in workers {
        w.join().unwrap();
    }
}

fn parking() {
    let turn = Arc::new(AtomicUsize::new(0));
    let main = thread::current();
    let other = {
        let turn = turn.clone();
        thread::spawn(move || {
            for i in 0..ROUNDS {
                while turn.load(Ordering::SeqCst) != 2 * i + 1 {
                    thread::park();
                }
                turn.store(2 * i + 2, Ordering::SeqCst);
                main.unpark();
            }
        })
    };
    for i in 0..ROUNDS {
        turn.store(2 * i + 1, Ordering::SeqCst);
        other.thread().unpark();
        while turn.load(Ordering::SeqCst) != 2 * i + 2 {
            thread::park();
        }
    }
    other.join().unwrap();
    thread::park_timeout(Duration::from_millis(1));
    println!("parked {}", turn.load(Ordering::SeqCst));
}

fn once_and_panic() {
    static ONCE: Once = Once::new();
    let (runs, poisoned) = (AtomicUsize::new(0), Arc::new(Mutex::new(())));
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                ONCE.call_once(|| {
                    thread::sleep(Duration::from_millis(5));
                    runs.fetch_add(1, Ordering::SeqCst);
                })
            });
        }
    });
    let held = poisoned.clone();
    std::panic::set_hook(Box::new(|_| ()));
    let failed = thread::spawn(move || {
        let _guard = held.lock().unwrap();
        panic!("on purpose");
    })
    .join()
    .is_err();
    println!("once {} failed {} poisoned {}", runs.into_inner(), failed, poisoned.lock().is_err());
}

fn stop() {
    let flag = AtomicBool::new(false);
    let n = thread::scope(|s| {
        let t = s.spawn(|| {
            while !flag.load(Ordering::Acquire) {
                thread::park_timeout(Duration::from_secs(60));
            }
            7
        });
        flag.store(true, Ordering::Release);
        t.thread().unpark();
        t.join().unwrap()
    });
    println!("stopped {}", n);
}

fn main() {
    mutex();
    barrier();
    ring();
    timed();
    rwlock();
    channels();
    parking();
    once_and_panic();
    stop();
}

// SPDX-License-Identifier: LGPL-2.1-or-later
// Every kind of wait of the crate parking_lot, which queues its waiters itself and has each wait by futex(2) on a word
// of its own: a self-checking program that prints the same each time.
use parking_lot::{Condvar, FairMutex, Mutex, Once, ReentrantMutex, RwLock};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: usize = 12;
const ROUNDS: usize = 300;

/// Runs `work` in as many threads, each with its number.
fn with_threads(work: impl Fn(usize) + Sync) {
    thread::scope(|s| {
        for i in 0..THREADS {
            let work = &work;
            s.spawn(move || work(i));
        }
    });
}

fn mutex() {
    let (sum, fair) = (Mutex::new(0), FairMutex::new(0));
    with_threads(|i| {
        for _ in 0..ROUNDS * 10 {
            *sum.lock() += i;
        }
        for _ in 0..ROUNDS {
            *fair.lock() += i;
        }
    });
    println!("mutex {} fair {}", sum.into_inner(), fair.into_inner());
}

fn reentrant() {
    let sum = ReentrantMutex::new(Cell::new(0));
    with_threads(|i| {
        for _ in 0..ROUNDS {
            let outer = sum.lock();
            let inner = sum.lock();
            inner.set(outer.get() + i);
        }
    });
    println!("reentrant {}", sum.lock().get());
}

fn ring() {
    let turn = Mutex::new(0);
    let changed: Vec<Condvar> = (0..THREADS).map(|_| Condvar::new()).collect();
    with_threads(|i| {
        for round in 0..ROUNDS {
            let mut now = turn.lock();
            while *now != round * THREADS + i {
                changed[i].wait(&mut now);
            }
            *now += 1;
            changed[(i + 1) % THREADS].notify_one();
        }
    });
    println!("ring {}", turn.into_inner());
}

// A notify_all moves the waiters from the condition's queue to the mutex's.
fn meetings() {
    let (arrived, all_here) = (Mutex::new(0), Condvar::new());
    let wrong = AtomicUsize::new(0);
    with_threads(|_| {
        for round in 1..=ROUNDS {
            let mut n = arrived.lock();
            *n += 1;
            if *n == round * THREADS {
                all_here.notify_all();
            }
            while *n < round * THREADS {
                all_here.wait(&mut n);
            }
            wrong.fetch_add((*n < round * THREADS) as usize, Ordering::Relaxed);
        }
    });
    println!("meetings {} wrong {}", arrived.into_inner(), wrong.into_inner());
}

fn rwlock() {
    let pair = RwLock::new((0, 0));
    let torn = AtomicUsize::new(0);
    with_threads(|i| {
        for _ in 0..ROUNDS {
            if i % 4 == 0 {
                let mut both = pair.write();
                both.0 += 1;
                both.1 += 1;
            } else {
                let both = pair.read();
                torn.fetch_add((both.0 != both.1) as usize, Ordering::Relaxed);
            }
        }
    });
    println!("rwlock {:?} torn {}", pair.into_inner(), torn.into_inner());
}

fn upgrades() {
    let value = RwLock::new(0);
    with_threads(|_| {
        for _ in 0..ROUNDS {
            let seen = value.upgradable_read();
            let before = *seen;
            let mut now = parking_lot::RwLockUpgradableReadGuard::upgrade(seen);
            assert_eq!(*now, before);
            *now += 1;
        }
    });
    println!("upgrades {}", value.into_inner());
}

fn once() {
    static ONCE: Once = Once::new();
    let n = AtomicUsize::new(0);
    with_threads(|_| {
        ONCE.call_once(|| {
            thread::sleep(Duration::from_millis(5));
            n.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(n.load(Ordering::Relaxed), 1);
    });
    println!("once {}", n.into_inner());
}

fn timeouts() {
    let (mutex, never) = (Mutex::new(()), Condvar::new());
    let begin = Instant::now();
    let timed_out = never.wait_for(&mut mutex.lock(), Duration::from_millis(20)).timed_out();
    assert!(begin.elapsed() >= Duration::from_millis(20));
    let held = mutex.lock();
    let got = thread::scope(|s| s.spawn(|| mutex.try_lock_for(Duration::from_millis(20)).is_some()).join().unwrap());
    drop(held);
    println!("timed out {timed_out} got {got} then {}", mutex.try_lock().is_some());
}

fn main() {
    mutex();
    reentrant();
    ring();
    meetings();
    rwlock();
    upgrades();
    once();
    timeouts();
}

// SPDX-License-Identifier: LGPL-2.1-or-later
// Rust's locks, contended, and threads that wait for work by what Rust has for that: rust_locks NAME.
use std::sync::{Condvar, Mutex, RwLock};
use std::time::{Duration, Instant};

static QUEUE: Mutex<u64> = Mutex::new(0);
static TABLE: RwLock<u64> = RwLock::new(0);
static WORK: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

fn compute(us: u64) {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_micros(us) {}
}

fn queue() {
    for _ in 0..100 {
        let mut n = QUEUE.lock().unwrap();
        *n += 1;
        compute(200);
        drop(n);
        compute(20);
    }
}

fn table(number: usize) {
    for _ in 0..100 {
        if number % 2 == 0 {
            let _n = TABLE.read().unwrap();
            compute(50);
        } else {
            let mut n = TABLE.write().unwrap();
            *n += 1;
            compute(200);
        }
        compute(20);
    }
}

fn worker() {
    for _ in 0..20 {
        let mut n = WORK.0.lock().unwrap();
        while *n == 0 {
            n = WORK.1.wait(n).unwrap();
        }
        *n -= 1;
        drop(n);
        compute(50);
    }
}

fn parked() {
    for _ in 0..20 {
        std::thread::park();
        compute(50);
    }
}

fn main() {
    let name = std::env::args().nth(1).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|number| {
            let name = name.clone();
            std::thread::spawn(move || match name.as_str() {
                "mutex" => queue(),
                "rwlock" => table(number),
                "park" => parked(),
                _ => worker(),
            })
        })
        .collect();
    for i in 0..80 {
        std::thread::sleep(Duration::from_millis(if name == "condvar" || name == "park" { 3 } else { 0 }));
        match name.as_str() {
            "condvar" => {
                *WORK.0.lock().unwrap() += 1;
                WORK.1.notify_one();
            }
            "park" => threads[i % 4].thread().unpark(),
            _ => (),
        }
    }
    for thread in threads {
        // on a busy machine two of its wake-ups may have been one
        while name == "park" && !thread.is_finished() {
            thread.thread().unpark();
            std::thread::sleep(Duration::from_millis(1));
        }
        thread.join().unwrap();
    }
}

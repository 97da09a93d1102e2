// SPDX-License-Identifier: LGPL-2.1-or-later
// Rust's Mutex, RwLock, Condvar, mpsc, park and scoped threads: what this program prints depends on the order of its
// threads.
use std::sync::{mpsc, Arc, Condvar, Mutex, RwLock};
use std::thread;
use std::time::Duration;

const THREADS: usize = 4;
const ROUNDS: usize = 100;

struct Shared {
    order: Mutex<Vec<u8>>,
    last: RwLock<usize>,
    count: Mutex<usize>,
    is_even: Condvar,
}

fn compute(n: usize) -> u64 {
    (0..n as u64).fold(n as u64, |x, k| x.wrapping_mul(31).wrapping_add(std::hint::black_box(k)))
}

fn meet(s: &Shared, me: usize) {
    let mut count = s.count.lock().unwrap();
    *count += 1;
    if *count % THREADS == 0 {
        s.is_even.notify_all();
    } else if s.is_even.wait_timeout(count, Duration::from_micros(300)).unwrap().1.timed_out() {
        s.order.lock().unwrap().push(100 + me as u8);
    }
}

fn work(s: &Shared, me: usize, to: mpsc::SyncSender<(usize, u64)>) {
    for round in 0..ROUNDS {
        let x = compute((me * 37 + round * 11) % 1500);
        s.order.lock().unwrap().push(me as u8);
        let before = std::mem::replace(&mut *s.last.write().unwrap(), me);
        to.send((before, x)).unwrap();
        if round % 8 == me {
            meet(s, me);
        }
        let _seen = *s.last.read().unwrap();
    }
}

fn main() {
    let s = Arc::new(Shared {
        order: Mutex::new(Vec::new()),
        last: RwLock::new(0),
        count: Mutex::new(0),
        is_even: Condvar::new(),
    });
    let (to, from) = mpsc::sync_channel(3);
    let mut sum = 0u64;
    let parked = thread::spawn(|| thread::park_timeout(Duration::from_millis(2)));
    thread::scope(|scope| {
        for me in 0..THREADS {
            let (s, to) = (s.clone(), to.clone());
            scope.spawn(move || work(&s, me, to));
        }
        drop(to);
        for (before, x) in from {
            sum = sum.wrapping_mul(131).wrapping_add(x ^ before as u64);
        }
    });
    parked.join().unwrap();
    let order = s.order.lock().unwrap();
    println!("{:016x} {:016x}", sum, order.iter().fold(0u64, |h, &b| h.wrapping_mul(31).wrapping_add(b as u64)));
}

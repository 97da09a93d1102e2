// SPDX-License-Identifier: LGPL-2.1-or-later
// subutai-bench-rust KIND --threads N (--seconds S | --ops N) --limit S: the kinds of subutai-bench that Rust's standard
// library synchronizes, which waits by futex(2). subutai-bench has checked the arguments; bench.h says what a kind is
// and what the line of JSON is. Around a run there are pipes and poll(2) only.
use std::cell::UnsafeCell;
use std::os::raw::{c_int, c_long, c_short, c_ulong, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Barrier, Condvar, Mutex};
use std::time::{Duration, Instant};
use std::{env, fs, process, ptr, thread};

#[repr(C)]
struct Timespec {
    seconds: i64,
    ns: c_long,
}

#[repr(C)]
struct PollFd {
    fd: c_int,
    events: c_short,
    revents: c_short,
}

extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn pipe(fds: *mut c_int) -> c_int;
    fn read(fd: c_int, buffer: *mut c_void, n: usize) -> isize;
    fn write(fd: c_int, buffer: *const c_void, n: usize) -> isize;
    fn close(fd: c_int) -> c_int;
    fn poll(fds: *mut PollFd, n: c_ulong, timeout_ms: c_int) -> c_int;
}

const CLOCK_PROCESS_CPUTIME_ID: c_int = 2;
const POLLIN: c_short = 1;

struct Bench {
    kind: String,
    threads: usize,
    seconds: f64,
    ops: Option<u64>,
    limit: f64,
    stop: AtomicBool,
}

impl Bench {
    fn fail(&self, why: &str) -> ! {
        eprintln!("subutai-bench {}: {}", self.kind, why);
        process::exit(1)
    }

    fn check_equal(&self, what: &str, got: u64, want: u64) {
        if got != want {
            self.fail(&format!("invariant violated: {} is {}, must be {}", what, got, want));
        }
    }

    // Of the operations asked for, what one of that many threads does.
    fn share(&self, n_sharing: usize) -> u64 {
        self.ops.map_or(u64::MAX, |ops| (ops + n_sharing as u64 - 1) / n_sharing as u64)
    }

    // The first operation is done in any case.
    fn more(&self, done: u64, share: u64) -> bool {
        done < share && (!self.stop.load(Ordering::Relaxed) || done == 0)
    }
}

fn pipe_of(b: &Bench) -> [c_int; 2] {
    let mut fds = [0; 2];
    if unsafe { pipe(fds.as_mut_ptr()) } != 0 {
        b.fail("pipe");
    }
    fds
}

fn cpu_ns(b: &Bench) -> u64 {
    let mut t = Timespec { seconds: 0, ns: 0 };
    if unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut t) } != 0 {
        b.fail("clock_gettime");
    }
    t.seconds as u64 * 1_000_000_000 + t.ns as u64
}

fn finished_within(fd: c_int, seconds: f64) -> bool {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let mut done = PollFd { fd, events: POLLIN, revents: 0 };
        if unsafe { poll(&mut done, 1, left.as_micros().div_euclid(1000) as c_int + 1) } > 0 {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}

// The last worker reads the clocks. The results are the workers', wall-clock and CPU time in nanoseconds.
fn run<R: Send>(b: &Bench, n: usize, work: impl Fn(usize) -> R + Sync) -> (Vec<R>, u64, u64) {
    let (gate, done) = (pipe_of(b), pipe_of(b));
    let (at_gate, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let end = Mutex::new((Instant::now(), 0));
    thread::scope(|s| {
        let handles: Vec<_> = (0..n)
            .map(|id| {
                let (at_gate, finished, end, work) = (&at_gate, &finished, &end, &work);
                s.spawn(move || {
                    let mut byte = 0u8;
                    at_gate.fetch_add(1, Ordering::SeqCst);
                    while unsafe { read(gate[0], &mut byte as *mut u8 as *mut c_void, 1) } != 0 {}
                    let result = work(id);
                    if finished.fetch_add(1, Ordering::AcqRel) + 1 == n {
                        *end.lock().unwrap() = (Instant::now(), cpu_ns(b));
                        if unsafe { write(done[1], ptr::addr_of!(byte) as *const c_void, 1) } != 1 {
                            b.fail("end of the run");
                        }
                    }
                    result
                })
            })
            .collect();
        while at_gate.load(Ordering::SeqCst) < n {
            thread::sleep(Duration::from_micros(200));
        }
        let (cpu, begin) = (cpu_ns(b), Instant::now());
        unsafe { close(gate[1]) };
        if b.ops.is_none() && !finished_within(done[0], b.seconds) {
            b.stop.store(true, Ordering::SeqCst);
        }
        if !finished_within(done[0], b.limit) {
            let left = n - finished.load(Ordering::SeqCst);
            b.fail(&format!("hang: {} of {} threads have not finished {} s after they should have", left, n, b.limit));
        }
        let results = handles.into_iter().map(|h| h.join().unwrap()).collect();
        let end = end.lock().unwrap();
        (results, (end.0 - begin).as_nanos() as u64, end.1 - cpu)
    })
}

// A plain variable that only the object under test protects.
struct Plain<T>(UnsafeCell<T>);
unsafe impl<T> Sync for Plain<T> {}
impl<T: Copy> Plain<T> {
    fn get(&self) -> T {
        unsafe { ptr::read_volatile(self.0.get()) }
    }
    fn set(&self, value: T) {
        unsafe { ptr::write_volatile(self.0.get(), value) }
    }
}

// As barrier.c: thread 0 decides before each round whether it is the last, and says so in one of two variables.
fn barrier(b: &Bench) -> (u64, u64, u64) {
    let barrier = Barrier::new(b.threads);
    let said = [Plain(UnsafeCell::new((0u64, false))), Plain(UnsafeCell::new((0, false)))];
    let (share, leads) = (b.share(1), Plain(UnsafeCell::new(0u64)));
    let (rounds, wall, cpu) = run(b, b.threads, |id| {
        let mut round = 0;
        loop {
            if id == 0 {
                said[round as usize & 1].set((round, !b.more(round + 1, share)));
            }
            if barrier.wait().is_leader() {
                leads.set(leads.get() + 1);
            }
            let (of, last) = said[round as usize & 1].get();
            if of != round {
                b.check_equal("the round a thread left the barrier in", of, round);
            }
            round += 1;
            if last {
                return round;
            }
        }
    });
    for n in rounds {
        b.check_equal("a thread's number of rounds", n, leads.get());
    }
    (leads.get(), wall, cpu)
}

// As turn-ring: each leaves on a turn of its own and passes the turn on.
fn ring(b: &Bench) -> (u64, u64, u64) {
    struct State {
        turn: usize,
        turns: u64,
        over: bool,
    }
    let state = Mutex::new(State { turn: 0, turns: 0, over: false });
    let mine: Vec<_> = (0..b.threads).map(|_| Condvar::new()).collect();
    let share = b.share(1);
    let (turns, wall, cpu) = run(b, b.threads, |id| {
        let (mut ops, mut leave) = (0u64, false);
        while !leave {
            let mut s = state.lock().unwrap();
            while s.turn != id {
                s = mine[id].wait(s).unwrap();
            }
            if !s.over && b.more(s.turns, share) {
                ops += 1;
                s.turns += 1;
            } else {
                s.over = true;
                leave = true;
            }
            s.turn = (id + 1) % b.threads;
            mine[s.turn].notify_one();
        }
        ops
    });
    let all = state.lock().unwrap().turns;
    for (i, n) in turns.iter().enumerate() {
        b.check_equal("a thread's number of turns", *n, all / b.threads as u64 + ((i as u64) < all % b.threads as u64) as u64);
    }
    (all, wall, cpu)
}

// One thread receives what all others send, through 16 places.
fn mpsc(b: &Bench) -> (u64, u64, u64) {
    let n_senders = if b.threads > 2 { b.threads - 1 } else { 1 };
    let (sender, receiver) = sync_channel::<u64>(16);
    let ends: Vec<Mutex<Option<SyncSender<u64>>>> = (0..n_senders).map(|_| Mutex::new(Some(sender.clone()))).collect();
    let end: Mutex<Option<Receiver<u64>>> = Mutex::new(Some(receiver));
    drop(sender);
    let share = b.share(n_senders);
    let (results, wall, cpu) = run(b, n_senders + 1, |id| {
        let (mut n, mut sum) = (0u64, 0u64);
        if id < n_senders {
            let sender = ends[id].lock().unwrap().take().unwrap();
            while b.more(n, share) {
                let item = ((id as u64) << 40) + n;
                n += 1;
                sum = sum.wrapping_add(item);
                sender.send(item).unwrap();
            }
        } else {
            for item in end.lock().unwrap().take().unwrap() {
                n += 1;
                sum = sum.wrapping_add(item);
            }
        }
        (n, sum)
    });
    let (taken, sent) = results.split_last().map(|(l, f)| (*l, f)).unwrap();
    b.check_equal("the number of items received", taken.0, sent.iter().map(|s| s.0).sum());
    b.check_equal("the sum of items received", taken.1, sent.iter().fold(0, |a, s| s.1.wrapping_add(a)));
    (taken.0, wall, cpu)
}

fn peak_kib(b: &Bench) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM:"));
    match line.and_then(|l| l.split_whitespace().nth(1)).and_then(|n| n.parse().ok()) {
        Some(kib) => kib,
        None => b.fail("/proc/self/status tells no VmHWM"),
    }
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let mut b = Bench {
        kind: words.first().cloned().unwrap_or_default(),
        threads: 2,
        seconds: 0.3,
        ops: None,
        limit: 60.0,
        stop: AtomicBool::new(false),
    };
    for pair in words.get(1..).unwrap_or_default().chunks(2) {
        let value = pair.get(1).and_then(|v| v.parse::<f64>().ok()).unwrap_or_else(|| b.fail(&format!("{} without a number", pair[0])));
        match pair[0].as_str() {
            "--threads" => b.threads = value as usize,
            "--seconds" => b.seconds = value,
            "--ops" => b.ops = Some(value as u64),
            "--limit" => b.limit = value,
            other => b.fail(&format!("unknown option '{}'", other)),
        }
    }
    let (ops, wall, cpu) = match b.kind.as_str() {
        "rust-barrier" => barrier(&b),
        "rust-ring" => ring(&b),
        "rust-mpsc" => mpsc(&b),
        _ => b.fail("unknown kind"),
    };
    if ops == 0 {
        b.fail("no operation was done");
    }
    println!(
        "{{\"kind\":\"{}\",\"threads\":{},\"ops\":{},\"wall_ns\":{},\"cpu_ns\":{},\"ns_per_op\":{:.3},\"peak_kib\":{}}}",
        b.kind, b.threads, ops, wall, cpu, wall as f64 / ops as f64, peak_kib(&b)
    );
}

// SPDX-License-Identifier: LGPL-2.1-or-later
//! A Rust program: Conway's Game of Life on a torus, with Rust's own threads, barrier and channel. Each thread has a band
//! of rows, and meets the others after each generation; now and then it sends its population. What it prints does not
//! depend on the number of threads.
//!
//! usage: life ROWS GENERATIONS THREADS

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{mpsc, Barrier};
use std::thread;

const WORDS: usize = 4; // of 64 cells in a row
const REPORT_EVERY: usize = 64;

type Plane = Vec<[AtomicU64; WORDS]>;

fn new_plane(rows: usize) -> Plane {
    (0..rows).map(|_| Default::default()).collect()
}

/// The row, shifted so that each cell stands where its neighbour to the left or right is.
fn shifted(row: &[u64; WORDS], left: bool) -> [u64; WORDS] {
    std::array::from_fn(|i| {
        if left {
            row[i] << 1 | row[(i + WORDS - 1) % WORDS] >> 63
        } else {
            row[i] >> 1 | row[(i + 1) % WORDS] << 63
        }
    })
}

fn load(plane: &Plane, y: usize) -> [u64; WORDS] {
    std::array::from_fn(|i| plane[y][i].load(Relaxed))
}

/// One row of the next generation: the eight neighbours are added bit by bit, 64 cells at once.
fn next_row(from: &Plane, y: usize) -> [u64; WORDS] {
    let rows = from.len();
    let (above, here, below) = (load(from, (y + rows - 1) % rows), load(from, y), load(from, (y + 1) % rows));
    let mut sum = [[0u64; WORDS]; 4]; // the number of neighbours, a plane for each binary digit
    let mut add = |row: [u64; WORDS]| {
        for i in 0..WORDS {
            let mut carry = row[i];
            for digit in &mut sum {
                let next = digit[i] & carry;
                digit[i] ^= carry;
                carry = next;
            }
        }
    };
    for row in [&above, &here, &below] {
        add(shifted(row, true));
        add(shifted(row, false));
    }
    add(above);
    add(below);
    std::array::from_fn(|i| {
        let two_or_three = sum[1][i] & !sum[2][i] & !sum[3][i];
        two_or_three & (sum[0][i] | here[i])
    })
}

fn number(text: Option<String>, most: usize) -> usize {
    match text.and_then(|t| t.parse().ok()) {
        Some(n) if (1..=most).contains(&n) => n,
        _ => {
            eprintln!("usage: life ROWS GENERATIONS THREADS");
            std::process::exit(2)
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rows = number(arguments.next(), 1 << 20);
    let generations = number(arguments.next(), 1 << 30);
    let threads = number(arguments.next(), rows.min(1024));
    let planes = [new_plane(rows), new_plane(rows)];
    let mut seed = 1u64;
    for word in planes[0].iter().flatten() {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        word.store(seed ^ seed >> 31, Relaxed);
    }
    let barrier = Barrier::new(threads);
    let (sender, reports) = mpsc::sync_channel(threads);
    let populations = thread::scope(|scope| {
        for t in 0..threads {
            let (planes, barrier, sender) = (&planes, &barrier, sender.clone());
            scope.spawn(move || {
                let band = rows * t / threads..rows * (t + 1) / threads;
                for g in 0..generations {
                    let (from, to) = (&planes[g % 2], &planes[(g + 1) % 2]);
                    let mut population = 0;
                    for y in band.clone() {
                        for (cell, next) in to[y].iter().zip(next_row(from, y)) {
                            cell.store(next, Relaxed);
                            population += next.count_ones() as u64;
                        }
                    }
                    if g % REPORT_EVERY == 0 || g + 1 == generations {
                        sender.send((g, population)).expect("the receiver is there to the end");
                    }
                    barrier.wait();
                }
            });
        }
        drop(sender);
        let mut sums = vec![0u64; generations];
        for (g, population) in reports {
            sums[g] += population;
        }
        sums
    });
    let seen: u64 = populations.iter().enumerate().fold(0, |hash, (g, p)| hash.wrapping_mul(31) ^ p ^ g as u64);
    println!("{generations} generations: {} cells live, seen {seen:016x}", populations[generations - 1]);
}

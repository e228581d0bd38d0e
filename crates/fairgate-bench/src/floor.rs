//! The floor under all times: what a load costs by the size of what is walked over, and what a branch costs that the
//! processor guesses wrong.
//!
//! A pair touches a packet's line (64 bytes) and a flow's; where these are not in a cache a scheduler that does nothing
//! at all takes as long as they take to come.

use std::hint::black_box;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use crate::measure::processor_time;
use crate::workload::below;

/// A step of a pointer chase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Bytes walked over, in lines of 64 in random order.
    pub bytes: u64,
    /// Time from one load to the next that depends on it, ns: the least of three walks.
    pub nanos: f64,
}

/// A line of a cache: the number of the next.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

/// Walks over `bytes` bytes, at least two lines, in an order that no prefetcher guesses.
pub fn chase(bytes: u64) -> Latency {
    let lines = (bytes / 64).max(2) as u32;
    let mut ring: Vec<Line> = (0..lines).map(Line).collect();
    // Sattolo: one ring through all lines.
    let mut random = SplitMix64::seed_from_u64(1);
    for last in (1..lines).rev() {
        ring.swap(last as usize, below(&mut random, last) as usize);
    }
    let steps = lines.clamp(1 << 18, 1 << 22);
    let mut line = walk(&ring, 0, lines.min(steps));
    let mut nanos = f64::INFINITY;
    for _ in 0..3 {
        let start = processor_time();
        line = walk(&ring, line, steps);
        nanos = nanos.min((processor_time() - start) as f64 / f64::from(steps));
    }
    black_box(line);
    Latency { bytes, nanos }
}

fn walk(ring: &[Line], mut line: u32, steps: u32) -> u32 {
    for _ in 0..steps {
        line = ring[line as usize].0;
    }
    line
}

/// What a wrong guess costs, ns: twice the difference between a branch by chance, wrong every other time, and one that
/// is always taken. The least of five.
pub fn branch_miss() -> f64 {
    const COUNT: usize = 1 << 20;
    let mut random = SplitMix64::seed_from_u64(1);
    let chance: Vec<bool> = (0..COUNT).map(|_| random.next_u64() >> 63 == 1).collect();
    let always = vec![true; COUNT];
    let least = |choices: &[bool]| {
        (0..5)
            .map(|_| {
                let start = processor_time();
                black_box(branches(choices));
                (processor_time() - start) as f64 / COUNT as f64
            })
            .fold(f64::INFINITY, f64::min)
    };
    2.0 * (least(&chance) - least(&always))
}

/// Takes one of two ways by each choice. What is done on them is hidden from the compiler, which would else do without
/// a branch.
#[inline(never)]
fn branches(choices: &[bool]) -> u64 {
    let mut sum = 0u64;
    for &choice in choices {
        if choice {
            sum = black_box(sum + 1);
        } else {
            sum = black_box(sum ^ 5);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chase_takes_time_and_goes_through_all_lines() {
        let lines = 1000;
        let latency = chase(64 * lines);
        assert!(latency.nanos > 0.0 && latency.nanos.is_finite());
        let mut ring: Vec<Line> = (0..lines as u32).map(Line).collect();
        let mut random = SplitMix64::seed_from_u64(1);
        for last in (1..lines as u32).rev() {
            ring.swap(last as usize, below(&mut random, last) as usize);
        }
        let visited: std::collections::HashSet<u32> = (0..lines as u32).map(|n| walk(&ring, 0, n)).collect();
        assert_eq!(visited.len(), lines as usize);
    }

    #[test]
    fn a_wrong_guess_is_measured() {
        assert!(branch_miss().is_finite());
    }
}

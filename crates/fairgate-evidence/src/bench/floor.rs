//! Lower limits of all times: the latency of a load, by the size of the memory it is from, and the cost of a
//! mispredicted branch.
//!
//! A pair touches one cache line (64 bytes) of a packet and one of a flow. If these are not in a cache, even
//! a scheduler that does nothing takes as long as loading them.

use std::hint::black_box;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use crate::bench::measure::processor_time;
use crate::bench::workload::below;

/// The latency of one load in a pointer chase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The size of the memory, bytes. Its cache lines are read in random order.
    pub bytes: u64,
    /// The time from one load to the next one, which depends on it, ns: the least of three passes.
    pub nanos: f64,
}

/// A cache line with the number of the next one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(u32);

/// Chases pointers through `bytes` bytes, at least two cache lines, in an order that no prefetcher predicts.
pub fn chase(bytes: u64) -> Latency {
    let lines = (bytes / 64).max(2) as u32;
    let mut chain: Vec<Line> = (0..lines).map(Line).collect();
    // Sattolo's algorithm makes one cycle through all lines.
    let mut random = SplitMix64::seed_from_u64(1);
    for last in (1..lines).rev() {
        chain.swap(last as usize, below(&mut random, last) as usize);
    }
    let steps = lines.clamp(1 << 18, 1 << 22);
    let mut line = walk(&chain, 0, lines.min(steps));
    let mut nanos = f64::INFINITY;
    for _ in 0..3 {
        let start = processor_time();
        line = walk(&chain, line, steps);
        nanos = nanos.min((processor_time() - start) as f64 / f64::from(steps));
    }
    black_box(line);
    Latency { bytes, nanos }
}

fn walk(chain: &[Line], mut line: u32, steps: u32) -> u32 {
    for _ in 0..steps {
        line = chain[line as usize].0;
    }
    line
}

/// Returns the cost of a mispredicted branch, ns. It is twice the difference between a random branch, which
/// is mispredicted half of the time, and a branch that is always taken. The least of five measurements is
/// used.
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

/// Branches by each choice. The work in the branches is hidden from the compiler, which might otherwise
/// remove the branch.
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
    fn a_chase_takes_time_and_reads_all_lines() {
        let lines = 1000;
        let latency = chase(64 * lines);
        assert!(latency.nanos > 0.0 && latency.nanos.is_finite());
        let mut chain: Vec<Line> = (0..lines as u32).map(Line).collect();
        let mut random = SplitMix64::seed_from_u64(1);
        for last in (1..lines as u32).rev() {
            chain.swap(last as usize, below(&mut random, last) as usize);
        }
        let visited: std::collections::HashSet<u32> = (0..lines as u32).map(|n| walk(&chain, 0, n)).collect();
        assert_eq!(visited.len(), lines as usize);
    }

    #[test]
    fn a_mispredicted_branch_is_measured() {
        assert!(branch_miss().is_finite());
    }
}

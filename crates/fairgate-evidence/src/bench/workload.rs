//! The workload: the number of queued packets, the flow and the length of the next packet, and the weights of
//! flows.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// The number of queued packets (the paper's section VII-B). N is the number of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Enqueues bursts of N packets and drains them.
    Small,
    /// Enqueues bursts of 30 N packets and drains them.
    Large,
    /// Keeps between N and 30 N packets queued.
    Full,
}

impl Load {
    /// All loads.
    pub const ALL: [Load; 3] = [Load::Small, Load::Large, Load::Full];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Load::Small => "small",
            Load::Large => "large",
            Load::Full => "full",
        }
    }

    /// Returns the least and the most packets queued. Dequeueing ends at the first number, enqueueing at the
    /// second.
    pub fn bounds(self, flows: u32) -> (u32, u32) {
        match self {
            Load::Small => (0, flows),
            Load::Large => (0, 30 * flows),
            Load::Full => (flows, 30 * flows),
        }
    }
}

/// The flow of the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The flow with the shortest backlog.
    Shortest,
    /// A random flow, all with the same probability. Some flows may have many packets and others none.
    Random,
    /// Each flow in turn.
    RoundRobin,
}

/// The weights of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weights {
    /// Each flow has weight 1.
    Equal,
    /// Many flows have weight 1 and a few have up to 1024: see [`Weights::of`].
    Mix,
}

/// The mix: weights, and the number of flows out of 39,953 with each weight. The paper's own table is missing
/// in our text. This is a similar "large mix of flows using different weights".
const MIX: [(u32, u64); 6] = [
    (1, 32_768),
    (2, 4_096),
    (4, 2_048),
    (8, 1_024),
    (128, 16),
    (1_024, 1),
];

impl Weights {
    /// Returns the weights of `flows` flows. In the mix 82 % have weight 1, 10 % 2, 5 % 4, 2.6 % 8, 0.04 %
    /// 128 and one in 40,000 weight 1024, rounded to whole flows. Weights are shuffled, so neighbouring flows
    /// are independent.
    pub fn of(self, flows: u32) -> Vec<u32> {
        let mut weights = vec![1; flows as usize];
        if self == Weights::Mix {
            let all: u64 = MIX.iter().map(|(_, count)| count).sum();
            let mut before = 0;
            for (weight, count) in MIX {
                let position = |part: u64| (part * u64::from(flows)).div_ceil(all) as usize;
                weights[position(before)..position(before + count)].fill(weight);
                before += count;
            }
            shuffle(&mut weights, &mut SplitMix64::seed_from_u64(1));
        }
        weights
    }
}

/// Shuffles values (Fisher and Yates).
fn shuffle(values: &mut [u32], random: &mut SplitMix64) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(random, last as u32 + 1) as usize);
    }
}

/// Returns a random number below `bound`, without a division. The bias is below 2^-32 times the bound.
#[inline]
pub(crate) fn below(random: &mut SplitMix64, bound: u32) -> u32 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u32
}

/// The lengths of packets, bytes. The most is [`Sizes::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// All packets have this length.
    Constant(u32),
    /// Uniform from the first length to the second.
    Uniform(u32, u32),
    /// One of two lengths, with equal probability.
    Bimodal(u32, u32),
}

impl Sizes {
    /// The longest possible packet: the paper's 2 kB.
    pub const MOST: u32 = 2048;

    /// Returns the length of the longest packet.
    pub fn longest(self) -> u32 {
        match self {
            Sizes::Constant(size) => size,
            Sizes::Uniform(one, other) | Sizes::Bimodal(one, other) => one.max(other),
        }
    }

    /// Returns the length of the shortest packet.
    pub fn shortest(self) -> u32 {
        match self {
            Sizes::Constant(size) => size,
            Sizes::Uniform(one, other) | Sizes::Bimodal(one, other) => one.min(other),
        }
    }

    /// Draws [`DRAWN`] lengths, before the measurement.
    pub(crate) fn draw(self, seed: u64) -> Box<[u16; DRAWN]> {
        let mut random = SplitMix64::seed_from_u64(seed);
        let (least, most) = (self.shortest(), self.longest());
        let mut lengths = Box::new([0; DRAWN]);
        for length in lengths.iter_mut() {
            let drawn = match self {
                Sizes::Constant(size) => size,
                Sizes::Uniform(..) => least + below(&mut random, most - least + 1),
                Sizes::Bimodal(one, other) => [one, other][below(&mut random, 2) as usize],
            };
            *length = drawn as u16;
        }
        lengths
    }
}

/// The number of lengths that are drawn; then they repeat. It is a power of two, and two bytes for each fit
/// into the first-level cache.
pub(crate) const DRAWN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_mix_has_its_proportions() {
        let weights = Weights::Mix.of(39_953);
        for (weight, count) in MIX {
            let found = weights.iter().filter(|&&w| w == weight).count() as u64;
            assert_eq!(found, count, "flows of weight {weight}");
        }
        assert_ne!(weights[..100], [1; 100], "shuffled");
    }

    #[test]
    fn the_mix_of_a_million_flows_is_within_the_sum_of_weights() {
        let sum: u64 = Weights::Mix.of(1 << 20).into_iter().map(u64::from).sum();
        assert!(sum <= 1 << 26, "{sum}");
    }

    proptest! {
        #[test]
        fn lengths_are_within_their_bounds(
            one in 1u32..=Sizes::MOST,
            other in 1u32..=Sizes::MOST,
            seed: u64,
        ) {
            for sizes in [Sizes::Constant(one), Sizes::Uniform(one, other), Sizes::Bimodal(one, other)] {
                let (least, most) = (sizes.shortest(), sizes.longest());
                for &length in sizes.draw(seed).iter() {
                    prop_assert!((least..=most).contains(&u32::from(length)));
                }
            }
        }
    }

    #[test]
    fn both_lengths_are_about_equally_frequent() {
        let lengths = Sizes::Bimodal(64, 1500).draw(1);
        let short = lengths.iter().filter(|&&length| length == 64).count();
        assert!((DRAWN * 2 / 5..DRAWN * 3 / 5).contains(&short), "{short}");
    }
}

//! Bins: how many packets of the flows that share a bin are queued, and the probability of a mark for them.
//!
//! ```text
//!   hash, 32 bits   [ 4 ][ 4 ][ 4 ][ 4 ][ 4 ][ 4 ][ 4 ][ 4 ]
//!                     |    |    |                        |
//!   level             0    1    2          ...           7      16 bins each
//! ```
//!
//! A flow has a bin on each level. It shares some of them with other flows, but hardly all of them, so the
//! least of its probabilities is its own (Feng et al. 2001, section III).

use crate::flow::FlowHash;

/// Levels.
pub(super) const LEVELS: usize = 8;
/// Bins of a level.
pub(super) const BINS: usize = 16;

/// The highest probability: 65535/65536 stands for 1.
pub(super) const CERTAIN: u32 = 0xffff;

/// The parameters of the bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
    /// The packets of a bin from which on its probability rises.
    pub(super) target: u32,
    /// What a probability rises and falls by, in units of 1/65535.
    pub(super) increment: u32,
    pub(super) decrement: u32,
}

/// One bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin {
    /// Queued packets, at most 65535.
    packets: u16,
    probability: u16,
}

/// The least of a flow's bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Least {
    pub(super) packets: u32,
    pub(super) probability: u32,
}

/// What tc shows of all bins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Overview {
    pub(super) most_packets: u32,
    pub(super) highest: u32,
    pub(super) average: u32,
}

/// An array of bins and the salt of its hash.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    levels: [[Bin; BINS]; LEVELS],
    salt: u64,
}

impl Bins {
    pub(super) fn new(salt: u64) -> Bins {
        Bins {
            levels: [[Bin::default(); BINS]; LEVELS],
            salt,
        }
    }

    /// Changes the hash. Queued packets are still counted, under their old hashes.
    pub(super) fn rehash(&mut self, salt: u64) {
        self.salt = salt;
    }

    /// The hash of a flow. It is never 0.
    #[inline]
    pub(super) fn hash(&self, flow: FlowHash) -> u32 {
        ((flow.salted(self.salt) >> 32) as u32).max(1)
    }

    /// The bins of a flow, one on each level.
    #[inline]
    fn of(&mut self, hash: u32) -> impl Iterator<Item = &mut Bin> {
        self.levels
            .iter_mut()
            .enumerate()
            .map(move |(level, bins)| &mut bins[(hash >> (4 * level)) as usize % BINS])
    }

    /// Adapts the probabilities for a packet that arrives. Returns the least of its bins.
    #[inline]
    pub(super) fn adapt(&mut self, hash: u32, steps: Steps) -> Least {
        let mut least = Least {
            packets: u32::MAX,
            probability: u32::MAX,
        };
        for bin in self.of(hash) {
            let (packets, before) = (u32::from(bin.packets), u32::from(bin.probability));
            let probability = if packets == 0 {
                before.saturating_sub(steps.decrement)
            } else if packets >= steps.target {
                (before + steps.increment).min(CERTAIN)
            } else {
                before
            };
            bin.probability = probability as u16;
            least.packets = least.packets.min(packets);
            least.probability = least.probability.min(probability);
        }
        least
    }

    /// Counts a packet that is queued. A hash of 0 stands for none.
    #[inline]
    pub(super) fn joined(&mut self, hash: u32) {
        if hash != 0 {
            self.of(hash)
                .for_each(|bin| bin.packets = bin.packets.saturating_add(1));
        }
    }

    /// Counts a packet that has left.
    #[inline]
    pub(super) fn left(&mut self, hash: u32) {
        if hash != 0 {
            self.of(hash)
                .for_each(|bin| bin.packets = bin.packets.saturating_sub(1));
        }
    }

    pub(super) fn overview(&self) -> Overview {
        let bins = || self.levels.iter().flatten();
        let most = |of: fn(&Bin) -> u16| bins().map(of).max().unwrap_or(0).into();
        let total: u32 = bins().map(|bin| u32::from(bin.probability)).sum();
        Overview {
            most_packets: most(|bin| bin.packets),
            highest: most(|bin| bin.probability),
            average: total / (LEVELS * BINS) as u32,
        }
    }
}

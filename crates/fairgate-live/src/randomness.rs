//! The random numbers of a run: the key of the flow hash, and the seeds of the trees.

use fairgate::FlowHasher;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Draws them one after the other. The same seed gives the same ones.
pub(crate) struct Randomness {
    generator: Xoshiro256PlusPlus,
    /// All directions of a run use the same key.
    pub(crate) hasher: FlowHasher,
}

impl Randomness {
    /// Without a seed the numbers come from the system, because an outsider who knows the key can cause hash
    /// collisions.
    pub(crate) fn new(seed: Option<u64>) -> Randomness {
        let mut generator = match seed {
            Some(seed) => Xoshiro256PlusPlus::seed_from_u64(seed),
            None => Xoshiro256PlusPlus::from_seed(rand::random()),
        };
        let hasher = FlowHasher::new([generator.next_u64(), generator.next_u64()]);
        Randomness { generator, hasher }
    }

    /// Returns the next seed.
    pub(crate) fn seed(&mut self) -> u64 {
        self.generator.next_u64()
    }
}

//! Random numbers from a seed: SplitMix64 (Steele, Lea, Flood 2014).

/// A random number generator. It has eight bytes of state, takes a few instructions per number, and returns
/// the same sequence on every machine.
///
/// It is not secure: an attacker can predict it from its output. Where that matters, the flow hash's key is
/// used.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

/// 2^64 divided by the golden ratio: the difference between successive states.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Random {
    pub(crate) const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns 64 random bits.
    #[inline]
    pub(crate) fn bits(&mut self) -> u64 {
        let drawn = mixed(self.0);
        self.0 = self.0.wrapping_add(STEP);
        drawn
    }

    /// Returns 32 random bits.
    #[inline]
    pub(crate) fn bits32(&mut self) -> u32 {
        (self.bits() >> 32) as u32
    }

    /// Returns a number below `bound`, or 0 if `bound` is 0. It multiplies instead of dividing (Lemire 2019).
    /// The bias is below 2^-32.
    #[inline]
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.bits32()) * u64::from(bound)) >> 32) as u32
    }
}

/// Returns the number for state `state`. Each of the 2^64 states gives a different number.
pub(crate) fn mixed(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of the published generator for the seed 1234567.
    #[test]
    fn the_sequence_is_the_published_one() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn numbers_below_a_bound_are_uniform() {
        let mut random = Random::new(7);
        let mut counts = [0u32; 5];
        for _ in 0..50_000 {
            counts[random.below(5) as usize] += 1;
        }
        assert!(
            counts.iter().all(|count| (9_600..10_400).contains(count)),
            "{counts:?}"
        );
        assert_eq!(random.below(0), 0);
    }
}

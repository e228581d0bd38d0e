//! The fair share as a clock: how many bytes a flow would have sent by now if the link were shared equally
//! among the flows with packets.
//!
//! With each packet of `l` bytes that the link sends while `n` flows have packets, a flow with packets is due
//! `l / n` bytes, and a flow without packets would be due `l / (n + 1)`, since it would be one more. There is
//! a clock for each. A flow compares what it sends with the clock of its state, and changes the clock when it
//! changes its state. So the share needs no rate and no time: it follows the link and the number of flows.
//!
//! Resolution: 2^-16 byte, so that a packet of 64 bytes among 2^20 flows counts. The clocks wrap after 2^48
//! bytes; differences are right as long as a flow is not idle for longer than that.

use crate::timestamps::inverse;

pub(crate) const FRACTION_BITS: u32 = 16;

/// A reading of a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading(u64);

/// The clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FairShare {
    backlogged: u64,
    idle: u64,
    /// The number of flows of the last packet, and the inverses of it and of its successor.
    flows: u32,
    inverses: [u64; 2],
}

impl FairShare {
    pub(crate) fn new() -> FairShare {
        FairShare {
            backlogged: 0,
            idle: 0,
            flows: 1,
            inverses: [inverse::inverse(1), inverse::inverse(2)],
        }
    }

    /// Notes that a packet of `bytes` bytes was sent, while `flows` flows, its own included, had packets.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32, flows: u32) {
        let flows = flows.max(1);
        if flows != self.flows {
            self.flows = flows;
            self.inverses = [inverse::inverse(flows), inverse::inverse(flows.saturating_add(1))];
        }
        let part = |inverse: u64| {
            const SHIFT: u32 = inverse::FRACTION_BITS - FRACTION_BITS;
            ((u128::from(bytes) * u128::from(inverse)) >> SHIFT) as u64
        };
        self.backlogged = self.backlogged.wrapping_add(part(self.inverses[0]));
        self.idle = self.idle.wrapping_add(part(self.inverses[1]));
    }

    /// Reads the clock of a flow with or without packets.
    #[inline]
    pub(crate) fn read(&self, is_backlogged: bool) -> Reading {
        Reading(if is_backlogged { self.backlogged } else { self.idle })
    }
}

impl Reading {
    /// The reading at the start.
    pub(crate) const START: Reading = Reading(0);

    /// Returns the share since an earlier reading of the same clock, in units of 2^-16 byte.
    #[inline]
    pub(crate) fn fraction_since(self, earlier: Reading) -> u64 {
        self.0.wrapping_sub(earlier.0)
    }

    /// Returns the whole bytes of the share since an earlier reading of the same clock.
    #[inline]
    pub(crate) fn since(self, earlier: Reading) -> u64 {
        self.fraction_since(earlier) >> FRACTION_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The clocks are those of exact fractions, within the resolution, wherever they start.
        #[test]
        fn clocks_advance_by_equal_parts(
            origin in any::<u64>(),
            packets in prop::collection::vec((0u32..70_000, 1u32..2000), 0..200),
        ) {
            let mut share = FairShare { backlogged: origin, idle: origin, ..FairShare::new() };
            let start = [true, false].map(|state| share.read(state));
            let mut exact = [0.0f64; 2];
            for &(bytes, flows) in &packets {
                share.sent(bytes, flows);
                exact[0] += f64::from(bytes) / f64::from(flows);
                exact[1] += f64::from(bytes) / f64::from(flows + 1);
            }
            for ((state, start), exact) in [true, false].into_iter().zip(start).zip(exact) {
                let bytes = share.read(state).since(start) as f64;
                // Each packet loses less than a unit, and the result less than a byte.
                prop_assert!(bytes <= exact && exact - bytes < 1.01 + 1e-9 * exact, "{bytes} of {exact}");
            }
        }
    }
}

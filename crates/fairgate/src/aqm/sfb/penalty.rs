//! The penalty box: how many packets of flows that ignore marks and drops may pass.

use crate::time::Time;

/// The longest time for which tokens arrive, µs.
const LONGEST: u64 = 10_000_000;

/// A bucket of packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Penalty {
    /// Packets per second.
    rate: u32,
    /// The depth, packets.
    burst: u32,
    tokens: u32,
    /// When tokens last arrived. `None` before the first call.
    filled: Option<Time>,
}

impl Penalty {
    /// Creates a full bucket.
    pub(super) fn full(rate: u32, burst: u32) -> Penalty {
        Penalty {
            rate,
            burst,
            tokens: burst,
            filled: None,
        }
    }

    /// Takes a token for a packet. Returns false if there is none. Tokens arrive only when there are none
    /// left, as in Linux.
    pub(super) fn lets_pass(&mut self, now: Time) -> bool {
        if self.rate == 0 || self.burst == 0 {
            return false;
        }
        let filled = *self.filled.get_or_insert(now);
        if self.tokens == 0 {
            let age = (now.nanos_since(filled) / 1000).min(LONGEST);
            let arrived = age * u64::from(self.rate) / 1_000_000;
            self.tokens = arrived.min(self.burst.into()) as u32;
            self.filled = Some(now);
            if self.tokens == 0 {
                return false;
            }
        }
        self.tokens -= 1;
        true
    }
}

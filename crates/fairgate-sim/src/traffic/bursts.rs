//! Bursts at a constant rate, with silences between them.

use crate::network::ExactClock;
use crate::random::{Distribution, Stream};

/// The clock of a source that sends at a constant rate while it is on.
///
/// If a silence interrupts the gap between two packets, the rest of the gap follows after the silence. The
/// mean rate is therefore exact, however short the bursts are.
#[derive(Clone, Debug)]
pub(crate) struct BurstClock {
    in_burst: ExactClock,
    on: Distribution,
    off: Distribution,
    /// The rest of the current burst, ns.
    left: u64,
}

impl BurstClock {
    pub(crate) fn new(
        in_burst: ExactClock,
        on: Distribution,
        off: Distribution,
        stream: &mut Stream,
    ) -> Self {
        let left = on.sample(stream);
        BurstClock {
            in_burst,
            on,
            off,
            left,
        }
    }

    /// Returns the time from sending `bytes` until the next packet is due, ns.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: u32, stream: &mut Stream) -> u64 {
        let mut gap = self.in_burst.advance(bytes);
        let mut wait = gap;
        while gap >= self.left {
            gap -= self.left;
            wait = wait.saturating_add(self.off.sample(stream));
            self.left = self.on.sample(stream);
        }
        self.left -= gap;
        wait
    }
}

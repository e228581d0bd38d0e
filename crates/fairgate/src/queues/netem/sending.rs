//! The time that a packet takes at the emulated rate (Linux: `packet_time_ns`), without a division.

use super::config::LinkRate;
use crate::rate::RateMeter;

/// The rate and its link layer.
#[derive(Debug)]
pub(super) struct Sending {
    meter: RateMeter,
    packet_overhead: i64,
    cells: Option<Cells>,
}

/// Cells of a fixed payload.
#[derive(Debug)]
struct Cells {
    payload: u64,
    /// The bytes of a cell on the link.
    whole: u64,
    /// 2^64 / payload, rounded up.
    inverse: u128,
}

impl Sending {
    pub(super) fn new(link: LinkRate) -> Sending {
        let payload = u64::from(link.cell_size);
        Sending {
            meter: link.rate.meter(),
            packet_overhead: link.packet_overhead.into(),
            cells: (payload > 0).then(|| Cells {
                payload,
                whole: payload.saturating_add_signed(link.cell_overhead.into()),
                inverse: (1u128 << 64).div_ceil(payload.into()),
            }),
        }
    }

    /// Returns the time of a packet in ns, rounded down.
    #[inline]
    pub(super) fn nanos(&self, length: u32) -> u64 {
        let bytes = (i64::from(length) + self.packet_overhead).max(0) as u64;
        let on_link = match &self.cells {
            None => bytes,
            Some(cells) => {
                // The rounding is exact, because bytes times payload are below 2^64.
                let padded = bytes + cells.payload - 1;
                ((u128::from(padded) * cells.inverse) >> 64) as u64 * cells.whole
            }
        };
        self.meter.nanos(on_link.min(u32::MAX.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::Rate;
    use proptest::prelude::*;

    proptest! {
        /// Compares with Linux's formula, which divides.
        #[test]
        fn times_are_those_of_linux(
            length in 1u32..100_000,
            packet_overhead in -200i32..200,
            cell_size in 0u32..2000,
            cell_overhead in 0i32..100,
        ) {
            let rate = Rate::mbit(8);
            let sending = Sending::new(LinkRate { rate, packet_overhead, cell_size, cell_overhead });
            let bytes = (i64::from(length) + i64::from(packet_overhead)).max(0) as u64;
            let on_link = match cell_size {
                0 => bytes,
                size => bytes.div_ceil(size.into()) * (u64::from(size) + cell_overhead as u64),
            };
            // One byte per microsecond.
            let exact = on_link * 1000;
            let nanos = sending.nanos(length);
            prop_assert!(nanos <= exact && exact - nanos <= 1 + (exact >> 31), "{} for {}", nanos, exact);
        }
    }
}

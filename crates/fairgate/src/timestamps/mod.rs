//! Fair queueing by time stamps. Each file has a [`Scheduler`](crate::scheduler::Scheduler).
//! [`Flows`](crate::scheduler::Flows) makes it a flat discipline and [`Classes`](crate::scheduler::Classes) a
//! classful one. `wfq` and `pfq` stamp single packets, which a class's inner discipline may drop or reorder.
//! So they are flat only.
//!
//! Virtual time counts the service of a flow of weight 1: bytes divided by weight. Each file states its unit
//! and width. If times wrap, they are compared by their wrapping difference, and the file says why they
//! differ by less than half of their range.

pub mod frr;
pub mod gfq;
mod groups;
pub(crate) mod inverse;
mod live_sum;
mod parameters;
pub mod pfq;
pub mod qfq;
pub mod qfq_plus;
mod run_heap;
pub mod s_kps;
pub mod scfq;
mod slots;
#[cfg(test)]
mod testing;
mod virtual_time;
pub mod wf2q_plus;
pub mod wfq;

use crate::error::ConfigError;
use crate::scheduler::Entitlement;

/// The largest weight of a flow.
pub const MAX_WEIGHT: u32 = 1 << 16;

/// The largest sum of the weights of a discipline's flows.
pub const MAX_WEIGHT_SUM: u32 = 1 << 26;

/// The virtual time of one byte at weight 1: 30 fraction bits, as in Linux's `sch_qfq`.
pub const ONE: u64 = 1 << 30;

/// A flow's share, if the scheduler need not know the flow's longest packet: its part of the sum of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight(
    /// 1 to [`MAX_WEIGHT`].
    pub u32,
);

impl Default for Weight {
    fn default() -> Weight {
        Weight(1)
    }
}

impl Entitlement for Weight {
    fn amount_mut(&mut self) -> &mut u32 {
        &mut self.0
    }
}

/// A flow's share, if the scheduler groups flows by the time of their longest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// 1 to [`MAX_WEIGHT`].
    pub weight: u32,
    /// The length of the longest packet in bytes, 1 to [`MAX_PACKET`](crate::scheduler::MAX_PACKET). If a
    /// longer packet comes, it is used from then on, as in Linux.
    pub max_packet: u32,
}

impl Default for Share {
    fn default() -> Share {
        Share {
            weight: 1,
            max_packet: 1514,
        }
    }
}

impl Entitlement for Share {
    fn amount_mut(&mut self) -> &mut u32 {
        &mut self.weight
    }
}

/// The sum of the weights of all flows.
#[derive(Clone, Copy, Debug, Default)]
struct WeightSum(u64);

impl WeightSum {
    /// Adds the weight of one more flow.
    fn add(&mut self, weight: u32) -> Result<(), ConfigError> {
        parameters::check_weight(weight)?;
        self.0 += u64::from(weight);
        if self.0 > u64::from(MAX_WEIGHT_SUM) {
            return Err(ConfigError::conflict(
                "weight",
                weight,
                format!("at most {MAX_WEIGHT_SUM} together with all other weights"),
                "divide all weights by the same number, or use fewer flows",
            ));
        }
        Ok(())
    }

    /// Returns the sum.
    #[inline]
    fn get(self) -> u32 {
        self.0 as u32
    }

    /// Replaces the weight of one flow.
    fn change(&mut self, from: u32, to: u32) {
        self.0 = self.0 - u64::from(from) + u64::from(to);
    }
}

/// A virtual time that does not wrap: 128 bits, stored as two words in a flow's state. An old time never
/// looks like a new one. The low 64 bits are a key for a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Long {
    high: u64,
    low: u64,
}

impl Long {
    #[inline]
    const fn of(time: u128) -> Long {
        Long {
            high: (time >> 64) as u64,
            low: time as u64,
        }
    }

    #[inline]
    const fn get(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

/// Returns the virtual time of `length` bytes, in units of 1/[`ONE`] byte. `per_byte` is the inverse of the
/// weight with 62 fraction bits.
#[inline]
const fn time_of(length: u32, per_byte: u64) -> u64 {
    ((length as u128 * per_byte as u128) >> (inverse::FRACTION_BITS - ONE.trailing_zeros())) as u64
}

//! Fair queueing by time stamps: each file a [`Scheduler`](crate::scheduler::Scheduler), flat through
//! [`Flows`](crate::scheduler::Flows) and classful through [`Classes`](crate::scheduler::Classes). `wfq` and `pfq` stamp
//! single packets, which a class's inner discipline may drop or reorder: they are flat only.
//!
//! Virtual time counts the service of a flow of weight 1: bytes over weight. Each file says how fine its unit is and how
//! wide its times are; where they wrap they are compared by wrapping difference, and what must lie within half of their range is said.

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

/// Largest weight of a flow.
pub const MAX_WEIGHT: u32 = 1 << 16;

/// Largest sum of the weights of a discipline's flows.
pub const MAX_WEIGHT_SUM: u32 = 1 << 26;

/// Virtual time that one byte takes at weight 1: 30 binary places, as in Linux's `sch_qfq`.
pub const ONE: u64 = 1 << 30;

/// What a flow is entitled to, where the scheduler need not know how long its packets are: its part of the sum of weights.
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

/// What a flow is entitled to, where the scheduler sorts flows by the time that their longest packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// 1 to [`MAX_WEIGHT`].
    pub weight: u32,
    /// Length of the longest packet, bytes, 1 to [`MAX_PACKET`](crate::scheduler::MAX_PACKET). Where a longer one comes it counts
    /// from then on, as in Linux.
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

/// The weights of all flows together.
#[derive(Clone, Copy, Debug, Default)]
struct WeightSum(u64);

impl WeightSum {
    /// Adds the weight of one flow more.
    fn add(&mut self, weight: u32) -> Result<(), ConfigError> {
        parameters::check_weight(weight)?;
        self.0 += u64::from(weight);
        if self.0 > u64::from(MAX_WEIGHT_SUM) {
            return Err(ConfigError::conflict(
                "weight",
                weight,
                format!("at most {MAX_WEIGHT_SUM} together with all other weights"),
                "divide all weights by the same number, or have fewer flows",
            ));
        }
        Ok(())
    }

    /// The sum.
    #[inline]
    fn get(self) -> u32 {
        self.0 as u32
    }

    /// One flow's weight is another.
    fn change(&mut self, from: u32, to: u32) {
        self.0 = self.0 - u64::from(from) + u64::from(to);
    }
}

/// A virtual time that does not wrap: 128 bits, that lie in a flow's state as two words. What was long ago stays so, and
/// the low 64 bits are a key for a heap.
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

/// The virtual time, in units of [`ONE`]-th of a byte, that `length` bytes take at a weight whose inverse with 62 binary
/// places is `per_byte`.
#[inline]
const fn time_of(length: u32, per_byte: u64) -> u64 {
    ((length as u128 * per_byte as u128) >> (inverse::PLACES - ONE.trailing_zeros())) as u64
}

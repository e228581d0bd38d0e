//! Active queue management (AQM) over one queue.

pub mod ared;
pub mod choke;
pub(crate) mod cobalt;
pub mod codel;
pub mod dualpi2;
pub mod gred;
mod limits;
mod periodic;
pub mod pie;
pub mod red;
pub mod rred;
pub mod sfb;
pub mod wred;

/// The range of a positive number of 32 bits.
const POSITIVE: core::ops::RangeInclusive<u64> = 1..=u32::MAX as u64;

//! What schedulers promise, and what they keep.
//!
//! ```text
//!   arrivals ---> gps           fluid: exact virtual time, exact finish of every packet
//!      |
//!      +--------> schedule      a real discipline on a link, recorded
//!                    |
//!                 measures      B-WFI, T-WFI, relative fairness, lag against GPS
//! ```
//!
//! Everything is exact: a measured value above a bound is above it, not within a rounding error of it.

pub mod measures;
mod schedule;

pub use schedule::{Arrival, RecordError, Schedule, Sent, record};

//! What schedulers promise, and what they keep.
//!
//! ```text
//!   arrivals ---> gps           fluid: exact virtual time, exact finish of every packet
//!      |
//!      +--------> schedule      a real discipline on a link, recorded
//!                    |
//!                 measures      B-WFI, T-WFI, relative fairness, lag against GPS
//!                    |
//!   bounds ------> trial         measured against published
//!                    |
//!   traffic <---> adversary      looks for the traffic that a scheduler does worst under
//! ```
//!
//! Everything is exact: a measured value above a bound is above it, not within a rounding error of it.

pub mod adversary;
pub mod bounds;
pub mod candidates;
pub mod growth;
pub mod measures;
mod schedule;
pub mod survey;
pub mod traffic;
pub mod trial;

pub use schedule::{Arrival, RecordError, Schedule, Sent, record};

//! Compares the guarantees of schedulers with their schedules.
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
//!   traffic <---> adversary      searches for the traffic under which a scheduler performs worst
//! ```
//!
//! All results are exact. A measured value above a bound is really above it, not within a rounding error.

pub mod adversary;
pub mod bounds;
pub mod candidates;
pub mod growth;
mod kind;
pub mod measures;
mod schedule;
pub mod survey;
pub mod token_bucket;
pub mod traffic;
pub mod trial;

pub use kind::Kind;
pub use schedule::{Arrival, RecordError, Schedule, Sent, record};

//! Queueing theory for schedulers, and measurements of the real disciplines to compare with it.
//!
//! The crate has two parts.
//!
//! The first part uses floats. [`queueing`] has the single-server queues that the papers compare with.
//! [`sqf`] has the analysis of shortest queue first. [`estimate`] computes means with confidence intervals.
//! [`measured`] runs the disciplines under the traffic that a formula assumes, so that formula and code can
//! be compared. Nothing of this is on the packet path. Logarithms and powers come from `libm`: its results
//! are the same on every machine, to the last digit.
//!
//! The second part uses no floats, because a bound either holds or does not. [`gps`] is the fluid reference.
//! [`guarantees`] compares the published bounds of schedulers with what they do. Both count in
//! [ticks](TickScale) of the link and in fractions.

#![forbid(unsafe_code)]

pub mod estimate;
mod fraction;
pub mod gps;
pub mod guarantees;
pub mod measured;
pub mod queueing;
pub mod sqf;
mod tick_scale;

pub use fraction::{Exact, Fraction};
pub use tick_scale::TickScale;

//! What theory says of schedulers, and runs of the real code beside it.
//!
//! Two halves. [`queueing`] holds the single-server queues that the papers compare with, [`sqf`] the analysis of shortest
//! queue first, [`estimate`] means with confidence intervals; [`measured`] runs disciplines themselves under the traffic
//! that a formula assumes, so that formula and code stand side by side. Floats are at home there: nothing of this is on a
//! packet's path. Logarithms and powers come from `libm`, whose last digit is the same on every machine.
//!
//! The other half has none, for a bound is kept or it is not: [`gps`], the fluid reference, and [`guarantees`], what
//! schedulers promise and what they keep, count in [ticks](Link) of the link and in fractions.

#![forbid(unsafe_code)]

pub mod estimate;
mod fraction;
pub mod gps;
pub mod guarantees;
mod link;
pub mod measured;
pub mod queueing;
pub mod sqf;

pub use fraction::{Exact, Fraction};
pub use link::Link;

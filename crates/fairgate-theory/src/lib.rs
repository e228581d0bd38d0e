//! What theory says of schedulers, and runs of the real code beside it.
//!
//! [`queueing`] holds the single-server queues that the papers compare with, [`sqf`] the analysis of shortest queue first,
//! [`estimate`] means with confidence intervals. [`measured`] runs disciplines themselves under the traffic that a formula
//! assumes, so that formula and code stand side by side.
//!
//! Floats are at home here: nothing of this is on a packet's path. Logarithms and powers come from `libm`, whose last digit
//! is the same on every machine.

#![forbid(unsafe_code)]

pub mod estimate;
pub mod measured;
pub mod queueing;
pub mod sqf;

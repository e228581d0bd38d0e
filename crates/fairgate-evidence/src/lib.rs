//! What disciplines and simulator are measured against: papers, textbooks, kernels, real traffic.
//!
//! ```text
//!   commands      the program `fairgate-lab`
//!   reproduce     the papers' experiments: measured values beside published ones
//!   lab           a scenario of the simulator with real traffic
//!   replay        kernel traces through our disciplines, operation by operation
//!   validation    simulated TCP beside TCP recorded from Linux
//!   bench         what a scheduler costs, in time and in instructions
//!   figures       all benchmarks of one build, into docs/performance.md
//!   tc_testing    the kernel's test cases of tc
//! ```

#![forbid(unsafe_code)]

pub mod bench;
mod commands;
mod figures;
pub mod lab;
pub mod replay;
pub mod reproduce;
mod tc_testing;
pub mod validation;

pub use commands::{answer, main};

//! Disciplines themselves, run under the traffic that a formula assumes.

mod dice;

pub use dice::Dice;

//! Runs real disciplines under the traffic that a formula assumes.

mod dice;
mod sharing;
mod streams;

pub use dice::Dice;
pub use sharing::{Losses, Shared};
pub use streams::{Lengths, Streams, delays};

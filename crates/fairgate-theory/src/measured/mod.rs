//! Runs real disciplines under the traffic that a formula assumes.

mod dice;
mod line;
mod sharing;

pub use dice::Dice;
pub use line::{Lengths, Streams, delays};
pub use sharing::{Losses, Shared};

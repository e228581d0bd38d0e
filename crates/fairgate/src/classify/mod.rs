//! From a packet to a class of a classful discipline.

mod classifier;
mod filter;

pub use classifier::Classifier;
pub use filter::{Filter, Match, Prefix};

//! From a packet to a class of a classful discipline.

mod class_map;
mod classifier;
mod filter;

pub use class_map::ClassMap;
pub use classifier::Classifier;
pub use filter::{Filter, Match, Prefix};

//! What several disciplines are built of.

mod by_length;
mod heap;
pub(crate) mod inverse;
mod round;

pub(crate) use by_length::ByLength;
pub(crate) use heap::Heap;
pub(crate) use round::{Link, Linked, Round};

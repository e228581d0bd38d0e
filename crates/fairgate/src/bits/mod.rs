//! What several disciplines are built of.

mod by_length;
mod round;

pub(crate) use by_length::ByLength;
pub(crate) use round::{Link, Linked, Round};

//! What tests on live networks share. Those of the program include `deadline.rs` by its path.

mod deadline;
mod tests;

pub(crate) use deadline::{live, say, until};

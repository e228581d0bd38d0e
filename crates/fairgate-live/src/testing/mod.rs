//! What tests on live networks share. Those of the program include `deadline.rs` and `attempts.rs` by their
//! paths.

mod attempts;
mod deadline;
mod tests;

pub(crate) use attempts::{Times, measured};
pub(crate) use deadline::{alone, live, say, until, watch_live};

//! Helpers for the tests of live traffic: deadlines, and programs that keep to them.

#[path = "../../../fairgate-live/src/testing/deadline.rs"]
mod deadline;
pub(crate) mod program;

pub(crate) use deadline::{live, say, until};
pub(crate) use program::output;

//! Helpers for the tests of live traffic: deadlines, and programs that keep to them.

// Measurements and other tests use different parts of it.
#[allow(dead_code)]
#[path = "../../../fairgate-live/src/testing/deadline.rs"]
pub(crate) mod deadline;
pub(crate) mod program;

#[allow(unused_imports)]
pub(crate) use deadline::{live, say, until};
pub(crate) use program::output;

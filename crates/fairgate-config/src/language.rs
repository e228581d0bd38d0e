//! What a reader of another language needs, such as tc's, to describe trees of disciplines.
//!
//! The reader translates its text into a [`Draft`], whose every name and value keeps its location in the
//! text. [`check()`] turns the draft into a [`Spec`](crate::Spec) by the same rules as it does for a
//! configuration file. Both add what is wrong to [`Problems`].

pub use crate::error::Problems;
pub use crate::registry::PARENT;
pub use crate::spec::{Draft, FilterDraft, Given, INNER, Written, check};

//! Interface for readers of other languages, such as tc's, that describe trees of disciplines.
//!
//! The reader translates its text into a [`Draft`], in which every name and value keeps its location in the
//! text. [`check()`] turns the draft into a [`Spec`](crate::Spec) by the same rules as for a configuration
//! file. Both add the mistakes they find to [`Problems`].

pub use crate::error::Problems;
pub use crate::registry::PARENT;
pub use crate::spec::{Draft, FilterDraft, Given, INNER, Written, check};

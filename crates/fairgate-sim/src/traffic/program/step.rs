//! A step of a conversation.

use crate::traffic::End;

/// What is written next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The end that writes.
    pub(crate) speaker: End,
    /// The wait before it, ns.
    pub(crate) wait: u64,
    pub(crate) bytes: u64,
}

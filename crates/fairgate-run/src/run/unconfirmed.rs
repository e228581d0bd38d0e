//! A change that is undone unless it is confirmed in time, as `commit confirmed` of Junos.
//!
//! While it waits, nothing else changes the trees, except rates that follow the line: so it can always be
//! undone as a whole.

use std::time::Duration;

use fairgate::Time;
use fairgate_config::Spec;

/// A change that waits for its confirmation.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    /// The trees before it.
    pub(super) before: [Spec; 2],
    /// When it is undone.
    pub(super) deadline: Time,
    /// What was changed, for the audit.
    pub(super) what: String,
}

impl Unconfirmed {
    /// Returns the time that is left to confirm it, or 0.
    pub(super) fn left(&self, now: Time) -> Duration {
        Duration::from_nanos(self.deadline.nanos_since(now))
    }
}

//! A live screen of a running data plane: the program's `fairgate top`.
//!
//! ```text
//!   outline     what a tree of a run is made of, and which of its rates can be changed
//!   figures     what a class did in an interval; sums of classes
//!   history     the last intervals of a class
//!   tree        the classes of a direction with their figures
//!   listing     which of them are shown, in which order
//!   dialog      a rate is changed: chosen, written, confirmed, answered
//!   layout      where the parts of the screen are
//!   model       the state of the screen, and what keys and readings do to it
//!   view        the state as text in cells
//!   reader      threads that ask the run
//!   terminal    modes of the terminal, keys, signals
//! ```
//!
//! Everything above `reader` is pure: no clock, no socket, no terminal. The run itself computes what a class
//! did in an interval ([`Ask::record`](fairgate_run_api::Ask::record)). This module only sums and shows it.

#![forbid(unsafe_code)]

mod dialog;
mod error;
mod figures;
mod history;
mod key;
mod layout;
mod listing;
mod model;
mod outline;
mod reader;
mod terminal;
#[cfg(test)]
pub(crate) mod testing;
mod tree;
mod view;

use std::sync::Arc;
use std::time::Duration;

use fairgate_config::Registry;
use fairgate_run::client::Remote;

pub use dialog::{Answered, Order};
pub use error::TopError;
pub use key::Key;
pub use listing::{Sort, UnknownSort};
pub use model::{Action, Event, Model, Start};
pub use outline::{Outline, Trees};
pub use terminal::is_there as has_terminal;
pub use view::{page, screen};

/// Has a run make a change, and returns what it answers.
pub type Changer = Arc<dyn Fn(&Order) -> Answered + Send + Sync>;

/// What to show.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The run.
    pub run: Remote,
    /// The time between two readings.
    pub interval: Duration,
    /// The disciplines that the trees of the run can have.
    pub registry: Registry,
    /// What the screen shows at first.
    pub start: Start,
}

/// Shows the screen until the user ends it.
///
/// # Errors
/// If there is no terminal, if it fails, or if figures of the run do not add up. The terminal is restored
/// before.
pub fn run(settings: &Settings, change: Changer) -> Result<(), TopError> {
    terminal::run(settings, change)
}

/// Waits for one interval and returns the screen as text, `width` columns wide.
///
/// # Errors
/// If the run does not answer, or if its figures do not add up.
pub fn once(settings: &Settings, width: u16) -> Result<String, TopError> {
    let model = reader::once(settings)?;
    Ok(page(&model, width))
}

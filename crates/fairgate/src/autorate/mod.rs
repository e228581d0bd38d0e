//! Follows a line of changing capacity: the rate of a shaper, from the delay of probes.
//!
//! The capacity of an access line over LTE or a satellite changes every second. A shaper keeps the queue in
//! its own tree, where it is managed, only if its rate stays below the capacity. A fixed rate is either so
//! low that most of the line is unused, or there are times at which the queue is in the modem.
//!
//! [`Delays`] collects what probes say, [`Controller`] sets the rate of one direction from it. Both have
//! neither a clock nor input and output: the same calls give the same rates. The simulator and the live data
//! plane call them, and change the rate at the root of a tree (`autorate::RootRate` in `fairgate-config`).
//!
//! The method is that of cake-autorate (L. Lewis and others, github.com/lynxthecat/cake-autorate), from its
//! documentation and its default settings: delay above a baseline that rises slowly and falls fast; a number
//! of late samples in a window; a decrease that depends on the delay and on the rate that was achieved; a
//! refractory time; an increase under high load; a decay to a base rate under low load. What differs is said
//! in the modules.

mod controller;
mod delays;
mod settings;

pub use controller::{Controller, Phase};
pub use delays::{Delays, Passage, Seen};
pub use settings::{Bounds, PARAMETERS, Settings};

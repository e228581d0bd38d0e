//! Follows a line of changing capacity: the rate of a shaper, from the delay of probes.
//!
//! The capacity of an access line over LTE or a satellite changes every second. A shaper keeps the queue in
//! its own tree, where it is managed, only if its rate stays below the capacity. A fixed rate is either so
//! low that most of the line is unused, or there are times at which the queue is in the modem.
//!
//! [`Delays`] collects what probes say, [`Controller`] sets the rate of one direction from it. Both have
//! neither a clock nor input and output: the same calls give the same rates. The simulator and the live data
//! plane call them. [`RootRate`] says how the rate of a tree of disciplines is changed.
//!
//! The method is that of cake-autorate (L. Lewis and others, github.com/lynxthecat/cake-autorate), from its
//! documentation and its default settings: delay above a baseline that rises slowly and falls fast; a number
//! of late samples in a window; a decrease that depends on the delay and on the rate that was achieved; a
//! refractory time; an increase under high load; a decay to a base rate under low load. What differs is said
//! in the modules.

#![forbid(unsafe_code)]

mod controller;
mod delays;
mod section;
mod settings;
mod tree;

pub use controller::{Controller, Phase};
pub use delays::{Delays, Seen};
pub use section::{BoundsSection, Tuning};
pub use settings::{Bounds, PARAMETERS, Settings};
pub use tree::RootRate;

//! The language of tc: scripts of `tc qdisc add` and `tc class add` lines, read into the same description as a
//! configuration file.
//!
//! ```text
//!   command     a line's words -> "attach this qdisc there" or "add this class", options left as words
//!   script      the lines together: one root, every parent there before its children
//!   translate   each qdisc's options -> the parameters of our discipline, by the table in `kinds`
//!   sharing     the bands of ets, of which tc lets the user leave out a part
//! ```
//!
//! Options have tc's and the kernel's own defaults, which follow the device, not ours. Numbers that tc reads in other
//! units than we do (times in microseconds, sfq's `perturb` in seconds) are translated by the table.
//! What can't be carried over is an error at its place, never left out.

mod command;
mod kinds;
mod script;
mod sharing;
mod translate;

pub use script::{Device, Script};

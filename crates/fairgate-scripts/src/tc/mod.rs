//! The language of tc: scripts of `tc qdisc`, `tc class` and `tc filter` lines, as a shell or `tc -batch` reads them, read into
//! the same description as a configuration file.
//!
//! ```text
//!   command     a line's words -> "attach this qdisc there", "add this class", options left as words
//!   script      the lines one after the other: what there is on each device when all are done
//!   translate   each qdisc's options -> the parameters of our discipline, by the table in `kinds`
//!   filters     u32, fw, flower, basic and matchall -> conditions as a configuration file has them
//!   show        the other way: a description, and what a running tree has counted, in the words of `tc qdisc show`, with the
//!               kinds' looks
//!   amount      values as tc prints them
//!   round_trips what tc makes of those that dualpi2 is told
//!   sharing     the bands of ets, of which tc lets the user leave out a part
//! ```
//!
//! Options have tc's and the kernel's own defaults, which follow the device, not ours. Numbers that tc reads in other
//! units than we do (times in microseconds, sfq's `perturb` in seconds) are translated by the table.
//! What can't be carried over is an error at its place, never left out.

mod amount;
mod command;
mod filters;
mod kinds;
mod round_trips;
mod script;
mod sharing;
mod show;
mod translate;

pub use script::{Device, Script};
pub use show::{Amount, Detail, Row, Shown, State, When, show};

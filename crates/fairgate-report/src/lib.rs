//! Reports on comparisons of disciplines: measurements, tables for the terminal, and one HTML page.
//!
//! [`Meter`] and [`QueueMeter`] count packets while they pass, in bounded memory. A [`Comparison`] is the
//! result. It is the same for a simulated link and a replayed recording, and its fields are the schema of
//! `--json`. [`table`] and [`page`] show it.
//!
//! A [`chart`] is a figure of curves. A [`scaling`] figure shows growth over logarithmic axes. A [`dots`]
//! figure shows values by name. A [`violin`] figure shows the shapes of distributions. A [`sheet`] is a page
//! of text, tables and figures.
//!
//! [`command`] is what the commands of our programs share: input, output, files, progress, exit codes.

#![forbid(unsafe_code)]

pub mod chart;
pub mod command;
mod comparison;
pub mod dots;
mod measure;
pub mod page;
mod plot;
pub mod scaling;
mod series;
pub mod sheet;
pub mod table;
mod units;
pub mod violin;

pub use comparison::{Comparison, Completion, Delay, Discipline, Fact, Group, Input, Measured, Queue};
pub use measure::{Meter, QueueMeter, jain};
pub use series::bin_width;

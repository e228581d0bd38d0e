//! What came out of a comparison of disciplines: measured, tabulated for the terminal, drawn as one page of HTML.
//!
//! [`Meter`] and [`QueueMeter`] count while packets pass, in bounded memory; a [`Comparison`] is the finished result,
//! the same for a simulated line and a replayed capture, and its shape is the schema of `--json`; [`table`] and
//! [`page`] show it.
//!
//! A [`chart`] is a figure of its own, [`scaling`] one of how something grows, [`dots`] one of names and their places, a [`sheet`]
//! a page of text, tables and figures.

#![forbid(unsafe_code)]

pub mod chart;
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

pub use comparison::{Comparison, Delay, Discipline, Fact, Group, Input, Measured, Queue};
pub use measure::{Meter, QueueMeter, jain};
pub use series::bin_width;

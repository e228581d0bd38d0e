//! Measures flows and interfaces while the simulation runs. The monitors also record outside the measurement
//! window, so that no code on a packet's path has to check the time. Recorders are cleared when the window
//! opens, and taken when it closes. A flow's measurements are added to its group's when it is over.

mod cell;
mod connection;
mod flow;
mod group;
mod histogram;
mod interface;
mod observer;
mod recorder;
mod series;

pub(crate) use cell::{CellMonitor, CellWindow};
pub(crate) use connection::{ConnectionMonitor, ConnectionWindow};
pub(crate) use flow::{FlowMonitor, FlowWindow, Lost, Phase, Tally};
pub(crate) use group::{Contribution, GroupMonitor, Shares};
pub(crate) use interface::{InterfaceMonitor, InterfaceWindow};
pub(crate) use observer::Observer;
pub(crate) use recorder::Recorder;
pub(crate) use series::FlowSeries;

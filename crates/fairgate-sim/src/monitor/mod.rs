//! Measures flows and interfaces while the simulation runs. The monitors also record outside the measurement
//! window, so that no code on a packet's path has to check the time. Recorders are cleared when the window
//! opens, and taken when it closes.

mod flow;
mod interface;
mod recorder;

pub(crate) use flow::{FlowMonitor, FlowWindow, Lost, Tally};
pub(crate) use interface::{InterfaceMonitor, InterfaceWindow};
pub(crate) use recorder::Recorder;

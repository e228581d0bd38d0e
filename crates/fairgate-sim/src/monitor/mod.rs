//! What is measured while the simulation runs: by flow, by interface. Outside the window of measurement as well, so
//! that nothing on a packet's path asks for the time of day: recorders are emptied when the window opens and taken away
//! when it closes.

mod flow;
mod interface;
mod recorder;

pub(crate) use flow::{FlowMonitor, FlowWindow, Lost, Tally};
pub(crate) use interface::{InterfaceMonitor, InterfaceWindow};
pub(crate) use recorder::Recorder;

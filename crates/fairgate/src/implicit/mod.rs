//! Implicit service differentiation: what a flow does to the queue decides how it is served, and nobody marks anything.

pub mod admission;
pub mod by_backlog;
mod congestion;
mod cycle;
pub mod hsqf;
mod in_progress;
pub mod lqf;
mod parameters;
pub mod pdrr;
pub mod sqf;
mod tournament;

pub use crate::flow::FlowBy;

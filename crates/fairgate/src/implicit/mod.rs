//! Implicit service differentiation: a flow's backlog or rate decides how it is served. Nothing is marked.

pub mod admission;
pub mod by_backlog;
mod congestion;
mod credits;
mod cycle;
pub mod hsqf;
mod in_progress;
pub mod lqf;
mod parameters;
pub mod pdrr;
pub mod sqf;
mod tournament;

pub use crate::flow::FlowBy;

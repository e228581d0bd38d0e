//! Implicit service differentiation: what a flow does to the queue decides how it is served, and nobody marks anything.

pub mod by_backlog;
pub mod lqf;
pub mod sqf;

pub use crate::flow::FlowBy;

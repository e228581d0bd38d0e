//! Exact measures of schedulers beside theory.

mod guarantees;
mod wfq;

//! Exact measures of schedulers beside theory.

mod guarantees;
mod literal_qfq;
mod wfq;

//! Queues without flows.

pub mod fifo;

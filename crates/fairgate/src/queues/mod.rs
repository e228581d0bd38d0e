//! Queues without flows: fifos, strict priority, shapers and a policer.

pub(crate) mod bands;
pub mod fifo;
pub mod leaky_bucket;
pub mod pfifo_fast;
pub mod policer;
pub mod prio;
pub mod tbf;
pub mod token_bucket;

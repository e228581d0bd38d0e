//! Queues without flows: fifos, strict priority, shapers and a policer.

pub(crate) mod bands;
pub mod cbs;
pub mod etf;
pub mod fifo;
pub mod leaky_bucket;
pub(crate) mod link_parameters;
pub mod netem;
pub mod pfifo_fast;
pub mod police;
pub mod policer;
pub mod prio;
mod profile;
pub mod tbf;
pub mod token_bucket;

//! Queues without flows: fifos, strict priority, shapers, a policer and emulated links.

pub(crate) mod bands;
pub mod busy_link;
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

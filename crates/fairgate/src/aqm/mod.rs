//! Active queue management over one queue.

pub mod codel;

//! Active queue management over one queue.

pub mod ared;
pub mod codel;
pub mod pie;
pub mod red;

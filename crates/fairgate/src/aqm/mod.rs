//! Active queue management over one queue.

pub mod ared;
pub mod choke;
pub(crate) mod cobalt;
pub mod codel;
pub mod dualpi2;
mod periodic;
pub mod pie;
pub mod red;
pub mod rred;
pub mod wred;

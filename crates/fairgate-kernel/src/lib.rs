//! Fairgate inside the Linux kernel: its disciplines as a qdisc.
//!
//! ```text
//!   fairgate-qdisc: text -> checked tree -> Plan -> bytes ~netlink~ bytes -> Plan -> Queue :sch_fairgate
//!   the packets                         skb -> enqueue -> Queue -> dequeue -> skb
//! ```
//!
//! This crate has what both sides need. For the kernel's target it is also the object that is linked into the
//! module: the functions that the C code in `module/` calls are in `abi.rs`. `docs/kernel.md` says how to
//! build and use it.

#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;
#[cfg(feature = "program")]
extern crate std;

#[cfg(target_os = "none")]
mod abi;
mod classes;
#[cfg(feature = "program")]
pub mod client;
#[cfg(feature = "program")]
pub mod convert;
#[cfg(all(test, feature = "program"))]
mod departures;
mod filters;
mod form;
mod nodes;
mod prepared;
mod queue;
mod sojourns;
#[cfg(all(test, feature = "program"))]
mod tests;
mod tree;

pub use classes::Parents;
pub use form::{Form, Reader, Refused};
pub use nodes::{ClassRecord, NodeRecord, Reading, Record, records};
pub use prepared::Prepared;
pub use queue::{Arriving, Queue};
pub use sojourns::{BUCKETS, middle};
pub use tree::{DEFAULT_SLOTS, MOST_SLOTS, Plan, Tree};

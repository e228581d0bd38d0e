//! Packet scheduling and queue management as a library: packets, disciplines, classification.
//!
//! No I/O, no clock, no threads, no configuration files: time and randomness are arguments, packets are descriptors in
//! a [`Pool`], and the same code runs in the simulator, on live traffic, in other people's programs and from Python.
//!
//! The path of a packet: the driver puts a [`Packet`] with a cookie of its own into the pool, hands its [`PacketId`]
//! to the root [`Discipline`], which classifies it down the tree; later the driver asks the root for the next packet,
//! sends it by its cookie and releases the slot. What was dropped comes back through [`Pool::take_returned`], with a
//! [`DropReason`], after the very call that dropped it.
//!
//! The crate is `no_std` with `alloc`. Only the feature `prefetch`, which is on by default, needs the standard
//! library.
//!
//! A folder for each family, a file for each discipline: [`queues`], [`aqm`], [`rounds`], [`timestamps`], [`implicit`],
//! [`sharing`].

#![forbid(unsafe_code)]
// Memory from an allocator is all that is needed. Tests have the standard library.
#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;

pub mod aqm;
pub mod balance;
mod bits;
pub mod classify;
pub mod discipline;
mod error;
pub mod flow;
pub mod implicit;
mod packet;
mod pool;
mod probability;
pub mod queues;
mod rate;
pub mod registry;
pub mod rounds;
pub mod scheduler;
mod service_curve;
pub mod sharing;
mod stats;
#[cfg(test)]
mod testing;
mod time;
pub mod timestamps;

pub use discipline::{Algorithm, ByFlow, Class, ClassState, Discipline, Node, Variable, Verdict};
pub use error::{ConfigError, ParameterPath, Refusal};
pub use flow::{FlowHash, FlowHasher, FlowKey};
pub use packet::{ClassId, DropReason, Ecn, Packet, SlotFlags, SlotState};
pub use pool::{PacketId, PacketQueue, Pool, PoolFull};
pub use probability::Probability;
pub use rate::{Rate, RateMeter};
pub use stats::{Count, Statistics, jain_index};
pub use time::Time;

/// Keeps the README's example compiling.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

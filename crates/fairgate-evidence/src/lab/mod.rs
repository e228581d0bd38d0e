//! Runs a scenario of the simulator with real traffic, and measures what the simulator measures.
//!
//! ```text
//!   node of the scenario       a network namespace with the kernel's own TCP/IP
//!   link                       two veth pairs, and between them a live bridge with the link's rate, queue
//!                              and delay:
//!                                node a --veth-- [ left  Bridge  right ] --veth-- node b
//!   TCP flow                   a connection of the kernel, with the congestion control of the scenario
//!   UDP, video, voice, ping    datagrams at the times and of the lengths that the simulator would send
//! ```
//!
//! The result is a [`Results`](fairgate_sim::Results), like that of a simulation. What a real network cannot
//! tell is 0 there: the delays of TCP segments, and losses by reason.
//!
//! A scenario is checked before anything is built ([`Layout`]). One that cannot be expressed with namespaces
//! is an error that names the part.

mod bridges;
mod connections;
mod copies;
mod datagrams;
mod error;
mod layout;
mod machine;
mod network;
mod results;
mod run;
mod samples;
mod sockets;

pub use error::{LabError, NotLive};
pub use layout::{KernelQueue, Layout};
pub use machine::Machine;
pub use run::{Lab, Live};

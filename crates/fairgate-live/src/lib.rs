//! Runs a tree of disciplines on live traffic: a bump in the wire between two Linux interfaces.
//!
//! ```text
//!              left                       Bridge                        right
//!   wire -> [ ring ] -> finish offloads -> tree of disciplines -> line -> [ socket ] -> wire
//!   wire <- [ socket ] <- line <- tree of disciplines <- finish offloads <- [ ring ] <- wire
//! ```
//!
//! Neither side knows of the bump: frames keep their addresses, their VLAN tags and their order within a flow. Both
//! interfaces belong to the bridge while it runs: the kernel's own stack neither sees what arrives there nor sends by
//! them. All of this is put back when it ends, however it ends.
//!
//! * [`Plan`] reads the `[run]` section of a configuration file.
//! * [`Bridge`] opens both ends and forwards, one thread and one event loop.
//! * [`status`] is what it tells of itself, over a unix socket.
//! * [`testbed`] builds two hosts and a router as network namespaces, to send real traffic through a bridge.
//!
//! Unsafe code is in the private module `sys` only: memory shared with the kernel, and system calls.
//!
//! Why AF_PACKET and not AF_XDP: it works on every interface and MTU without a program in the kernel, and a shaper for
//! access lines needs low latency (34-60 us through the bridge) more than the last half million packets per second.

#![deny(unsafe_code)]

mod attach;
mod bridge;
mod checksum;
mod clock;
mod config;
mod direction;
mod error;
mod fitness;
mod frames;
mod line;
mod offload;
mod pace;
mod port;
mod rate;
pub mod status;
mod sys;
pub mod testbed;
#[cfg(test)]
mod testing;
mod vlan;

pub use bridge::{Bridge, Notice, Stopper, Wake};
pub use config::{End, Isolate, Offloads, Plan};
pub use error::{LiveError, ReloadError};

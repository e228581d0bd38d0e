//! Runs a tree of disciplines on live traffic, as a transparent bridge between two Linux interfaces, or on
//! one interface that the host itself uses.
//!
//! ```text
//!              left                           Bridge                            right
//!   link -> [ ring ] -> finish offloads -> tree of disciplines -> delay line -> [ socket ] -> link
//!   link <- [ socket ] <- delay line <- tree of disciplines <- finish offloads <- [ ring ] <- link
//! ```
//!
//! The hosts on both sides do not notice the bridge: frames keep their addresses, their VLAN tags and their
//! order within a flow. While the bridge runs, it owns both interfaces. The kernel's own network stack
//! neither receives from them nor sends to them. A run on one interface has the host's own stack as its other
//! end. All changes to the interfaces are undone when the bridge ends, even if it is killed.
//!
//! * [`Plan`] reads the `[run]` section of a configuration file.
//! * [`Bridge`] opens both interfaces and forwards frames with one thread and one event loop. [`Opened`]
//!   begins the stages by which a run gets there with as few privileges as possible.
//! * A [`Plane`] is what forwards packets, for those who ask and change a run. They are in `fairgate-run`.
//! * [`DryRun`] forwards frames of captures the same way, in the captures' time.
//! * [`testbed`] builds two hosts and a router from network namespaces, to send real traffic through a
//!   bridge.
//!
//! All unsafe code is in the private module `sys`: memory shared with the kernel, and system calls.
//!
//! Frames come from packet sockets (AF_PACKET), which work on every interface and MTU and keep its offloads.
//! AF_XDP can be chosen instead ([`BackendKind`]).

#![deny(unsafe_code)]

mod attach;
mod autorate;
mod backend;
mod bridge;
mod bypass;
mod checksum;
pub mod clock;
mod config;
mod delay_line;
mod direction;
mod dry_run;
mod end;
mod error;
mod ethernet;
mod exchange;
mod fanout;
mod fitness;
pub mod folders;
mod gather;
mod kernel;
mod links;
mod nat;
mod notice;
mod offload;
mod outgoing;
mod pace;
mod packets;
mod plane;
mod port;
mod privileges;
mod pulse;
mod randomness;
mod rate;
pub mod readings;
mod received;
mod sandbox;
mod signals;
mod stages;
pub mod status;
mod sys;
mod tally;
pub mod testbed;
#[cfg(test)]
mod testing;
mod vlan;
mod workers;

pub use autorate::{AutorateStop, Follower, RateRefused, SetRate};
pub use backend::{BackendKind, Choice, UnknownBackend};
pub use bridge::{Bridge, Changer, Stopper};
pub use config::{
    Address, Autorate, Divide, End, Endpoint, EndpointError, Endpoints, Isolate, Offer, Offloads, PacketLog,
    Plan, RateSource,
};
pub use dry_run::{Adapted, CapturedPacket, Captures, DryRun, DryRunError};
pub use error::{LiveError, ReloadError};
pub use fitness::too_small_at;
pub use kernel::{attach_trees, detach_trees};
pub use notice::Notice;
pub use plane::{Changed, Kind, Plane};
pub use privileges::{LaterFiles, Privileges};
pub use pulse::{Beat, Pulse};
pub use sandbox::Confined;
pub use signals::Wake;
pub use stages::{ConfinedRun, Opened, Prioritised, Security, Serving};

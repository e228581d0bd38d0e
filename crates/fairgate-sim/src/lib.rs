//! A discrete-event network simulator that runs the same disciplines as the live data plane.
//!
//! Time is counted in whole nanoseconds, events are totally ordered, and all chance comes from the scenario's seed:
//! the same [`Scenario`] gives the same [`Results`] to the last digit.
//!
//! ```text
//!   scenario    what is to be simulated           results    what was found out
//!        \                                        /
//!         simulation   one event after the other
//!        /        |            |             \
//!   traffic    network      monitor        events     the queue of future events
//!   sources    packets,     what is        random     seeds and distributions
//!   and TCP    queues,      measured       tcp        the protocol engine, without I/O
//!              links
//! ```

#![forbid(unsafe_code)]

mod events;
mod monitor;
mod network;
mod random;
pub mod results;
pub mod scenario;
mod simulation;
pub mod tcp;
mod traffic;

pub use network::TooManyPackets;
pub use random::{Distribution, derive_seed};
pub use results::Results;
pub use scenario::{
    Application, Culprit, Flow, Link, NodeId, Pattern, Queue, Scenario, ScenarioError, Tcp, Traffic, Udp,
};
pub use simulation::{Error, Simulation};

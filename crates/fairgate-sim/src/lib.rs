//! A discrete-event network simulator that runs the same disciplines as the live data plane.
//!
//! Time is counted in whole nanoseconds, events are totally ordered, and all random numbers come from the
//! scenario's seed. The same [`Scenario`] therefore gives the same [`Results`] to the last digit.
//!
//! ```text
//!   scenario    what to simulate                  results    what was measured
//!        \                                        /
//!         simulation   handles one event after the other
//!        /        |            |             \
//!   traffic    network      monitor        events     the queue of future events
//!   sources    packets,     counts and     random     seeds and distributions
//!   and TCP    queues,      records        tcp        the protocol engine, without I/O
//!              links        wifi       the shared medium of a cell, without packets or queues
//! ```

#![forbid(unsafe_code)]

mod batch;
mod classes;
mod events;
mod monitor;
mod network;
mod prefetch;
mod random;
pub mod results;
pub mod scenario;
mod sections;
mod simulation;
pub mod sweep;
pub mod tcp;
mod traffic;
mod wifi;

pub use batch::Batch;
pub use network::TooManyPackets;
pub use random::{Distribution, Empirical, derive_seed};
pub use results::Results;
pub use scenario::{
    Access, Adaptive, Application, Arrivals, Autorate, Burst, Capture, Cell, Flow, Frames, Jitter, LineRate,
    Link, Loss, NodeId, Observation, Pattern, Picture, Ping, Positions, Queue, Requests, Scenario,
    ScenarioError, ScenarioPart, Schedule, Tcp, Trace, Traffic, Udp, Video, Voice, Waypoint, Web,
};
pub use sections::SECTIONS;
pub use simulation::{Draws, Emissions, Error, Simulation, TooManyFlows};
pub use traffic::{RecordedPacket, RecordedTurn};
pub use wifi::Standard;

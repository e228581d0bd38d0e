//! The status of a running bridge: what is read, the document made of it, the server and the client.

mod audit;
mod autorate;
mod client;
mod control;
mod delays;
mod desk;
mod document;
mod estimators;
mod fetch_error;
mod inside;
mod listening;
mod path;
mod place;
pub mod protocol;
mod queue_names;
mod reading;
mod recording;
mod reservations;
mod server;
mod subscriber_names;
mod workers;

pub use crate::packets::{FlowOrder, FlowStatus, FlowsStatus, LanStatus, RoundTripStatus};
pub use audit::{Audit, AuditEntry};
pub(crate) use autorate::Board;
pub use autorate::{AutorateDirection, AutorateStatus};
pub use client::{
    Recordings, ask_change, ask_change_of, ask_reload, ask_reserve, fetch, fetch_flows, fetch_packets,
    fetch_trees, fetch_used, record,
};
pub(crate) use control::Control;
pub use control::{Owner, changed_sides, mistakes_of};
pub(crate) use delays::DelayTap;
pub use desk::{NoPackets, Recorder};
pub use document::{
    ChangesStatus, ClassRateStatus, ClassStatus, CountStatus, Detail, DirectionStatus, Losses, NatStatus,
    NodeStatus, PassedByStatus, ProcessorStatus, QUEUE, RateStatus, Sojourn, Status, ValueStatus,
};
pub(crate) use estimators::Estimators;
pub use fetch_error::FetchError;
pub use inside::{Inside, RunningTree, RunningTrees};
pub use listening::Listening;
pub(crate) use place::lock_folders;
pub use place::{default_socket, running};
pub(crate) use reading::{DirectionReading, RunReading, STEP, TreeReading};
pub use server::who_is;
pub(crate) use server::{Server, Taps};
pub use subscriber_names::{SubscriberName, SubscriberNames};
pub use workers::SHARDED;
pub(crate) use workers::{Sent, WorkerReading, WorkersReading};

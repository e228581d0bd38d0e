//! The status of a running bridge: what is read, the document made of it, the server and the client.

mod audit;
mod autorate;
mod control;
mod delays;
mod document;
mod estimators;
mod path;
pub mod protocol;
mod queue_names;
mod reading;
mod recording;
mod reservations;
mod server;
mod workers;

pub use crate::packets::{FlowOrder, FlowStatus, FlowsStatus, RoundTripStatus};
pub use audit::{Audit, AuditEntry};
pub(crate) use autorate::Board;
pub use autorate::{AutorateDirection, AutorateStatus};
pub(crate) use control::Control;
pub(crate) use delays::DelayTap;
pub use document::{
    ChangesStatus, ClassRateStatus, ClassStatus, CountStatus, Detail, DirectionStatus, Losses, NodeStatus,
    ProcessorStatus, QUEUE, RateStatus, Sojourn, Status, ValueStatus,
};
pub(crate) use estimators::Estimators;
pub(crate) use reading::{DirectionReading, RunReading, STEP, TreeReading};
pub use server::{
    FetchError, Inside, Listening, NoPackets, Recordings, ask_change, ask_change_of, ask_reserve,
    default_socket, fetch, fetch_flows, fetch_packets, fetch_trees, fetch_used, record, running, who_is,
};
pub(crate) use server::{Server, Taps};
pub use workers::SHARDED;
pub(crate) use workers::{Sent, WorkerReading, WorkersReading};

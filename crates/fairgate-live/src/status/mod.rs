//! The status of a running bridge: what is read, the document made of it, the server and the client.

mod audit;
mod autorate;
mod control;
mod delays;
mod document;
mod estimators;
pub mod protocol;
mod reading;
mod recording;
mod reservations;
mod server;
mod workers;

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
pub(crate) use server::Server;
pub use server::{
    FetchError, Inside, Listening, Recordings, ask_change, ask_change_of, ask_reserve, default_socket, fetch,
    fetch_trees, fetch_used, record, running, who_is,
};
pub use workers::SHARDED;
pub(crate) use workers::{WorkerReading, WorkersReading};

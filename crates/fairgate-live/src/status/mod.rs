//! The status of a running bridge: what is read, the document made of it, the server and the client.

mod control;
mod delays;
mod document;
pub mod protocol;
mod reading;
mod recording;
mod reservations;
mod server;
mod workers;

pub(crate) use control::Control;
pub(crate) use delays::DelayTap;
pub use document::{
    ChangesStatus, CountStatus, DirectionStatus, Losses, NodeStatus, ProcessorStatus, QUEUE, Sojourn, Status,
    ValueStatus,
};
pub(crate) use reading::{DirectionReading, RunReading, STEP, TreeReading};
pub(crate) use server::Server;
pub use server::{
    FetchError, Recordings, ask_change, ask_reserve, default_socket, fetch, fetch_used, record, running,
};
pub(crate) use workers::{WorkerReading, WorkersReading};

//! The status of a running bridge: what is read, the document made of it, the server and the client.

mod document;
mod reading;
mod server;

pub use document::{
    ChangesStatus, CountStatus, DirectionStatus, Losses, NodeStatus, ProcessorStatus, QUEUE, Sojourn, Status,
    ValueStatus,
};
pub(crate) use reading::{DirectionReading, RunReading, STEP};
pub(crate) use server::Server;
pub use server::{FetchError, default_socket, fetch, running};

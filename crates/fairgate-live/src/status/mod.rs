//! The status of a running bridge: what is read, the document made of it, the server and the client.

mod control;
mod document;
pub mod protocol;
mod reading;
mod server;

pub(crate) use control::Control;
pub use document::{
    ChangesStatus, CountStatus, DirectionStatus, Losses, NodeStatus, ProcessorStatus, QUEUE, Sojourn, Status,
    ValueStatus,
};
pub(crate) use reading::{DirectionReading, RunReading, STEP};
pub(crate) use server::Server;
pub use server::{FetchError, ask_change, default_socket, fetch, running};

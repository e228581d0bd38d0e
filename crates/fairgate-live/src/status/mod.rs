//! The status of a running bridge: the document, the server and the client.

mod document;
mod server;

pub use document::{
    CountStatus, DirectionStatus, Losses, NodeStatus, ProcessorStatus, QUEUE, Sojourn, Status, ValueStatus,
};
pub(crate) use server::Server;
pub use server::{FetchError, default_socket, fetch, running};

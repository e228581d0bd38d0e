//! What a running bridge tells of itself: the document, who serves it, who fetches it.

mod document;
mod server;

pub use document::{
    CountStatus, DirectionStatus, Losses, NodeStatus, ProcessorStatus, QUEUE, Sojourn, Status, ValueStatus,
};
pub(crate) use server::Server;
pub use server::{FetchError, default_socket, fetch, running};

//! The server: sockets that are listened at, who may ask there, and the routes.

mod answer;
pub(crate) mod api;
mod body;
mod door;
mod error;
pub(crate) mod guard;
mod outlines;
pub mod page;
mod places;
mod precondition;
mod problem;
mod query;
mod server;
pub(crate) mod shared;
pub(crate) mod streams;
mod tls;
mod tokens;

pub use api::openapi;
pub use door::Doors;
pub use error::ControlError;
pub use server::ServerHandle;

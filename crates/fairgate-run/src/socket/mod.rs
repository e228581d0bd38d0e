//! The status socket of a run: who answers there, and who asks.

mod client;
mod fetch_error;
mod listening;
mod place;
mod server;
mod wire;

pub use client::{Recordings, RunSocket, ask_change, fetch};
pub use fetch_error::FetchError;
pub(crate) use listening::Listening;
pub use place::{default_socket, running};
pub use server::StatusServer;
pub(crate) use server::who_is;

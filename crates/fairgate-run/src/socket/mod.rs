//! The unix sockets of runs: how one is opened, where they are, and whose process may answer there.

mod listening;
mod path;
mod place;

pub(crate) use listening::Listening;
pub use path::LongPath;
pub(crate) use path::check_length;
pub(crate) use place::is_trusted;
pub use place::{default_socket, running};

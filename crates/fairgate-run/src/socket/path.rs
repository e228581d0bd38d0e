//! How long the path of a socket may be.

use std::path::Path;

use thiserror::Error;

/// The longest path of a socket, bytes: `sun_path` of unix(7) without the terminating zero.
const LONGEST: usize = 107;

/// The path has so many bytes: too many for a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the path of the socket has {0} bytes, but may have at most {LONGEST} bytes")]
pub struct LongPath(
    /// Its length.
    pub usize,
);

/// Checks that a socket can have this path.
pub(crate) fn check_length(path: &Path) -> Result<(), LongPath> {
    match path.as_os_str().len() {
        length if length > LONGEST => Err(LongPath(length)),
        _ => Ok(()),
    }
}

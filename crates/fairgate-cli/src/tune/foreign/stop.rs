//! Why a server of something else does not go on.

use std::io;

#[derive(Debug)]
pub(super) enum Stop {
    /// It measures for somebody else.
    Busy,
    /// It has an error, or was ended.
    Refused(String),
    /// It is no such server, or none of a known version.
    Stranger,
    /// The connection broke.
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Broken(error)
    }
}

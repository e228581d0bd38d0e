//! Why a client gets no answer.

use std::io;

use fairgate_live::folders::FolderError;
use fairgate_run_api::{Refused, Unexpected};
use thiserror::Error;

/// The longest path of a socket, bytes: `sun_path` of unix(7) without the terminating zero.
pub(crate) const LONGEST_PATH: usize = 107;

/// Why a status can't be fetched.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Other users can write to the folder of the sockets, or own it.
    #[error(transparent)]
    Folder(FolderError),
    /// Another user answers.
    #[error("the process that answers belongs to user {0}, and not to you or root")]
    Stranger(u32),
    /// The process accepts the connection but does not answer.
    #[error("process {process} does not answer{}", if *.stopped { ": it is stopped" } else { "" })]
    Silent {
        /// The process id.
        process: i32,
        /// Whether a signal has stopped the process.
        stopped: bool,
    },
    /// The path is too long for a socket.
    #[error("the path of the socket has {0} bytes, but may have at most {LONGEST_PATH} bytes")]
    LongPath(usize),
    /// The run refuses.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The answer is to another question.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
    /// No process answers, or the answer is not a status.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<FolderError> for FetchError {
    fn from(error: FolderError) -> FetchError {
        match error {
            FolderError::Io(error) => FetchError::Io(error),
            error => FetchError::Folder(error),
        }
    }
}

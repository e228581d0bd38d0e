//! Why the API can't be offered.

use std::io;
use std::path::PathBuf;

use fairgate_live::{EndpointError, LiveError};
use miette::Diagnostic;
use thiserror::Error;

/// Why the API or the metrics can't be offered.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ControlError {
    /// An address has not what it needs, or what it can't use.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Endpoint(#[from] EndpointError),
    /// A file can't be read.
    #[error("{path} can't be read", path = .path.display())]
    #[diagnostic(help("name a file that this user may read"))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others may read a secret, or write it.
    #[error("{path} holds a secret, but {why}", path = .path.display())]
    #[diagnostic(help(
        "`chmod 600 {path}` and `chown` it to root or to the run's user",
        path = .path.display()
    ))]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Who may.
        why: &'static str,
    },
    /// A file with tokens has a mistake.
    #[error("{path}:{line}: {message}", path = .path.display())]
    #[diagnostic(help(
        "write a name and a token in each line: `echo \"alice $(openssl rand -hex 32)\" >> {path}`",
        path = .path.display()
    ))]
    Tokens {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// Certificate and key don't serve TLS.
    #[error("{path}: {message}", path = .path.display())]
    #[diagnostic(help("name a certificate with its chain and its private key, both in PEM"))]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// There is no group of this name.
    #[error("there is no group `{0}`")]
    #[diagnostic(help("`getent group` lists the groups"))]
    NoGroup(String),
    /// The unix socket can't be created.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Socket(#[from] LiveError),
    /// An address can't be listened at.
    #[error("listening at {address} failed")]
    #[diagnostic(help("choose an address of this machine and a port that no other program uses"))]
    Address {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The thread that answers can't be started.
    #[error("starting the thread of the API failed")]
    #[diagnostic(help("the system refused"))]
    Thread(#[source] io::Error),
}

impl ControlError {
    /// Returns whether a file or a name is wrong, and not the machine.
    pub fn is_bad_input(&self) -> bool {
        match self {
            ControlError::Endpoint(_)
            | ControlError::Exposed { .. }
            | ControlError::Tokens { .. }
            | ControlError::Certificate { .. }
            | ControlError::NoGroup(_) => true,
            ControlError::Unreadable { .. }
            | ControlError::Socket(_)
            | ControlError::Address { .. }
            | ControlError::Thread(_) => false,
        }
    }
}

//! Why a run gives no answer.

use std::io;
use std::path::PathBuf;

use fairgate_run_api::{Mistake, Refused, Unexpected};
use miette::Diagnostic;
use thiserror::Error;

use crate::socket::LongPath;

/// What to do if a status socket gives no answer.
const AT_SOCKET: &str = "check that the run still exists; its process must be yours or root's";

/// Why a run gives no answer, or refuses.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ClientError {
    /// There is nobody at the status socket.
    #[error(transparent)]
    #[diagnostic(help("{AT_SOCKET}"))]
    Socket(io::Error),
    /// Another user answers there.
    #[error("the process that answers belongs to user {0}, and not to you or root")]
    #[diagnostic(help("{AT_SOCKET}"))]
    Stranger(u32),
    /// No socket has such a path.
    #[error(transparent)]
    #[diagnostic(help("{AT_SOCKET}"))]
    LongPath(#[from] LongPath),
    /// A process of this machine accepts the connection, but its answer takes too long.
    #[error("process {process} does not answer{}", if *.is_stopped { ": it is stopped" } else { "" })]
    #[diagnostic(help("{AT_SOCKET}"))]
    SilentProcess {
        /// The process id.
        process: i32,
        /// Whether a signal has stopped the process.
        is_stopped: bool,
    },
    /// There is nobody at the address of the API.
    #[error("nobody can be reached")]
    #[diagnostic(help("check the address, and that the run has an API there (`api` in [run])"))]
    Unreachable(#[source] io::Error),
    /// The host is not the one that it should be, or speaks no TLS.
    #[error("no secure connection")]
    #[diagnostic(help(
        "name the certificate of the run, or of its authority, with --ca FILE, and the host by the name in it"
    ))]
    Insecure(#[source] io::Error),
    /// The connection has ended before the answer was whole.
    #[error("the connection has ended before the answer was whole")]
    #[diagnostic(help("check that the run still exists, and ask again"))]
    Cut(#[source] hyper::Error),
    /// The answer of another machine takes too long.
    #[error("there is no answer")]
    #[diagnostic(help("is the process of the run stopped? Is the line very slow?"))]
    Silent,
    /// The API refuses the request as a whole.
    #[error("{title}: {detail}")]
    #[diagnostic(help("{}", remedy(kind)))]
    Problem {
        /// `urn:fairgate:problem:` and a name: see docs/api.md.
        kind: String,
        /// What this type means.
        title: String,
        /// What is wrong, and what to do.
        detail: String,
    },
    /// The run refuses what it was asked. Nothing was changed.
    #[error("the run refuses it: {}", messages(.0))]
    Refused(
        /// Why, at least one.
        Vec<Mistake>,
    ),
    /// The trees have another revision. Nothing was changed.
    #[error("nothing was changed: the trees have revision {revision} by now")]
    #[diagnostic(help("look at them again, and repeat the change if it still makes sense"))]
    Stale {
        /// Their revision.
        revision: u64,
    },
    /// The answer is not one of Fairgate's API.
    #[error("the answer is not that of a run's API: {0}")]
    #[diagnostic(help("does another program listen there, or a run of another version?"))]
    Unexpected(
        /// What is strange.
        String,
    ),
    /// A file can't be read.
    #[error("{path} can't be read", path = .path.display())]
    #[diagnostic(help("name a file that this user may read"))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others may read the token.
    #[error("{path} holds a secret that others may read or write", path = .path.display())]
    #[diagnostic(help("`chmod 600 {path}`", path = .path.display()))]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// A file has no token.
    #[error("{path}: {why}", path = .path.display())]
    #[diagnostic(help("write the token into it, alone or as `NAME TOKEN`, in one line"))]
    Token {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: &'static str,
    },
    /// A file has no certificates.
    #[error("{path}: {why}", path = .path.display())]
    #[diagnostic(help("name a file with certificates in PEM"))]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The system trusts nobody.
    #[error("this system has no certificates of authorities")]
    #[diagnostic(help("name the certificate of the run, or of its authority, with --ca FILE"))]
    NoAuthorities,
    /// The system refuses what a connection needs.
    #[error("this process has no room for a connection")]
    #[diagnostic(help("raise the limit of open files: `ulimit -n`, `LimitNOFILE=` in a unit of systemd"))]
    NoRoom(#[source] io::Error),
}

fn messages(mistakes: &[Mistake]) -> String {
    let messages: Vec<&str> = mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
    messages.join("; ")
}

fn remedy(kind: &str) -> &'static str {
    match name_of(kind) {
        "unauthorized" => "name the file with your token: --token-file FILE",
        "forbidden" => "ask as root or as the run's user, or join the group of `api_group`",
        "busy" | "silent" => "try again",
        "not-found" => "does a run of an older version answer?",
        _ => "docs/api.md lists what the API refuses, and why",
    }
}

impl ClientError {
    /// Returns whether what was asked for is wrong, and not the machine or the way to the run.
    pub fn is_bad_input(&self) -> bool {
        match self {
            ClientError::Refused(_)
            | ClientError::Stale { .. }
            | ClientError::Exposed { .. }
            | ClientError::Token { .. }
            | ClientError::Authority { .. } => true,
            ClientError::Problem { kind, .. } => {
                ["malformed", "refused", "not-found", "stale", "too-large"].contains(&name_of(kind))
            }
            _ => false,
        }
    }
}

fn name_of(kind: &str) -> &str {
    kind.rsplit(':').next().unwrap_or(kind)
}

impl From<Refused> for ClientError {
    fn from(refused: Refused) -> ClientError {
        match refused {
            Refused::Stale { revision } => ClientError::Stale { revision },
            Refused::Mistakes(mistakes) => ClientError::Refused(mistakes),
            Refused::Missing(mistake) => ClientError::Refused(vec![mistake]),
            refused => ClientError::Unexpected(refused.to_string()),
        }
    }
}

impl From<Unexpected> for ClientError {
    fn from(unexpected: Unexpected) -> ClientError {
        ClientError::Unexpected(unexpected.to_string())
    }
}

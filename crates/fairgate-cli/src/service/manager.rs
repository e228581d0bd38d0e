//! The socket of a service manager.

use std::env::{self, VarError};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process;
use std::time::Duration;

use thiserror::Error;

/// How long to wait for room in the manager's socket.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection to the service manager that started this process.
#[derive(Debug)]
pub(crate) struct Manager {
    socket: UnixDatagram,
    watchdog: Option<Duration>,
}

/// Why the manager can't be told something, though the environment names one.
#[derive(Debug, Error)]
pub(crate) enum Unreachable {
    #[error("the service manager's socket NOTIFY_SOCKET={address:?} can't be used: {source}")]
    Socket { address: OsString, source: io::Error },
    #[error("the service manager's WATCHDOG_USEC={0:?} is not a number of microseconds")]
    Watchdog(OsString),
}

impl Manager {
    /// Connects to the manager that the environment names: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` with
    /// `WATCHDOG_PID` if it watches this process (sd_notify(3), sd_watchdog_enabled(3)). Also returns what
    /// the manager will miss, and why.
    pub(crate) fn of_environment() -> (Option<Manager>, Option<Unreachable>) {
        let Some(address) = env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty()) else {
            return (None, None);
        };
        let socket = match connect(address.as_bytes()) {
            Ok(socket) => socket,
            Err(source) => return (None, Some(Unreachable::Socket { address, source })),
        };
        let (watchdog, problem) = match watchdog() {
            Ok(watchdog) => (watchdog, None),
            Err(problem) => (None, Some(problem)),
        };
        (Some(Manager { socket, watchdog }), problem)
    }

    /// Returns the longest time without a sign of life, if the manager wants any.
    pub(crate) fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// Tells the manager these assignments, one a line. A manager that does not listen any more, or has no
    /// room for a second, misses them: it has ways of its own to deal with that, and the run goes on.
    pub(crate) fn tell(&self, words: &str) {
        let _ = self.socket.send(words.as_bytes());
    }
}

/// Connects to a unix socket by its path, or by its abstract name behind `@`.
fn connect(address: &[u8]) -> io::Result<UnixDatagram> {
    let address = match address {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(OsStr::from_bytes(address))?,
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "it is neither a path nor an abstract name behind `@`",
            ));
        }
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Returns the longest time without a sign of life that the manager accepts, if it watches this process.
fn watchdog() -> Result<Option<Duration>, Unreachable> {
    let is_for_another = env::var("WATCHDOG_PID").is_ok_and(|number| number != process::id().to_string());
    match env::var("WATCHDOG_USEC") {
        _ if is_for_another => Ok(None),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(text)) => Err(Unreachable::Watchdog(text)),
        Ok(text) => match text.parse() {
            Ok(0) => Ok(None),
            Ok(micros) => Ok(Some(Duration::from_micros(micros))),
            Err(_) => Err(Unreachable::Watchdog(text.into())),
        },
    }
}

//! Allows only one bridge per interface. Two bridges would forward every frame twice.
//!
//! The lock is an abstract unix socket named after the interface's index. Like the index, it belongs to the
//! network namespace. It needs no writable folder, and it disappears with its process, even if the process is
//! killed.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket, sockopt,
};

use crate::error::LiveError;
use crate::sys::interface::Interface;

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _socket: OwnedFd,
}

impl Lock {
    /// Locks an interface.
    ///
    /// # Errors
    /// Fails if another process holds the lock.
    pub(crate) fn take(interface: &Interface) -> Result<Lock, LiveError> {
        let system = || LiveError::system(format!("locking `{}`", interface.name));
        let name = format!("fairgate/interface/{}", interface.index);
        let address = UnixAddr::new_abstract(name.as_bytes()).map_err(system())?;
        let socket = unix_socket().map_err(system())?;
        match bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &address) {
            Ok(()) => {}
            Err(Errno::EADDRINUSE) => {
                return Err(LiveError::InterfaceInUse {
                    interface: interface.name.clone(),
                    process: holder(&address)
                        .map_or("another process".to_owned(), |id| format!("process {id}")),
                });
            }
            Err(errno) => return Err(system()(errno)),
        }
        // A process that finds the lock taken connects to this socket to learn our process id.
        listen(&socket, Backlog::new(1).expect("one is a backlog")).map_err(system())?;
        Ok(Lock { _socket: socket })
    }
}

/// Returns the process that listens at `address`, or `None` if its backlog is full.
fn holder(address: &UnixAddr) -> Option<i32> {
    let socket = unix_socket().ok()?;
    connect(std::os::fd::AsRawFd::as_raw_fd(&socket), address).ok()?;
    Some(getsockopt(&socket, sockopt::PeerCredentials).ok()?.pid())
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

//! One bridge an interface: two of them would forward every frame twice.
//!
//! The lock is an abstract unix socket named after the interface's index. It belongs to the network namespace, as the
//! index does, needs no folder that others may write to, and is gone with its process, however that ends.

use std::os::fd::OwnedFd;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, getsockopt, listen, socket, sockopt,
};

use crate::error::LiveError;
use crate::sys::interface::Interface;

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _socket: OwnedFd,
}

impl Lock {
    /// Takes the lock of an interface.
    ///
    /// # Errors
    /// If another process has it.
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
        // Whoever finds the lock taken asks this socket for its process.
        listen(&socket, Backlog::new(1).expect("one is a backlog")).map_err(system())?;
        Ok(Lock { _socket: socket })
    }
}

/// The process that listens at `address`. None if it does not say, because its backlog is full of others who asked.
fn holder(address: &UnixAddr) -> Option<i32> {
    let socket = unix_socket().ok()?;
    connect(std::os::fd::AsRawFd::as_raw_fd(&socket), address).ok()?;
    Some(getsockopt(&socket, sockopt::PeerCredentials).ok()?.pid())
}

fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Unix, SockType::Stream, flags, None)
}

//! Reports that interfaces of this network namespace have changed: rtnetlink(7), group `RTMGRP_LINK`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// `RTMGRP_LINK` of linux/rtnetlink.h.
const LINK_GROUP: u32 = 1;

/// A subscription to changes of interfaces.
pub(crate) struct LinkChanges(Socket);

impl LinkChanges {
    /// Subscribes, in the network namespace of this thread.
    pub(crate) fn subscribe() -> io::Result<LinkChanges> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, LINK_GROUP))?;
        socket.set_non_blocking(true)?;
        Ok(LinkChanges(socket))
    }

    /// Discards all reports so far. What a report says may be outdated when it is read, so the receiver
    /// queries the interfaces instead. So lost reports (`ENOBUFS`) do no harm.
    pub(crate) fn discard(&self) {
        let mut buffer = [0u8; 512];
        loop {
            match self.0.recv(&mut &mut buffer[..], libc::MSG_TRUNC) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                Err(_) => return,
            }
        }
    }

    /// Returns the descriptor that becomes readable when an interface has changed.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

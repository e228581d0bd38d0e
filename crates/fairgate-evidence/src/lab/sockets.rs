//! Sockets of senders and receivers, made in the network namespace of the calling thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{self, AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, setsockopt, sockopt};

/// An address and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    pub(crate) address: Ipv4Addr,
    pub(crate) port: u16,
}

impl Endpoint {
    fn socket_address(self) -> SockaddrIn {
        SockaddrIn::from(SocketAddrV4::new(self.address, self.port))
    }
}

/// Settings of a TCP connection. They hold for both ends.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The congestion control, by the kernel's name.
    pub(crate) congestion: &'static str,
    /// The largest window that is offered, bytes. `None`: as the kernel decides.
    pub(crate) window: Option<u32>,
    pub(crate) dscp: u8,
}

/// How often a waiting thread looks whether the run ends.
pub(crate) const TICK: Duration = Duration::from_millis(20);

fn socket_of(kind: SockType, dscp: u8) -> nix::Result<OwnedFd> {
    let socket = socket::socket(AddressFamily::Inet, kind, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    setsockopt(&socket, sockopt::Ipv4Tos, &(i32::from(dscp) << 2))?;
    Ok(socket)
}

/// Returns a socket for datagrams between two places only.
pub(crate) fn datagrams(own: Endpoint, other: Endpoint, dscp: u8) -> io::Result<UdpSocket> {
    let socket = socket_of(SockType::Datagram, dscp)?;
    // The kernel notes when a datagram arrives, before a thread has woken up.
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    socket::bind(socket.as_raw_fd(), &own.socket_address())?;
    socket::connect(socket.as_raw_fd(), &other.socket_address())?;
    let socket = UdpSocket::from(socket);
    socket.set_read_timeout(Some(TICK))?;
    Ok(socket)
}

fn connection_socket(settings: &Settings) -> io::Result<OwnedFd> {
    let socket = socket_of(SockType::Stream, settings.dscp)?;
    setsockopt(&socket, sockopt::TcpCongestion, &settings.congestion.into())?;
    if let Some(window) = settings.window {
        // The buffer must not be the limit: it also holds the kernel's own memory for each segment.
        setsockopt(&socket, sockopt::RcvBuf, &(4 * window as usize))?;
        fairgate_live::testbed::clamp_window(&socket, window)?;
    }
    Ok(socket)
}

/// Returns a socket that accepts connections, and does not block.
pub(crate) fn listener(own: Endpoint, settings: &Settings) -> io::Result<TcpListener> {
    let socket = connection_socket(settings)?;
    socket::bind(socket.as_raw_fd(), &own.socket_address())?;
    socket::listen(&socket, Backlog::new(128)?)?;
    let listener = TcpListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Connects two places. `None` if `is_over` before it has succeeded.
pub(crate) fn connect(
    own: Endpoint,
    other: Endpoint,
    settings: &Settings,
    is_over: &dyn Fn() -> bool,
) -> io::Result<Option<TcpStream>> {
    let socket = connection_socket(settings)?;
    socket::bind(socket.as_raw_fd(), &own.socket_address())?;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(true)?;
    match socket::connect(stream.as_raw_fd(), &other.socket_address()) {
        Ok(()) => {}
        Err(Errno::EINPROGRESS) => loop {
            if is_over() {
                return Ok(None);
            }
            let mut waiting = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
            let tick = PollTimeout::try_from(TICK).expect("a tick is short");
            match poll(&mut waiting, tick) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            match stream.take_error()? {
                None => break,
                Some(error) => return Err(error),
            }
        },
        Err(errno) => return Err(errno.into()),
    }
    stream.set_nonblocking(false)?;
    Ok(Some(stream))
}

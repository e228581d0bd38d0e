//! What senders and receivers of a testbed need of the kernel besides the standard library.

use std::io;
use std::os::fd::AsFd;

use crate::sys::priority::set_realtime;
pub use crate::sys::tcp::TcpFigures;
use crate::sys::{tcp, udp};

/// Returns what the kernel counts for a TCP connection.
///
/// # Errors
/// Fails if the socket is not connected.
pub fn tcp_figures(socket: &impl AsFd) -> io::Result<TcpFigures> {
    TcpFigures::of(socket)
}

/// Limits the window that a TCP socket offers, bytes. Connections of a listening socket inherit it.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn clamp_window(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    tcp::clamp_window(socket, bytes)
}

/// Makes writes to a TCP socket wait while more than this many bytes are not sent yet.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn limit_unsent(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    tcp::limit_unsent(socket, bytes)
}

/// Makes a UDP socket send datagrams whole or not at all, whatever the kernel has heard of the path. A socket
/// of IPv6 may send to addresses of IPv4, too.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn send_whole(socket: &impl AsFd, is_ipv6: bool) -> io::Result<()> {
    udp::send_whole(socket, is_ipv6)
}

/// Gives the calling thread a higher priority than all ordinary threads, so that it sends and receives in
/// time on a busy machine.
///
/// # Errors
/// Fails if the kernel refuses.
pub fn prioritise() -> io::Result<()> {
    Ok(set_realtime()?)
}

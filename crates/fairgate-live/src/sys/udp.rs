//! A setting of UDP sockets that no crate wraps (ip(7), ipv6(7)).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

/// Sends datagrams whole or not at all, whatever the kernel has heard of the path: none is cut into fragments
/// by the sender, nor by a router (`DF`).
pub(crate) fn send_whole(socket: &impl AsFd, is_ipv6: bool) -> io::Result<()> {
    set(
        socket,
        libc::IPPROTO_IP,
        libc::IP_MTU_DISCOVER,
        libc::IP_PMTUDISC_PROBE,
    )?;
    if is_ipv6 {
        set(
            socket,
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            libc::IPV6_PMTUDISC_PROBE,
        )?;
    }
    Ok(())
}

fn set(socket: &impl AsFd, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the kernel reads four bytes of the live `value`.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    Errno::result(result)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_kernel_takes_it_and_datagrams_are_sent() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        send_whole(&socket, false).unwrap();
        assert_eq!(
            socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap(),
            1000
        );
        // A machine may have no IPv6.
        if let Ok(six) = UdpSocket::bind("[::1]:0") {
            send_whole(&six, true).unwrap();
        }
        // The options of IPv6 are none of an IPv4 socket's.
        assert!(send_whole(&socket, true).is_err());
    }
}

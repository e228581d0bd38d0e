//! Pings: ICMP echo requests to reflectors, by raw sockets.
//!
//! A raw socket needs cap_net_raw, which a run keeps anyway, and receives a copy of all that other programs
//! get by ICMP, too. So a request carries a random number of this process, and only an answer that has it
//! counts.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, recv, sendto, socket,
};

use crate::checksum::Sum;
use crate::error::LiveError;

/// The length of a request without IP header: the header of ICMP, the process's number and that of the probe.
const LENGTH: usize = 24;
/// The longest IPv4 header, with options.
const LONGEST_HEADER: usize = 60;

/// The types of echo messages: RFC 792 and RFC 4443.
const REQUEST_4: u8 = 8;
const ANSWER_4: u8 = 0;
const REQUEST_6: u8 = 128;
const ANSWER_6: u8 = 129;

/// Sends pings and receives their answers.
pub(super) struct Probes {
    reflectors: Vec<IpAddr>,
    /// For IPv4 and IPv6, if there is such a reflector.
    sockets: [Option<OwnedFd>; 2],
    secret: u64,
}

impl Probes {
    /// Opens the sockets. Call it before privileges are given up and system calls are limited.
    pub(super) fn open(reflectors: &[IpAddr]) -> Result<Probes, LiveError> {
        let open = |family: AddressFamily, protocol: SockProtocol| {
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            socket(family, SockType::Raw, flags, protocol)
                .map_err(LiveError::system("opening a socket for the pings of autorate"))
        };
        let is_wanted = |version: fn(&IpAddr) -> bool| reflectors.iter().any(version);
        let four = is_wanted(IpAddr::is_ipv4).then(|| open(AddressFamily::Inet, SockProtocol::Icmp));
        let six = is_wanted(IpAddr::is_ipv6).then(|| open(AddressFamily::Inet6, SockProtocol::IcmpV6));
        Ok(Probes {
            reflectors: reflectors.to_vec(),
            sockets: [four.transpose()?, six.transpose()?],
            secret: rand::random(),
        })
    }

    /// Returns the sockets, to wait for answers.
    pub(super) fn sockets(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sockets.iter().flatten().map(AsFd::as_fd)
    }

    /// Sends probe `number` to a reflector. What the kernel refuses is an unanswered probe: a line without a
    /// route has no delay either.
    pub(super) fn send(&self, number: u64, reflector: usize) {
        let address = self.reflectors[reflector];
        let version = usize::from(address.is_ipv6());
        let Some(socket) = &self.sockets[version] else {
            return;
        };
        let request = request(address.is_ipv6(), self.secret, number);
        let to = SockaddrStorage::from(SocketAddr::new(address, 0));
        let _ = sendto(socket.as_raw_fd(), &request, &to, MsgFlags::MSG_DONTWAIT);
    }

    /// Returns the number of the next probe that was answered. `None` if no answer waits.
    pub(super) fn receive(&self) -> Option<u64> {
        let mut buffer = [0; LONGEST_HEADER + LENGTH];
        for (version, socket) in self.sockets.iter().enumerate() {
            let Some(socket) = socket else { continue };
            loop {
                match recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT) {
                    Ok(length) => {
                        if let Some(number) = answer(version == 1, &buffer[..length], self.secret) {
                            return Some(number);
                        }
                    }
                    Err(Errno::EINTR) => {}
                    // Nothing waits, or the error of an earlier probe was reported.
                    Err(_) => break,
                }
            }
        }
        None
    }
}

/// Returns the ICMP message of a request.
fn request(is_ipv6: bool, secret: u64, number: u64) -> [u8; LENGTH] {
    let mut message = [0; LENGTH];
    message[0] = if is_ipv6 { REQUEST_6 } else { REQUEST_4 };
    // Identifier and sequence number, for address translation on the way: it tells echoes apart by them.
    message[4..6].copy_from_slice(&(secret as u16).to_be_bytes());
    message[6..8].copy_from_slice(&(number as u16).to_be_bytes());
    message[8..16].copy_from_slice(&secret.to_be_bytes());
    message[16..24].copy_from_slice(&number.to_be_bytes());
    if !is_ipv6 {
        // The kernel adds that of ICMPv6.
        let sum = Sum::default().add(&message).finish();
        message[2..4].copy_from_slice(&sum);
    }
    message
}

/// Returns the number of the probe if the packet is an answer to one of this process.
fn answer(is_ipv6: bool, packet: &[u8], secret: u64) -> Option<u64> {
    let message = match is_ipv6 {
        true => packet,
        // A raw socket of IPv4 gets the header, too.
        false => packet.get(usize::from(packet.first()? & 15) * 4..)?,
    };
    let expected = if is_ipv6 { ANSWER_6 } else { ANSWER_4 };
    let word = |from: usize| Some(u64::from_be_bytes(message.get(from..from + 8)?.try_into().ok()?));
    let is_ours = message.first() == Some(&expected) && word(8)? == secret;
    is_ours.then(|| word(16)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a reflector makes of a request.
    fn answered(is_ipv6: bool, request: &[u8]) -> Vec<u8> {
        let mut packet = match is_ipv6 {
            true => Vec::new(),
            false => {
                let mut header = vec![0; 24];
                header[0] = 0x46;
                header
            }
        };
        packet.extend_from_slice(request);
        let start = packet.len() - request.len();
        packet[start] = if is_ipv6 { ANSWER_6 } else { ANSWER_4 };
        packet
    }

    #[test]
    fn answers_have_the_number_of_their_request() {
        for is_ipv6 in [false, true] {
            let request = request(is_ipv6, 7, 1 << 40);
            let packet = answered(is_ipv6, &request);
            assert_eq!(answer(is_ipv6, &packet, 7), Some(1 << 40));
            // Those of other processes, and what is no answer.
            assert_eq!(answer(is_ipv6, &packet, 8), None);
            assert_eq!(answer(is_ipv6, &request, 7), None);
            for length in 0..packet.len() {
                assert_eq!(answer(is_ipv6, &packet[..length], 7), None);
            }
        }
    }

    #[test]
    fn the_checksum_makes_the_sum_zero() {
        let request = request(false, 0x1234_5678_9abc_def0, 99);
        assert_eq!(Sum::default().add(&request).finish(), [0, 0]);
    }
}

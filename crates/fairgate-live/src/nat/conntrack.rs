//! The kernel's table of connections, by ctnetlink (linux/netfilter/nfnetlink_conntrack.h).
//!
//! Events come first, so that nothing is missed between them and the dump. If the kernel has dropped events,
//! because this thread was too slow (`ENOBUFS`), all connections are dumped again.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use fairgate::FlowHasher;
use netlink_packet_core::NlasIterator;
use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{setsockopt, sockopt};

use super::{Endpoint, Translated, Translations, Writer, is_icmp};

/// Of linux/netfilter/nfnetlink.h and nfnetlink_conntrack.h: the messages, and the groups of events.
const SUBSYSTEM: u16 = 1;
const NEW: u16 = SUBSYSTEM << 8;
const GET: u16 = SUBSYSTEM << 8 | 1;
const DELETE: u16 = SUBSYSTEM << 8 | 2;
const GROUP_NEW: u32 = 1;
const GROUP_DESTROY: u32 = 3;

/// Attributes of a connection, of its tuples and of their parts.
const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const TUPLE_IP: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;
const IPV4_SOURCE: u16 = 1;
const IPV4_DESTINATION: u16 = 2;
const IPV6_SOURCE: u16 = 3;
const IPV6_DESTINATION: u16 = 4;
const PROTOCOL_NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;
const ICMP_IDENTIFIER: u16 = 4;
const ICMPV6_IDENTIFIER: u16 = 7;

/// The length of `struct nlmsghdr`, and of `struct nfgenmsg` after it.
const HEADER: usize = 16;
const GENERIC: usize = 4;

/// How many bytes of events the kernel keeps for us: those of about 10,000 connections.
const EVENT_BUFFER: usize = 4 << 20;
/// The longest answer of a dump (linux/netlink.h, `NLMSG_GOODSIZE`), and some room.
const LONGEST: usize = 64 << 10;

/// The pause before all connections are dumped again, ms.
const BETWEEN_DUMPS: u8 = 100;

/// One direction of a connection, as its packets are before any translation of this direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tuple {
    pub(super) protocol: u8,
    pub(super) source: Endpoint,
    pub(super) destination: Endpoint,
}

/// A connection: what its packets are like in the direction of the first one, and in the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub(super) original: Tuple,
    pub(super) reply: Tuple,
}

impl Connection {
    /// Returns each translated place, with the one in the LAN that it stands for.
    pub(super) fn translations(&self) -> impl Iterator<Item = (Translated, Endpoint)> {
        let Connection { original, reply } = *self;
        let at = |tuple: Tuple, lan: Endpoint| {
            let mut translated = Translated {
                protocol: tuple.protocol,
                peer: tuple.source,
                public: tuple.destination,
            };
            let mut differs = tuple.destination != lan;
            if is_icmp(tuple.protocol) {
                // One identifier is that of both ends. It may change where only the other end is translated.
                translated.peer.port = 0;
                differs = tuple.destination.address != lan.address;
            }
            differs.then_some((translated, lan))
        };
        // Answers go to the public place instead of the host that asks (SNAT), and requests from outside to
        // the public place instead of the host that answers (DNAT).
        [at(reply, original.source), at(original, reply.source)]
            .into_iter()
            .flatten()
    }
}

/// What a message says.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    New(Connection),
    Gone(Connection),
    /// The dump is complete.
    Done,
    Failed(i32),
    /// Nothing that is of interest here.
    Other,
}

/// Returns the first message of `bytes` and what follows it.
fn first(bytes: &[u8]) -> Option<(Said, &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    if length < HEADER {
        return None;
    }
    let body = bytes.get(HEADER..length)?;
    let rest = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    let connection = || body.get(GENERIC..).and_then(connection);
    let said = match kind {
        NEW => connection().map_or(Said::Other, Said::New),
        DELETE => connection().map_or(Said::Other, Said::Gone),
        // An error at the end of a dump is in the message itself.
        netlink_packet_core::NLMSG_DONE => match body.first_chunk() {
            Some(&error) if i32::from_ne_bytes(error) < 0 => Said::Failed(-i32::from_ne_bytes(error)),
            _ => Said::Done,
        },
        netlink_packet_core::NLMSG_ERROR => match i32::from_ne_bytes(*body.first_chunk()?) {
            0 => Said::Other,
            error => Said::Failed(-error),
        },
        _ => Said::Other,
    };
    Some((said, rest))
}

/// The kinds and values of attributes, up to the first damaged one.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let nlas = NlasIterator::new(bytes).map_while(Result::ok);
    nlas.map(|nla| {
        // It was checked: the header is there, and as many bytes as it says.
        let (kind, length) = (nla.kind(), usize::from(nla.length()));
        (kind, &nla.into_inner()[4..length])
    })
}

fn connection(bytes: &[u8]) -> Option<Connection> {
    let (mut original, mut reply) = (None, None);
    for (kind, value) in attributes(bytes) {
        match kind {
            TUPLE_ORIGINAL => original = tuple(value),
            TUPLE_REPLY => reply = tuple(value),
            _ => {}
        }
    }
    Some(Connection {
        original: original?,
        reply: reply?,
    })
}

fn tuple(bytes: &[u8]) -> Option<Tuple> {
    let mut tuple = Tuple::default();
    let mut identifier = None;
    for (kind, value) in attributes(bytes) {
        for (part, value) in attributes(value) {
            let port = || value.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
            match (kind, part) {
                (TUPLE_IP, IPV4_SOURCE | IPV6_SOURCE) => tuple.source.address = address(value)?,
                (TUPLE_IP, IPV4_DESTINATION | IPV6_DESTINATION) => {
                    tuple.destination.address = address(value)?;
                }
                (TUPLE_PROTOCOL, PROTOCOL_NUMBER) => tuple.protocol = *value.first()?,
                (TUPLE_PROTOCOL, SOURCE_PORT) => tuple.source.port = port()?,
                (TUPLE_PROTOCOL, DESTINATION_PORT) => tuple.destination.port = port()?,
                (TUPLE_PROTOCOL, ICMP_IDENTIFIER | ICMPV6_IDENTIFIER) => identifier = port(),
                _ => {}
            }
        }
    }
    if is_icmp(tuple.protocol) {
        // It is the port of the translated end, whichever that is.
        (tuple.source.port, tuple.destination.port) = (identifier?, identifier?);
    } else if !has_ports(tuple.protocol) {
        // The kernel shows the keys of GRE as ports.
        (tuple.source.port, tuple.destination.port) = (0, 0);
    }
    Some(tuple)
}

/// TCP, DCCP, UDP, SCTP, UDP-Lite.
fn has_ports(protocol: u8) -> bool {
    matches!(protocol, 6 | 17 | 33 | 132 | 136)
}

fn address(bytes: &[u8]) -> Option<[u8; 16]> {
    match bytes.len() {
        4 => Some(
            Ipv4Addr::from_octets(*bytes.first_chunk()?)
                .to_ipv6_mapped()
                .octets(),
        ),
        16 => Some(Ipv6Addr::from_octets(*bytes.first_chunk()?).octets()),
        _ => None,
    }
}

/// The sockets, before their thread runs.
pub(super) struct Subscription {
    events: Socket,
    dumps: Socket,
    writer: Writer,
}

/// The thread that keeps the table up to date, until this is dropped.
#[derive(Debug)]
pub(super) struct Tracker {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// Subscribes to the connections of this thread's network namespace, and reads those that there are. It needs
/// `cap_net_admin`.
///
/// # Errors
/// Fails if the kernel has no table of connections, or does not show it.
pub(super) fn subscribe(hasher: FlowHasher) -> io::Result<Subscription> {
    let mut events = Socket::new(NETLINK_NETFILTER)?;
    events.bind_auto()?;
    setsockopt(&events, sockopt::RcvBufForce, &EVENT_BUFFER)?;
    events.set_non_blocking(true)?;
    for group in [GROUP_NEW, GROUP_DESTROY] {
        events.add_membership(group)?;
    }
    let mut dumps = Socket::new(NETLINK_NETFILTER)?;
    dumps.bind_auto()?;
    let mut subscription = Subscription {
        events,
        dumps,
        writer: Writer::new(Arc::new(Translations::new(hasher))),
    };
    subscription.dump()?;
    Ok(subscription)
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    /// Returns the table that it writes.
    pub(super) fn table(&self) -> Arc<Translations> {
        Arc::clone(&self.writer.table)
    }

    /// Starts the thread.
    pub(super) fn start(self) -> io::Result<Tracker> {
        let stop = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        let stop = Arc::new(stop);
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("fairgate-nat".to_owned())
            .spawn(move || self.follow(&stopped))?;
        Ok(Tracker {
            stop,
            thread: Some(thread),
        })
    }

    /// Reads all connections that there are.
    fn dump(&mut self) -> io::Result<()> {
        self.writer.begin_dump();
        let mut request = [0; HEADER + GENERIC];
        let length = request.len() as u32;
        request[..4].copy_from_slice(&length.to_ne_bytes());
        request[4..6].copy_from_slice(&GET.to_ne_bytes());
        let flags = netlink_packet_core::NLM_F_REQUEST | netlink_packet_core::NLM_F_DUMP;
        request[6..8].copy_from_slice(&flags.to_ne_bytes());
        // The family of `nfgenmsg` is 0: all families.
        self.dumps.send_to(&request, &SocketAddr::new(0, 0), 0)?;
        let mut buffer = Vec::with_capacity(LONGEST);
        loop {
            buffer.clear();
            match self.dumps.recv(&mut buffer, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            let mut rest = &buffer[..];
            while let Some((said, others)) = first(rest) {
                rest = others;
                match said {
                    Said::New(connection) => self.writer.add(&connection),
                    Said::Done => {
                        self.writer.end_dump();
                        return Ok(());
                    }
                    Said::Failed(error) => return Err(io::Error::from_raw_os_error(error)),
                    Said::Gone(_) | Said::Other => {}
                }
            }
        }
    }

    fn follow(mut self, stop: &EventFd) {
        let mut is_behind = false;
        loop {
            if is_behind {
                // The kernel must not be asked for all connections without pause.
                let mut stopped = [PollFd::new(stop.as_fd(), PollFlags::POLLIN)];
                if poll(&mut stopped, BETWEEN_DUMPS).is_ok_and(|count| count > 0) {
                    return;
                }
                self.take_events();
                // If this fails, too, what is known stays, and the next event leads here again.
                is_behind = self.dump().is_err();
            }
            let mut ready = [
                PollFd::new(self.events.as_fd(), PollFlags::POLLIN),
                PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            ];
            let polled = poll(&mut ready, PollTimeout::NONE);
            if polled.is_ok() && ready[1].any().unwrap_or_default() {
                return;
            }
            is_behind |= self.take_events();
        }
    }

    /// Takes in the events so far. Returns whether some are missing.
    fn take_events(&mut self) -> bool {
        let mut buffer = Vec::with_capacity(LONGEST);
        let mut are_missing = false;
        loop {
            buffer.clear();
            match self.events.recv(&mut buffer, 0) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return are_missing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    are_missing = true;
                    continue;
                }
                Err(_) => return true,
            }
            let mut rest = &buffer[..];
            while let Some((said, others)) = first(rest) {
                rest = others;
                match said {
                    Said::New(connection) => self.writer.add(&connection),
                    Said::Gone(connection) => self.writer.remove(&connection),
                    Said::Done | Said::Failed(_) | Said::Other => {}
                }
            }
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let _ = self.stop.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let length = 4 + value.len() as u16;
        let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend_from_slice(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
        attribute(kind | 0x8000, &parts.concat())
    }

    /// A tuple as the kernel writes it.
    fn written(kind: u16, addresses: [&[u8]; 2], protocol: u8, ports: &[(u16, u16)]) -> Vec<u8> {
        let first = if addresses[0].len() == 4 {
            IPV4_SOURCE
        } else {
            IPV6_SOURCE
        };
        let mut parts = vec![attribute(PROTOCOL_NUMBER, &[protocol])];
        parts.extend(
            ports
                .iter()
                .map(|(kind, port)| attribute(*kind, &port.to_be_bytes())),
        );
        let ip = [attribute(first, addresses[0]), attribute(first + 1, addresses[1])];
        nested(kind, &[nested(TUPLE_IP, &ip), nested(TUPLE_PROTOCOL, &parts)])
    }

    fn message(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
        let body = [vec![2, 0, 0, 0], parts.concat()].concat();
        let mut bytes = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn connections_are_read() {
        let (lan, router, server) = ([10, 0, 0, 2], [203, 0, 113, 1], [198, 51, 100, 7]);
        let ports = |from, to| [(SOURCE_PORT, from), (DESTINATION_PORT, to)];
        let tuples = [
            written(TUPLE_ORIGINAL, [&lan, &server], 17, &ports(5000, 53)),
            written(TUPLE_REPLY, [&server, &router], 17, &ports(53, 1024)),
            // Marks, counters and the like.
            attribute(8, &[0; 4]),
        ];
        let bytes = [message(NEW, &tuples), message(DELETE, &tuples)].concat();
        let (said, rest) = first(&bytes).unwrap();
        let Said::New(connection) = said else {
            panic!("{said:?}")
        };
        assert_eq!(first(rest).unwrap(), (Said::Gone(connection), &[][..]));
        let [(translated, place)] = connection.translations().collect::<Vec<_>>()[..] else {
            panic!("{connection:?}")
        };
        let mapped = |octets: [u8; 4]| Ipv4Addr::from_octets(octets).to_ipv6_mapped().octets();
        assert_eq!((place.address, place.port), (mapped(lan), 5000));
        assert_eq!(
            (translated.public.address, translated.public.port),
            (mapped(router), 1024)
        );
        assert_eq!(
            (translated.peer.address, translated.peer.port),
            (mapped(server), 53)
        );

        let (host, peer) = ([0xfd; 16], [0x20; 16]);
        let echo =
            |kind, from: &[u8; 16], to: &[u8; 16]| written(kind, [from, to], 58, &[(ICMPV6_IDENTIFIER, 77)]);
        let bytes = message(
            NEW,
            &[
                echo(TUPLE_ORIGINAL, &host, &peer),
                echo(TUPLE_REPLY, &peer, &host),
            ],
        );
        let (Said::New(connection), _) = first(&bytes).unwrap() else {
            panic!("it is new")
        };
        assert_eq!(
            (
                connection.original.source.address,
                connection.original.source.port
            ),
            (host, 77)
        );
        assert_eq!(connection.translations().count(), 0);
    }

    #[test]
    fn the_end_of_a_dump_and_errors_are_read() {
        let mut done = message(netlink_packet_core::NLMSG_DONE, &[]);
        done[HEADER] = 0;
        assert_eq!(first(&done).unwrap().0, Said::Done);
        let mut failed = message(netlink_packet_core::NLMSG_ERROR, &[]);
        failed[HEADER..HEADER + 4].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(first(&failed).unwrap().0, Said::Failed(libc::EPERM));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Whatever the bytes are, reading them ends.
        #[test]
        fn damaged_messages_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u16..3) {
            let mut bytes = bytes;
            if bytes.len() >= HEADER {
                let length = bytes.len() as u32;
                bytes[..4].copy_from_slice(&length.to_ne_bytes());
                bytes[4..6].copy_from_slice(&(NEW | kind).to_ne_bytes());
            }
            let mut rest = &bytes[..];
            while let Some((_, others)) = first(rest) {
                prop_assert!(others.len() < rest.len());
                rest = others;
            }
        }
    }
}
